//! Holds the user's index while base and its work tree move, in a way that can be proven ours later.
//!
//! Git's lock file is taken as a hard link to a file of our own, the *anchor*. After a crash an
//! `index.lock` that is the same file as the anchor was ours and may go; any other is the user's.
//! The anchor also says which step was in progress. The new index is made aside and renamed over the
//! user's, so that theirs is the old or the new one, never something in between. Both keep a second
//! name until the step is over: an index that is the same file as ours was written by nobody since,
//! and the user's can be put back.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{Error, Result};
use crate::files::{is_same, os_path};
use crate::worktree::At as _;

/// The anchor in the git folder of a work tree.
const ANCHOR: &str = "piton-follow";

/// How long a lock of the user's is waited for: most commands of git hold it for a moment, one that
/// waits for an editor for as long as the user writes.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// How long another process of ours is waited for that moves the same work tree, for another run: a
/// large merge takes that long.
const ANCHOR_WAIT: Duration = Duration::from_secs(60);

/// How often it is checked whether it is gone.
const LOCK_LOOK: Duration = Duration::from_millis(5);

/// The index made aside.
const INDEX: &str = "piton-index";

/// The user's index, under its second name while ours is in its place.
const SAVED: &str = "piton-index-old";

/// Our index in the place of the user's, under its second name.
const PLACED: &str = "piton-index-new";

/// The paths whose files were the user's own before the step, and are as it would make them.
const THEIRS: &str = "piton-theirs";

/// The user's index, held. Dropped without [`Guard::finish`], it is let go as it was, unless files
/// are on the way; and the anchor stays.
#[derive(Debug)]
pub(super) struct Guard {
    git_dir: PathBuf,
    /// The anchor, locked: another process of ours that finds it so waits.
    anchor: File,
    /// From and to of an earlier step that was interrupted.
    pub interrupted: Option<(String, String)>,
    /// Files are on the way, or base is ahead of them: a commit would bring half of a merge, or take
    /// one back.
    pub stays: bool,
}

impl Guard {
    /// Takes the index of the work tree with this git folder. One that an earlier step left is taken
    /// as it is, so that the user has no moment in between to commit in.
    pub fn take(git_dir: &Path, old: &str, new: &str) -> Result<Self> {
        let anchor = hold_anchor(git_dir)?;
        let path = git_dir.join(ANCHOR);
        let interrupted = noted(&path).at(&path)?;
        let mut guard = Self { git_dir: git_dir.to_owned(), anchor, interrupted, stays: false };
        for name in [INDEX.to_owned(), format!("{INDEX}.lock")] {
            let _ = fs::remove_file(git_dir.join(name));
        }
        if guard.interrupted.is_none() {
            guard.forget();
            guard.note(old, new)?;
        }
        if is_ours(git_dir) {
            return Ok(guard);
        }
        let lock = git_dir.join("index.lock");
        let began = Instant::now();
        let mut linked = fs::hard_link(&path, &lock);
        while is_taken(&linked) && began.elapsed() < LOCK_WAIT {
            thread::sleep(LOCK_LOOK);
            linked = fs::hard_link(&path, &lock);
        }
        match linked {
            Ok(()) => Ok(guard),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if guard.interrupted.is_none() {
                    let _ = fs::remove_file(&path);
                }
                Err(Error::Locked(lock))
            }
            Err(source) => Err(crate::worktree::Error::File { path: lock, source }.into()),
        }
    }

    /// Notes that the interrupted step was undone and another one begins.
    pub fn begin(&mut self, old: &str, new: &str) -> Result<()> {
        self.interrupted = None;
        self.note(old, new)?;
        let _ = fs::remove_file(self.git_dir.join(THEIRS));
        Ok(())
    }

    /// Writes down which step is in progress, in place: the lock must stay the same file.
    fn note(&mut self, old: &str, new: &str) -> Result<()> {
        let path = self.git_dir.join(ANCHOR);
        fs::write(&path, format!("{old} {new}\n")).at(&path)?;
        Ok(self.anchor.sync_all().at(path)?)
    }

    /// Notes which files the step finds done, so that it never takes them back.
    pub fn leave(&self, paths: &[PathBuf]) -> Result<()> {
        let path = self.git_dir.join(THEIRS);
        let bytes: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
        let write = || {
            fs::write(&path, bytes.join(&0))?;
            File::open(&path)?.sync_all()
        };
        Ok(write().at(&path)?)
    }

    /// The files that an interrupted step left to the user.
    pub fn theirs(&self) -> Vec<PathBuf> {
        let bytes = fs::read(self.git_dir.join(THEIRS)).unwrap_or_default();
        let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        paths.map(|path| os_path(path).to_owned()).collect()
    }

    /// A copy of the user's index to work on.
    pub fn copy(&self) -> Result<PathBuf> {
        let index = if self.is_placed() { SAVED } else { "index" };
        let (index, copy) = (self.git_dir.join(index), self.git_dir.join(INDEX));
        match fs::copy(&index, &copy) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let _ = fs::remove_file(&copy);
            }
            copied => {
                copied.at(&copy)?;
            }
        }
        Ok(copy)
    }

    /// Puts the copy in the place of the user's index, durably: base moves next.
    pub fn install(&self) -> Result<()> {
        self.forget();
        let name = |name: &str| self.git_dir.join(name);
        match fs::hard_link(name("index"), name(SAVED)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // A file of somebody else's may be read and replaced, but not linked.
            Err(_) => {
                fs::copy(name("index"), name(SAVED)).at(name(SAVED))?;
                File::open(name(SAVED)).and_then(|copy| copy.sync_all()).at(name(SAVED))?;
            }
            Ok(()) => {}
        }
        fs::hard_link(name(INDEX), name(PLACED)).at(name(PLACED))?;
        fs::rename(name(INDEX), name("index")).at(name("index"))?;
        self.sync()
    }

    /// Tells whether the index is the one that a step put there.
    pub fn is_placed(&self) -> bool {
        is_same(fs::metadata(self.git_dir.join("index")), fs::metadata(self.git_dir.join(PLACED)))
    }

    /// Puts the user's index back.
    pub fn put_back(&self) -> Result<()> {
        let index = self.git_dir.join("index");
        match fs::rename(self.git_dir.join(SAVED), &index) {
            // They had none.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::remove_file(&index).at(index)?;
            }
            renamed => renamed.at(index)?,
        }
        self.forget();
        self.sync()
    }

    /// Drops the second names: the index is the user's, whichever it is. What says that it was ours goes first,
    /// for from then on nothing is put back.
    pub fn forget(&self) {
        let _ = fs::remove_file(self.git_dir.join(PLACED));
        let _ = fs::remove_file(self.git_dir.join(SAVED));
    }

    fn sync(&self) -> Result<()> {
        let synced = File::open(&self.git_dir).and_then(|dir| dir.sync_all());
        Ok(synced.at(&self.git_dir)?)
    }

    /// Lets the index go; the step is over, or nothing was changed.
    pub fn finish(mut self) {
        self.forget();
        let _ = fs::remove_file(self.git_dir.join("index.lock"));
        let _ = fs::remove_file(self.git_dir.join(THEIRS));
        let _ = fs::remove_file(self.git_dir.join(ANCHOR));
        self.stays = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.stays && is_ours(&self.git_dir) {
            let _ = fs::remove_file(self.git_dir.join("index.lock"));
        }
    }
}

/// Opens the anchor and waits for other processes of ours that have it.
fn hold_anchor(git_dir: &Path) -> Result<File> {
    let path = git_dir.join(ANCHOR);
    let began = Instant::now();
    loop {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.at(&path)?;
        match file.try_lock() {
            // Whoever had it may have removed it in the meantime.
            Ok(()) if is_same(file.metadata(), fs::metadata(&path)) => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if began.elapsed() < ANCHOR_WAIT => {
                thread::sleep(LOCK_LOOK);
            }
            Err(TryLockError::WouldBlock) => return Err(crate::worktree::Error::Busy.into()),
            Err(TryLockError::Error(source)) => {
                return Err(crate::worktree::Error::File { path, source }.into());
            }
        }
    }
}

/// Tells whether git's lock is the anchor.
fn is_ours(git_dir: &Path) -> bool {
    is_same(fs::metadata(git_dir.join("index.lock")), fs::metadata(git_dir.join(ANCHOR)))
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
    (lock.exists() && !is_ours(git_dir)).then_some(lock)
}

/// Tells whether a step was interrupted here, or is in progress.
pub(super) fn was_interrupted(git_dir: &Path) -> bool {
    noted(&git_dir.join(ANCHOR)).is_ok_and(|step| step.is_some())
}

/// The step that an anchor tells of.
fn noted(anchor: &Path) -> std::io::Result<Option<(String, String)>> {
    let text = fs::read_to_string(anchor)?;
    let step = text.trim_end().split_once(' ');
    Ok(step.map(|(old, new)| (old.to_owned(), new.to_owned())))
}

/// Keeps other processes of ours from changing files of the work tree, without the user's index. An
/// anchor that tells of no step goes with it.
#[derive(Debug)]
pub(super) struct Turn {
    path: PathBuf,
    _anchor: File,
}

impl Turn {
    /// Waits for the turn.
    pub fn take(git_dir: &Path) -> Result<Self> {
        Ok(Self { path: git_dir.join(ANCHOR), _anchor: hold_anchor(git_dir)? })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !noted(&self.path).is_ok_and(|step| step.is_none()) {
            return;
        }
        // One that died between two steps may have left the lock; without the anchor it would be
        // taken for the user's.
        if let Some(git_dir) = self.path.parent().filter(|dir| is_ours(dir)) {
            let _ = fs::remove_file(git_dir.join("index.lock"));
        }
        let _ = fs::remove_file(&self.path);
    }
}
