//! What the user's index tracks: which paths, and which of them are not meant to be on disk.
//!
//! Only names, modes and ids are taken from it. Its flags and its stat data are not trusted, but
//! for one thing: a path that is missing and marked skip-worktree was left out by a sparse checkout.
//! The common formats are read here, because starting git costs more than reading; whatever else
//! there is (split, sparse, newer) is left to `git ls-files`.

use std::path::Path;

use super::oid::{LEN, Oid};
use crate::git::{Error, Git};

/// Mode of a submodule.
pub(crate) const GITLINK: u32 = 0o160_000;
/// Extensions in lower case must be understood; these two change what the entries mean.
const SIGNATURE: &[u8; 4] = b"DIRC";
/// Bytes of an entry before its name: ten numbers, the id, the flags.
const FIXED: usize = 40 + LEN + 2;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;

/// One tracked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracked {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) oid: Oid,
    pub(crate) skipped: bool,
}

/// All tracked paths, sorted; of unmerged ones each path once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Tracked>,
}

impl Index {
    /// Reads it; no index is an empty one.
    pub(crate) fn read(dir: &Path, file: &Path) -> Result<Self, Error> {
        let Ok(data) = std::fs::read(file) else { return Ok(Self::default()) };
        let mut entries = match parse(&data) {
            Some(entries) => entries,
            None => list(dir)?,
        };
        entries.dedup_by(|later, first| later.path == first.path);
        Ok(Self { entries })
    }

    /// A tracked path.
    pub(crate) fn get(&self, path: &[u8]) -> Option<&Tracked> {
        let found = self.entries.binary_search_by(|e| e.path.as_slice().cmp(path));
        found.ok().map(|at| &self.entries[at])
    }

    /// Whether anything below a folder is tracked.
    pub(crate) fn has_below(&self, folder: &[u8]) -> bool {
        let mut start = folder.to_vec();
        start.push(b'/');
        let at = self.entries.partition_point(|e| e.path < start);
        self.entries.get(at).is_some_and(|e| e.path.starts_with(&start))
    }
}

fn parse(data: &[u8]) -> Option<Vec<Tracked>> {
    let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    if data.get(..4)? != SIGNATURE {
        return None;
    }
    let version = number(4)?;
    if !(2..=3).contains(&version) {
        return None;
    }
    let count = number(8)? as usize;
    let (mut at, mut entries) = (12, Vec::with_capacity(count.min(data.len() / FIXED)));
    for _ in 0..count {
        let flags = u16::from_be_bytes(data.get(at + FIXED - 2..at + FIXED)?.try_into().ok()?);
        let mut name_at = at + FIXED;
        let mut skipped = false;
        if flags & EXTENDED != 0 {
            let more = u16::from_be_bytes(data.get(name_at..name_at + 2)?.try_into().ok()?);
            skipped = more & SKIP_WORKTREE != 0;
            name_at += 2;
        }
        let rest = data.get(name_at..)?;
        let len = rest.iter().position(|b| *b == 0)?;
        entries.push(Tracked {
            path: rest[..len].to_vec(),
            mode: number(at + 24)?,
            oid: Oid::from_bytes(data.get(at + 40..at + 40 + LEN)?)?,
            skipped,
        });
        // Entries end in one to eight zero bytes, at a multiple of eight.
        at += (name_at - at + len + 8) & !7;
    }
    extensions_are_harmless(data, at).then_some(entries)
}

/// Extensions with a lower-case name change the meaning of the entries.
fn extensions_are_harmless(data: &[u8], mut at: usize) -> bool {
    while at + LEN + 8 <= data.len() {
        let (name, size) = (&data[at..at + 4], &data[at + 4..at + 8]);
        if name[0].is_ascii_lowercase() {
            return false;
        }
        let size = size.try_into().map_or(u32::MAX, u32::from_be_bytes) as usize;
        at = at.saturating_add(8).saturating_add(size);
    }
    at + LEN == data.len()
}

/// Asks git: `TAG MODE OID STAGE<tab>PATH`.
fn list(dir: &Path) -> Result<Vec<Tracked>, Error> {
    let text = Git::at(dir).args(["ls-files", "-z", "-s", "-t"]).bytes()?;
    let lines = text.split(|b| *b == 0).filter(|line| !line.is_empty());
    lines.map(|line| parse_line(line).ok_or_else(|| unreadable(line))).collect()
}

fn unreadable(line: &[u8]) -> Error {
    Error {
        command: "ls-files -z -s -t".to_owned(),
        code: Some(0),
        message: format!("unexpected line {:?}", String::from_utf8_lossy(line)),
    }
}

fn parse_line(line: &[u8]) -> Option<Tracked> {
    let tab = line.iter().position(|b| *b == b'\t')?;
    let head = std::str::from_utf8(&line[..tab]).ok()?;
    let words: Vec<&str> = head.split(' ').collect();
    let &[tag, mode, oid, _stage] = words.as_slice() else { return None };
    Some(Tracked {
        path: line[tab + 1..].to_vec(),
        mode: u32::from_str_radix(mode, 8).ok()?,
        oid: Oid::from_hex(oid.as_bytes())?,
        skipped: tag == "S",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_index_is_left_to_git() {
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"DIRC\0\0\0\x02\0\0\0\x01"), None);
        assert_eq!(parse(b"DIRC\0\0\0\x04\0\0\0\x00"), None);
    }

    #[test]
    fn lines_of_git_are_read() {
        let line = b"S 100644 4b825dc642cb6eb9a060e54bf8d69288fbee4904 0\ta\nb";
        let entry = parse_line(line).map(|e| (e.path, e.mode, e.skipped));
        assert_eq!(entry, Some((b"a\nb".to_vec(), 0o100_644, true)));
    }
}
