//! What to do for lanes beside their steps: workspaces, the merge queue, and who runs alone.

use super::{Action, Survey, View};
use crate::id::{LanePath, StepPath};
use crate::lane::{Merge, Role};
use crate::lane_event::MergedBy;
use crate::lane_state::{Committed, LaneProgress, LaneWork};
use crate::plan::Lane;
use crate::refusal::Refusal;
use crate::refusals;
use crate::state::{LaneState, PhaseState, Progress, RunState, StepState};

/// Something to be done for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAct {
    /// Check its preconditions and record where it starts.
    Begin,
    /// Make its worktree.
    MakeWorkspace,
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
    /// Commit what it did so far, for its tasks to start from.
    Fork,
    /// Record that its tasks are back in it.
    Join,
}

/// What a step of a lane that has its place asks for.
pub(super) enum Due {
    /// To be started.
    Start,
    /// Something else first, or instead of it.
    Act(LaneAct),
    /// Nothing: others are at work for it.
    Wait,
}

/// Something that takes a place among the lanes at work.
pub(super) struct Startable {
    what: Action,
    lane: Active,
}

/// A lane in the middle of its steps, chosen to be, or on its way to base.
#[derive(Clone)]
pub(super) struct Active {
    path: LanePath,
    /// The lane it is a part of, else itself: parts of a lane never wait for each other to be alone.
    parent: LanePath,
    /// Whether that one runs alone.
    alone: bool,
    /// What it is about.
    at: Pace,
    /// Whether it holds the merge queue: others get to base after it.
    queued: bool,
}

/// What an active lane is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Between two of its steps.
    Between,
    /// A step of it is at work now.
    Running,
    /// Its steps are over, and base is about to get its work.
    Homeward,
}

impl Active {
    fn of(view: &View<'_>, at: Pace) -> Self {
        let parent = view.phase.parent_of(view.lane);
        let (path, alone) = (path(view), parent.alone);
        let parent = LanePath { phase: view.phase.id.clone(), lane: parent.id.clone() };
        Self { path, parent, alone, at, queued: view.lane.is_merging() }
    }
}

pub(super) fn path(view: &View<'_>) -> LanePath {
    LanePath { phase: view.phase.id.clone(), lane: view.lane.id.clone() }
}

/// Notes a lane that is in the middle of its steps, or on its way to base.
pub(super) fn note_active(view: &View<'_>, survey: &mut Survey) {
    let lane = view.lane;
    if is_homeward(view) {
        survey.active.push(Active::of(view, Pace::Homeward));
        return;
    }
    let begun = lane.work.as_deref().is_some_and(|w| w.progress != LaneProgress::NotBegun)
        || lane.steps.iter().any(|s| s.attempts > 0);
    let going = |s: &StepState| s.progress != Progress::Failed;
    let blocked = lane.work.as_ref().is_some_and(|w| w.blocked.is_some());
    let at = lane.current().map(|i| &lane.steps[i]);
    if lane.is_running() || (begun && !blocked && view.selected && at.is_some_and(going)) {
        let at = if lane.is_running() { Pace::Running } else { Pace::Between };
        survey.active.push(Active::of(view, at));
    }
}

/// Whether a lane's steps are over and it goes to base by itself: what starts beside it would start
/// without its work.
fn is_homeward(view: &View<'_>) -> bool {
    let Some(work) = &view.lane.work else { return false };
    if work.blocked.is_some() || work.merged().is_some() || view.lane.is_running() {
        return false;
    }
    if work.merging().is_some() {
        return true;
    }
    if work.isolation.is_in_place() || !view.selected || view.lane.current().is_some() {
        return false;
    }
    let goes = |lane: &Lane| {
        let changed = work.committed().is_none_or(|c| c.changed);
        changed && lane.rules.merge == Merge::Queue && !is_untested(view.lane, lane, work)
    };
    super::tasks::is_awaited(view.phase, view.lane) && planned(view).is_some_and(goes)
}

/// What a lane with a step to do does next: first it needs a place to work in.
pub(super) fn next(view: &View<'_>, step: &StepState, survey: &mut Survey) {
    let lane = view.lane;
    let act = |act| Action::Lane { lane: path(view), act };
    let checked = view.limits.checkpoints || !lane.isolation.is_in_place();
    let found = match &lane.work {
        Some(work) if work.blocked.is_some() => return,
        _ if !checked => start(view, step),
        None => act(LaneAct::Begin),
        Some(work) => match &work.progress {
            LaneProgress::Begun | LaneProgress::Conflicted(_) => act(LaneAct::MakeWorkspace),
            progress if !progress.has_workspace() => act(LaneAct::Begin),
            LaneProgress::BeginsAgain => act(LaneAct::Begin),
            _ => match due(view, work, step) {
                Due::Act(act) => {
                    survey.acts.push((path(view), act));
                    return;
                }
                Due::Wait => return,
                Due::Start => start(view, step),
            },
        },
    };
    survey.startable.push(Startable { what: found, lane: Active::of(view, Pace::Running) });
}

fn start(view: &View<'_>, step: &StepState) -> Action {
    let path = StepPath::new(&view.phase.id, &view.lane.id, &step.id);
    Action::Start { step: path, attempt: step.attempts + 1 }
}

fn planned<'a>(view: &View<'a>) -> Option<&'a Lane> {
    view.plan.lane(&path(view))
}

/// What must happen before a step with a special role, or instead of it.
fn due(view: &View<'_>, work: &LaneWork, step: &StepState) -> Due {
    let lane = planned(view);
    let is_it = |s: &&crate::plan::Step| s.id == step.id;
    // Nearly always at the same place as in the state: long lanes are not searched for it.
    let here = view.lane.current().unwrap_or_default();
    let found = lane.and_then(|l| {
        let there = l.steps.get(here).filter(is_it).or_else(|| l.steps.iter().find(is_it));
        Some((l, there?))
    });
    let Some((lane, planned)) = found else { return Due::Start };
    let tree = || work.latest.tree.as_deref();
    let proven = || tree().is_some_and(|tree| work.tests.prove(&lane.tests(), tree));
    match planned.role {
        Role::Tests if proven() => Due::Act(LaneAct::Prove),
        Role::PullRequest if work.committed().is_none() => Due::Act(LaneAct::Commit),
        Role::PullRequest if is_untested(view.lane, lane, work) => {
            Due::Act(LaneAct::Conclude(MergedBy::Kept))
        }
        Role::PullRequest if work.committed().is_some_and(|c| !c.changed) => {
            Due::Act(LaneAct::Conclude(MergedBy::Nothing))
        }
        Role::Tasks => super::tasks::due(view, work, step),
        // Nothing went wrong that it would have to put right.
        Role::Mend if step.failure_context.is_empty() => Due::Act(LaneAct::Prove),
        _ => Due::Start,
    }
}

/// What becomes of a lane whose steps are over.
pub(super) fn finish(view: &View<'_>, survey: &mut Survey) {
    let (Some(work), Some(lane)) = (&view.lane.work, planned(view)) else { return };
    if work.blocked.is_some() {
        return;
    }
    match &work.progress {
        // Base may have moved already, and its files not.
        LaneProgress::Merging { .. } => {
            survey.urgent.push((path(view), LaneAct::Merge));
            return;
        }
        LaneProgress::Merged(_) => {
            survey.urgent.push((path(view), LaneAct::Remove));
            return;
        }
        _ if !view.selected || !super::tasks::is_awaited(view.phase, view.lane) => return,
        // What is in the project's root is of all of them.
        _ if view.lane.isolation.is_in_place() && is_shared(view.phase) => return,
        _ => {}
    }
    // What has a pull request goes to base by that, also where another tool opened it.
    let asked = work.pull_request.is_some();
    let way = if asked { Merge::PullRequest } else { lane.rules.merge };
    let act = match (work.committed(), way) {
        (None, _) => LaneAct::Commit,
        (Some(c), _) if !c.changed => LaneAct::Conclude(MergedBy::Nothing),
        _ if is_untested(view.lane, lane, work) => LaneAct::Conclude(MergedBy::Kept),
        (_, Merge::None) => LaneAct::Conclude(MergedBy::Kept),
        (_, Merge::PullRequest) if view.limits.unmerged.contains(&path(view)) => {
            survey.waiting = true;
            return;
        }
        (_, Merge::PullRequest) => LaneAct::CheckPullRequest,
        (_, Merge::Queue) if work.onto().is_some() => LaneAct::Merge,
        (_, Merge::Queue) if is_taken(view.state, &path(view), &work.base_branch) => return,
        (_, Merge::Queue) if super::tasks::comes_later(view.phase, view.lane) => return,
        // Two lanes never take the queue in one turn.
        (_, Merge::Queue) if survey.acts.iter().any(|(_, a)| *a == LaneAct::Rebase) => return,
        (_, Merge::Queue) => LaneAct::Rebase,
    };
    survey.acts.push((path(view), act));
}

/// Whether lanes of a phase still work in the project's root.
fn is_shared(phase: &PhaseState) -> bool {
    let mut lanes = phase.lanes.iter().filter(|l| l.isolation.is_in_place() && !l.is_validation());
    lanes.any(|lane| lane.current().is_some())
}

/// Whether what is committed of a lane was not tested because a person left the tests out: it stays
/// on its branch then, for only what passed them is merged.
fn is_untested(state: &LaneState, lane: &Lane, work: &LaneWork) -> bool {
    let proven = |c: &Committed| work.tests.prove(&lane.tests(), &c.tree);
    state.tests_are_skipped() && !work.committed().is_some_and(proven)
}

/// Whether another lane is at the head of the merge queue of a branch and can still go on.
fn is_taken(state: &RunState, own: &LanePath, base: &str) -> bool {
    state.lanes().any(|(path, lane)| {
        let failed = lane.steps.iter().any(|s| s.progress == Progress::Failed);
        let holds =
            |w: &LaneWork| w.onto().is_some() && w.blocked.is_none() && w.base_branch == base;
        path != *own && !failed && lane.work.as_deref().is_some_and(holds)
    })
}

/// Whether a lane's work is a commit, and others go to base before it.
pub(crate) fn is_in_line(state: &RunState, phase: &PhaseState, lane: &LaneState) -> bool {
    let Some(work) = &lane.work else { return false };
    let own = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
    let waits = work.committed().is_some() && work.onto().is_none();
    waits && (is_taken(state, &own, &work.base_branch) || super::tasks::comes_later(phase, lane))
}

/// Chooses what starts now: as many as there are places, and nothing beside a lane that runs alone.
pub(super) fn choose(survey: &Survey, free: usize) -> Vec<Action> {
    let mut active = survey.active.clone();
    let mut actions = Vec::new();
    for Startable { what, lane } in &survey.startable {
        if actions.len() == free {
            break;
        }
        let begun = active.iter().any(|a| a.parent == lane.parent);
        let mut others = active.iter().filter(|a| a.parent != lane.parent);
        // Once it has begun it goes first: a lane on its way to base that must test again waits. But
        // one that holds the queue is waited for by whoever is on its way too.
        let fits = match (lane.alone, begun) {
            (true, true) => others.all(|a| a.at != Pace::Running),
            (true, false) => others.next().is_none(),
            (false, _) if lane.queued => others.all(|a| !a.alone || a.at == Pace::Homeward),
            (false, _) => others.all(|a| !a.alone),
        };
        if !fits {
            continue;
        }
        active.retain(|a| a.path != lane.path);
        active.push(lane.clone());
        actions.push(what.clone());
    }
    actions
}

/// Why a lane does not begin, whatever its workspace says: nobody knows its work, gates of its phase
/// document are open, or somebody ticked them who may have been a step.
pub fn refused_beginning(
    run: &str,
    lane: &Lane,
    open: &[String],
    doubted: &[String],
) -> Option<Refusal> {
    match (lane.is_unknown(), open, doubted) {
        (true, ..) => Some(refusals::work_unknown(run)),
        (_, [_, ..], _) => Some(refusals::gates_open(open)),
        (_, _, [_, ..]) => Some(refusals::gates_doubted(run, doubted)),
        _ => None,
    }
}

impl LaneState {
    /// Whether a person left its tests out.
    pub fn tests_are_skipped(&self) -> bool {
        let tests = self.step_for(Role::Tests);
        tests.is_some_and(|s| matches!(s.progress, Progress::Skipped { .. }))
    }

    /// Whether its work is on its way to base.
    pub fn is_merging(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.onto().is_some())
    }
}
