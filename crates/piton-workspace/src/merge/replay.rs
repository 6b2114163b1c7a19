//! Commits as bytes: taken from one place in history and written to another.
//!
//! Author, committer, dates, encoding and message stay byte for byte, so that the same commits on
//! the same base give the same result each time. A signature is dropped, for it would be wrong.

use std::path::Path;

use super::{Error, Result};
use crate::git::Git;

/// Headers that speak about the old commit.
const DROPPED: [&[u8]; 5] = [b"tree ", b"parent ", b"gpgsig ", b"gpgsig-sha256 ", b"mergetag "];

/// A commit as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub id: String,
    pub tree: String,
    pub parents: Vec<String>,
    headers: Vec<Vec<u8>>,
    message: Vec<u8>,
}

impl Commit {
    /// Reads one.
    pub fn read(dir: &Path, id: &str) -> Result<Self> {
        let bytes = Git::at(dir).args(["cat-file", "commit", id]).bytes()?;
        Self::parse(id, &bytes).ok_or(Error::Strange("cat-file"))
    }

    fn parse(id: &str, bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
        let message = bytes.get(end + 2..).unwrap_or_default().to_owned();
        let (mut tree, mut parents, mut headers) = (None, Vec::new(), Vec::new());
        let mut dropping = false;
        for line in bytes.get(..end)?.split(|byte| *byte == b'\n') {
            // A header goes on in the lines that begin with a space.
            dropping = if line.starts_with(b" ") {
                dropping
            } else {
                DROPPED.iter().any(|header| line.starts_with(header))
            };
            let text = || String::from_utf8_lossy(line);
            if let Some(id) = text().strip_prefix("tree ") {
                tree = Some(id.to_owned());
            } else if let Some(id) = text().strip_prefix("parent ") {
                parents.push(id.to_owned());
            }
            if !dropping {
                headers.push(line.to_owned());
            }
        }
        Some(Self { id: id.to_owned(), tree: tree?, parents, headers, message })
    }

    /// The first line of its message.
    pub fn subject(&self) -> String {
        let line = self.message.split(|byte| *byte == b'\n').next().unwrap_or_default();
        String::from_utf8_lossy(line).into_owned()
    }

    /// Replaces the message.
    pub fn with_message(mut self, message: String) -> Self {
        self.message = message.into_bytes();
        self
    }

    /// Writes it with another tree on another parent; durable when this returns.
    pub fn write(&self, dir: &Path, tree: &str, parent: &str) -> Result<String> {
        let mut bytes = format!("tree {tree}\nparent {parent}\n").into_bytes();
        for line in &self.headers {
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.message);
        let git = Git::at(dir).durable().args(["hash-object", "-t", "commit", "-w", "--stdin"]);
        Ok(git.input(bytes).text()?)
    }
}
