//! What the user's index tracks: which paths, and which of them are not meant to be on disk.
//!
//! Only names, modes and ids are taken from it. Its flags and its stat data are not trusted, but
//! for one thing: in a sparse checkout a path that is missing and marked skip-worktree was left out.
//! The common formats are read here, because starting git costs more than reading; whatever else
//! there is (split, sparse, newer) is left to `git ls-files`. An index is written only for a fresh
//! checkout.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sha1::{Digest as _, Sha1};

use crate::files::join;
use crate::git::{self, Error, Git};
use crate::objects::{LEN, Oid};

/// How an index begins.
const SIGNATURE: &[u8; 4] = b"DIRC";
/// Bytes of an entry before its name: ten numbers, the id, the flags.
const FIXED: usize = 40 + LEN + 2;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;
/// The bits of the flags that say which side of a merge an entry is.
const STAGE: u16 = 0x3000;

/// Names this long or longer have no length in the flags.
const NAME_LENGTH_MAX: usize = 0xFFF;

/// What an index keeps of what the system says about a file, the lower half of each number: ctime and
/// mtime, device, number, mode, owner, group, size.
pub(crate) type Stat = [u32; 10];
const MODE: usize = 6;

/// The same of a file that a commit has with a mode.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index keeps the lower 32 bits of each number"
)]
pub(crate) fn stat(found: &Metadata, mode: u32) -> Stat {
    let times = [found.ctime(), found.ctime_nsec(), found.mtime(), found.mtime_nsec()];
    let [ctime, ctime_nsec, mtime, mtime_nsec] = times.map(|time| time as u32);
    let [device, number, size] = [found.dev(), found.ino(), found.size()].map(|n| n as u32);
    let (owner, group) = (found.uid(), found.gid());
    [ctime, ctime_nsec, mtime, mtime_nsec, device, number, mode, owner, group, size]
}

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
        let start = join(folder, b"");
        let at = self.entries.partition_point(|e| e.path < start);
        self.entries.get(at).is_some_and(|e| e.path.starts_with(&start))
    }
}

/// How many entries an index says it has; `None` if there is none.
pub(crate) fn count(file: &Path) -> Option<usize> {
    use std::io::Read as _;
    let mut head = [0; 12];
    std::fs::File::open(file).ok()?.read_exact(&mut head).ok()?;
    let count = u32::from_be_bytes(head[8..].try_into().ok()?);
    (head[..4] == *SIGNATURE).then_some(count as usize)
}

/// The tree that an index holds, if it says so: git notes it whenever it reads a tree into an
/// index, and takes the note away with the first change.
pub(crate) fn tree(file: &Path) -> Option<Oid> {
    let data = std::fs::read(file).ok()?;
    let mut at = walk(&data, |_| {})?;
    while at + LEN + 8 <= data.len() {
        let (name, size) = (&data[at..at + 4], &data[at + 4..at + 8]);
        let size = u32::from_be_bytes(size.try_into().ok()?) as usize;
        let body = data.get(at + 8..at + 8 + size)?;
        if name == b"TREE" {
            // The top has no name: NUL, `ENTRIES FOLDERS<newline>`, the id if entries are known.
            let line = body.strip_prefix(b"\0")?;
            let end = line.iter().position(|byte| *byte == b'\n')?;
            let known = line.first().is_some_and(u8::is_ascii_digit);
            return Oid::from_bytes(line.get(end + 1..end + 1 + LEN)?).filter(|_| known);
        }
        if name[0].is_ascii_lowercase() {
            return None;
        }
        at += 8 + size;
    }
    None
}

/// The paths that a merge left undecided, each once.
pub(crate) fn unmerged(dir: &Path, file: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let Ok(data) = std::fs::read(file) else { return Ok(Vec::new()) };
    let mut paths: Vec<Vec<u8>> = Vec::new();
    let read = walk(&data, |entry| {
        if entry.flags & STAGE != 0 {
            paths.push(entry.path.to_vec());
        }
    });
    if !read.is_some_and(|at| extensions_are_harmless(&data, at)) {
        let text = Git::at(dir).args(["ls-files", "-z", "-u"]).bytes()?;
        paths = git::tabbed(&text).map(|(_, path)| path.to_vec()).collect();
    }
    paths.dedup();
    Ok(paths)
}

fn parse(data: &[u8]) -> Option<Vec<Tracked>> {
    let mut entries = Vec::new();
    let at = walk(data, |entry| {
        let Raw { path, mode, oid, skipped, .. } = entry;
        entries.push(Tracked { path: path.to_vec(), mode, oid, skipped });
    })?;
    extensions_are_harmless(data, at).then_some(entries)
}

/// An entry as it stands in the file.
struct Raw<'a> {
    path: &'a [u8],
    mode: u32,
    oid: Oid,
    flags: u16,
    skipped: bool,
}

/// Goes through all entries; where they end.
fn walk(data: &[u8], mut each: impl FnMut(Raw<'_>)) -> Option<usize> {
    let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    if data.get(..4)? != SIGNATURE {
        return None;
    }
    let version = number(4)?;
    if !(2..=3).contains(&version) {
        return None;
    }
    let count = number(8)? as usize;
    let mut at = 12;
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
        let mode = number(at + 4 * MODE)?;
        let oid = Oid::from_bytes(data.get(at + 40..at + 40 + LEN)?)?;
        each(Raw { path: &rest[..len], mode, oid, flags, skipped });
        // Entries end in one to eight zero bytes, at a multiple of eight.
        at += (name_at - at + len + 8) & !7;
    }
    Some(at)
}

/// The bytes of an index of a fresh checkout, version 2 without extensions: path, object and stat of its
/// files, in its order; `None` if there are too many.
pub(crate) fn encode(files: &[(&[u8], Oid, Stat)]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(files.len() * 128);
    bytes.extend_from_slice(SIGNATURE);
    bytes.extend_from_slice(&2_u32.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(files.len()).ok()?.to_be_bytes());
    for (path, oid, stat) in files {
        bytes.extend(stat.iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend_from_slice(&oid.0);
        let length = u16::try_from(path.len().min(NAME_LENGTH_MAX)).ok()?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(path);
        // One to eight zeros, up to a multiple of eight.
        let padding = 8 - (FIXED + path.len()) % 8;
        bytes.extend_from_slice(&[0; 8][..padding]);
    }
    let hash = Sha1::digest(&bytes);
    bytes.extend_from_slice(&hash);
    Some(bytes)
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
    git::tabbed(&text).map(|line| tracked(&line).ok_or_else(|| unreadable(line.1))).collect()
}

fn unreadable(line: &[u8]) -> Error {
    Error {
        command: "ls-files -z -s -t".to_owned(),
        code: Some(0),
        message: format!("unexpected line {:?}", String::from_utf8_lossy(line)),
    }
}

fn tracked((words, path): &(Vec<&str>, &[u8])) -> Option<Tracked> {
    let &[tag, mode, oid, _stage] = words.as_slice() else { return None };
    Some(Tracked {
        path: path.to_vec(),
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
    fn the_tree_of_an_index_is_known_until_something_changes() -> Result<(), Error> {
        let home = tempfile::tempdir().expect("a temporary folder");
        let git = |args: &[&str]| git::git(home.path(), args);
        let index = home.path().join(".git/index");
        git(&["init", "-q"])?;
        assert_eq!(tree(&index), None);
        for name in ["a", "b"] {
            let _ = std::fs::write(home.path().join(name), name);
        }
        git(&["add", "a"])?;
        assert_eq!(tree(&index), None);
        let written = git(&["write-tree"])?;
        assert_eq!(tree(&index).map(|id| id.to_string()), Some(written));
        assert_eq!(count(&index), Some(1));
        git(&["add", "-N", "b"])?;
        assert_eq!(tree(&index), None);
        Ok(())
    }

    #[test]
    fn lines_of_git_are_read() {
        let line = b"S 100644 4b825dc642cb6eb9a060e54bf8d69288fbee4904 0\ta\nb";
        let entry = git::tabbed(line).next().and_then(|line| tracked(&line));
        let entry = entry.map(|e| (e.path, e.mode, e.skipped));
        assert_eq!(entry, Some((b"a\nb".to_vec(), 0o100_644, true)));
    }
}
