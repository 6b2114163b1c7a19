//! Linux: where a thread may run, and holding it on one CPU for a moment.
//!
//! Driver and keeper take turns: while one works the other sleeps. The kernel wakes the sleeper on
//! an idle CPU rather than on the waker's, and waking an idle CPU costs more than either of them has
//! to do. Held on the same CPU they hand over without that. What a thread was allowed before is
//! looked up each time, so a change made by a person or a container manager holds.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Holds the calling thread on one CPU, and lets it go again.
#[derive(Debug, Default)]
pub struct Tether {
    /// Where the thread may run by right, while it is held.
    free: Option<CpuSet>,
    /// Where it was put.
    held: Option<CpuSet>,
}

impl Tether {
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
        true
    }

    /// Lets the thread run wherever it may.
    pub fn let_go(&mut self) {
        if let (Some(held), Some(free)) = (self.held.take(), self.free.take())
            && sched_getaffinity(None) == Ok(held)
        {
            // Fails only if the machine took all of them away, and has then chosen others.
            let _ = sched_setaffinity(None, &free);
        }
    }

    /// Where the thread may run by right, if it is held: for what it starts.
    pub(crate) fn free(&self) -> Option<&CpuSet> {
        self.held.and(self.free.as_ref())
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
        assert_eq!((tether.hold(cpu), tether.free()), (true, Some(&before)));
        tether.let_go();
        assert_eq!((sched_getaffinity(None)?, tether.free()), (before, None));
        Ok(())
    }

    /// Whoever moves a held thread is right.
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
