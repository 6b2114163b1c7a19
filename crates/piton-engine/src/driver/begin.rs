//! How an attempt begins: its inputs and files are looked at, then its start is recorded.

use piton_core::event::{Event, StepStarted};
use piton_core::lane::{SnapshotRef, Stage};

use super::Driver;
use crate::error::{Error, Result};
use crate::world::Attempt;

impl Driver<'_> {
    pub(super) fn begin(&mut self, attempt: &Attempt) -> Result<()> {
        let Some(step) = self.planned(&attempt.step) else {
            return Ok(());
        };
        let (definition, patterns) = (step.definition(), step.inputs.clone());
        let inputs = if patterns.is_empty() {
            Ok(Vec::new())
        } else {
            // Hashing may take long: outcomes at hand do not wait for it.
            self.commit()?;
            let dir = self.state.lane(&attempt.step.lane()).map_or("", |l| l.dir()).to_owned();
            self.world.inputs(&dir, &patterns)
        };
        // An input that can't be read is the step's trouble, not that of the run.
        let (inputs, unreadable) = match inputs {
            Ok(inputs) => (inputs, None),
            Err(Error::World(why)) => (Vec::new(), Some(why)),
            Err(error) => return Err(error),
        };
        let before = match self.found_by(attempt) {
            Ok(before) => before,
            // No attempt is spent on a disk that is full.
            Err(why) => {
                self.again = true;
                return self.hold_up(&attempt.step.lane(), Stage::AfterLaneStart, &why);
            }
        };
        self.record(Event::StepStarted(StepStarted {
            step: attempt.step.clone(),
            attempt: attempt.number,
            definition,
            inputs,
            before,
        }))?;
        match unreadable.map(|why| format!("an input can't be read: {why}")) {
            Some(why) => self.not_started(attempt, &why),
            None => self.place_order(attempt),
        }
    }

    /// The files an attempt finds: those it starts from are checkpointed first.
    fn found_by(&mut self, attempt: &Attempt) -> Result<Option<SnapshotRef>, String> {
        if self.state.lane(&attempt.step.lane()).is_none_or(|l| l.work.is_none()) {
            return Ok(None);
        }
        self.reset(&attempt.step)?;
        self.snapshot(&attempt.step.lane(), &format!("before {attempt}"))
    }
}
