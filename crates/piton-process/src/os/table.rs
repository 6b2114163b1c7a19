//! The table of processes, from /proc; it is empty on a system that has none.
//!
//! Reading the whole table costs milliseconds: only the paths that end something do it. A process
//! is named by pid and start time together.

use std::fs;
use std::io;

use super::{Pid, Process};

/// Reads the whole table. Processes that vanish meanwhile are left out.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(one)
        .collect()
}

/// The name of the pid namespace of this process; empty if it is unknown.
pub(crate) fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// Reads one process.
pub(crate) fn one(pid: Pid) -> Option<Process> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &text)
}

/// Parses a stat line. The name is in parentheses and may itself contain any of them.
fn parse(pid: Pid, line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Counted from the state: parent 1, group 2, session 3, start time 19.
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
        name,
    })
}

/// Whether a process is exiting and runs no more code of its own; its environment and arguments are
/// gone before it counts as dead.
pub(crate) fn is_exiting(pid: Pid) -> bool {
    /// The kernel's flag of such a process.
    const EXITING: u64 = 4;
    let flags = || -> Option<u64> {
        let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        // Counted from the state.
        rest.split_ascii_whitespace().nth(6)?.parse().ok()
    };
    flags().is_none_or(|flags| flags & EXITING != 0)
}

/// The processor time that a process used, with that of its children which have ended, in ticks.
pub(crate) fn processor_ticks(pid: Pid) -> Option<u64> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    // Counted from the state: its own time 11 and 12, that of its children 13 and 14.
    let times = rest.split_ascii_whitespace().skip(11).take(4);
    Some(times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum())
}

/// Reads a variable of the environment that a process was started with; none if it has none, or
/// if it may not be read.
pub(crate) fn variable(pid: Pid, name: &str) -> Option<String> {
    environment(pid).into_iter().find_map(|(own, value)| (own == name).then_some(value))
}

/// Reads the environment that a process was started with; nothing if it may not be read.
pub(crate) fn environment(pid: Pid) -> Vec<(String, String)> {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|&byte| byte == b'=')?;
        Some((text(&entry[..at]), text(&entry[at + 1..])))
    };
    environ.split(|&byte| byte == 0).filter_map(pair).collect()
}

/// Reads the arguments of a process.
pub(crate) fn command_line(pid: Pid) -> Vec<String> {
    let Ok(bytes) = fs::read(format!("/proc/{pid}/cmdline")) else {
        return Vec::new();
    };
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    bytes.split(|&byte| byte == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
}

/// The id of this boot of the machine.
pub(crate) fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with a hostile name must not hide from the end of its tree.
    #[test]
    fn names_with_parentheses_parse() {
        let line = b"7 (a) R 1 (b) S 3 7 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = parse(7, line);
        assert_eq!(
            process,
            Some(Process {
                pid: 7,
                parent: 3,
                session: 9,
                start: 4711,
                zombie: false,
                name: "a) R 1 (b".into()
            })
        );
    }

    /// A running process must not be mistaken for one that is exiting.
    #[test]
    fn only_the_dying_exit() {
        assert!(!is_exiting(rustix::process::getpid().as_raw_nonzero().get()));
        assert!(is_exiting(Pid::MAX));
    }

    /// The start time recorded around a spawn must be comparable with the table's.
    #[test]
    fn ticks_agree_with_the_table() {
        let own = one(rustix::process::getpid().as_raw_nonzero().get());
        assert!(own.is_some_and(|own| own.start <= super::super::now_ticks() && own.start > 0));
    }
}
