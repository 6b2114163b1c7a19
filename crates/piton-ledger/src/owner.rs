//! Who holds a lease, and whether that process still lives.
//!
//! A process is identified by host, boot, pid namespace, pid and start time, so that a reused pid
//! is never mistaken for its predecessor. The expiry of a lease only decides about processes that
//! we cannot see.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::os;

/// A process that may hold a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The name of its machine.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot; 0 if the system does not tell.
    pub process_start: u64,
    /// The boot it runs under; empty if the system does not tell.
    pub boot_id: String,
    /// The namespace of its pid, without which a sandboxed process would take a living driver
    /// outside for dead; 0 if the system has none.
    #[serde(default)]
    pub pid_namespace: u64,
}

impl Owner {
    /// Describes the calling process.
    pub fn current() -> Self {
        let pid = std::process::id();
        Self {
            host: os::host(),
            pid,
            process_start: os::process(pid).map_or(0, |process| process.start),
            boot_id: os::boot_id(),
            pid_namespace: os::pid_namespace(),
        }
    }

    /// Whether it lives on this machine and is stopped, for example by Ctrl-Z.
    pub fn is_stopped(&self) -> bool {
        owner_liveness(self) == Liveness::Alive && is_stopped(self.pid)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "process {} on {}", self.pid, self.host)
    }
}

/// What is known about the life of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It runs (or is stopped, and could continue).
    Alive,
    /// It is gone for good.
    Dead,
    /// It cannot be seen from here; its lease expires by time.
    Unknown,
}

/// Checks whether an owner still lives.
pub fn owner_liveness(owner: &Owner) -> Liveness {
    let boot = os::boot_id();
    // The boot id identifies the machine: its name may change while it runs.
    if owner.boot_id != boot || boot.is_empty() {
        if owner.host != os::host() {
            return Liveness::Unknown;
        }
        if owner.boot_id != boot {
            return Liveness::Dead;
        }
    }
    if owner.pid_namespace != os::pid_namespace() {
        return Liveness::Unknown;
    }
    match os::process(owner.pid) {
        Some(process) if process.start != owner.process_start || process.zombie => Liveness::Dead,
        Some(_) => Liveness::Alive,
        None if os::exists(owner.pid) => Liveness::Unknown,
        None => Liveness::Dead,
    }
}

/// The process that holds a `flock` on a file, if the system tells and the process can be seen.
pub fn lock_holder(path: &Path) -> Option<u32> {
    // Some file systems show another device in the list of locks, so the inode alone is not enough.
    os::flock_holder(path).filter(|pid| os::has_open(*pid, path))
}

/// Whether a process of this machine is stopped, by a signal or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    os::process(pid).is_some_and(|process| process.stopped)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn we_are_alive_and_survive_a_round_trip() {
        let me = Owner::current();
        assert_eq!(owner_liveness(&me), Liveness::Alive);
        let text = serde_json::to_string(&me).unwrap();
        assert_eq!(serde_json::from_str::<Owner>(&text).unwrap(), me);
    }

    #[test]
    fn what_cannot_be_seen_is_unknown_and_what_cannot_be_is_dead() {
        let me = Owner::current();
        let (host, boot_id) = ("elsewhere.invalid".to_owned(), "another boot".to_owned());
        let elsewhere = Owner { host: host.clone(), boot_id, ..me.clone() };
        assert_eq!(owner_liveness(&elsewhere), Liveness::Unknown);
        // A machine that was renamed is still the same machine.
        let renamed = Owner { host, ..me.clone() };
        assert_eq!(owner_liveness(&renamed), Liveness::Alive);
        let dead = Owner { process_start: me.process_start + 1, ..renamed };
        assert_eq!(owner_liveness(&dead), Liveness::Dead);
        let other_namespace = Owner { pid_namespace: me.pid_namespace + 1, ..me.clone() };
        assert_eq!(owner_liveness(&other_namespace), Liveness::Unknown);
        let before_reboot = Owner { boot_id: "another boot".into(), ..me.clone() };
        assert_eq!(owner_liveness(&before_reboot), Liveness::Dead);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_reused_pid_and_a_zombie_are_dead() {
        let me = Owner::current();
        let predecessor = Owner { process_start: me.process_start + 1, ..me.clone() };
        assert_eq!(owner_liveness(&predecessor), Liveness::Dead);

        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let start = os::process(child.id()).unwrap().start;
        let owner = Owner { pid: child.id(), process_start: start, ..me };
        assert_eq!(owner_liveness(&owner), Liveness::Alive);
        child.kill().unwrap();
        // Not reaped: it becomes a zombie, which can never append again.
        while owner_liveness(&owner) == Liveness::Alive {
            std::thread::yield_now();
        }
        assert_eq!(owner_liveness(&owner), Liveness::Dead);
        child.wait().unwrap();
        assert_eq!(owner_liveness(&owner), Liveness::Dead);
    }
}
