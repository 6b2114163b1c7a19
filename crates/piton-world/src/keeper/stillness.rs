//! A keeper that stands still: it neither limits nor ends its steps, and never says what became of them.
//!
//! The driver says so and goes. It does not let the keeper go on: whoever stopped it may be looking at
//! it, and nothing is lost by waiting for a person.

use std::time::{Duration, Instant};

use piton_engine::{Error, Result};

/// How long a keeper may stand still: a person may have stopped all at once, and lets all go on.
const STOPPED_WAIT: Duration = Duration::from_secs(5);
/// How often it is looked whether it does.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What was seen of a keeper's standing still.
#[derive(Default)]
pub(super) struct Stillness {
    since: Option<Instant>,
    looked: Option<Instant>,
}

impl Stillness {
    /// Refuses to wait any longer for a keeper that stands still.
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

/// What is said of one that stands still.
pub(super) fn stopped(pid: u32) -> Error {
    Error::World(format!(
        "the keeper (process {pid}) is stopped: it neither limits nor ends its steps; let it go on \
         with `kill -CONT {pid}`, or end it with `kill -KILL {pid}`, then resume"
    ))
}
