//! The validation across lanes, and what else needs base to be checked out as it was.

use piton_core::LanePath;
use piton_core::decide::validation;
use piton_core::event::{Event, LaneBegun};
use piton_core::lane::Stage;
use piton_core::state::LaneState;

use super::Driver;
use super::lanes::workspaces_of;
use crate::error::Result;
use crate::world::Begin;

impl Driver<'_> {
    /// Looks whether validations that are under way still stand on the base they began with, and whether
    /// what follows lanes in place still has their work: a person may have fixed base meanwhile, or
    /// checked out something else.
    pub(super) fn check_base(&mut self) -> Result<()> {
        for path in validation::on_base(&self.state, &self.options.limits) {
            let Some(lane) = self.plan.lane(&path).cloned() else { continue };
            match workspaces_of(self.world)?.begin(&path, &lane.rules, &self.state)? {
                Begin::Refused(refusal) => {
                    // A validation begins anew then; of others the start is where a rollback goes.
                    let anew = self.state.lane(&path).is_some_and(LaneState::is_validation);
                    let stage = if anew { Stage::BeforeLaneStart } else { Stage::AfterLaneStart };
                    self.block(&path, stage, refusal)?;
                }
                Begin::Ready(begun) => {
                    if self.outdate_validation(&path, &begun)? {
                        if !begun.note.is_empty() {
                            self.warn(format!("{path}: {}", begun.note));
                        }
                        self.record(Event::LaneBegun(begun))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets commands of a validation that passed on another base, or on other files, run again;
    /// whether it is another.
    pub(super) fn outdate_validation(
        &mut self,
        path: &LanePath,
        begun: &LaneBegun,
    ) -> Result<bool> {
        let lane = self.state.lane(path);
        let Some((lane, why)) = lane.and_then(|l| Some((l, validation::outdated(l, begun)?)))
        else {
            return Ok(false);
        };
        let steps = validation::passed(&path.phase, lane).into_iter();
        steps.map(|step| self.run_again(step, &*why)).collect::<Result<Vec<()>>>()?;
        Ok(true)
    }
}
