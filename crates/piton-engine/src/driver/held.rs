//! Attempts that are over and whose outcome is not recorded yet: the disk is full at the checkpoint
//! that belongs to it, its artifacts can't be read or are still being hashed, or it was told to go from
//! outside and this driver may be next.
//!
//! Nothing is lost by waiting: the keeper and its journal hold an exit until it is acknowledged, so
//! the next driver finds it again. A success is never turned into a failure that is not its own.

use piton_core::event::Outcome;
use piton_core::lane::Stage;
use piton_core::{LanePath, Millis};

use super::Driver;
use crate::error::Result;
use crate::world::{Attempt, Cause, Ended, Refusal};

/// How long the outcome of an attempt that was told to go waits for the same word to this driver: a
/// machine that shuts down tells all processes within moments, in whatever order.
const TOLD_WAIT: Millis = Millis(500);

/// `SIGHUP`.
const SIGHUP: i32 = 1;
/// `SIGTERM`.
const SIGTERM: i32 = 15;
/// How a shell reports that its child died of a signal: this much more than its number.
const BY_SIGNAL: i32 = 128;

impl Driver<'_> {
    /// Holds a lane up whose files can't be checkpointed.
    pub(super) fn hold_up(&mut self, lane: &LanePath, stage: Stage, why: &str) -> Result<()> {
        let why = format!("its files could not be checkpointed: {why}");
        self.hold(lane, stage, &why, "put that right, then resume")
    }

    fn hold(&mut self, lane: &LanePath, stage: Stage, why: &str, fix: &str) -> Result<()> {
        let why = self.options.redactor.redact(why).into_owned();
        self.block(lane, stage, Refusal { why, fix: fix.to_owned() })
    }

    /// Whether an outcome must wait because its files could not be held or read. What ends anyway
    /// waits for nothing.
    pub(super) fn must_stick(&self, outcome: &Outcome) -> bool {
        *outcome == Outcome::Succeeded && self.goes_on()
    }

    /// Whether this driver, or the next, goes on with what is under way.
    pub(super) fn goes_on(&self) -> bool {
        self.abort.is_none() && self.options.rewind.is_none()
    }

    /// Leaves a success unrecorded until its files can be held and read; its lane waits for a person.
    pub(super) fn stick(&mut self, attempt: &Attempt, why: &str) -> Result<()> {
        self.acks.retain(|acked| acked != attempt);
        if self.stuck.contains(attempt) {
            return Ok(());
        }
        self.stuck.push(attempt.clone());
        let (lane, step) = (attempt.step.lane(), &attempt.step.step);
        let (why, fix) = if self.has_lost_its_room(&lane) {
            let again = "a resume makes it as its last checkpoint has it, and runs the step again";
            let why = format!("{step} succeeded, but its worktree and all it did there are gone");
            (format!("{why}; {again}"), "find out what deleted it, then resume")
        } else {
            let why = format!("{step} succeeded and is not run again, but {why}");
            (why, "put that right, then resume")
        };
        self.hold(&lane, Stage::AfterLaneStart, &why, fix)
    }

    /// Whether the worktree of a lane was deleted.
    fn has_lost_its_room(&mut self, lane: &LanePath) -> bool {
        let dir = self.state.lane(lane).map_or("", |l| l.dir()).to_owned();
        !dir.is_empty() && self.world.rooms().is_some_and(|rooms| !rooms.is_there(&dir))
    }

    /// Records what is stuck as interrupted: nobody comes back for it.
    pub(super) fn give_up_stuck(&mut self) -> Result<()> {
        for attempt in std::mem::take(&mut self.stuck) {
            self.lost(&attempt, "the run ended before its files could be held".to_owned())?;
            self.acks.push(attempt);
        }
        Ok(())
    }

    /// Whether an attempt may have gone because all were told to: then this driver hears it too.
    pub(super) fn may_be_told(&self, ended: &Ended) -> bool {
        told_to_go(ended) && self.signal.is_none() && self.ending.is_none()
    }

    /// Whether an attempt went by the word that ended this driver too.
    pub(super) fn went_with_us(&self, ended: &Ended) -> bool {
        told_to_go(ended) && matches!(self.signal, Some(SIGTERM | SIGHUP))
    }

    /// Lets an outcome wait.
    pub(super) fn wait_for_word(&mut self, ended: Box<Ended>) {
        // By the time awake: clocks can be set back.
        self.told.push((Millis(self.clock.1.0 + TOLD_WAIT.0), ended));
    }

    /// How long the next outcome waits at most.
    pub(super) fn told_rest(&self) -> Option<Millis> {
        let until = self.told.iter().map(|(until, _)| until.0).min()?;
        Some(Millis(until.saturating_sub(self.clock.1.0)))
    }

    /// Records outcomes that waited: long enough, or until this driver was told to go.
    pub(super) fn take_told(&mut self) -> Result<()> {
        if self.told.is_empty() {
            return Ok(());
        }
        let signalled = self.signal.is_some() || self.ending.is_some();
        for (until, ended) in std::mem::take(&mut self.told) {
            if signalled || until.0 <= self.clock.1.0 {
                self.ended(&ended)?;
            } else {
                self.told.push((until, ended));
            }
        }
        Ok(())
    }
}

/// Whether an attempt died of a signal that asks to go.
fn told_to_go(ended: &Ended) -> bool {
    let by = ended.signal.or_else(|| ended.code.map(|code| code - BY_SIGNAL));
    ended.cause == Cause::Exited && matches!(by, Some(SIGTERM | SIGHUP))
}
