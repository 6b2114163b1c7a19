//! Holds the user's index while base and its work tree move, in a way that can be proven ours later.
//!
//! Git's lock file is taken as a hard link to a file of our own, the *anchor*. After a crash an
//! `index.lock` that is the same file as the anchor was ours and may go; any other is the user's.
//! The anchor also says which step was under way. The new index is made aside and renamed over the
//! user's at the end, so that theirs is the old or the new one, never something in between.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{Error, Result};
use crate::worktree::At as _;

/// The anchor in the git folder of a work tree.
const ANCHOR: &str = "piton-follow";

/// How long a lock of the user's is waited for: most commands of git hold it for a moment, one that
/// waits for an editor for as long as the user writes.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// How often it is looked whether it is gone.
const LOCK_LOOK: Duration = Duration::from_millis(5);

/// The index made aside.
const INDEX: &str = "piton-index";

/// The user's index, held. Dropped without [`Guard::finish`], it is let go as it was, and the
/// anchor stays, because files may have been changed.
#[derive(Debug)]
pub(super) struct Guard {
    git_dir: PathBuf,
    /// From and to of an earlier step that was interrupted.
    pub interrupted: Option<(String, String)>,
}

impl Guard {
    /// Takes the index of the work tree with this git folder.
    pub fn take(git_dir: &Path, old: &str, new: &str) -> Result<Self> {
        let interrupted = release(git_dir)?;
        let anchor = git_dir.join(ANCHOR);
        let steps = interrupted.clone().unwrap_or_else(|| (old.to_owned(), new.to_owned()));
        crate::worktree::replace(&anchor, format!("{} {}\n", steps.0, steps.1).as_bytes())?;
        let lock = git_dir.join("index.lock");
        let began = Instant::now();
        let mut linked = fs::hard_link(&anchor, &lock);
        while is_taken(&linked) && began.elapsed() < LOCK_WAIT {
            thread::sleep(LOCK_LOOK);
            linked = fs::hard_link(&anchor, &lock);
        }
        match linked {
            Ok(()) => Ok(Self { git_dir: git_dir.to_owned(), interrupted }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if interrupted.is_none() {
                    let _ = fs::remove_file(&anchor);
                }
                Err(Error::Locked(lock))
            }
            Err(source) => Err(crate::worktree::Error::File { path: lock, source }.into()),
        }
    }

    /// Notes that the interrupted step was undone and another one begins.
    pub fn begin(&mut self, old: &str, new: &str) -> Result<()> {
        self.interrupted = None;
        // Written in place: the lock must stay the same file.
        let anchor = self.git_dir.join(ANCHOR);
        Ok(fs::write(&anchor, format!("{old} {new}\n")).at(&anchor)?)
    }

    /// A copy of the user's index to work on.
    pub fn copy(&self) -> Result<PathBuf> {
        let (index, copy) = (self.git_dir.join("index"), self.git_dir.join(INDEX));
        match fs::copy(&index, &copy) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => {
                copied.at(&copy)?;
            }
        }
        Ok(copy)
    }

    /// Puts the copy in the place of the user's index.
    pub fn replace(&self) -> Result<()> {
        let index = self.git_dir.join("index");
        Ok(fs::rename(self.git_dir.join(INDEX), &index).at(index)?)
    }

    /// Lets the index go; the step is over, or nothing was changed.
    pub fn finish(self) {
        let _ = fs::remove_file(self.git_dir.join("index.lock"));
        let _ = fs::remove_file(self.git_dir.join(ANCHOR));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = release(&self.git_dir);
    }
}

/// Lets go of a lock that an earlier step left, if it is ours; returns the step it was.
fn release(git_dir: &Path) -> Result<Option<(String, String)>> {
    let anchor = git_dir.join(ANCHOR);
    let Ok(found) = fs::metadata(&anchor) else { return Ok(None) };
    let lock = git_dir.join("index.lock");
    let ours = |lock: fs::Metadata| (lock.dev(), lock.ino()) == (found.dev(), found.ino());
    if fs::metadata(&lock).is_ok_and(ours) {
        fs::remove_file(&lock).at(&lock)?;
    }
    for name in [INDEX.to_owned(), format!("{INDEX}.lock")] {
        let _ = fs::remove_file(git_dir.join(name));
    }
    let text = fs::read_to_string(&anchor).at(&anchor)?;
    Ok(text.trim_end().split_once(' ').map(|(old, new)| (old.to_owned(), new.to_owned())))
}

fn is_taken(linked: &std::io::Result<()>) -> bool {
    linked.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
}

/// The lock in the way, if it is not ours and stays.
pub(super) fn foreign_lock(git_dir: &Path) -> Option<PathBuf> {
    let began = Instant::now();
    while let Some(lock) = foreign(git_dir) {
        if began.elapsed() > LOCK_WAIT {
            return Some(lock);
        }
        thread::sleep(LOCK_LOOK);
    }
    None
}

fn foreign(git_dir: &Path) -> Option<PathBuf> {
    let lock = git_dir.join("index.lock");
    let found = fs::metadata(&lock).ok()?;
    let anchor = fs::metadata(git_dir.join(ANCHOR)).ok();
    let ours = anchor.is_some_and(|a| (a.dev(), a.ino()) == (found.dev(), found.ino()));
    (!ours).then_some(lock)
}

/// Tells whether a step was interrupted here.
pub(super) fn was_interrupted(git_dir: &Path) -> bool {
    git_dir.join(ANCHOR).exists()
}
