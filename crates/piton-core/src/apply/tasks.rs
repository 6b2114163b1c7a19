//! How events change lanes that are parts of others, and the lanes they are parts of.

use super::records::put;
use crate::event::{Event, LaneForked, LaneJoined, RewindIntended};
use crate::id::{LanePath, StepPath};
use crate::lane::{Stage, StageStatus};
use crate::lane_progress::{Change, LaneProgress};
use crate::lane_state::{LaneWork, Reopenings, StageRecord};
use crate::state::{LaneState, Progress, RunState, StepState};
use crate::time::Timestamp;

/// Steps and lanes as they were before something was taken back.
pub(super) type Before<'a> =
    (&'a mut Vec<(StepPath, StepState)>, &'a mut Vec<(LanePath, Option<Box<LaneWork>>)>);

/// A lane's tasks may start.
pub(super) fn forked(state: &mut RunState, at: Timestamp, event: &LaneForked) {
    let Some(work) = state.lane_mut(&event.lane).and_then(|l| l.work.as_mut()) else { return };
    work.saw(event.snapshot.as_ref());
    goes_on(work, at);
}

/// A lane's tasks are back in it.
pub(super) fn joined(state: &mut RunState, at: Timestamp, event: &LaneJoined) {
    let number = state.events;
    if let Some(step) = state.step_mut(&event.step) {
        step.progress = Progress::Done;
        step.done_event = number;
        step.rerun = None;
        step.definition.clone_from(&event.definition);
    }
    let Some(work) = state.lane_mut(&event.lane).and_then(|l| l.work.as_mut()) else { return };
    work.saw(event.snapshot.as_ref());
    goes_on(work, at);
}

/// A lane that stood still goes on.
pub(super) fn goes_on(work: &mut LaneWork, at: Timestamp) {
    work.rolled_back = None;
    work.blocked = None;
    let started = work.records.iter_mut().find(|r| r.stage == Stage::AfterLaneStart);
    if let Some(record) = started.filter(|r| r.status != StageStatus::InProgress) {
        (record.status, record.at, record.assumed) = (StageStatus::InProgress, at, false);
        record.notes.clear();
        (record.exit_code, record.last_command, record.test_command) = (None, None, None);
    }
}

/// Changes the lane that a lane is a part of: what happens to a task is its lane's business.
pub(super) fn with_parent(
    state: &mut RunState,
    part: &LanePath,
    change: impl FnOnce(&mut LaneWork),
) {
    let Some(step) = state.awaits(part) else { return };
    if let Some(work) = state.lane_mut(&step.lane()).and_then(|l| l.work.as_mut()) {
        change(work);
    }
}

/// Shows a record of a task with its lane, said of the task.
pub(super) fn show(state: &mut RunState, part: &LanePath, mut record: StageRecord) {
    let task = state.lane(part).and_then(|l| l.task.as_ref()).map(|t| t.task.clone());
    let Some(task) = task else { return };
    record.notes = format!("{task}: {}", record.notes);
    // Where the task stood is not where its lane stands.
    (record.snapshot, record.base_sha, record.head_sha) = (None, None, None);
    with_parent(state, part, |work| put(work, record));
}

/// A step that waits for tasks is not over while one of them is not: it was reset, or is new.
pub(super) fn reopen_waiting(state: &mut RunState, event: &Event) {
    if !matches!(event, Event::StepReset(_) | Event::PlanAccepted(_) | Event::Rewound(_)) {
        return;
    }
    for phase in &mut state.phases {
        let open = |l: &&LaneState| l.task.is_some() && !l.is_over();
        let tasks: Vec<_> =
            phase.lanes.iter().filter(open).filter_map(|l| l.task.clone()).collect();
        for task in tasks {
            let Some(parent) = phase.lanes.iter_mut().find(|l| l.id == task.lane) else { continue };
            let Some(at) = parent.steps.iter().position(|s| s.id == task.step) else { continue };
            let step = &mut parent.steps[at];
            if step.progress.is_over() {
                step.progress = Progress::Pending;
                step.rerun = Some(format!("{} runs again", task.task));
                parent.skip_done(at);
            }
        }
    }
}

/// A lane was taken back: tasks that it waits for now start over. What they were is put to the rest.
pub(super) fn start_over(
    state: &mut RunState,
    lane: &LanePath,
    (intent, reason): (&RewindIntended, &str),
    (steps, works): Before<'_>,
) {
    for path in state.parts_of(lane) {
        let waits = state.awaits(&path).and_then(|at| state.step(&at).cloned());
        if waits.is_none_or(|step| step.progress.is_over()) {
            continue;
        }
        let Some(part) = state.lane_mut(&path) else { continue };
        for step in &part.steps {
            steps.push((StepPath::new(&path.phase, &path.lane, &step.id), step.clone()));
        }
        works.push((path.clone(), part.work.clone()));
        drop_work(part, reason);
        part.work
            .take_if(|_| intent.workspaces.iter().any(|workspace| workspace.is_taken_from(&path)));
    }
}

/// Lets a task start over; its worktree goes first, where there is one.
pub(super) fn drop_work(part: &mut LaneState, reason: &str) {
    for step in &mut part.steps {
        *step = step.anew((step.attempts > 0).then(|| reason.to_owned()));
    }
    part.skip_done(0);
    let Some(work) = &mut part.work else { return };
    work.take(Change::Dropped);
    work.reopened = Reopenings::default();
    work.blocked = None;
    part.work.take_if(|w| w.progress == LaneProgress::NotBegun);
}
