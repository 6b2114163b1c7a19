//! What a commit holds, in the order of an index.

use std::path::Path;

use crate::git::Git;

/// The bytes of a SHA-1.
pub(super) const ID_BYTES: usize = 20;

/// The kinds of file an index knows; folders and submodules are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Program,
    Link,
}

impl Kind {
    /// The mode in an index.
    pub fn mode(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Program => 0o100_755,
            Self::Link => 0o120_000,
        }
    }
}

/// A file of a commit.
#[derive(Debug)]
pub(super) struct Listed {
    pub kind: Kind,
    pub id: [u8; ID_BYTES],
    path: std::ops::Range<usize>,
}

/// A folder of a commit.
#[derive(Debug)]
pub(super) struct Folder {
    pub id: [u8; ID_BYTES],
    path: std::ops::Range<usize>,
}

/// All files and folders of a commit, the top folder first, each folder before what is in it.
#[derive(Debug)]
pub(super) struct Listing {
    bytes: Vec<u8>,
    pub files: Vec<Listed>,
    pub folders: Vec<Folder>,
}

impl Listing {
    /// The path of a file, relative to the top.
    pub fn path(&self, file: &Listed) -> &[u8] {
        &self.bytes[file.path.clone()]
    }

    /// The path of a folder; empty for the top.
    pub fn folder_path(&self, folder: &Folder) -> &[u8] {
        &self.bytes[folder.path.clone()]
    }
}

/// Lists a commit; `None` if it holds something that is not for us.
pub(super) fn read(dir: &Path, commit: &str) -> Option<Listing> {
    let root = Git::at(dir).args(["rev-parse", "--verify", "-q"]).arg(format!("{commit}^{{tree}}"));
    let root = folder_id(root.text().ok()?.as_bytes())?;
    let bytes =
        Git::at(dir).args(["ls-tree", "-r", "-t", "-z", "--full-tree", commit]).bytes().ok()?;
    let mut files = Vec::new();
    let mut folders = vec![Folder { id: root, path: 0..0 }];
    let mut at = 0;
    while at < bytes.len() {
        // `MODE TYPE ID<tab>PATH<nul>`
        let line = &bytes[at..];
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let end = line.iter().position(|byte| *byte == 0)?;
        let path = at + tab + 1..at + end;
        let mut words = line.get(..tab)?.split(|byte| *byte == b' ');
        let (mode, _, id) = (words.next()?, words.next()?, folder_id(words.next()?)?);
        if !is_safe(bytes.get(path.clone())?) {
            return None;
        }
        match mode {
            b"040000" => folders.push(Folder { id, path }),
            b"100644" => files.push(Listed { kind: Kind::File, id, path }),
            b"100755" => files.push(Listed { kind: Kind::Program, id, path }),
            // A link in the place of one of git's own files is for git to judge.
            b"120000" if !bytes[path.clone()].windows(4).any(|name| name == b".git") => {
                files.push(Listed { kind: Kind::Link, id, path });
            }
            _ => return None,
        }
        at += end + 1;
    }
    Some(Listing { bytes, files, folders })
}

/// An id from its digits; another length is another hash.
fn folder_id(digits: &[u8]) -> Option<[u8; ID_BYTES]> {
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let mut id = [0; ID_BYTES];
    if digits.len() != 2 * ID_BYTES {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(id)
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
