//! Git's lock files after a crash: ours are removed, the user's stay.
//!
//! A lock file says nothing about who holds it. So first we wait for the git commands of an earlier
//! driver, which hold a lock of the system's for as long as they live; after that, a lock file
//! where nobody but us writes is stale.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::mark::Mark;
use super::{At as _, Error, Result};
use crate::repo::Repo;

/// How long git commands of an earlier driver are waited for: the checkout of a very large
/// repository takes that long.
const CHILDREN_WAIT: Duration = Duration::from_secs(120);

/// How often it is checked whether they ended.
const CHILDREN_LOOK: Duration = Duration::from_millis(5);

/// Files in an admin folder that git takes as locks.
const ADMIN_LOCKS: [&str; 4] =
    ["index.lock", "HEAD.lock", "config.worktree.lock", "ORIG_HEAD.lock"];

/// Waits until no git command of an earlier driver runs in the repository.
pub(crate) fn await_children(repo: &Repo) -> Result<()> {
    let path = repo.witness();
    let file = match File::open(&path) {
        Err(error) if error.kind() == NotFound => return Ok(()),
        file => file.at(&path)?,
    };
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
            Err(TryLockError::WouldBlock) if start.elapsed() > CHILDREN_WAIT => {
                return Err(Error::Busy);
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(CHILDREN_LOOK),
        }
    }
}

/// Removes stale locks of a worktree of ours and of its branch.
pub(super) fn sweep_admin(repo: &Repo, dir: &Path, mark: Option<&Mark>) -> Result<()> {
    let mut locks: Vec<PathBuf> = ADMIN_LOCKS.iter().map(|name| dir.join(name)).collect();
    if let Some(mark) = mark {
        locks.push(repo.common.join(format!("refs/heads/{}.lock", mark.branch)));
    }
    for lock in locks {
        match fs::remove_file(&lock) {
            // Refs kept in another format have no such folder.
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
            removed => removed.at(lock)?,
        }
    }
    Ok(())
}
