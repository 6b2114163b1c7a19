//! The validation across lanes: all of its commands count for one base, that of now.

use piton_core::event::{Event, LaneBegun};
use piton_core::lane::Stage;
use piton_core::state::{LaneState, Progress};
use piton_core::{LanePath, StepPath};

use super::Driver;
use super::lanes::rooms_of;
use crate::error::Result;
use crate::world::Begin;

impl Driver<'_> {
    /// Lets what was validated on an older base be validated on what it is now: the evidence of a
    /// validation is the base it ran on.
    pub(super) fn validate_again(&mut self, path: &LanePath) -> Result<()> {
        let lanes = self.state.phase(&path.phase).into_iter().flat_map(|p| &p.lanes);
        let stale = lanes.filter(|l| l.is_validation() && l.needs.contains(path));
        let named = |lane: &LaneState| LanePath { lane: lane.id.clone(), ..path.clone() };
        let stale: Vec<LanePath> = stale.map(named).collect();
        let reason = format!("base changed with {path}");
        stale.iter().try_for_each(|lane| self.run_done_again(lane, &reason))
    }

    fn run_done_again(&mut self, path: &LanePath, reason: &str) -> Result<()> {
        let steps = self.state.lane(path).into_iter().flat_map(|lane| &lane.steps);
        let done = steps.filter(|s| s.progress == Progress::Done);
        let done: Vec<_> = done.map(|s| StepPath::new(&path.phase, &path.lane, &s.id)).collect();
        done.into_iter().try_for_each(|step| self.run_again(step, reason))
    }

    /// Looks whether validations that are under way still stand on the base they began with, and whether
    /// what follows lanes in place still has their work: a person may have mended base meanwhile, or
    /// checked out something else.
    pub(super) fn check_base(&mut self) -> Result<()> {
        let apart = self.state.lanes().any(|(_, l)| !l.isolation.is_in_place());
        let under_way = |lane: &LaneState| {
            let begun = lane.work.as_ref().is_some_and(|w| w.blocked.is_none() && w.ready);
            let follows = lane.is_validation() || (apart && lane.isolation.is_in_place());
            begun && follows && !lane.is_over() && !lane.is_running()
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
            match rooms_of(self.world)?.begin(&path, &lane.rules, &self.state)? {
                Begin::Refused(refusal) => {
                    // A validation begins anew then; of others the start is where a rollback goes.
                    let anew = self.state.lane(&path).is_some_and(LaneState::is_validation);
                    let stage = if anew { Stage::BeforeLaneStart } else { Stage::AfterLaneStart };
                    self.block(&path, stage, refusal)?;
                }
                Begin::Ready(begun) => {
                    if self.validate_anew(&path, &begun)? {
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
    pub(super) fn validate_anew(&mut self, path: &LanePath, begun: &LaneBegun) -> Result<bool> {
        let Some(lane) = self.state.lane(path).filter(|l| l.is_validation()) else {
            return Ok(false);
        };
        let Some(work) = &lane.work else { return Ok(false) };
        let short =
            |commit: Option<&str>| commit.unwrap_or("?").chars().take(10).collect::<String>();
        let (from, to) = (work.base_sha.as_deref(), begun.base_sha.as_deref());
        let tree = begun.snapshot.as_ref().map(|s| &s.tree);
        let reason = if from != to {
            format!("base moved from {} to {}", short(from), short(to))
        } else if work.tree.is_some() && work.tree.as_ref() != tree {
            // Somebody mended them, and has not committed that yet.
            "files changed since it passed".to_owned()
        } else {
            return Ok(false);
        };
        self.run_done_again(path, &reason)?;
        Ok(true)
    }
}
