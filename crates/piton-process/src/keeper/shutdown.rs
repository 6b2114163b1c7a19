//! How the keeper itself ends: attempts first, then what steps left behind, then helpers.
//!
//! It ends because of the driver, a signal, or idleness. Programs that a step lists in `keep` are
//! left alone with everything below them; all others that steps left are ended and named. No
//! process keeps running without limits.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitId, WaitIdOptions};

use crate::client::SOCKET;
use crate::os::{self, Pid, Process};
use crate::processes::{Table, is_named, number};
use crate::protocol::{Cause, Leftover, Reply};

use super::ending::own_pid;
use super::hold::Hold;

/// How long a process may take from its start to its own name, where names decide what is kept.
const NAME_WAIT: Duration = Duration::from_millis(200);

/// How long leftovers have between SIGTERM and SIGKILL: they are daemons, and somebody waits for
/// the run to end.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// How long killed leftovers are waited for before the keeper ends without them.
const LEFTOVER_KILL: Duration = Duration::from_secs(5);

/// How long helpers may still take once everything else is done: a hanging notification must not
/// keep the next driver waiting.
const HELPERS_WAIT: Duration = Duration::from_secs(10);

/// A keeper that is ending.
pub(super) struct Shutdown {
    /// The connection that asked, to be answered.
    asked_by: Option<u64>,
    /// When SIGTERM was first sent, also in ticks since boot; `None` while attempts end.
    since: Option<(Instant, u64)>,
    /// When leftovers were first checked.
    looked: Option<Instant>,
    told: HashSet<(Pid, u64)>,
    leftovers: Vec<Leftover>,
    /// Since when leftovers are dealt with and only helpers are waited for.
    swept: Option<Instant>,
    /// Whether the driver waits for the end of this process and removes its cgroup.
    driver_tidies: bool,
}

impl Hold {
    /// Starts to end; a second request only adds another connection to answer.
    pub(super) fn begin_shutdown(&mut self, asked_by: Option<u64>) {
        if let Some(shutdown) = &mut self.shutdown {
            shutdown.asked_by = asked_by.or(shutdown.asked_by);
            return;
        }
        self.unprepare();
        let (told, leftovers) = (HashSet::new(), Vec::new());
        let (since, looked, swept) = (None, None, None);
        let driver_tidies = false;
        let shutdown = Shutdown { asked_by, since, looked, told, leftovers, swept, driver_tidies };
        self.shutdown = Some(shutdown);
        self.end_steps();
    }

    /// Goes one step further; true when the keeper may exit.
    pub(super) fn advance_shutdown(&mut self, now: Instant) -> bool {
        let Some(mut shutdown) = self.shutdown.take() else {
            return false;
        };
        if self.attempts.iter().any(|attempt| !attempt.helper) {
            self.shutdown = Some(shutdown);
            return false;
        }
        if shutdown.swept.is_none() && self.sweep(&mut shutdown, now) {
            shutdown.swept = Some(now);
            self.answer(&mut shutdown);
        }
        if shutdown.swept.is_some_and(|since| now >= since + HELPERS_WAIT) {
            let helpers = self.attempts.iter().map(|helper| helper.spec.key.clone());
            let helpers: Vec<_> = helpers.map(|key| (key, Cause::Ended)).collect();
            self.end(&helpers, now);
        }
        let over = shutdown.swept.is_some() && self.attempts.is_empty();
        if over {
            // First the name, then the lock: a driver that finds neither starts a new keeper.
            let _ = std::fs::remove_file(SOCKET);
        }
        self.shutdown = Some(shutdown);
        over
    }

    /// Ends what steps left; true when nothing is left, or nothing more can be done.
    fn sweep(&self, shutdown: &mut Shutdown, now: Instant) -> bool {
        if !has_children() {
            return true;
        }
        let left = self.left_behind();
        if left.is_empty() {
            return true;
        }
        // A new process still has the name of its parent. If some programs are kept, it gets time
        // to execute its own.
        let looked = *shutdown.looked.get_or_insert(now);
        if !self.keep.is_empty() && now < looked + NAME_WAIT {
            return false;
        }
        let first = shutdown.since.is_none();
        let (since, ticks) = *shutdown.since.get_or_insert_with(|| (now, os::now_ticks()));
        let waited = now.duration_since(since);
        for process in &left {
            if shutdown.told.insert((process.pid, process.start)) {
                shutdown.leftovers.push(Leftover {
                    pid: number(process.pid),
                    name: process.name.clone(),
                    key: os::variable(process.pid, crate::protocol::ATTEMPT_VARIABLE)
                        .or_else(|| self.owner(process)),
                });
                // Processes that started later tidy up, and are left alone until the kill.
                if first || process.start < ticks {
                    os::signal(process, Signal::TERM);
                    os::signal(process, Signal::CONT);
                }
            }
            if waited >= LEFTOVER_GRACE {
                os::signal(process, Signal::KILL);
            }
        }
        waited >= LEFTOVER_GRACE + LEFTOVER_KILL
    }

    /// The living processes below the keeper that do not belong to a helper and are not kept.
    fn left_behind(&self) -> Vec<Process> {
        let table = Table::now();
        let own = own_pid();
        let orphans = table.children(own).filter(|child| {
            self.root_of(child.pid).is_none()
                && !self.attempts.iter().any(|helper| helper.sessions.contains(&child.session))
        });
        let left = table.trees(orphans, |process| is_named(process, &self.keep));
        left.into_iter().filter(|process| !process.zombie).cloned().collect()
    }

    /// Whether the driver will remove the run's cgroup.
    pub(super) fn is_tidied_by_driver(&self) -> bool {
        self.shutdown.as_ref().is_some_and(|shutdown| shutdown.driver_tidies)
    }

    fn answer(&mut self, shutdown: &mut Shutdown) {
        let list = std::mem::take(&mut shutdown.leftovers);
        for leftover in &list {
            let Leftover { pid, name, key } = leftover;
            self.diagnostics.say(&format!("ended a leftover process: {name} ({pid}) of {key:?}"));
        }
        if shutdown.asked_by.is_some() && shutdown.asked_by == self.driver {
            // Nobody waits for helpers.
            let stays = !self.attempts.is_empty();
            shutdown.driver_tidies = !stays;
            self.say(&Reply::Leftovers { list, stays });
        }
    }
}

/// Whether this process has any child, dead or alive; if not, no step left anything.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}
