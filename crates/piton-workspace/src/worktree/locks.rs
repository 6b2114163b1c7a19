//! Git's lock files after a crash: ours are removed, the user's are only reported.
//!
//! A lock file says nothing about who holds it. So first we wait for the git commands of an earlier
//! driver, which hold a lock of the system's for as long as they live; after that, a lock file
//! where nobody but us writes is stale.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::admin::{self, Admin};
use super::mark::Mark;
use super::{At as _, Error, Result};
use crate::repo::Repo;

/// How long git commands of an earlier driver are waited for: the checkout of a very large
/// repository takes that long.
const CHILDREN_WAIT: Duration = Duration::from_secs(120);

/// How often it is looked whether they ended.
const CHILDREN_LOOK: Duration = Duration::from_millis(5);

/// Files in an admin folder that git takes as locks.
const ADMIN_LOCKS: [&str; 4] =
    ["index.lock", "HEAD.lock", "config.worktree.lock", "ORIG_HEAD.lock"];

/// Waits until no git command of an earlier driver runs in the repository.
pub fn await_earlier(root: &Path) -> Result<()> {
    await_children(&Repo::find(root)?)
}

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

/// Removes stale locks of a worktree of ours and of its branch; returns what was removed.
pub fn sweep(dir: &Path) -> Result<Vec<PathBuf>> {
    let repo = Repo::find(dir)?;
    await_children(&repo)?;
    let admin = Admin::read(&repo.git_dir);
    if admin.owner().is_none() || repo.is_main() {
        return Err(Error::Foreign(repo.root));
    }
    sweep_admin(&repo, &admin.dir, admin.mark.as_ref())
}

pub(super) fn sweep_admin(repo: &Repo, dir: &Path, mark: Option<&Mark>) -> Result<Vec<PathBuf>> {
    let mut locks: Vec<PathBuf> = ADMIN_LOCKS.iter().map(|name| dir.join(name)).collect();
    if let Some(mark) = mark {
        locks.push(repo.common.join(format!("refs/heads/{}.lock", mark.branch)));
    }
    let mut removed = Vec::new();
    for lock in locks {
        match fs::remove_file(&lock) {
            Ok(()) => removed.push(lock),
            // Refs kept in another format have no such folder.
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
            Err(source) => return Err(Error::File { path: lock, source }),
        }
    }
    Ok(removed)
}

/// Locks where the user writes too: those of the work tree that has base checked out, of base
/// itself, and of what all work trees share. They may be in use; the user decides.
pub fn foreign(root: &Path, base: &str) -> Result<Vec<PathBuf>> {
    let repo = Repo::find(root)?;
    let mut locks = vec![
        repo.common.join("packed-refs.lock"),
        repo.common.join("config.lock"),
        repo.common.join(format!("refs/heads/{base}.lock")),
    ];
    let mut dirs = vec![repo.common.clone()];
    let others = admin::scan(&repo).into_iter().filter(|admin| admin.owner().is_none());
    dirs.extend(others.map(|admin| admin.dir));
    for dir in &dirs {
        locks.extend(["index.lock", "HEAD.lock"].map(|name| dir.join(name)));
    }
    locks.retain(|lock| lock.exists());
    Ok(locks)
}
