//! Whether a small work tree is certainly as committed, without starting git.
//!
//! Every lane asks that of the same work tree, and starting git takes longer than looking at a few
//! dozen files. What git itself would go by is compared: the tree that the index says it holds, and
//! of each file what the system says about it. Only an answer without any doubt counts: a file that
//! nobody tracks, one that changed in the moment the index was written, a flag or a format beyond
//! the plainest, and git is asked.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::{index, refs};

/// Up to how many tracked files looking costs less than starting git.
const FILES_MAX: usize = 64;

/// Most bytes of an index with so few files; a longer one holds something else.
const INDEX_BYTES_MAX: u64 = 64 * 1024;

/// What stands before the name of an entry: ten numbers, the id, the flags.
const FIXED: usize = 62;

/// Up to where of an entry it says what the system says: ctime and mtime, device, number, mode,
/// owner, group, size.
const STAT: usize = 40;

/// Where in that the device stands.
const DEVICE: usize = 4;

/// Where the size stands.
const SIZE: usize = 9;

/// The id of an empty file.
const EMPTY: [u8; 20] = [
    0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2,
    0xe4, 0x8c, 0x53, 0x91,
];

/// All flags but the length of the name: always valid, extended, and the stage of a conflict.
const FLAGS: u16 = 0xF000;

/// What an entry says about its file.
type Stat = [u32; STAT / 4];

/// Tells whether nothing in a work tree is uncommitted, files and folders of ours apart. `false` says
/// nothing.
pub(super) fn is_clean(dir: &Path, git_dir: &Path, own: &dyn Fn(&str) -> bool) -> bool {
    looked(dir, git_dir, own).is_some()
}

fn looked(dir: &Path, git_dir: &Path, own: &dyn Fn(&str) -> bool) -> Option<()> {
    let index = git_dir.join("index");
    let written = fs::metadata(&index).ok().filter(|found| found.len() <= INDEX_BYTES_MAX)?;
    let tracked = entries(&fs::read(&index).ok()?)?;
    // Written anew in between, it would not be the one whose time is known.
    let again = fs::metadata(&index).ok()?;
    if (again.ino(), again.mtime_nsec()) != (written.ino(), written.mtime_nsec()) {
        return None;
    }
    let staged = index::tree(&index)?.to_string();
    if refs::value(dir, "HEAD^{tree}")? != staged {
        return None;
    }
    let look = Look { tracked, written: time(written.mtime(), written.mtime_nsec())?, own };
    (look.folder(dir, b"")? == look.tracked.len()).then_some(())
}

struct Look<'a> {
    tracked: HashMap<Vec<u8>, Stat>,
    /// When the index was.
    written: (u32, u32),
    own: &'a dyn Fn(&str) -> bool,
}

impl Look<'_> {
    /// How many files of a folder are as they were; `None` if there may be something else.
    fn folder(&self, dir: &Path, path: &[u8]) -> Option<usize> {
        let mut seen = 0;
        for entry in fs::read_dir(dir).ok()? {
            let entry = entry.ok()?;
            let mut inner = path.to_vec();
            if !path.is_empty() {
                inner.push(b'/');
            }
            inner.extend_from_slice(entry.file_name().as_bytes());
            if inner == b".git" {
                continue;
            }
            if let Some(known) = self.tracked.get(&inner) {
                let found = stat(&entry.metadata().ok()?)?;
                // One that changed when the index was written may have done so after it was looked at.
                if found != *known || (found[2], found[3]) >= self.written {
                    return None;
                }
                seen += 1;
            } else if !(self.own)(std::str::from_utf8(&inner).ok()?) {
                // A folder may hold something tracked, or nothing but what is ours, or nothing.
                entry.file_type().ok().filter(fs::FileType::is_dir)?;
                seen += self.folder(&entry.path(), &inner)?;
            }
        }
        Some(seen)
    }
}

fn time(seconds: i64, nanos: i64) -> Option<(u32, u32)> {
    Some((u32::try_from(seconds).ok()?, u32::try_from(nanos).ok()?))
}

/// What the system says about a file, as an index keeps it.
fn stat(found: &Metadata) -> Option<Stat> {
    let (ctime, mtime) =
        (time(found.ctime(), found.ctime_nsec())?, time(found.mtime(), found.mtime_nsec())?);
    #[expect(clippy::cast_possible_truncation, reason = "an index keeps the lower half")]
    let low = |number: u64| number as u32;
    let mode = match found.mode() & 0o170_000 {
        0o100_000 if found.mode() & 0o100 != 0 => 0o100_755,
        0o100_000 => 0o100_644,
        0o120_000 => 0o120_000,
        _ => return None,
    };
    let (ino, size, uid, gid) = (low(found.ino()), low(found.len()), found.uid(), found.gid());
    Some([ctime.0, ctime.1, mtime.0, mtime.1, 0, ino, mode, uid, gid, size])
}

/// The entries of an index of the plainest kind.
fn entries(data: &[u8]) -> Option<HashMap<Vec<u8>, Stat>> {
    let number = |at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    let count = number(8)? as usize;
    if data.get(..8)? != b"DIRC\0\0\0\x02" || count > FILES_MAX {
        return None;
    }
    let (mut all, mut at) = (HashMap::with_capacity(count), 12);
    for _ in 0..count {
        let mut stat = [0; STAT / 4];
        for (place, value) in stat.iter_mut().enumerate() {
            *value = number(at + 4 * place)?;
        }
        // Git does not go by it: it may be another one after each start of the machine.
        stat[DEVICE] = 0;
        let flags = u16::from_be_bytes(data.get(at + FIXED - 2..at + FIXED)?.try_into().ok()?);
        let rest = data.get(at + FIXED..)?;
        let len = rest.iter().position(|byte| *byte == 0)?;
        let is_empty = data.get(at + STAT..at + FIXED - 2)? == EMPTY;
        // No size is also how git notes that it must look at the file itself.
        if flags & FLAGS != 0 || (stat[SIZE] == 0 && !is_empty) {
            return None;
        }
        all.insert(rest[..len].to_vec(), stat);
        // Entries end in one to eight zero bytes, at a multiple of eight.
        at += (FIXED + len + 8) & !7;
    }
    (all.len() == count).then_some(all)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::git::git;

    type Change = fn(&Path);

    /// A repository whose files are older than its index.
    fn repository() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        git(dir, &["init", "-q", "-b", "main"]).unwrap();
        fs::create_dir_all(dir.join("b/c")).unwrap();
        for name in ["a", "b/one", "b/c/two"] {
            fs::write(dir.join(name), name).unwrap();
            let file = fs::File::options().append(true).open(dir.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        }
        symlink("a", dir.join("link")).unwrap();
        git(dir, &["add", "-A"]).unwrap();
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        git(dir, &[&who[..], &["commit", "-q", "-m", "one"]].concat()).unwrap();
        // The link is as new as the index at first; written later, the index is sure of it.
        let index = fs::File::options().append(true).open(dir.join(".git/index")).unwrap();
        index.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
        home
    }

    fn clean(dir: &Path) -> bool {
        let quick = is_clean(dir, &dir.join(".git"), &|path| path.ends_with("ours"));
        let status = git(dir, &["status", "--porcelain", "-uall"]).unwrap();
        let status = status.lines().filter(|line| !line.contains(".ours")).count();
        assert!(!quick || status == 0, "git says otherwise");
        quick
    }

    #[test]
    fn what_is_as_committed_is_clean_and_ours_does_not_count() {
        let home = repository();
        assert!(clean(home.path()));
        fs::create_dir_all(home.path().join("new/b/.ours")).unwrap();
        fs::create_dir(home.path().join(".ours")).unwrap();
        fs::write(home.path().join(".ours/x"), "x").unwrap();
        fs::write(home.path().join("new/b/.ours/x"), "x").unwrap();
        assert!(clean(home.path()));
        fs::write(home.path().join("new/b/x"), "x").unwrap();
        assert!(!clean(home.path()));
    }

    #[test]
    fn whatever_is_different_is_left_to_git() {
        let changes: [(&str, Change); 10] = [
            ("same size", |dir| fs::write(dir.join("a"), "b").unwrap()),
            ("longer", |dir| fs::write(dir.join("b/one"), "longer").unwrap()),
            ("gone", |dir| fs::remove_file(dir.join("b/c/two")).unwrap()),
            ("new", |dir| fs::write(dir.join("b/new"), "").unwrap()),
            ("ignored", |dir| {
                fs::write(dir.join(".git/info/exclude"), "new\n").unwrap();
                fs::write(dir.join("new"), "").unwrap();
            }),
            ("mode", |dir| {
                fs::set_permissions(dir.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("folder", |dir| {
                fs::remove_file(dir.join("a")).unwrap();
                fs::create_dir(dir.join("a")).unwrap();
            }),
            ("staged", |dir| {
                fs::write(dir.join("a"), "b").unwrap();
                git(dir, &["add", "a"]).unwrap();
            }),
            ("hidden", |dir| {
                git(dir, &["update-index", "--assume-unchanged", "a"]).unwrap();
            }),
            ("other HEAD", |dir| {
                git(dir, &["update-ref", "-d", "HEAD"]).unwrap();
            }),
        ];
        for (what, change) in changes {
            let home = repository();
            assert!(clean(home.path()), "before {what}");
            change(home.path());
            assert!(!clean(home.path()), "{what}");
        }
    }

    /// A change in the moment in which the index was written leaves no trace in it.
    #[test]
    fn a_file_as_new_as_the_index_is_left_to_git() {
        let home = repository();
        let changed = fs::metadata(home.path().join("a")).unwrap().modified().unwrap();
        let index = fs::File::options().append(true).open(home.path().join(".git/index")).unwrap();
        index.set_modified(changed).unwrap();
        assert!(!clean(home.path()));
    }
}
