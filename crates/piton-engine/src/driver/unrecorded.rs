//! Attempts that are over and whose outcome is not recorded yet: the disk is full at the checkpoint
//! that belongs to it, its artifacts can't be read or are still being hashed, or a signal ended it that
//! this driver may be sent next.
//!
//! Nothing is lost by waiting: the keeper and its journal hold an exit until it is acknowledged, so
//! the next driver finds it again. A success is never turned into a failure that is not its own. Files
//! that take long are hashed beside the loop: lanes, limits and signals do not wait for them.

use std::collections::BTreeMap;

use piton_core::lane::Stage;
use piton_core::plan::Step;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Millis, StepPath, refusals};

use super::Driver;
use crate::error::Result;
use crate::observer::Note;
use crate::world::{Attempt, Cause, Ended};

/// How long the outcome of an attempt that a signal ended waits for the same signal to this driver: a
/// machine that shuts down sends it to all processes within moments, in whatever order.
const SIGNAL_WAIT: Millis = Millis(500);
/// How often it is said how far the hashing is.
const PROGRESS_EVERY: Millis = Millis::from_secs(10);

/// `SIGHUP`.
const SIGHUP: i32 = 1;
/// `SIGTERM`.
const SIGTERM: i32 = 15;
/// How a shell reports that its child died of a signal: this much more than its number.
const BY_SIGNAL: i32 = 128;

/// What waits, and for what.
#[derive(Default)]
pub(super) struct Unrecorded {
    /// Attempts that succeeded and whose files can't be checkpointed or read.
    unsaved: Vec<Attempt>,
    /// Attempts that a signal ended, with the time awake until which one to this driver is awaited.
    awaiting_signal: Vec<(Millis, Box<Ended>)>,
    /// Attempts whose files are still being hashed.
    pub(super) hashing: Vec<Ended>,
    /// When it was last said how far that is, by the time awake.
    progress: BTreeMap<StepPath, Millis>,
}

impl Unrecorded {
    /// How long the next outcome waits for a signal at most.
    pub(super) fn signal_wait(&self, awake: Millis) -> Option<Millis> {
        let until = self.awaiting_signal.iter().map(|(until, _)| until.0).min()?;
        Some(Millis(until.saturating_sub(awake.0)))
    }

    /// Lets an outcome wait until files are hashed.
    pub(super) fn await_hashes(&mut self, ended: &Ended) {
        self.hashing.retain(|other| other.attempt != ended.attempt);
        self.hashing.push(ended.clone());
    }

    /// Lets an outcome wait for a signal to this driver.
    pub(super) fn await_signal(&mut self, ended: Box<Ended>, awake: Millis) {
        self.awaiting_signal.push((Millis(awake.0 + SIGNAL_WAIT.0), ended));
    }
}

impl Driver<'_> {
    /// Blocks a lane whose files can't be checkpointed.
    pub(super) fn block_unsaved(
        &mut self,
        lane: &LanePath,
        stage: Stage,
        why: Refusal,
    ) -> Result<()> {
        let refusal = why.because("its files could not be checkpointed");
        self.block(lane, stage, refusal.map(|text| self.redact(text)))
    }

    /// Leaves a success unrecorded until its files can be checkpointed and read; its lane waits for a
    /// person.
    pub(super) fn leave_unrecorded(&mut self, attempt: &Attempt, why: &str) -> Result<()> {
        self.dispatch.acks.retain(|acked| acked != attempt);
        if self.unrecorded.unsaved.contains(attempt) {
            return Ok(());
        }
        self.unrecorded.unsaved.push(attempt.clone());
        let (lane, step) = (attempt.step.lane(), &attempt.step.step);
        let refusal = if self.has_lost_worktree(&lane) {
            refusals::worktree_lost(step)
        } else {
            refusals::not_recorded(step, &self.redact(why))
        };
        self.block(&lane, Stage::AfterLaneStart, refusal)
    }

    /// Whether the worktree of a lane was deleted.
    fn has_lost_worktree(&mut self, lane: &LanePath) -> bool {
        let dir = self.dir_of(lane);
        !dir.is_empty()
            && self.world.workspaces().is_some_and(|workspaces| !workspaces.is_there(&dir))
    }

    /// Records successes whose files could not be saved as interrupted: nobody comes back for them.
    pub(super) fn give_up_unsaved(&mut self) -> Result<()> {
        for attempt in std::mem::take(&mut self.unrecorded.unsaved) {
            self.lost(&attempt, "the run ended before its files could be checkpointed".to_owned())?;
            self.dispatch.acks.push(attempt);
        }
        Ok(())
    }

    /// Whether a signal ended an attempt that this driver may be sent too.
    pub(super) fn may_be_sent_too(&self, ended: &Ended) -> bool {
        asked_to_end(ended) && !self.stop.is_under_way()
    }

    /// Whether an attempt was ended by the signal that stops this driver.
    pub(super) fn ended_with_driver(&self, ended: &Ended) -> bool {
        asked_to_end(ended) && matches!(self.stop.signal, Some(SIGTERM | SIGHUP))
    }

    /// Records outcomes that waited for a signal: long enough, or until it came.
    pub(super) fn record_signalled(&mut self) -> Result<()> {
        let is_due =
            |(until, _): &mut (Millis, _)| self.stop.is_under_way() || *until <= self.clock.awake;
        let due: Vec<_> = self.unrecorded.awaiting_signal.extract_if(.., is_due).collect();
        due.iter().try_for_each(|(_, ended)| self.ended(ended))
    }

    /// Whether files of a step are still being hashed.
    pub(super) fn hashes(&mut self, step: &StepPath, patterns: &[String]) -> bool {
        if patterns.is_empty() {
            return false;
        }
        let dir = self.dir_of(&step.lane());
        let progress = &mut self.unrecorded.progress;
        let Some(hashing) = self.world.hashed(&dir, patterns) else {
            progress.remove(step);
            return false;
        };
        if progress.get(step).is_none_or(|said| self.clock.passed(*said) >= PROGRESS_EVERY) {
            progress.insert(step.clone(), self.clock.awake);
            self.observer.note(&Note::Hashing { step: step.clone(), hashing });
        }
        true
    }

    /// Whether the files in the outcome of an attempt are still being hashed.
    pub(super) fn hashes_for(&mut self, ended: &Ended, step: &Step, more: &[String]) -> bool {
        if ended.code != Some(0) && self.state.recorded.is_empty() {
            return false;
        }
        let declared = step.artifacts.iter().chain(more).chain(&step.inputs);
        self.hashes(&ended.attempt.step, &declared.cloned().collect::<Vec<_>>())
    }

    /// Records outcomes whose files are hashed. A driver that stops leaves the others to the next,
    /// which hashes them again and runs nothing.
    pub(super) fn record_hashed(&mut self) -> Result<()> {
        for ended in std::mem::take(&mut self.unrecorded.hashing) {
            self.ended(&ended)?;
        }
        let limits = &mut self.options.limits;
        let left = self.unrecorded.hashing.iter().filter(|_| limits.draining);
        limits.put_off = left.map(|ended| ended.attempt.step.lane()).collect();
        Ok(())
    }
}

/// Whether an attempt died of a signal that asks to end.
fn asked_to_end(ended: &Ended) -> bool {
    let by = ended.signal.or_else(|| ended.code.map(|code| code - BY_SIGNAL));
    ended.cause == Cause::Exited && matches!(by, Some(SIGTERM | SIGHUP))
}
