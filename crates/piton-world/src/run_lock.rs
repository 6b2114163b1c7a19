//! Whose turn it is to act on the repository: a lock that one driver of a run holds while it does.
//!
//! Refs are fenced by themselves, files are not: a driver that is stopped in the middle of a removal
//! and goes on after another one took its run over would rename what is there by then. So every act
//! on files is done with this lock, and its file says which driver came last. One that came before
//! finds that out before it acts. A successor waits until the act is done; a driver that is
//! stopped in the middle of one is ended, because its next command would be refused anyway.
//!
//! Nothing here survives the machine, and nothing needs to: neither do drivers.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use piton_engine::{Error, Result};
use piton_ledger::{Liveness, Owner, is_stopped, lock_holder, owner_liveness};
use serde::{Deserialize, Serialize};

use crate::refusals;

/// How long an act of an earlier driver is waited for: the checkout of a very large repository takes
/// that long.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(2);
/// How often the one that holds it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many looks in a row must find it stopped; one alone may be a passing moment under a debugger.
const STOPPED_LOOKS: u32 = 3;

/// Longest note of who came last: a host's name and some numbers.
const NOTE_BYTES_MAX: usize = 4096;

/// The driver that came last.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    epoch: u64,
    owner: Owner,
}

/// The lock of one run.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    epoch: u64,
    /// Opened once: a turn is taken around every step.
    file: Option<Rc<File>>,
    /// What the file said when this driver was found to be the last.
    seen: Vec<u8>,
}

/// The lock, held until it is dropped; it is free too when the process dies.
#[must_use]
#[derive(Debug)]
pub struct Held(Rc<File>);

impl Drop for Held {
    fn drop(&mut self) {
        // Fails for no file that could be locked; the end of the process frees it in any case.
        let _ = self.0.unlock();
    }
}

/// The highest epoch that ever took a repository over, as the file of its lock says.
pub fn standing(path: &Path) -> Option<u64> {
    let said = fs::read(path).ok()?;
    holder(&said).map(|holder| holder.epoch)
}

impl RunLock {
    /// The lock in this file, for the first driver of a run until another epoch is set.
    pub fn new(path: PathBuf, epoch: u64) -> Self {
        Self { path, epoch, file: None, seen: Vec::new() }
    }

    /// Takes the repository over from earlier drivers.
    pub fn take_over(&mut self, epoch: u64) -> Result<()> {
        self.epoch = epoch;
        let held = self.lock()?;
        let said = read(&held.0).map_err(|e| self.failed(&e))?;
        if holder(&said).is_some_and(|holder| holder.epoch > epoch) {
            return Err(Error::TakenOver);
        }
        let own = Holder { epoch, owner: Owner::current() };
        write(&held.0, &own).map_err(|e| self.failed(&e))
    }

    /// Waits for the turn to act; an error for a driver whose run was taken over.
    pub fn hold(&mut self) -> Result<Held> {
        let held = self.lock()?;
        let said = read(&held.0).map_err(|e| self.failed(&e))?;
        if said != self.seen {
            if holder(&said).is_some_and(|holder| holder.epoch > self.epoch) {
                return Err(Error::TakenOver);
            }
            self.seen = said;
        }
        Ok(held)
    }

    fn lock(&mut self) -> Result<Held> {
        let file = match &self.file {
            Some(file) => Rc::clone(file),
            None => Rc::new(self.open().map_err(|e| self.failed(&e))?),
        };
        self.file = Some(Rc::clone(&file));
        let (began, mut looked, mut looks) = (Instant::now(), Instant::now(), 0);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Held(file)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(self.failed(&error)),
            }
            let last = read(&file).ok().and_then(|said| holder(&said));
            if last.as_ref().is_some_and(|last| last.epoch > self.epoch) {
                return Err(Error::TakenOver);
            }
            if began.elapsed() > PATIENCE {
                return Err(busy(last.as_ref()));
            }
            if looked.elapsed() > LOOK_EVERY {
                looked = Instant::now();
                // One that stopped as it took over did not come to write who it is.
                let noted = || last.filter(is_alive).map(|last| last.owner.pid);
                let stopped = lock_holder(&self.path).or_else(noted).filter(|pid| is_stopped(*pid));
                looks = if stopped.is_some() { looks + 1 } else { 0 };
                if let (Some(pid), true) = (stopped, looks >= STOPPED_LOOKS) {
                    end(pid);
                }
            }
            thread::sleep(PAUSE);
        }
    }

    fn open(&self) -> io::Result<File> {
        if let Some(dir) = self.path.parent().filter(|dir| !dir.is_dir()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&self.path)
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::World(refusals::lock_failed(&self.path, error))
    }
}

fn busy(holder: Option<&Holder>) -> Error {
    let who = holder.map_or_else(|| "another driver".to_owned(), |h| h.owner.to_string());
    Error::World(refusals::lock_busy(&who, PATIENCE.as_secs()))
}

/// What the file says, up to a size that no note exceeds.
fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; NOTE_BYTES_MAX];
    let len = file.read_at(&mut bytes, 0)?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Who that is; nobody if it was never written, or not to its end.
fn holder(said: &[u8]) -> Option<Holder> {
    serde_json::from_slice(said).ok()
}

fn write(file: &File, holder: &Holder) -> io::Result<()> {
    let text = serde_json::to_string(holder).map_err(io::Error::other)?;
    file.set_len(0)?;
    file.write_all_at(text.as_bytes(), 0)
}

/// Whether the driver that came last is a process of this machine and lives.
fn is_alive(last: &Holder) -> bool {
    owner_liveness(&last.owner) == Liveness::Alive
}

/// Ends a driver that is stopped and was superseded: nobody came after the one that asks, so
/// whoever else is at work came before it.
fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        // One that is gone already has let go.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_was_replaced_gets_no_turn() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("runs/r/run_lock");
        let mut old = RunLock::new(path.clone(), 1);
        old.take_over(1).unwrap();
        drop(old.hold().unwrap());
        let mut new = RunLock::new(path, 1);
        new.take_over(2).unwrap();
        assert!(matches!(old.hold(), Err(Error::TakenOver)));
        assert!(matches!(old.take_over(1), Err(Error::TakenOver)));
        drop(new.hold().unwrap());
    }

    #[test]
    fn a_torn_note_holds_nobody_up() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.lock");
        fs::write(&path, "{\"epoch\": 9, \"own").unwrap();
        drop(RunLock::new(path, 1).hold().unwrap());
    }

    /// A driver that is stopped within an act would block its successor for ever.
    #[test]
    #[cfg(target_os = "linux")]
    fn one_that_stands_still_within_an_act_is_ended() {
        stands_still(|path, owner| {
            fs::write(path, serde_json::to_string(&Holder { epoch: 1, owner }).unwrap()).unwrap();
        });
    }

    /// The same of one that stopped before it could say who it is.
    #[test]
    #[cfg(target_os = "linux")]
    fn one_that_stands_still_as_it_takes_over_is_ended() {
        stands_still(|_, _| {});
    }

    #[cfg(target_os = "linux")]
    fn stands_still(note: impl FnOnce(&Path, Owner)) {
        use std::io::BufRead as _;
        use std::os::unix::process::ExitStatusExt as _;
        use std::process::{Command, Stdio};
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run.lock");
        // Holds the lock, says so, and stops itself.
        let mut child = Command::new("flock")
            .arg("-F")
            .arg(&path)
            .args(["sh", "-c", "echo held; kill -STOP $$; echo woken"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let stat = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        while !stat().rsplit_once(')').unwrap().1.starts_with(" T") {
            thread::yield_now();
        }
        let start = stat().rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse();
        note(&path, Owner { pid: child.id(), process_start: start.unwrap(), ..Owner::current() });
        RunLock::new(path, 1).take_over(2).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
