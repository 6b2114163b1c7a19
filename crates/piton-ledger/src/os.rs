//! What differs between operating systems: how to look at processes, the boot and file locks.
//!
//! Linux answers from `/proc`. Other systems only tell whether a pid exists, so a reused pid may be
//! mistaken for its predecessor until the lease expires; the guarantees say so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process as the system shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    /// Clock ticks between boot and its start; 0 where unknown.
    pub(crate) start: u64,
    /// It has ended and only waits to be reaped.
    pub(crate) zombie: bool,
    /// It is stopped by a signal or a debugger.
    pub(crate) stopped: bool,
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether a pid exists at all, visible or not.
pub(crate) fn exists(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// A process; `None` if it is not there (or hidden from us).
pub(crate) fn process(pid: u32) -> Option<Process> {
    if cfg!(target_os = "linux") {
        return parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?);
    }
    exists(pid).then_some(Process { start: 0, zombie: false, stopped: false })
}

/// Parses `/proc/<pid>/stat`. The command name may hold anything, so fields count from the
/// last parenthesis: state is the first after it, start time (field 22) the twentieth.
fn parse_stat(line: &[u8]) -> Option<Process> {
    let end = line.iter().rposition(|&byte| byte == b')')?;
    let mut fields = std::str::from_utf8(&line[end + 1..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some(Process {
        start,
        zombie: matches!(state, "Z" | "X" | "x"),
        stopped: matches!(state, "T" | "t"),
    })
}

/// The random name of this boot; empty where the system does not tell.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// The number of our pid namespace, from a link like `pid:[4026531836]`; 0 if there are none.
pub(crate) fn pid_namespace() -> u64 {
    fs::read_link("/proc/self/ns/pid")
        .ok()
        .and_then(|link| {
            let text = link.to_str()?;
            text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
        })
        .unwrap_or(0)
}

/// Who holds a `flock` on a file, as far as `/proc/locks` tells.
///
/// Lines read `1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF`; those of waiters have an
/// arrow after the number. Devices are not compared: some file systems show another one here.
pub(crate) fn flock_holder(path: &Path) -> Option<u32> {
    let inode = fs::metadata(path).ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next()? != "FLOCK" {
            return None;
        }
        let pid = fields.nth(2)?.parse().ok()?;
        let file = fields.next()?;
        (file.rsplit(':').next()? == inode).then_some(pid)
    })
}

/// Whether a process of this user has a file open.
pub(crate) fn has_open(pid: u32, path: &Path) -> bool {
    let which = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let wanted = which(path);
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    wanted.is_some() && files.into_iter().any(|file| which(&file.path()) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_command_name_does_not_shift_the_fields() {
        let stat = b"7 (a) R 1 (b) T 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let expected = Process { start: 4711, zombie: false, stopped: true };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat(b"7 (cut"), None);
    }
}
