//! The queue of writers: a `flock` on a file beside the database.
//!
//! SQLite polls its own write lock with pauses of up to a tenth of a second and may give up. This
//! lock is taken first, so that SQLite's is free. It protects nothing by itself: without it the
//! ledger would still be correct, only slower and sometimes "locked".
//!
//! Waiting polls, because a blocking call could not notice that the holder is stopped.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::files::LOCK_FILE;
use crate::{Error, Result, os};

/// How long anything waits for a lock before it reports [`Error::Busy`]: a commit takes less than
/// a millisecond, so a minute outlasts a queue of hundreds on a slow disk, and a large deletion.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The first pause of a waiting writer: about one commit.
const PAUSE_MIN: Duration = Duration::from_micros(100);

/// The longest pause: too short for a person to notice, long enough that a hundred waiting
/// processes do not load the processor.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// How often a waiting process checks the holder.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How many checks in a row must find the same holder stopped: a debugger may stop it for a moment.
const STOPPED_LOOKS: u32 = 3;

/// The lock file, opened once per connection.
#[derive(Debug)]
pub(crate) struct WriteLock {
    file: File,
    path: PathBuf,
}

/// The lock, released when dropped. The kernel releases it when the process dies.
#[must_use]
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a File);

impl WriteLock {
    /// Opens the lock file, readable by its user alone.
    pub(crate) fn open(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Ok(Self { file: options.open(&path)?, path })
    }

    /// Waits for the lock.
    pub(crate) fn hold(&self) -> Result<Held<'_>> {
        if self.try_hold()? {
            return Ok(Held(&self.file));
        }
        let started = Instant::now();
        let mut pause = PAUSE_MIN;
        let mut watch = Watch::over(&self.path);
        while started.elapsed() < PATIENCE {
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            if self.try_hold()? {
                return Ok(Held(&self.file));
            }
            watch.look()?;
        }
        Err(Error::Busy { path: self.path.clone() })
    }

    /// Takes the lock if it is free, without waiting.
    pub(crate) fn hold_if_free(&self) -> Result<Option<Held<'_>>> {
        Ok(self.try_hold()?.then(|| Held(&self.file)))
    }

    /// The file; the holder of the lock may write notes to it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Takes the lock if it is free.
    fn try_hold(&self) -> Result<bool> {
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::file("lock", &self.path)(error)),
            }
        }
    }
}

/// Checks the holder of the lock while somebody waits for it.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    path: &'a Path,
    looked: Instant,
    suspect: Option<u32>,
    looks: u32,
}

impl<'a> Watch<'a> {
    /// Starts to watch a lock file.
    pub(crate) fn over(path: &'a Path) -> Self {
        Self { path, looked: Instant::now(), suspect: None, looks: 0 }
    }

    /// Checks the holder if it is time to; fails once it has been stopped for a while.
    pub(crate) fn look(&mut self) -> Result<()> {
        if self.looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.looked = Instant::now();
        let holder = os::flock_holder(self.path);
        let stopped = holder.filter(|&pid| os::process(pid).is_some_and(|p| p.stopped));
        let same = stopped.is_some() && stopped == self.suspect;
        self.looks = if same { self.looks + 1 } else { 1 };
        self.suspect = stopped;
        match stopped {
            Some(pid) if self.looks >= STOPPED_LOOKS => {
                Err(Error::HolderStopped { pid, path: self.path.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // It cannot fail on an open file; if it did, the kernel unlocks with the last descriptor.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
