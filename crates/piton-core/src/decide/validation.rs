//! The validation across lanes: all of its commands count for one base, that of now.

use super::Limits;
use crate::event::LaneBegun;
use crate::id::{LanePath, StepPath};
use crate::state::{LaneState, Progress, RunState};
use crate::text::short;

/// The steps of validations that passed before a lane was merged: the evidence of a validation is the
/// base it ran on.
pub fn outdated_by(state: &RunState, merged: &LanePath) -> Vec<StepPath> {
    let lanes = state.phase(&merged.phase).into_iter().flat_map(|p| &p.lanes);
    let stale = lanes.filter(|l| l.is_validation() && l.needs.contains(merged));
    stale.flat_map(|lane| passed(&merged.phase, lane)).collect()
}

/// The steps of a validation that passed.
pub fn passed(phase: &str, lane: &LaneState) -> Vec<StepPath> {
    let done = lane.steps.iter().filter(|s| s.progress == Progress::Done);
    done.map(|s| StepPath::new(phase, &lane.id, &s.id)).collect()
}

/// The lanes under way that need base to be checked out as it was: validations, and what follows lanes
/// with worktrees in place.
pub fn on_base(state: &RunState, limits: &Limits) -> Vec<LanePath> {
    let apart = state.lanes().any(|(_, l)| !l.isolation.is_in_place());
    let under_way = |lane: &LaneState| {
        let begun = lane.work.as_ref().is_some_and(|w| w.blocked.is_none() && w.has_workspace());
        let follows = lane.is_validation() || (apart && lane.isolation.is_in_place());
        begun && follows && !lane.is_over() && !lane.is_running()
    };
    let lanes = state.lanes();
    let lanes = lanes.filter(|(path, lane)| limits.selects(&path.phase, lane) && under_way(lane));
    lanes.map(|(path, _)| path).collect()
}

/// Why what a validation passed does not count any more, when it begins again: base or files are
/// others.
pub fn outdated(lane: &LaneState, begun: &LaneBegun) -> Option<String> {
    let work = lane.work.as_ref().filter(|_| lane.is_validation())?;
    let (from, to) = (work.base_sha.as_deref(), begun.base_sha.as_deref());
    let tree = begun.snapshot.as_ref().map(|s| &s.tree);
    let named = |commit: Option<&str>| commit.map_or("?".to_owned(), short);
    if from != to {
        return Some(format!("base moved from {} to {}", named(from), named(to)));
    }
    let files = work.latest.tree.is_some() && work.latest.tree.as_ref() != tree;
    files.then(|| "files changed since it passed".to_owned())
}
