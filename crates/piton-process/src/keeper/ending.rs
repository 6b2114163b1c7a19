//! Ends the process tree of an attempt: SIGTERM, then SIGKILL, until nothing is left.
//!
//! Whatever a step starts descends from the keeper for ever, because orphans of its tree become the
//! keeper's own children. So a tree is: the process of the present part with everything below, and
//! those adopted orphans that belong to the attempt, with everything below them. Whose an orphan
//! is, is told by its session, else by its environment, else by there being only one attempt,
//! running or over, that it can be of. Its process group, its open files and its name do not
//! matter.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::os::{self, Pid, Process};
use crate::processes::{Table, is_named};
use crate::protocol::{ATTEMPT_VARIABLE, Cause, MARK_VARIABLE};

use super::attempt::{Attempt, Ending};
use super::hold::Hold;
use super::prepared::Prepared;

/// How many killing passes follow each other at once: a process that forks while it is being
/// killed is caught by the next.
const PASSES_AT_ONCE: u32 = 4;

/// After how many killing turns (one per ending tick) an attempt counts as ended although some of
/// its processes still exist: only the kernel can hold a killed process that long.
const TURNS_MAX: u32 = 1000;

impl Hold {
    /// Begins to end attempts, each for its cause; those that are unknown or ending are left.
    pub(super) fn end(&mut self, which: &[(String, Cause)], now: Instant) {
        let mut begun = false;
        for (key, cause) in which {
            let found = self.attempts.iter_mut().find(|attempt| attempt.spec.key == *key);
            if let Some(attempt) = found.filter(|attempt| attempt.ending.is_none()) {
                let grace = Duration::from_millis(attempt.spec.grace_ms);
                let (began_ticks, told) = (os::now_ticks(), HashSet::new());
                let (cause, kill_at) = (*cause, now.checked_add(grace).unwrap_or(now));
                attempt.ending = Some(Ending { cause, kill_at, passes: 0, began_ticks, told });
                begun = true;
            }
        }
        if begun {
            self.advance_endings(now);
        }
    }

    /// Sends SIGINT to the program of an attempt. Its process id is no other's: we have not reaped it.
    pub(super) fn interrupt(&self, key: &str) {
        let attempt = self.attempts.iter().find(|attempt| attempt.spec.key == *key);
        let pid = attempt.and_then(|attempt| attempt.pid).and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// Begins to end every attempt of a step.
    pub(super) fn end_steps(&mut self) {
        let steps = self.attempts.iter().filter(|attempt| !attempt.helper);
        let all: Vec<_> = steps.map(|attempt| (attempt.spec.key.clone(), Cause::Ended)).collect();
        self.end(&all, Instant::now());
    }

    /// Takes every ending attempt one step further.
    pub(super) fn advance_endings(&mut self, now: Instant) {
        let mut table: Option<Table> = None;
        let mut index = 0;
        while index < self.attempts.len() {
            if self.attempts[index].ending.is_none() {
                index += 1;
                continue;
            }
            let table = table.get_or_insert_with(Table::now);
            let before = self.attempts.len();
            self.advance_ending(index, table, now);
            // An attempt that finished was replaced by the last one.
            if self.attempts.len() == before {
                index += 1;
            }
        }
    }

    fn advance_ending(&mut self, index: usize, table: &Table, now: Instant) {
        let mut members = self.members(index, table);
        let reaped = self.attempts[index].pid.is_none();
        let Some(ending) = &mut self.attempts[index].ending else {
            return;
        };
        let cause = ending.cause;
        if members.is_empty() && reaped {
            return self.finish(index, cause, None);
        }
        if now < ending.kill_at {
            let first = ending.told.is_empty();
            for process in &members {
                let was_there = first || process.start < ending.began_ticks;
                if was_there && ending.told.insert((process.pid, process.start)) {
                    os::signal(process, Signal::TERM);
                    // A stopped process only gets it once it continues.
                    os::signal(process, Signal::CONT);
                }
            }
            return;
        }
        ending.passes += 1;
        let turns = ending.passes;
        for _ in 0..PASSES_AT_ONCE {
            if members.is_empty() {
                break;
            }
            for process in &members {
                os::signal(process, Signal::KILL);
            }
            let seen: HashSet<Pid> = members.iter().map(|process| process.pid).collect();
            members = self.members(index, &Table::now());
            if members.iter().all(|process| seen.contains(&process.pid)) {
                break;
            }
        }
        if turns > TURNS_MAX {
            let names: Vec<_> = members.iter().map(|process| &process.name).collect();
            let key = &self.attempts[index].spec.key;
            self.diagnostics.say(&format!("{key}: gave up ending these processes: {names:?}"));
            self.finish(index, cause, None);
        }
    }

    /// The living processes of an attempt.
    fn members(&self, index: usize, table: &Table) -> Vec<Process> {
        let attempt = &self.attempts[index];
        let root = attempt.pid.and_then(|pid| table.get(pid));
        let waiting = self.prepared.as_ref().and_then(Prepared::pid);
        let adopted = table.children(own_pid()).filter(|child| {
            Some(child.pid) != waiting
                && self.root_of(child.pid).is_none()
                && self.owner(child).is_some_and(|key| key == attempt.spec.key)
        });
        let mut members = table.trees(root, |_| false);
        members.extend(table.trees(adopted, |process| is_named(process, &self.keep)));
        members.into_iter().filter(|process| !process.zombie).cloned().collect()
    }

    /// The attempt whose present part this process is.
    pub(super) fn root_of(&self, pid: Pid) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.pid == Some(pid))
    }

    /// The attempt (running or over) that left an orphan behind.
    pub(super) fn owner(&self, orphan: &Process) -> Option<String> {
        let running = self.attempts.iter().find(|a| a.sessions.contains(&orphan.session));
        if let Some(attempt) = running {
            return Some(attempt.spec.key.clone());
        }
        let over = self.past.iter().rev().find(|past| past.sessions.contains(&orphan.session));
        if let Some(past) = over {
            return Some(past.key.clone());
        }
        if os::variable(orphan.pid, MARK_VARIABLE).as_deref() == Some(self.mark.as_str()) {
            return os::variable(orphan.pid, ATTEMPT_VARIABLE);
        }
        self.only_possible(orphan.start)
    }

    /// The attempt that alone can have started a process then. For a daemon in its own session that
    /// cleared its environment nothing else tells; what another step may have left for those after
    /// it is nobody's, and ends with the run.
    fn only_possible(&self, start: u64) -> Option<String> {
        if self.forgotten_ticks.is_some_and(|until| start <= until) {
            return None;
        }
        let running = self.attempts.iter().filter(|attempt| attempt.began_ticks <= start);
        let over = self.past.iter().filter(|past| past.ticks.contains(&start));
        let mut possible =
            running.map(|attempt| &attempt.spec.key).chain(over.map(|past| &past.key));
        let first = possible.next()?;
        possible.next().is_none().then(|| first.clone())
    }
}

pub(super) fn own_pid() -> Pid {
    rustix::process::getpid().as_raw_nonzero().get()
}
