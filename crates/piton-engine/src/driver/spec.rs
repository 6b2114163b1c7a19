//! The spec is compared before each phase: what is built on another one than was agreed is built twice.

use piton_core::decide::LaneAct;
use piton_core::lane::Stage;
use piton_core::lane_state::LaneProgress;
use piton_core::state::LaneState;
use piton_core::{LanePath, decide::Action, refusals};

use super::Driver;
use crate::error::Result;
use crate::resume::changed_spec;

impl Driver<'_> {
    /// Blocks a lane that is about to begin a phase if the spec was changed since the run began or a
    /// person last accepted it; whether it did.
    pub(super) fn holds_for_spec(&mut self, action: &Action) -> Result<bool> {
        let lane = match action {
            Action::Start { step, .. } => step.lane(),
            Action::Lane { lane, act: LaneAct::Begin } => lane.clone(),
            _ => return Ok(false),
        };
        if self.plan.spec.is_none() || !self.is_first_of_phase(&lane) {
            return Ok(false);
        }
        let Some((_, message)) = changed_spec(&self.plan, &self.state, self.world)? else {
            return Ok(false);
        };
        let refusal = refusals::spec_changed(self.run.id(), &message);
        self.block(&lane, Stage::BeforeLaneStart, refusal)?;
        Ok(true)
    }

    /// Whether nothing of the phase of a lane has begun.
    fn is_first_of_phase(&self, lane: &LanePath) -> bool {
        let is_new = |lane: &LaneState| {
            let work = lane.work.as_deref();
            work.is_none_or(|work| work.progress == LaneProgress::NotBegun)
                && lane.steps.iter().all(|step| step.attempts == 0)
        };
        self.state.phase(&lane.phase).is_some_and(|phase| phase.lanes.iter().all(is_new))
    }
}
