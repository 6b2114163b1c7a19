//! Rollback, restore and undo: how they change steps and lanes, and what stays to undo them.

use crate::event::{RewindIntended, RewindKind, Rewound};
use crate::id::{LanePath, StepPath};
use crate::lane::{Stage, StageStatus};
use crate::lane_state::{Act, LaneWork, Reopenings, UNDO_KEPT_MAX, Undoable};
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
    match intent.kind {
        RewindKind::Undo => undone(state, at, &intent),
        RewindKind::Restore => remember(state, at, &intent, Act::Restore, Vec::new(), Vec::new()),
        RewindKind::Rollback => rolled_back(state, at, &intent),
    }
}

type Works = Vec<(LanePath, Option<Box<LaneWork>>)>;

fn remember(
    state: &mut RunState,
    at: Timestamp,
    intent: &RewindIntended,
    act: Act,
    steps: Vec<(StepPath, StepState)>,
    lanes: Works,
) {
    let words = if act == Act::Undo {
        of_undo(&intent.to)
    } else {
        format!("{} to {}", act.as_str(), intent.to)
    };
    let undo = Undoable {
        steps,
        lanes,
        rooms: intent.rooms.clone(),
        reverts: intent.reverts.clone(),
        undoes: intent.undoes,
        ..Undoable::blank(state.events, at, act, words)
    };
    push(state, undo);
}

/// What an undo of an act is called, however often it goes back and forth.
fn of_undo(words: &str) -> String {
    const UNDO: &str = "undo of the ";
    const RETURN: &str = "return of the ";
    match (words.strip_prefix(UNDO), words.strip_prefix(RETURN)) {
        (Some(act), _) => format!("{RETURN}{act}"),
        (_, Some(act)) => format!("{UNDO}{act}"),
        _ => format!("{UNDO}{words}"),
    }
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
                *step = StepState {
                    id: step.id.clone(),
                    attempts: step.attempts,
                    interruptions: step.interruptions,
                    successes: step.successes,
                    rerun: Some(format!("rolled back to {}", intent.to)),
                    ..StepState::default()
                };
            }
        }
        lane.settle(0);
        works.push((path.clone(), lane.work.clone()));
        if let Some(work) = &mut lane.work {
            wind_back(work, intent, intent.point(path), over);
            let room = intent.rooms.iter().find(|r| r.lane.as_ref() == Some(path));
            let room = room.or_else(|| intent.rooms.iter().find(|r| r.lane.is_none()));
            if let Some(room) = room {
                work.snapshot = Some(room.target.clone());
                work.tree = None;
            }
        }
        if let (true, Some(work)) = (over, &mut lane.work) {
            work.ready = false;
            work.removed = true;
        }
        let reason = format!("rolled back to {}", intent.to);
        super::tasks::start_over(state, path, (intent, &reason), (&mut steps, &mut works));
    }
    remember(state, at, intent, Act::Rollback, steps, works);
}

/// The same, to where a lane begins.
fn to_the_start(intent: &RewindIntended) -> RewindIntended {
    let start = Stage::BeforeLaneStart;
    RewindIntended { to: start.as_str().to_owned(), stage: Some(start), ..intent.clone() }
}

fn wind_back(work: &mut LaneWork, intent: &RewindIntended, point: u64, over: bool) {
    for record in &mut work.records {
        let later = record.event > point
            || (record.stage != Stage::RetryAttempt
                && intent.stage.is_some_and(|s| record.stage > s));
        if later && Some(record.stage) != intent.stage {
            record.status = StageStatus::RolledBack;
        }
    }
    let tested = matches!(intent.stage, Some(Stage::AfterLaneTests | Stage::PrePr));
    let record = intent.stage.and_then(|stage| work.record(stage)).cloned();
    if let Some(record) = &record {
        work.base_sha.clone_from(&record.base_sha);
    }
    if !tested || over {
        work.tested.clear();
    }
    // What was committed later, as on a newer base, is not where its branch stands now.
    let head = record.filter(|_| tested && !over).and_then(|r| r.head_sha);
    work.committed.take_if(|c| head.as_ref() != Some(&c.commit));
    work.reopened = Reopenings::default();
    (work.tests_found, work.stirred) = (None, 0);
    work.held = false;
    work.forked = None;
    work.onto = None;
    (work.conflict, work.unsettled) = (None, None);
    work.merging = None;
    work.merged = None;
    work.rounds = 0;
    work.blocked = None;
    work.rolled_back = Some(intent.to.clone());
}

/// Brings back what an act had changed; what was there before is what a further undo brings back.
fn undone(state: &mut RunState, at: Timestamp, intent: &RewindIntended) {
    let Some(index) = state.undo.iter().position(|u| Some(u.id) == intent.undoes) else { return };
    state.undo[index].undone = true;
    let old = state.undo[index].clone();
    let (mut steps, mut works) = (Vec::new(), Vec::new());
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
            lane.settle(0);
        }
    }
    for (path, saved) in old.lanes {
        let Some(lane) = state.lane_mut(&path) else { continue };
        let before = std::mem::replace(&mut lane.work, saved);
        let stood = before.as_ref().is_some_and(|w| w.ready && !w.removed);
        works.push((path.clone(), before));
        let is_task = lane.task.is_some();
        if is_task && !lane.is_over() && !intent.rooms.iter().any(|r| r.is_left_to(&path)) {
            // It has no worktree to go on in: it was none yet, or went and did not come back.
            super::tasks::drop_work(lane, "its lane was taken back and forth");
        }
        let Some(work) = &mut lane.work else { continue };
        if old.act == Act::Undo && stood && work.removed && !is_task {
            // A worktree that had come back goes again: the driver removes it.
            work.removed = false;
        }
        match old.act {
            Act::Removal => {
                work.stays = true;
                work.ready = true;
                work.removed = false;
            }
            Act::Merge => {
                // Nothing of it is under way: the move of base is undone too.
                (work.onto, work.merging) = (None, None);
                work.held = true;
                work.blocked = Some((
                    "its merge was undone".to_owned(),
                    "`piton undo` merges it again, `piton rollback` starts it over".to_owned(),
                ));
            }
            _ => {}
        }
    }
    let mut gates = Vec::new();
    for (gate, saved) in old.gates {
        let now = match saved {
            Some(saved) => state.gates.insert(gate.clone(), saved),
            None => state.gates.remove(&gate),
        };
        gates.push((gate, now));
    }
    let intent = RewindIntended { to: old.words, ..intent.clone() };
    remember(state, at, &intent, Act::Undo, steps, works);
    if let Some(undo) = state.undo.last_mut() {
        undo.gates = gates;
    }
}
