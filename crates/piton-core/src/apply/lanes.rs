//! How events change lanes beside their steps: workspaces, stage records, the way to base.

use super::Illegal;
use crate::event::{
    Class, Event, LaneBegun, LaneCommitted, LaneReopened, Next, Outcome, StepFinished, StepStarted,
};
use crate::id::{LanePath, StepPath};
use crate::lane::{PULL_REQUEST_STEP, SnapshotRef, Stage, StageStatus};
use crate::lane_event::MergedBy;
use crate::lane_event::{Revert, RewindRoom};
use crate::lane_state::{Act, Committed, LaneWork, StageRecord, Undoable};
use crate::state::{FailedAttempt, LaneState, Progress, RunState, StepState};
use crate::time::Timestamp;

/// Refuses lane events that cannot follow.
pub fn check(state: &RunState, event: &Event) -> Result<(), Illegal> {
    let (path, begun) = match event {
        Event::LaneBegun(e) => (&e.lane, false),
        Event::LaneBlocked(e) => (&e.lane, false),
        Event::LaneReady(e) => (&e.lane, true),
        Event::LaneCommitted(e) => (&e.lane, true),
        Event::LaneRebased(e) => (&e.lane, true),
        Event::LaneReopened(e) => (&e.lane, true),
        Event::MergeIntended(e) => (&e.lane, true),
        Event::MergeMissed(e) => (&e.lane, true),
        Event::LaneMerged(e) if e.by == MergedBy::Unknown => return Err(Illegal::Unknown),
        Event::LaneMerged(e) => (&e.lane, true),
        Event::PullRequestOpened(e) => (&e.lane, true),
        Event::LaneRemoved(e) => (&e.lane, true),
        Event::Rewound(_) if state.rewinding.is_none() => return Err(Illegal::NotRewinding),
        _ => return Ok(()),
    };
    let lane = state.lane(path).ok_or_else(|| Illegal::NoLane(path.clone()))?;
    if begun && lane.work.is_none() {
        return Err(Illegal::LaneNotBegun(path.clone()));
    }
    Ok(())
}

/// Applies what happens to a lane; its steps are changed by the caller.
pub fn change(state: &mut RunState, at: Timestamp, event: &Event) {
    let number = state.events;
    match event {
        Event::LaneBegun(e) => begun(state, at, e),
        Event::LaneBlocked(e) => {
            if let Some(lane) = state.lane_mut(&e.lane) {
                let work = lane.work.get_or_insert_default();
                work.blocked = Some((e.why.clone(), e.fix.clone()));
                let failed = e.stage == Stage::PrePr;
                let status = if failed { StageStatus::Failed } else { StageStatus::Blocked };
                let mut record = blank(e.stage, status, at, number);
                let sep = if e.fix.is_empty() { "" } else { "; " };
                record.notes = format!("{}{sep}{}", e.why, e.fix);
                work.put(filled(record, work));
            }
        }
        Event::LaneReady(e) => with(state, &e.lane, |work| {
            work.ready = true;
            work.removed = false;
            work.conflict = None;
            work.dir.clone_from(&e.dir);
            work.branch.clone_from(&e.branch);
            saw(work, e.snapshot.as_ref());
            let mut record = blank(Stage::AfterLaneStart, StageStatus::InProgress, at, number);
            record.notes.clone_from(&e.note);
            record.head_sha.clone_from(&e.head);
            work.put(filled(record, work));
        }),
        Event::LaneCommitted(e) => committed(state, at, e),
        Event::LaneRebased(e) => with(state, &e.lane, |work| {
            work.onto = Some(e.onto.clone());
            work.base_sha = Some(e.onto.clone());
            work.tree = Some(e.tree.clone());
            let changed = e.commit != e.onto;
            let (commit, tree) = (e.commit.clone(), e.tree.clone());
            work.committed = Some(Committed { commit, tree, changed });
        }),
        Event::LaneReopened(e) => reopened(state, at, e),
        Event::MergeIntended(e) => with(state, &e.lane, |work| {
            work.merging = Some(e.clone());
            let mut record = blank(Stage::PrePr, StageStatus::InProgress, at, number);
            record.base_sha = Some(e.from.clone());
            record.head_sha = Some(e.to.clone());
            work.put(filled(record, work));
        }),
        Event::MergeMissed(e) => with(state, &e.lane, |work| {
            work.merging = None;
            work.onto = None;
            work.rounds += 1;
        }),
        Event::LaneMerged(e) => merged(state, at, e),
        Event::PullRequestOpened(e) => with(state, &e.lane, |work| {
            work.pull_request = Some(e.url.clone());
            if let Some(record) = work.records.iter_mut().find(|r| r.stage == Stage::PrePr) {
                record.notes = format!("pull request {}", e.url);
            }
        }),
        Event::LaneRemoved(e) => removed(state, at, e),
        _ => {}
    }
}

fn with(state: &mut RunState, path: &LanePath, change: impl FnOnce(&mut LaneWork)) {
    if let Some(work) = state.lane_mut(path).and_then(|l| l.work.as_mut()) {
        change(work);
    }
}

fn blank(stage: Stage, status: StageStatus, at: Timestamp, event: u64) -> StageRecord {
    StageRecord {
        stage,
        status,
        at,
        event,
        notes: String::new(),
        snapshot: None,
        base_sha: None,
        head_sha: None,
        target_branch: None,
        test_command: None,
        exit_code: None,
        last_command: None,
        retry_attempt: None,
        max_retries: None,
        failure_context: Vec::new(),
    }
}

/// Fills in what the lane itself knows.
fn filled(mut record: StageRecord, work: &LaneWork) -> StageRecord {
    record.snapshot = record.snapshot.or_else(|| work.snapshot.clone());
    record.base_sha = record.base_sha.or_else(|| work.base_sha.clone());
    let head = || work.committed.as_ref().map(|c| c.commit.clone());
    record.head_sha = record.head_sha.or_else(head);
    if !work.base_branch.is_empty() {
        record.target_branch = Some(work.base_branch.clone());
    }
    record
}

fn saw(work: &mut LaneWork, snapshot: Option<&SnapshotRef>) {
    if let Some(snapshot) = snapshot {
        work.snapshot = Some(snapshot.commit.clone());
        work.tree = Some(snapshot.tree.clone());
        work.degraded.clone_from(&snapshot.degraded);
    }
}

fn begun(state: &mut RunState, at: Timestamp, event: &LaneBegun) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    let mut work = LaneWork {
        dir: event.dir.clone(),
        branch: event.branch.clone(),
        base_branch: event.base_branch.clone(),
        base_sha: event.base_sha.clone(),
        isolation: event.isolation,
        ready: event.isolation.is_in_place(),
        ..LaneWork::default()
    };
    saw(&mut work, event.snapshot.as_ref());
    let mut record = blank(Stage::BeforeLaneStart, StageStatus::Ready, at, number);
    record.notes.clone_from(&event.note);
    record.head_sha.clone_from(&event.base_sha);
    let record = filled(record, &work);
    work.put(record);
    if event.isolation.is_in_place() {
        let record = blank(Stage::AfterLaneStart, StageStatus::InProgress, at, number);
        let record = filled(record, &work);
        work.put(record);
    }
    lane.work = Some(Box::new(work));
}

/// A step of a lane was started.
pub fn started(state: &mut RunState, at: Timestamp, event: &StepStarted) {
    let number = state.events;
    with(state, &event.step.lane(), |work| {
        work.rolled_back = None;
        work.blocked = None;
        saw(work, event.before.as_ref());
        if event.step.step == PULL_REQUEST_STEP && !work.isolation.is_in_place() {
            let record = blank(Stage::PrePr, StageStatus::InProgress, at, number);
            work.put(filled(record, work));
        }
    });
    if let Some(step) = state.step_mut(&event.step)
        && step.before.is_none()
    {
        step.before = event.before.as_ref().map(|b| b.commit.clone());
    }
}

/// An attempt of a step of a lane ended; its own state is changed already.
pub fn finished(state: &mut RunState, at: Timestamp, event: &StepFinished) {
    let number = state.events;
    let Some(step) = state.step(&event.step) else { return };
    let (failures, context) = (step.failures, context_of(step));
    let over =
        state.lane(&event.step.lane()).is_some_and(super::super::state::LaneState::steps_are_over);
    with(state, &event.step.lane(), |work| {
        saw(work, event.after.as_ref());
        match &event.outcome {
            Outcome::Succeeded => {
                let tree = work.tree.clone().unwrap_or_default();
                for test in &event.tests {
                    work.passed(test, &tree);
                }
                if let Some(retry) =
                    work.records.iter_mut().find(|r| r.stage == Stage::RetryAttempt)
                {
                    retry.status = StageStatus::Complete;
                }
                if over && work.isolation.is_in_place() {
                    let mut record =
                        blank(Stage::AfterLaneTests, StageStatus::Complete, at, number);
                    tested(&mut record, &work.tested);
                    work.put(filled(record, work));
                }
            }
            Outcome::Failed { class, error, next, .. } => {
                let failure = Failure { class: *class, error, next: *next, failures, context };
                record_failure(work, at, number, event, failure);
            }
            Outcome::Interrupted { .. } | Outcome::Unknown => {}
        }
    });
}

struct Failure<'a> {
    class: Class,
    error: &'a str,
    next: Next,
    failures: u32,
    context: Vec<String>,
}

fn record_failure(
    work: &mut LaneWork,
    at: Timestamp,
    number: u64,
    event: &StepFinished,
    failure: Failure<'_>,
) {
    if matches!(failure.next, Next::Wait { .. }) {
        return;
    }
    let own = !work.isolation.is_in_place();
    let stage = match failure.class {
        _ if own && event.step.step == PULL_REQUEST_STEP => Stage::PrePr,
        Class::Test => Stage::AfterLaneTests,
        _ => Stage::AfterLaneStart,
    };
    let ends = !matches!(failure.next, Next::Retry { .. });
    if ends || stage == Stage::AfterLaneTests {
        let mut record = blank(stage, StageStatus::Failed, at, number);
        record.notes = format!("{}: {}", event.step.step, failure.error);
        record.exit_code = event.exit_code;
        record.last_command.clone_from(&event.command);
        if stage == Stage::AfterLaneTests {
            record.test_command.clone_from(&event.command);
        }
        if event.retries_max.is_some_and(|max| max > 0) {
            record.max_retries = event.retries_max;
            record.retry_attempt = event.retries_max.map(|max| failure.failures.min(max));
            record.failure_context.clone_from(&failure.context);
        }
        work.put(filled(record, work));
    }
    let max = event.retries_max.unwrap_or_default();
    if max > 0 {
        let status = if ends { StageStatus::Failed } else { StageStatus::Retrying };
        let mut record = blank(Stage::RetryAttempt, status, at, number);
        record.notes = format!("{}: {}", event.step.step, failure.error);
        record.retry_attempt = Some(failure.failures.clamp(1, max));
        record.max_retries = Some(max);
        record.failure_context = failure.context;
        record.last_command.clone_from(&event.command);
        record.exit_code = event.exit_code;
        work.put(filled(record, work));
    }
}

/// The failed attempts as the contract lists them: one line for each error, then its last lines.
fn context_of(step: &StepState) -> Vec<String> {
    let mut all = Vec::new();
    for failed in &step.failure_context {
        all.push(format!("Attempt {}: {}", failed.attempt, failed.error));
        all.extend(failed.lines.iter().cloned());
    }
    all
}

fn tested(record: &mut StageRecord, tests: &[(String, String)]) {
    if tests.is_empty() {
        "the lane has no tests".clone_into(&mut record.notes);
        return;
    }
    let commands: Vec<&str> = tests.iter().map(|(test, _)| test.as_str()).collect();
    record.test_command = Some(commands.join(" && "));
    record.exit_code = Some(0);
}

fn committed(state: &mut RunState, at: Timestamp, event: &LaneCommitted) {
    let number = state.events;
    with(state, &event.lane, |work| {
        work.committed = Some(Committed {
            commit: event.commit.clone(),
            tree: event.tree.clone(),
            changed: event.changed,
        });
        let mut record = blank(Stage::AfterLaneTests, StageStatus::Complete, at, number);
        let passed: Vec<_> = event.tests.iter().map(|t| (t.clone(), event.tree.clone())).collect();
        tested(&mut record, &passed);
        work.put(filled(record, work));
    });
}

fn reopened(state: &mut RunState, at: Timestamp, event: &LaneReopened) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    let Some(from) = lane.steps.iter().position(|s| s.id == event.step.step) else { return };
    for (index, step) in lane.steps.iter_mut().enumerate().skip(from) {
        step.before = None;
        if index > from && step.progress == Progress::Pending {
            continue;
        }
        step.progress = Progress::Pending;
        step.rerun = Some(event.error.clone());
    }
    let step = &mut lane.steps[from];
    step.failures += 1;
    step.failure_context.push(FailedAttempt {
        attempt: step.attempts,
        class: event.class,
        error: event.error.clone(),
        lines: event.lines.clone(),
    });
    let (failures, context) = (step.failures, context_of(step));
    lane.settle(from);
    let Some(work) = &mut lane.work else { return };
    work.committed = None;
    work.onto = None;
    work.merging = None;
    if event.onto.is_some() {
        work.base_sha.clone_from(&event.onto);
        work.conflict = event.onto.clone().zip(event.head.clone());
    }
    let mut record = blank(Stage::RetryAttempt, StageStatus::Retrying, at, number);
    record.notes.clone_from(&event.error);
    record.retry_attempt = Some(failures.clamp(1, event.retries_max.max(1)));
    record.max_retries = Some(event.retries_max);
    record.failure_context = context;
    let record = filled(record, work);
    work.put(record);
}

fn merged(state: &mut RunState, at: Timestamp, event: &crate::lane_event::LaneMerged) {
    let number = state.events;
    let before = state.lane(&event.lane).map(|l| l.work.clone());
    with(state, &event.lane, |work| {
        work.merging = None;
        work.merged = Some(event.clone());
        let mut record = blank(Stage::PrePr, StageStatus::Complete, at, number);
        record.base_sha.clone_from(&event.from);
        record.head_sha.clone_from(&event.to);
        record.notes.clone_from(&event.note);
        work.put(filled(record, work));
    });
    let (Some(from), Some(to)) = (&event.from, &event.to) else { return };
    if event.by != MergedBy::Queue {
        return;
    }
    let base_branch = before.iter().flatten().map(|w| w.base_branch.clone()).next();
    super::rewind::push(
        state,
        Undoable {
            id: number,
            at,
            act: Act::Merge,
            words: format!("merge of {}", event.lane),
            steps: Vec::new(),
            lanes: before.map(|work| (event.lane.clone(), work)).into_iter().collect(),
            rooms: Vec::new(),
            reverts: vec![Revert {
                lane: event.lane.clone(),
                base_branch: base_branch.unwrap_or_default(),
                merged_from: from.clone(),
                merged_to: to.clone(),
                from: String::new(),
                to: String::new(),
            }],
            undone: false,
        },
    );
}

fn removed(state: &mut RunState, at: Timestamp, event: &crate::lane_event::LaneRemoved) {
    let number = state.events;
    let before = state.lane(&event.lane).and_then(|l| l.work.clone());
    with(state, &event.lane, |work| {
        work.removed = true;
        work.stays = false;
        work.ready = false;
    });
    let (Some(work), Some(snapshot)) = (before, &event.snapshot) else { return };
    let room = RewindRoom {
        lane: Some(event.lane.clone()),
        dir: work.dir.clone(),
        present: snapshot.clone(),
        target: snapshot.commit.clone(),
        paths: Vec::new(),
        keep: Vec::new(),
        branch: work.branch.clone(),
        head_from: None,
        head_to: event.branch_head.clone(),
    };
    super::rewind::push(
        state,
        Undoable {
            id: number,
            at,
            act: Act::Removal,
            words: format!("removal of the worktree of {}", event.lane),
            steps: Vec::new(),
            lanes: vec![(event.lane.clone(), Some(work))],
            rooms: vec![room],
            reverts: Vec::new(),
            undone: false,
        },
    );
}

/// A step was left out: what it was can be brought back.
pub fn skipped(state: &mut RunState, at: Timestamp, path: &StepPath) {
    let Some(step) = state.step(path).cloned() else { return };
    super::rewind::push(
        state,
        Undoable {
            id: state.events,
            at,
            act: Act::Skip,
            words: format!("skip of {path}"),
            steps: vec![(path.clone(), step)],
            lanes: Vec::new(),
            rooms: Vec::new(),
            reverts: Vec::new(),
            undone: false,
        },
    );
}

impl LaneState {
    fn steps_are_over(&self) -> bool {
        self.current().is_none()
    }
}
