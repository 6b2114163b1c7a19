//! Inputs of finished steps, looked at again when something they may read was made anew.

use piton_core::event::{Event, StepReset};

use super::Driver;
use crate::error::{Error, Result};
use crate::observer::Note;

/// Times one driver runs a step again because its inputs were made anew: steps that change each
/// other's inputs, or their own, would go on for ever.
const REDONE_MAX: u32 = 3;

impl Driver<'_> {
    /// Looks again at inputs of finished steps after something they may read was made anew.
    pub(super) fn recheck(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.recheck_inputs) {
            return Ok(());
        }
        let stale = match crate::resume::stale_inputs(&self.plan, &self.state, self.world) {
            // A signal came before all were hashed, and is told next.
            Err(Error::Interrupted(_)) => return Ok(()),
            other => other?,
        };
        for rerun in stale {
            let count = self.redone.entry(rerun.step.clone()).or_default();
            if *count == REDONE_MAX {
                let text = format!(
                    "{}: {} once more, perhaps by the step itself; it is left as it is",
                    rerun.step, rerun.reason
                );
                self.observer.note(&Note::Warning(text));
                continue;
            }
            *count += 1;
            self.record(Event::StepReset(StepReset { step: rerun.step, reason: rerun.reason }))?;
        }
        Ok(())
    }
}
