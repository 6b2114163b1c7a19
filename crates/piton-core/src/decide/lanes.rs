//! What to do for lanes beside their steps: workspaces, the merge queue, and who runs alone.

use super::{Action, Survey, View};
use crate::id::{LanePath, StepPath};
use crate::lane::{Merge, Role};
use crate::lane_event::MergedBy;
use crate::lane_state::LaneWork;
use crate::plan::{Lane, Work};
use crate::state::{LaneState, Progress, RunState, StepState};

/// Something to be done for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAct {
    /// Check its preconditions and record where it starts.
    Begin,
    /// Make its worktree.
    MakeRoom,
    /// Take its test step for proven: the tests passed on this very tree.
    Prove,
    /// Commit what it left uncommitted.
    Commit,
    /// Put its work on the base of now.
    Rebase,
    /// Move base to its work.
    Merge,
    /// See whether its pull request is merged.
    CheckPullRequest,
    /// Record that nothing is to be merged, or that it stays on its branch.
    Conclude(MergedBy),
    /// Remove its worktree and branch.
    Remove,
}

/// Something that takes a place among the lanes at work.
pub(super) enum Startable {
    /// An attempt; whether its lane runs alone.
    Step(StepPath, u32, bool),
    /// An act of a lane before its first step.
    Act(LanePath, LaneAct, bool),
}

/// A lane in the middle of its steps, or chosen to be.
#[derive(Clone)]
pub(super) struct Active {
    path: LanePath,
    /// Whether it runs alone.
    alone: bool,
    /// Whether a step of it is at work now.
    running: bool,
}

impl Startable {
    fn lane(&self) -> LanePath {
        match self {
            Self::Step(step, ..) => step.lane(),
            Self::Act(lane, ..) => lane.clone(),
        }
    }
}

fn path(view: &View<'_>) -> LanePath {
    LanePath { phase: view.phase.id.clone(), lane: view.lane.id.clone() }
}

/// Notes a lane that is in the middle of its steps.
pub(super) fn note_active(view: &View<'_>, survey: &mut Survey) {
    let lane = view.lane;
    let begun = lane.work.is_some() || lane.steps.iter().any(|s| s.attempts > 0);
    let going = |s: &StepState| s.progress != Progress::Failed;
    let blocked = lane.work.as_ref().is_some_and(|w| w.blocked.is_some());
    let at = lane.current().map(|i| &lane.steps[i]);
    if lane.is_running() || (begun && !blocked && view.selected && at.is_some_and(going)) {
        let (path, alone, running) = (path(view), lane.alone, lane.is_running());
        survey.active.push(Active { path, alone, running });
    }
}

/// What a lane with a step to do does next: first it needs a place to work in.
pub(super) fn next(view: &View<'_>, step: &StepState, survey: &mut Survey) {
    let lane = view.lane;
    let act = |act| Startable::Act(path(view), act, lane.alone);
    let checked = view.limits.checkpoints || !lane.isolation.is_in_place();
    let found = match &lane.work {
        _ if !checked => start(view, step),
        Some(work) if work.blocked.is_some() => return,
        None => act(LaneAct::Begin),
        Some(work) if work.record(crate::lane::Stage::BeforeLaneStart).is_none_or(not_begun) => {
            act(LaneAct::Begin)
        }
        Some(work) if work.removed => act(LaneAct::Begin),
        Some(work) if !work.ready || work.conflict.is_some() => act(LaneAct::MakeRoom),
        Some(work) => match planned(view).map(|l| prepared(l, work, step)) {
            Some(Some(due)) => {
                survey.acts.push((path(view), due));
                return;
            }
            _ => start(view, step),
        },
    };
    survey.startable.push(found);
}

fn not_begun(record: &crate::lane_state::StageRecord) -> bool {
    record.status == crate::lane::StageStatus::Blocked
}

fn start(view: &View<'_>, step: &StepState) -> Startable {
    let path = StepPath::new(&view.phase.id, &view.lane.id, &step.id);
    Startable::Step(path, step.attempts + 1, view.lane.alone)
}

fn planned<'a>(view: &View<'a>) -> Option<&'a Lane> {
    view.plan.lane(&path(view))
}

/// What must happen before a step with a special role, or instead of it.
fn prepared(lane: &Lane, work: &LaneWork, step: &StepState) -> Option<LaneAct> {
    match lane.steps.iter().find(|s| s.id == step.id)?.role {
        Role::Tests => {
            let tree = work.tree.as_deref()?;
            work.proven(&lane.tests(), tree).then_some(LaneAct::Prove)
        }
        Role::PullRequest if work.committed.is_none() => Some(LaneAct::Commit),
        Role::PullRequest if work.committed.as_ref().is_some_and(|c| !c.changed) => {
            Some(LaneAct::Conclude(MergedBy::Nothing))
        }
        _ => None,
    }
}

/// What becomes of a lane whose steps are over.
pub(super) fn finish(view: &View<'_>, survey: &mut Survey) {
    let (Some(work), Some(lane)) = (&view.lane.work, planned(view)) else { return };
    if work.blocked.is_some() {
        return;
    }
    if work.merging.is_some() {
        // Base may have moved already, and its files not.
        survey.urgent.push((path(view), LaneAct::Merge));
        return;
    }
    if work.merged.is_some() {
        survey.urgent.push((path(view), LaneAct::Remove));
        return;
    }
    if !view.selected {
        return;
    }
    let act = match (&work.committed, lane.rules.merge) {
        (None, _) => LaneAct::Commit,
        (Some(c), _) if !c.changed => LaneAct::Conclude(MergedBy::Nothing),
        (_, Merge::None) => LaneAct::Conclude(MergedBy::Kept),
        (_, Merge::PullRequest) if view.limits.unmerged.contains(&path(view)) => {
            survey.waiting = true;
            return;
        }
        (_, Merge::PullRequest) => LaneAct::CheckPullRequest,
        (_, Merge::Queue) if work.onto.is_some() => LaneAct::Merge,
        (_, Merge::Queue) if is_taken(view.state, &path(view)) => return,
        // Two lanes never take the queue in one turn.
        (_, Merge::Queue) if survey.acts.iter().any(|(_, a)| *a == LaneAct::Rebase) => return,
        (_, Merge::Queue) => LaneAct::Rebase,
    };
    survey.acts.push((path(view), act));
}

/// Whether another lane is at the head of the merge queue and can still go on.
fn is_taken(state: &RunState, own: &LanePath) -> bool {
    state.lanes().any(|(path, lane)| {
        let failed = lane.steps.iter().any(|s| s.progress == Progress::Failed);
        let holds = |w: &LaneWork| {
            (w.onto.is_some() || w.merging.is_some()) && w.merged.is_none() && w.blocked.is_none()
        };
        path != *own && !failed && lane.work.as_deref().is_some_and(holds)
    })
}

/// Chooses what starts now: as many as there are places, and nothing beside a lane that runs alone.
pub(super) fn choose(survey: &Survey, free: usize) -> Vec<Action> {
    let mut active = survey.active.clone();
    let mut actions = Vec::new();
    let is_alone = |item: &Startable| match item {
        Startable::Act(_, _, alone) | Startable::Step(_, _, alone) => *alone,
    };
    for item in &survey.startable {
        if actions.len() == free {
            break;
        }
        let (lane, alone) = (item.lane(), is_alone(item));
        let begun = active.iter().any(|a| a.path == lane);
        let mut others = active.iter().filter(|a| a.path != lane);
        // Once it has begun it goes first: a lane on its way to base that must test again waits.
        let fits = match (alone, begun) {
            (true, true) => others.all(|a| !a.running),
            (true, false) => others.next().is_none(),
            (false, _) => others.all(|a| !a.alone),
        };
        if !fits {
            continue;
        }
        active.retain(|a| a.path != lane);
        active.push(Active { path: lane.clone(), alone, running: true });
        actions.push(match item {
            Startable::Step(step, attempt, _) => {
                Action::Start { step: step.clone(), attempt: *attempt }
            }
            Startable::Act(_, act, _) => Action::Lane { lane, act: *act },
        });
    }
    actions
}

/// The step that works again when a lane is reopened: the last that has an agent, else the last.
pub fn worker(lane: &Lane) -> Option<usize> {
    let works = |s: &crate::plan::Step| s.role == Role::Work;
    let agent = |s: &crate::plan::Step| works(s) && matches!(s.work, Work::Prompt { .. });
    lane.steps.iter().rposition(agent).or_else(|| lane.steps.iter().rposition(works))
}

impl LaneState {
    /// Whether its work is on its way to base.
    pub fn is_merging(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.onto.is_some() && w.merged.is_none())
    }
}
