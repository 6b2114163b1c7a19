//! Where a thread may run, and holding it on one CPU for a moment.
//!
//! Driver and keeper take turns: while one works the other sleeps. The kernel wakes the sleeper on
//! an idle CPU rather than on the waker's, and waking an idle CPU costs more than either of them
//! has to do. Held on the same CPU they hand over without that. What a thread was allowed before is
//! looked up each time, so a change made by a person or a container manager holds.

use super::{interrupt_again, let_finish};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// What is restored for a child of a held thread before its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Free {
    /// Where it may run.
    pub(crate) cpus: CpuSet,
    /// Whether it is to be scheduled as any other again.
    pub(crate) interrupts: bool,
}

/// Holds the calling thread on one CPU, and lets it go again.
#[derive(Debug, Default)]
pub struct Tether {
    /// Where the thread may run by right, while it is held.
    free: Option<CpuSet>,
    /// Where it was put.
    held: Option<CpuSet>,
    /// Whether it lets others finish, while it is held.
    lets_finish: bool,
    /// Whether it does so now.
    is_letting: bool,
}

impl Tether {
    /// One whose thread, while it is held, does not interrupt who wakes it: who says what there is
    /// to do says the rest of it, and goes to sleep, before that is done.
    pub(crate) fn that_lets_finish() -> Self {
        Self { lets_finish: true, ..Self::default() }
    }

    /// Holds the thread on the CPU it runs on and names that; nothing happens, and none is named,
    /// where there is no other or where the system refuses.
    pub fn hold_here(&mut self) -> Option<usize> {
        let cpu = sched_getcpu();
        self.hold(cpu).then_some(cpu)
    }

    /// Holds the thread on a CPU, if it may run there; says whether it does.
    pub(crate) fn hold(&mut self, cpu: usize) -> bool {
        let Ok(now) = sched_getaffinity(None) else {
            return false;
        };
        if self.held != Some(now) {
            // Not held, or moved by somebody else, who is right.
            (self.free, self.held) = (Some(now), None);
        }
        let Some(free) = self.free.filter(|free| free.count() > 1 && cpu < CpuSet::MAX_CPU) else {
            self.let_go();
            return false;
        };
        let mut one = CpuSet::new();
        one.set(cpu);
        if self.held == Some(one) {
            return true;
        }
        if !free.is_set(cpu) || sched_setaffinity(None, &one).is_err() {
            self.let_go();
            return false;
        }
        self.held = Some(one);
        // From one CPU to another it goes without being let go between.
        self.is_letting = self.is_letting || (self.lets_finish && let_finish());
        true
    }

    /// Lets the thread run wherever it may.
    pub fn let_go(&mut self) {
        if std::mem::take(&mut self.is_letting) {
            interrupt_again();
        }
        if let (Some(held), Some(free)) = (self.held.take(), self.free.take())
            && sched_getaffinity(None) == Ok(held)
        {
            // Fails only if the machine took all of them away, and has then chosen others.
            let _ = sched_setaffinity(None, &free);
        }
    }

    /// What the thread may do by right, if it is held: for what it starts.
    pub(crate) fn free(&self) -> Option<Free> {
        let cpus = self.held.and(self.free)?;
        Some(Free { cpus, interrupts: self.is_letting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held too long, a driver would compute on one CPU; let go wrongly, it would break out of the
    /// CPUs that a person gave it.
    #[test]
    fn a_thread_gets_back_what_it_had() -> rustix::io::Result<()> {
        let before = sched_getaffinity(None)?;
        let mut tether = Tether::default();
        let Some(cpu) = tether.hold_here() else {
            // A machine with one CPU: nothing to hold.
            assert_eq!(sched_getaffinity(None)?, before);
            return Ok(());
        };
        assert_eq!(sched_getaffinity(None)?.count(), 1);
        let free = Free { cpus: before, interrupts: false };
        assert_eq!((tether.hold(cpu), tether.free()), (true, Some(free)));
        tether.let_go();
        assert_eq!((sched_getaffinity(None)?, tether.free()), (before, None));
        Ok(())
    }

    /// If another process moves a held thread, that wins.
    #[test]
    fn what_a_person_says_meanwhile_holds() -> rustix::io::Result<()> {
        let mut tether = Tether::default();
        let (before, Some(cpu)) = (sched_getaffinity(None)?, tether.hold_here()) else {
            return Ok(());
        };
        let mut other = before;
        other.unset(cpu);
        sched_setaffinity(None, &other)?;
        assert!(!tether.hold(cpu));
        tether.let_go();
        assert_eq!(sched_getaffinity(None)?, other);
        Ok(())
    }
}
