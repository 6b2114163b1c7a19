//! Rollback, restore and undo: how they change steps and lanes, and what stays to undo them.

use crate::event::{RewindIntended, RewindKind, Rewound};
use crate::id::{LanePath, StepPath};
use crate::lane::{Stage, StageStatus};
use crate::lane_progress::{Back, Change};
use crate::lane_state::{Act, LaneWork, Reopenings, UNDO_KEPT_MAX, Undoable};
use crate::refusals;
use crate::state::{Progress, RunState, StepState};
use crate::time::Timestamp;

/// Remembers an act; the oldest is forgotten beyond the limit.
pub fn push(state: &mut RunState, act: Undoable) {
    if state.undo.len() == UNDO_KEPT_MAX {
        state.undo.remove(0);
    }
    state.undo.push(act);
}

/// The rewind that was intended has happened.
pub fn rewound(state: &mut RunState, at: Timestamp, event: &Rewound) {
    let Some(intent) = state.rewinding.take() else { return };
    if !event.reverted.is_empty() {
        return;
    }
    session_rewound(state, &intent);
    match intent.kind {
        RewindKind::Undo => undone(state, at, &intent),
        RewindKind::Restore => {
            let act = Act::Restore;
            remember(state, at, &intent, (act, words(act, &intent)), Vec::new(), Vec::new());
        }
        RewindKind::Rollback => rolled_back(state, at, &intent),
    }
}

/// A session goes back and forth with its files: by a rollback, and by an undo that goes back to one.
fn session_rewound(state: &mut RunState, intent: &RewindIntended) {
    let act = |id: Option<u64>| state.undo.iter().find(|act| Some(act.id) == id);
    let undone = act(intent.undoes);
    let mut first = undone;
    while let Some(undo) = first.filter(|known| known.act == Act::Undo) {
        first = act(undo.undoes);
    }
    let is_of_rollback = first.is_some_and(|first| first.act == Act::Rollback);
    let is_back = undone.is_some_and(returns);
    let Some(session) = &mut state.session else { return };
    match intent.kind {
        RewindKind::Rollback => session.rolled_back(&intent.to),
        RewindKind::Undo if is_of_rollback => session.turned(is_back),
        RewindKind::Undo | RewindKind::Restore => {}
    }
}

/// Whether to undo an act brings back what was done first.
fn returns(undone: &Undoable) -> bool {
    undone.act == Act::Undo && !undone.returns
}

pub(super) type Works = Vec<(LanePath, Option<Box<LaneWork>>)>;

fn remember(
    state: &mut RunState,
    at: Timestamp,
    intent: &RewindIntended,
    (act, words): (Act, String),
    steps: Vec<(StepPath, StepState)>,
    lanes: Works,
) {
    let undo = Undoable {
        steps,
        lanes,
        workspaces: intent.workspaces.clone(),
        reverts: intent.reverts.clone(),
        undoes: intent.undoes,
        ..Undoable::blank(state.events, at, act, words)
    };
    push(state, undo);
}

fn words(act: Act, intent: &RewindIntended) -> String {
    format!("{} to {}", act.as_str(), intent.to)
}

fn rolled_back(state: &mut RunState, at: Timestamp, intent: &RewindIntended) {
    let (mut steps, mut works) = (Vec::new(), Vec::new());
    let start = to_the_start(intent);
    for path in &intent.lanes {
        let Some(lane) = state.lane_mut(path) else { continue };
        // A merged lane whose work was reverted starts over, from the base of now, wherever others go.
        let over = intent.reverts.iter().any(|r| r.lane == *path);
        let intent = if over { &start } else { intent };
        for step in &mut lane.steps {
            let name = StepPath::new(&path.phase, &path.lane, &step.id);
            steps.push((name, step.clone()));
            let early = step.done_event <= intent.point(path);
            let stays = step.progress.is_over() && early && !over;
            if !stays {
                *step = step.anew(Some(format!("rolled back to {}", intent.to)));
            }
        }
        lane.skip_done(0);
        works.push((path.clone(), lane.work.clone()));
        if let Some(work) = &mut lane.work {
            wind_back(work, at, intent, intent.point(path), over);
            let workspace = intent.workspaces.iter().find(|r| r.lane.as_ref() == Some(path));
            let workspace =
                workspace.or_else(|| intent.workspaces.iter().find(|r| r.lane.is_none()));
            if let Some(workspace) = workspace {
                work.latest.snapshot = Some(workspace.target.clone());
                work.latest.tree = None;
            }
        }
        let reason = format!("rolled back to {}", intent.to);
        super::tasks::start_over(state, path, (intent, &reason), (&mut steps, &mut works));
    }
    let act = Act::Rollback;
    remember(state, at, intent, (act, words(act, intent)), steps, works);
}

/// The same, to where a lane begins.
fn to_the_start(intent: &RewindIntended) -> RewindIntended {
    let start = Stage::BeforeLaneStart;
    RewindIntended { to: start.as_str().to_owned(), stage: Some(start), ..intent.clone() }
}

fn wind_back(work: &mut LaneWork, at: Timestamp, intent: &RewindIntended, point: u64, over: bool) {
    for record in &mut work.records {
        let later = record.event > point
            || (record.stage != Stage::RetryAttempt
                && intent.stage.is_some_and(|s| record.stage > s));
        if later && Some(record.stage) != intent.stage {
            (record.status, record.at) = (StageStatus::RolledBack, at);
        }
    }
    let tested = matches!(intent.stage, Some(Stage::AfterLaneTests | Stage::PrePr));
    let record = intent.stage.and_then(|stage| work.record(stage)).cloned();
    if let Some(record) = &record {
        work.base_sha.clone_from(&record.base_sha);
    }
    work.tests.outdate();
    if !tested || over {
        work.tests.passed.clear();
    }
    work.reopened = Reopenings::default();
    work.rounds = 0;
    work.blocked = None;
    work.rolled_back = Some(intent.to.clone());
    let at_start = work.stage() == Some(Stage::BeforeLaneStart) && !work.isolation.is_in_place();
    // What was committed later, as on a newer base, is not where its branch stands now.
    let head = record.filter(|_| tested).and_then(|r| r.head_sha);
    work.take(Change::RolledBack(match (over, at_start) {
        (true, _) => Back::Over,
        (_, true) => Back::Start,
        _ => Back::Work { head },
    }));
}

/// Brings back what an act had changed; what was there before is what a further undo brings back.
fn undone(state: &mut RunState, at: Timestamp, intent: &RewindIntended) {
    let Some(index) = state.undo.iter().position(|u| Some(u.id) == intent.undoes) else { return };
    state.undo[index].undone = true;
    let old = state.undo[index].clone();
    let (mut steps, mut works) = (Vec::new(), Vec::new());
    let returns = returns(&old);
    let plan = old.plan.as_ref().map(|plan| {
        let (now, gone) = super::replans::undone(state, plan, returns);
        steps.extend(gone.steps);
        works.extend(gone.lanes);
        Box::new(now)
    });
    for (path, saved) in old.steps {
        let Some(step) = state.step_mut(&path) else { continue };
        // Numbers of attempts are never used twice, whatever is undone.
        let attempts = step.attempts.max(saved.attempts);
        let mut back = StepState { attempts, ..saved };
        if matches!(back.progress, Progress::Running { .. }) {
            (back.progress, back.interrupted) = (Progress::Pending, true);
        }
        steps.push((path.clone(), std::mem::replace(step, back)));
        if let Some(lane) = state.lane_mut(&path.lane()) {
            lane.skip_done(0);
        }
    }
    for (path, saved) in old.lanes {
        let Some(lane) = state.lane_mut(&path) else { continue };
        let before = std::mem::replace(&mut lane.work, saved);
        let stood = before.as_ref().is_some_and(|w| w.has_workspace());
        works.push((path.clone(), before));
        let is_task = lane.task.is_some();
        if is_task && !lane.is_over() && !intent.workspaces.iter().any(|r| r.is_left_to(&path)) {
            // It has no worktree to go on in: it was none yet, or went and did not come back.
            super::tasks::drop_work(lane, "its lane was taken back and forth");
        }
        let Some(work) = &mut lane.work else { continue };
        match old.act {
            // A worktree that had come back goes again: the driver removes it.
            Act::Undo if stood && !is_task => work.take(Change::RemovalRedone),
            Act::Removal => work.take(Change::RemovalUndone),
            Act::Merge => {
                work.take(Change::MergeUndone);
                work.blocked = Some(refusals::merge_undone());
            }
            _ => {}
        }
    }
    let mut gates = Vec::new();
    for (gate, saved) in old.gates {
        let now = if let Some(saved) = saved {
            state.reopened.remove(&gate);
            state.gates.insert(gate.clone(), saved)
        } else {
            state.reopened.insert(gate.clone());
            state.gates.remove(&gate)
        };
        gates.push((gate, now));
    }
    remember(state, at, intent, (Act::Undo, old.words), steps, works);
    if let Some(undo) = state.undo.last_mut() {
        undo.gates = gates;
        undo.returns = returns;
        undo.plan = plan;
    }
}
