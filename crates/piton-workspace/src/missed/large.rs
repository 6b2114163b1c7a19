//! Large files of a lane's worktree that goes back: a snapshot does not hold them, a tree of git's may.
//!
//! What differs from the tree has to be moved out of the way by the caller, who knows where it can be
//! kept; then git itself brings the tree's own files. Nothing here decides whether to go back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{added, is_large, listed, own_index};
use crate::files::{os_path, sync};
use crate::git::{self, Git};
use crate::snapshot::{Error, Missed};

/// How the large files of a work tree differ from those of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Large {
    /// What is there and is not what the tree has: paths from the top of the work tree.
    pub other: Vec<PathBuf>,
    /// What is to come from the tree, as an index has it.
    back: Vec<Vec<u8>>,
}

/// Compares large files with those that a commit or tree has. `present` and `target` are what the
/// snapshots of the two ends of the way back lack.
pub fn compare(
    dir: &Path,
    tree: &str,
    present: &[Missed],
    target: &[Missed],
) -> Result<Large, Error> {
    let large = |all: &[Missed]| -> BTreeSet<Vec<u8>> {
        all.iter().filter(|m| is_large(m.why)).map(|m| m.path.clone()).collect()
    };
    let (now, then) = (large(present), large(target));
    let mut found = Large::default();
    for path in now.union(&then) {
        let held = listed(dir, tree, path)?;
        let is_now = now.contains(path);
        if is_now && added(dir, &own_index(dir)?, &[path])? == held {
            continue;
        }
        let full = dir.join(os_path(path));
        if is_now || fs::symlink_metadata(&full).is_ok_and(|about| about.is_dir()) {
            found.other.push(os_path(path).to_owned());
        }
        if then.contains(path) {
            found.back.extend(held);
        }
    }
    Ok(found)
}

impl Large {
    /// Whether all is as the tree has it.
    pub fn is_same(&self) -> bool {
        self.other.is_empty() && self.back.is_empty()
    }

    /// The paths that differ.
    pub fn paths(&self) -> BTreeSet<Vec<u8>> {
        use std::os::unix::ffi::OsStrExt as _;
        let other = self.other.iter().map(|path| path.as_os_str().as_bytes().to_vec());
        other.chain(self.back_paths().map(<[u8]>::to_vec)).collect()
    }

    fn back_paths(&self) -> impl Iterator<Item = &[u8]> {
        self.back.iter().filter_map(|entry| entry.splitn(2, |b| *b == b'\t').nth(1))
    }

    /// Brings what the tree has; on disk when it returns.
    pub fn bring(&self, dir: &Path) -> Result<(), Error> {
        if self.back.is_empty() {
            return Ok(());
        }
        let index = own_index(dir)?;
        let add = ["update-index", "-z", "--index-info"];
        Git::at(dir).index(&index).args(add).input(git::ended(&self.back)).run()?;
        let bring = ["checkout-index", "-f", "-u", "-z", "--stdin"];
        Git::at(dir).index(&index).args(bring).input(git::ended(self.back_paths())).run()?;
        sync::file_system(dir).map_err(|e| Error::file(dir, e))
    }
}
