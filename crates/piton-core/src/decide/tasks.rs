//! What to do for tasks in worktrees of their own, and for the steps that wait for them.

use super::lanes::{Due, LaneAct};
use super::{Survey, View};
use crate::lane_state::LaneWork;
use crate::state::{LaneState, PhaseState, StepState};

/// Whether a lane may work: one that does a task only while the lane it is a part of waits for it,
/// with all else committed.
pub(super) fn is_awaited(phase: &PhaseState, lane: &LaneState) -> bool {
    let Some(task) = &lane.task else { return true };
    let parent = phase.parent_of(lane);
    let waits = parent.current().is_some_and(|at| parent.steps[at].id == task.step);
    let forked = parent.work.as_ref().is_some_and(|w| w.is_forked_at(&task.step));
    waits && forked
}

/// What a step that waits for tasks asks for.
pub(super) fn due(view: &View<'_>, work: &LaneWork, step: &StepState) -> Due {
    if view.phase.tasks_at(&view.lane.id, &step.id).all(LaneState::is_over) {
        return Due::Act(LaneAct::Join);
    }
    if work.is_forked_at(&step.id) { Due::Wait } else { Due::Act(LaneAct::Fork) }
}

/// Whether a task goes into its lane after another that is not there yet: they go in the order of
/// the plan, so that the same work gives the same history whoever was faster.
pub(super) fn comes_later(phase: &PhaseState, lane: &LaneState) -> bool {
    let Some(task) = &lane.task else { return false };
    let before = phase.tasks_at(&task.lane, &task.step).take_while(|l| l.id != lane.id);
    before.into_iter().any(|l| !l.is_over())
}

/// Asks for the end of what a task did before it starts over; true where it did something.
pub(super) fn clears(view: &View<'_>, survey: &mut Survey) -> bool {
    let Some(work) = view.lane.work.as_ref().filter(|w| w.is_dropped()) else { return false };
    if work.blocked.is_none() && !view.lane.is_running() {
        survey.urgent.push((super::lanes::path(view), LaneAct::Remove));
    }
    true
}
