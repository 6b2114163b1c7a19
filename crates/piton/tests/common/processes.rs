//! The processes of a scratch project: finding, signalling, waiting.
//!
//! Reads `/proc`: the tests of the real program run on Linux.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT};

pub use rustix::process::Signal;

/// Longest wait for any condition: far beyond what a busy machine needs, since only a failing test
/// waits so long.
const DEADLINE: Duration = Duration::from_secs(30);

/// The pause between two looks at a condition.
const POLL: Duration = Duration::from_millis(10);

/// A process of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command line, words joined with blanks.
    pub command: String,
}

/// Sends a signal to one process; one that is gone is no error.
pub fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

/// Lets what is started from here have Ctrl-C and a closed terminal again, where this process was told
/// to ignore them, as in the background of a script: a driver would ignore them too. A handler is not
/// inherited, and this one does nothing.
pub fn hear_signals() {
    static HEARD: Once = Once::new();
    HEARD.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        let bits = u64::from_str_radix(bits.trim(), 16).unwrap_or(0);
        for signal in [SIGHUP, SIGINT] {
            if bits >> (signal - 1) & 1 == 1 {
                let never = Arc::new(AtomicBool::new(false));
                signal_hook::flag::register_conditional_default(signal, never).unwrap();
            }
        }
    });
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(poll(condition), "waited in vain for: {what}");
}

/// Whether a condition held before the deadline.
pub fn poll(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > DEADLINE {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// The living processes whose HOME or working directory lies in a folder.
pub fn processes(scratch: &Path) -> Vec<Process> {
    let real = scratch.canonicalize().unwrap();
    let mut home = b"HOME=".to_vec();
    home.extend(scratch.join("home").as_os_str().as_bytes());
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let alive = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_some_and(|s| !"ZX".contains(s))
    };
    let ours = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let inside =
            || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&real));
        environ.split(|b| *b == 0).any(|v| v == home) || inside()
    };
    pids.filter(|pid| *pid != std::process::id())
        .filter(|pid| alive(pid) && ours(pid))
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&line).replace('\0', " ");
            Process { pid, command }
        })
        .collect()
}
