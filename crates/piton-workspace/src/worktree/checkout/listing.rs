//! What a commit holds, in the order of an index.

use std::ops::Range;
use std::path::Path;

use crate::git::Git;
use crate::objects::{EXEC, FILE, LINK, Oid, TREE};

/// A file or folder of a commit.
#[derive(Debug)]
pub(super) struct Listed {
    pub mode: u32,
    pub oid: Oid,
    path: Range<usize>,
}

/// All files and folders of a commit, each folder before what is in it.
#[derive(Debug)]
pub(super) struct Listing {
    bytes: Vec<u8>,
    pub files: Vec<Listed>,
    pub folders: Vec<Listed>,
}

impl Listing {
    /// A path from the top.
    pub fn path(&self, listed: &Listed) -> &[u8] {
        &self.bytes[listed.path.clone()]
    }
}

/// Lists a commit; `None` if it holds something that is not for us.
pub(super) fn read(dir: &Path, commit: &str) -> Option<Listing> {
    let bytes =
        Git::at(dir).args(["ls-tree", "-r", "-t", "-z", "--full-tree", commit]).bytes().ok()?;
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        // `MODE TYPE ID<tab>PATH<nul>`
        let line = &bytes[at..];
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let end = line.iter().position(|byte| *byte == 0)?;
        let path = at + tab + 1..at + end;
        let mut words = line.get(..tab)?.split(|byte| *byte == b' ');
        let mode = u32::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 8).ok()?;
        // Another length is another hash.
        let oid = Oid::from_hex(words.nth(1)?)?;
        let name = bytes.get(path.clone())?;
        // A link in the place of one of git's own files is for git to judge.
        let is_own = || name.windows(4).any(|name| name == b".git");
        let all = match mode {
            _ if !is_safe(name) => return None,
            TREE => &mut folders,
            FILE | EXEC => &mut files,
            LINK if !is_own() => &mut files,
            _ => return None,
        };
        all.push(Listed { mode, oid, path });
        at += end + 1;
    }
    Some(Listing { bytes, files, folders })
}

/// Tells whether a path leads nowhere it should not. Names that git refuses, under whichever system
/// they would be dangerous, shall be refused by git itself.
fn is_safe(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|part| {
        let starts = |start: &[u8]| {
            part.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
        };
        let own = starts(b".git") && part.get(4).is_none_or(|next| b" .:".contains(next));
        !own && !starts(b"git~") && !part.contains(&b'\\') && !matches!(part, b"" | b"." | b"..")
    })
}
