//! The validation across lanes: all of its commands count for one base, that of now.

use piton_core::event::{Event, StepReset};
use piton_core::state::{LaneState, Progress};
use piton_core::{LanePath, StepPath};
use piton_formats::lanes::fix::is_validation;

use super::Driver;
use super::lanes::rooms_of;
use crate::error::Result;
use crate::world::Begin;

impl Driver<'_> {
    /// Lets what was validated on an older base be validated on what it is now: the evidence of a
    /// validation is the base it ran on.
    pub(super) fn validate_again(&mut self, path: &LanePath) -> Result<()> {
        let lanes = self.state.phase(&path.phase).into_iter().flat_map(|p| &p.lanes);
        let stale = lanes.filter(|l| is_validation(l) && l.needs.contains(path)).flat_map(|lane| {
            let done = lane.steps.iter().filter(|s| s.progress == Progress::Done);
            done.map(|s| StepPath::new(&path.phase, &lane.id, &s.id))
        });
        for step in stale.collect::<Vec<_>>() {
            let reason = format!("base changed with {path}");
            self.record(Event::StepReset(StepReset { step, reason }))?;
        }
        Ok(())
    }

    /// Looks whether validations that are under way still stand on the base they began with: a person
    /// may have mended it meanwhile, or checked out something else.
    pub(super) fn look_at_validations(&mut self) -> Result<()> {
        let under_way = |lane: &LaneState| {
            let begun = lane.work.as_ref().is_some_and(|w| w.blocked.is_none() && w.ready);
            begun && is_validation(lane) && !lane.is_over() && !lane.is_running()
        };
        let limits = &self.options.limits;
        let chosen = |path: &LanePath| {
            limits.phase.as_ref().is_none_or(|p| *p == path.phase)
                && limits.lane.as_ref().is_none_or(|l| *l == path.lane)
        };
        let lanes = self.state.lanes().filter(|(path, lane)| chosen(path) && under_way(lane));
        let paths: Vec<LanePath> = lanes.map(|(path, _)| path).collect();
        for path in paths {
            let Some(lane) = self.plan.lane(&path).cloned() else { continue };
            let began = self.work(&path).base_sha;
            match rooms_of(self.world)?.begin(&path, &lane.rules, &self.state)? {
                Begin::Refused(refusal) => {
                    self.block(&path, piton_core::lane::Stage::BeforeLaneStart, refusal)?;
                }
                Begin::Ready(begun) if begun.base_sha != began => {
                    self.validate_anew(&path, begun.base_sha.as_deref())?;
                    self.record(Event::LaneBegun(begun))?;
                }
                Begin::Ready(_) => {}
            }
        }
        Ok(())
    }

    /// Lets commands of a validation that passed on another base run again.
    pub(super) fn validate_anew(&mut self, path: &LanePath, base: Option<&str>) -> Result<()> {
        let Some(lane) = self.state.lane(path).filter(|l| is_validation(l)) else { return Ok(()) };
        let Some(work) = lane.work.as_ref().filter(|w| w.base_sha.as_deref() != base) else {
            return Ok(());
        };
        let short =
            |commit: Option<&str>| commit.unwrap_or("?").chars().take(10).collect::<String>();
        let (from, to) = (short(work.base_sha.as_deref()), short(base));
        let done = lane.steps.iter().filter(|s| s.progress == Progress::Done);
        let done: Vec<_> = done.map(|s| StepPath::new(&path.phase, &path.lane, &s.id)).collect();
        for step in done {
            let reason = format!("base moved from {from} to {to}");
            self.record(Event::StepReset(StepReset { step, reason }))?;
        }
        Ok(())
    }
}
