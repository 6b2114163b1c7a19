//! Files of steps that take long to hash: they are hashed beside the loop, and what needs their hashes
//! waits. Lanes, limits and signals do not.
//!
//! The end of a step whose files are being hashed is not recorded, and its exit not acknowledged: a
//! driver that goes meanwhile leaves it to the next, which hashes them again and runs nothing.

use piton_core::plan::Step;
use piton_core::{Millis, StepPath};

use super::Driver;
use crate::error::Result;
use crate::observer::Note;
use crate::world::Ended;

/// How often it is said how far the hashing is.
const PROGRESS_EVERY: Millis = Millis::from_secs(10);

impl Driver<'_> {
    /// Whether files of a step are still being hashed.
    pub(super) fn hashes(&mut self, step: &StepPath, patterns: &[String]) -> bool {
        if patterns.is_empty() {
            return false;
        }
        let dir = self.state.lane(&step.lane()).map_or("", |l| l.dir()).to_owned();
        let Some(hashing) = self.world.hashed(&dir, patterns) else {
            self.progress.remove(step);
            return false;
        };
        let awake = self.clock.1;
        let due = |said: &Millis| awake.0.saturating_sub(said.0) >= PROGRESS_EVERY.0;
        if self.progress.get(step).is_none_or(due) {
            self.progress.insert(step.clone(), awake);
            self.observer.note(&Note::Hashing { step: step.clone(), hashing });
        }
        true
    }

    /// Whether the files that the outcome of an attempt tells of are still being hashed.
    pub(super) fn hashes_for(&mut self, ended: &Ended, step: &Step, more: &[String]) -> bool {
        if ended.code != Some(0) && self.state.recorded.is_empty() {
            return false;
        }
        let declared = step.artifacts.iter().chain(more).chain(&step.inputs);
        self.hashes(&ended.attempt.step, &declared.cloned().collect::<Vec<_>>())
    }

    /// Lets an outcome wait until files are hashed.
    pub(super) fn wait_for_hashes(&mut self, ended: &Ended) {
        self.hashing.retain(|other| other.attempt != ended.attempt);
        self.hashing.push(ended.clone());
    }

    /// Records outcomes whose files are hashed. One that goes does not wait for the others.
    pub(super) fn take_hashed(&mut self) -> Result<()> {
        for ended in std::mem::take(&mut self.hashing) {
            self.ended(&ended)?;
        }
        let left = self.hashing.iter().filter(|_| self.options.limits.draining);
        self.options.limits.put_off = left.map(|ended| ended.attempt.step.lane()).collect();
        Ok(())
    }
}
