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
use crate::{Error, Result, is_stopped, os};

/// How long anything waits for a lock before it reports [`Error::Busy`]: a commit takes less than
/// a millisecond, so a minute outlasts a queue of hundreds on a slow disk, and a large deletion.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The first pause of a waiting writer: about one commit.
const PAUSE_MIN: Duration = Duration::from_micros(100);

/// The longest pause: too short for a person to notice, long enough that a hundred waiting
/// processes do not load the processor.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// How often a waiting process checks the holder.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How many checks in a row must find the holder stopped: a debugger may stop it for a moment.
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
        let (mut pause, mut looked, mut looks) = (PAUSE_MIN, started, 0);
        while started.elapsed() < PATIENCE {
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            if self.try_hold()? {
                return Ok(Held(&self.file));
            }
            if looked.elapsed() < LOOK_EVERY {
                continue;
            }
            looked = Instant::now();
            let Some(pid) = os::flock_holder(&self.path).filter(|&pid| is_stopped(pid)) else {
                looks = 0;
                continue;
            };
            looks += 1;
            if looks >= STOPPED_LOOKS {
                return Err(Error::HolderStopped { pid, path: self.path.clone() });
            }
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

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // It cannot fail on an open file; if it did, the kernel unlocks with the last descriptor.
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
