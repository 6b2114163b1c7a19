//! What the processes of an attempt do, as the system sees it: which there are, and the processor time
//! that they used. For telling a slow program from a dead one.

use std::path::PathBuf;

use crate::os::{self, Pid};
use crate::processes::Table;
use crate::protocol::{ATTEMPT_VARIABLE, MARK_VARIABLE};

/// A process that uses less than one of so many ticks only waits: timers of a runtime cost that.
const WAITING: u64 = 50;

/// What the processes of an attempt did up to a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Each with its start time.
    processes: Vec<(Pid, u64)>,
    /// Processor time of all, in ticks, with that of their children which have ended.
    used: u64,
    /// The moment, in ticks.
    at: u64,
}

impl Activity {
    /// Whether anything was done since an earlier look. If no process can be seen, that is not known,
    /// and counts as done.
    pub fn is_beyond(&self, earlier: &Self) -> bool {
        let passed = self.at.saturating_sub(earlier.at);
        let used = self.used.saturating_sub(earlier.used);
        self.processes.is_empty()
            || self.processes != earlier.processes
            || used.saturating_mul(WAITING) > passed
    }

    /// The folder in which the oldest process works.
    pub fn folder(&self) -> Option<PathBuf> {
        let (pid, _) = self.processes.iter().min_by_key(|(pid, start)| (*start, *pid))?;
        std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
    }
}

/// Looks at the processes of an attempt, and at all below them.
pub fn of_attempt(mark: &str, key: &str) -> Activity {
    let table = Table::now();
    let is_of =
        |pid: Pid, name: &str, value: &str| os::variable(pid, name).as_deref() == Some(value);
    let own = table.iter().filter(|process| {
        is_of(process.pid, ATTEMPT_VARIABLE, key) && is_of(process.pid, MARK_VARIABLE, mark)
    });
    let found = table.trees(own, |_| false);
    let mut processes: Vec<_> = found.iter().map(|found| (found.pid, found.start)).collect();
    processes.sort_unstable();
    let used = processes.iter().filter_map(|(pid, _)| os::processor_ticks(*pid)).sum();
    Activity { processes, used, at: os::now_ticks() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(processes: &[(Pid, u64)], used: u64, at: u64) -> Activity {
        Activity { processes: processes.to_vec(), used, at }
    }

    /// Lost: an agent that compiles for an hour is killed, or one that hangs is waited for all night.
    #[test]
    fn work_is_told_from_waiting() {
        let before = seen(&[(7, 1)], 100, 1_000);
        for (after, wanted) in [
            (seen(&[(7, 1)], 100, 2_000), false),
            (seen(&[(7, 1)], 120, 2_000), false),
            (seen(&[(7, 1)], 121, 2_000), true),
            (seen(&[(7, 1), (8, 2)], 100, 2_000), true),
            (seen(&[(7, 2)], 0, 2_000), true),
            (seen(&[], 0, 2_000), true),
        ] {
            assert_eq!(after.is_beyond(&before), wanted, "{after:?}");
        }
    }
}
