//! `keeper.lock`: who the keeper of a run directory is, and whether it lives.
//!
//! The keeper holds an exclusive flock on it for its whole life, so the kernel answers, not a pid
//! file. The content (pid, start time, pid namespace) only says whom to name. The lock also
//! outlives the keeper for the microseconds in which a child it was just starting has not reached
//! its exec: when the lock is free, every child carries its mark.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::os::{self, Pid};
use crate::processes::number;

/// The file's name in the run directory.
pub(crate) const LOCK: &str = "keeper.lock";

/// How often a keeper tries the lock before it assumes that another one has it: processes that only
/// check whether a keeper lives hold it for microseconds.
const TRIES: u32 = 20;

/// The pause between two tries; all of them together are too short for a person to notice.
const PAUSE: Duration = Duration::from_millis(2);

/// The lock, held until dropped.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "held, not used")] File);

/// Takes the lock for the calling process; none if another keeper has it.
pub(crate) fn take(dir: &Path) -> Result<Option<Held>> {
    let path = dir.join(LOCK);
    let what = || format!("could not lock {}", path.display());
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(Error::io(what()))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => {
                let own = rustix::process::getpid().as_raw_nonzero().get();
                let start = os::one(own).map_or(0, |process| process.start);
                file.set_len(0).map_err(Error::io(what()))?;
                let space = os::namespace();
                writeln!(file, "{own} {start} {space}").map_err(Error::io(what()))?;
                return Ok(Some(Held(file)));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(Error::io(what())(error)),
        }
    }
    Ok(None)
}

/// Whether a keeper ever held this run directory.
pub fn had_keeper(dir: &Path) -> bool {
    dir.join(LOCK).exists()
}

/// The environment that the living keeper of a run directory was started with: that of the driver
/// whose steps it holds, which may know more than this process.
pub fn keeper_environment(dir: &Path) -> Vec<(String, String)> {
    let pid = keeper_alive(dir).and_then(|pid| Pid::try_from(pid).ok());
    pid.map(os::environment).unwrap_or_default()
}

/// The pid of the keeper that holds this run directory, if one lives.
pub fn keeper_alive(dir: &Path) -> Option<u32> {
    for _ in 0..TRIES {
        let file = File::open(dir.join(LOCK)).ok()?;
        if file.try_lock_shared().is_ok() {
            return None;
        }
        // A keeper that took the lock this instant has not written its name yet.
        if let Some((pid, _)) = recorded(dir) {
            return Some(pid);
        }
        thread::sleep(PAUSE);
    }
    None
}

/// What the lock file says: pid and start time of the last keeper, alive or not.
pub(crate) fn recorded(dir: &Path) -> Option<(u32, u64)> {
    let text = content(dir)?;
    let mut words = text.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// What the lock file says, once its one line is whole.
fn content(dir: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(dir.join(LOCK)).ok()?.read_to_string(&mut text).ok()?;
    Some(text.strip_suffix('\n')?.to_owned())
}

/// Whether a keeper of another pid namespace lives in this run directory: then this process cannot
/// know whether it descends from it.
pub fn keeper_elsewhere(dir: &Path) -> bool {
    let here = |text: String| text.split(' ').nth(2).is_some_and(|space| space == os::namespace());
    keeper_alive(dir).is_some() && !content(dir).is_some_and(here)
}

/// Whether the recorded keeper is this process.
pub(crate) fn is_recorded(dir: &Path, process: &os::Process) -> bool {
    recorded(dir) == Some((number(process.pid), process.start))
}
