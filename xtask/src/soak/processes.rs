//! Looking at processes from outside, and ending them: `/proc`, not what the program says of itself.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// How the git that moves refs for a driver is called.
pub(super) const MOVES: &str = " update-ref -m piton: lane --stdin ";
/// How the gits that stay are called.
const STAY: [&str; 2] = [" cat-file --batch-command ", MOVES];

/// A living process of a round.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Its process id.
    pub(super) pid: u32,
    /// When it started, in ticks since boot: with the pid a name for ever.
    start: u64,
    /// What it is.
    pub(super) kind: Kind,
    /// Its command line, for the report of one that should not live.
    #[expect(dead_code, reason = "read through Debug alone")]
    words: String,
}

impl Process {
    /// Whether this is the same process, whatever program it runs by now.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.pid == other.pid && self.start == other.start
    }
}

/// What a process of a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The program itself as driver, or not yet something else.
    Piton,
    /// The keeper of a run.
    Keeper,
    /// A git that answers a driver or moves refs for it: by itself it does nothing, and it ends with
    /// the driver.
    Stays,
    /// Anything a step started.
    Step,
}

/// The living processes that have this folder in their environment or command line.
pub(super) fn of(base: &Path, piton: &Path) -> Vec<Process> {
    let name = base.as_os_str().as_encoded_bytes();
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| look(pid, name, piton))
        .collect()
}

fn look(pid: u32, name: &[u8], piton: &Path) -> Option<Process> {
    let dir = Path::new("/proc").join(pid.to_string());
    let words = fs::read(dir.join("cmdline")).ok()?;
    let found = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    if !found(&words) && !fs::read(dir.join("environ")).is_ok_and(|bytes| found(&bytes)) {
        return None;
    }
    let stat = fs::read_to_string(dir.join("stat")).ok()?;
    // The name in brackets may hold anything; what follows it is fields.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let is_piton = fs::read_link(dir.join("exe")).is_ok_and(|exe| exe == piton);
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    let kind = match is_piton {
        true if words.contains(" __keeper ") => Kind::Keeper,
        true => Kind::Piton,
        false if STAY.iter().any(|part| words.contains(part)) => Kind::Stays,
        false => Kind::Step,
    };
    Some(Process { pid, start: fields.get(19)?.parse().ok()?, kind, words })
}

/// The state of a process by its letter, as in `ps`; nothing when it is gone.
pub(super) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Sends a signal; a process that is gone is no error.
pub(super) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The only other errors are a pid of another user, which is not ours, and a bad signal.
        let _ = kill_process(pid, signal);
    }
}

/// Kills these processes.
pub(super) fn end(processes: &[Process]) {
    for process in processes {
        signal(process.pid, Signal::KILL);
    }
}
