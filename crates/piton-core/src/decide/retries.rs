//! How often work is tried again: the retries of a step, and those of a lane whose work must go on
//! after its steps had finished. Together they are not more than the plan says.

use crate::id::{LanePath, StepPath};
use crate::lane::Role;
use crate::plan::{Lane, Plan, Step, Work};
use crate::state::RunState;

/// Retries that were asked for, whatever the plan says.
pub type Asked = Option<u32>;

/// The step that works again when a lane is reopened: the last that has an agent and may change files,
/// else the last with an agent, else the last.
pub fn worker(lane: &Lane) -> Option<&Step> {
    let works = |s: &&Step| matches!(s.role, Role::Work | Role::Mend);
    let agent = |s: &&Step| works(s) && matches!(s.work, Work::Prompt { .. });
    let mends = |s: &&Step| agent(s) && s.writes.is_none();
    let steps = || lane.steps.iter();
    steps().rfind(mends).or_else(|| steps().rfind(agent)).or_else(|| steps().rfind(works))
}

/// The step that would work again on a lane, with its retries, if one is left.
pub fn reopening(
    plan: &Plan,
    state: &RunState,
    path: &LanePath,
    asked: Asked,
) -> Option<(StepPath, u32)> {
    let step = worker(plan.lane(path)?)?;
    let retries = retries(state, path, step, asked);
    let step = StepPath::new(&path.phase, &path.lane, &step.id);
    let reopened = state.lane(path)?.work.as_ref()?.reopened.count;
    // What it failed before it succeeded counts too: retries are those of the work as a whole.
    let spent = reopened + state.step(&step).map_or(0, |s| s.retried);
    (spent < retries).then_some((step, retries))
}

/// The retries of a step: as asked for, else as the plan says; where that names none, those of the tool
/// that its lane was taken over from.
fn retries(state: &RunState, lane: &LanePath, step: &Step, asked: Asked) -> u32 {
    let theirs = || state.lane(lane)?.work.as_ref()?.retries;
    asked.unwrap_or_else(|| if step.retries == 0 { theirs().unwrap_or(0) } else { step.retries })
}

/// The retries on record for a step; those of a lane's tests are the retries of its work.
pub fn retries_max(
    plan: &Plan,
    state: &RunState,
    path: &LanePath,
    step: &Step,
    asked: Asked,
) -> u32 {
    let lane = plan.lane(path).filter(|_| step.role == Role::Tests);
    retries(state, path, lane.and_then(worker).unwrap_or(step), asked)
}

/// The retries of a step without those that were spent before its last success or on going on after it.
pub fn retries_left(
    plan: &Plan,
    state: &RunState,
    path: &StepPath,
    step: &Step,
    asked: Asked,
) -> u32 {
    let lane = path.lane();
    let retries = retries(state, &lane, step, asked);
    let work = state.lane(&lane).and_then(|l| l.work.as_ref());
    let (Some(work), Some(state)) = (work, state.step(path)) else { return retries };
    let is_worker = plan.lane(&lane).and_then(worker).is_some_and(|s| s.id == path.step);
    let reopened = if is_worker { work.reopened.count } else { 0 };
    retries.saturating_sub(reopened + state.retried.saturating_sub(state.failures))
}
