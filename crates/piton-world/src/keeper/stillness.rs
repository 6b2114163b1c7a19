//! A keeper that is stopped (`SIGSTOP`): it neither limits nor ends its steps, and reports nothing.
//!
//! The driver reports that and ends. It does not continue the keeper: somebody may be debugging it, and
//! nothing is lost by waiting for a person.

use std::time::{Duration, Instant};

use piton_engine::{Error, Result};

/// How long a keeper may be stopped: a person may have stopped all processes, and continue all of them.
const STOPPED_WAIT: Duration = Duration::from_secs(5);
/// How often that is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Since when a keeper is stopped, and when that was last checked.
#[derive(Default)]
pub(super) struct Stillness {
    since: Option<Instant>,
    looked: Option<Instant>,
}

impl Stillness {
    /// Refuses to wait any longer for a keeper that is stopped.
    pub(super) fn refuse(&mut self, pid: u32) -> Result<()> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        let now = *self.looked.insert(Instant::now());
        if !piton_ledger::is_stopped(pid) {
            self.since = None;
            return Ok(());
        }
        let since = *self.since.get_or_insert(now);
        if since.elapsed() < STOPPED_WAIT { Ok(()) } else { Err(stopped(pid)) }
    }
}

/// The error for a keeper that is stopped.
pub(super) fn stopped(pid: u32) -> Error {
    Error::World(crate::refusals::keeper_stopped(pid))
}
