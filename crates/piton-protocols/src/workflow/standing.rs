//! Where a run stands, in the terms of the pattern: completed phases, the current one, failures.

use piton_core::state::{PhaseState, Progress, RunState, StepState};
use piton_core::{StepPath, Timestamp};

use super::checkpoint::age;
use super::phase_id::PhaseId;
use super::story::{Failure, Story};

/// How a phase stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Something is left to do.
    Open,
    /// A step of it failed.
    Failed,
    /// All of it is done.
    Completed,
    /// It is over, and something of it was left out.
    Skipped,
}

/// How a phase stands.
pub(super) fn of(phase: &PhaseState) -> Standing {
    let mut steps = phase.lanes.iter().flat_map(|lane| &lane.steps);
    if phase.is_over() {
        let skipped = steps.any(|step| matches!(step.progress, Progress::Skipped { .. }));
        return if skipped { Standing::Skipped } else { Standing::Completed };
    }
    let is_failed =
        |step: &StepState| matches!(step.progress, Progress::Failed | Progress::Escalated);
    if steps.any(is_failed) { Standing::Failed } else { Standing::Open }
}

/// The id of a phase, as checkpoints write it.
pub(super) fn id(phase: &str) -> PhaseId {
    PhaseId::read(phase).unwrap_or_else(|| PhaseId::from(0))
}

/// The phase to continue with: the first that is not over and whose dependencies are, else the first
/// that is not over; after the last one, its number and one.
pub(super) fn current(state: &RunState) -> PhaseId {
    let is_over = |id: &String| state.phase(id).is_none_or(PhaseState::is_over);
    let is_next = |phase: &&PhaseState| phase.needs.iter().chain(&phase.after).all(is_over);
    let open = || state.phases.iter().filter(|phase| !phase.is_over());
    if let Some(phase) = open().find(is_next).or_else(|| open().next()) {
        return id(&phase.id);
    }
    let numbers = state.phases.iter().filter_map(|phase| id(&phase.id).number());
    let last = state.phases.last().map_or_else(|| PhaseId::from(1), |phase| id(&phase.id));
    numbers.max().map_or(last, |number| PhaseId::from(number + 1))
}

/// The ids of completed phases, as the pattern prints them: `1,2`.
pub(super) fn completed(state: &RunState) -> String {
    let done = state.phases.iter().filter(|phase| of(phase) == Standing::Completed);
    done.map(|phase| phase.id.as_str()).collect::<Vec<_>>().join(",")
}

/// The first step of a phase that failed.
fn failed(phase: &PhaseState) -> Option<StepPath> {
    let lane_of = |lane: &'_ piton_core::state::LaneState| {
        let step = lane.steps.iter().find(|step| step.progress == Progress::Failed)?;
        Some(StepPath::new(&phase.id, &lane.id, &step.id))
    };
    phase.lanes.iter().find_map(lane_of)
}

/// The failure that happened last of phases that are not over.
pub(super) fn last_failure<'s>(state: &RunState, story: &'s Story) -> Option<&'s Failure> {
    let open = state.phases.iter().filter(|phase| !phase.is_over());
    open.filter_map(|phase| story.failure(&phase.id)).max_by_key(|failure| failure.at)
}

/// Why a run is not resumed without a question; the first reason, in the order of the pattern.
pub(super) fn reason(state: &RunState, is_same_plan: bool, now: Timestamp) -> Option<String> {
    use super::checkpoint::Reason;
    let failed = state.phases.iter().find_map(|phase| state.step(&failed(phase)?));
    let last = failed.and_then(|step| step.failure_context.last());
    let reason = match last {
        Some(last) if last.class == piton_core::event::Class::Test => Reason::TestsFailing,
        Some(last) => Reason::LastError(last.error.clone()),
        None if failed.is_some() => Reason::LastError("a phase failed".to_owned()),
        None if state.ended.is_some() => {
            Reason::NotInProgress(state.ended.map(|status| status.to_string()))
        }
        None => match age(state.last_at, now) {
            Some(reason) => reason,
            None if is_same_plan => return None,
            None => Reason::PlanChanged,
        },
    };
    Some(reason.to_string())
}
