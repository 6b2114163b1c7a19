//! Whether a small work tree is certainly as committed, without starting git.
//!
//! Every lane asks that of the same work tree, and starting git takes longer than looking at a few
//! dozen files. What git itself would go by is compared: the tree that the index says it holds, and
//! of each file what the system says about it. Only an answer without any doubt counts: a file that
//! nobody tracks, one that changed in the moment the index was written, a flag or a format beyond
//! the plainest, and git is asked.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::files::join;
use crate::index::{self, DEVICE, SIZE, Stat};
use crate::objects::{Kind, Oid};
use crate::refs;

/// Up to how many tracked files looking costs less than starting git.
const FILES_MAX: usize = 64;

/// Most bytes of an index with so few files; a longer one holds something else.
const INDEX_BYTES_MAX: u64 = 64 * 1024;

/// All flags but the length of the name: always valid, extended, and the stage of a conflict.
const FLAGS: u16 = 0xF000;

/// Tells whether nothing in a work tree is uncommitted, files and folders of ours apart. `false` says
/// nothing.
pub(super) fn is_clean(dir: &Path, git_dir: &Path, own: &dyn Fn(&str) -> bool) -> bool {
    compare(dir, git_dir, own).is_some()
}

fn compare(dir: &Path, git_dir: &Path, own: &dyn Fn(&str) -> bool) -> Option<()> {
    let index = git_dir.join("index");
    let written = fs::metadata(&index).ok().filter(|found| found.len() <= INDEX_BYTES_MAX)?;
    let tracked = entries(&fs::read(&index).ok()?)?;
    // Written again in between, it would not be the one whose time is known.
    let again = fs::metadata(&index).ok()?;
    if (again.ino(), again.mtime_nsec()) != (written.ino(), written.mtime_nsec()) {
        return None;
    }
    let staged = index::tree(&index)?.to_string();
    if refs::value(dir, "HEAD^{tree}")? != staged {
        return None;
    }
    let [_, _, seconds, nanos, ..] = index::stat(&written);
    let compared = Comparison { tracked, written: (seconds, nanos), own };
    (compared.folder(dir, b"")? == compared.tracked.len()).then_some(())
}

struct Comparison<'a> {
    tracked: HashMap<Vec<u8>, Stat>,
    /// When the index was.
    written: (u32, u32),
    own: &'a dyn Fn(&str) -> bool,
}

impl Comparison<'_> {
    /// How many files of a folder are as they were; `None` if there may be something else.
    fn folder(&self, dir: &Path, path: &[u8]) -> Option<usize> {
        let mut seen = 0;
        for entry in fs::read_dir(dir).ok()? {
            let entry = entry.ok()?;
            let inner = join(path, entry.file_name().as_bytes());
            if inner == b".git" {
                continue;
            }
            if let Some(known) = self.tracked.get(&inner) {
                let found = without_device(index::stat(&entry.metadata().ok()?));
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

/// The entries of an index of the plainest kind.
fn entries(data: &[u8]) -> Option<HashMap<Vec<u8>, Stat>> {
    let (mut all, empty) = (HashMap::new(), Oid::hash(Kind::Blob, b""));
    index::walk(data, |entry| {
        let unsure = entry.flags & FLAGS != 0 || all.len() == FILES_MAX;
        // No size is also how git notes that it must look at the file itself.
        if unsure || (entry.stat[SIZE] == 0 && entry.oid != empty) {
            return None;
        }
        all.insert(entry.path.to_vec(), without_device(entry.stat));
        Some(())
    })?;
    Some(all)
}

/// Git does not go by the device: it may be another one after each start of the machine.
fn without_device(mut stat: Stat) -> Stat {
    stat[DEVICE] = 0;
    stat
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
