//! How events change lanes beside their steps: workspaces, stage records, the way to base.

use super::records::{Failure, context_of, filled, put, record_failure, tested};
use super::{Illegal, import, tasks};
use crate::event::{
    Event, LaneBegun, LaneBlocked, LaneCommitted, LaneReopened, Outcome, StepFinished, StepStarted,
};
use crate::id::{LanePath, StepPath};
use crate::lane::{Role, Stage, StageStatus};
use crate::lane_event::{MergedBy, Revert, RewindWorkspace};
use crate::lane_progress::{Change, Committed, Conflict, LaneProgress, next};
use crate::lane_state::{Act, LaneWork, StageRecord, Undoable};
use crate::state::{FAILURES_KEPT_MAX, FailedAttempt, LaneState, Progress, RunState, StepState};
use crate::time::Timestamp;

/// Where an event takes its lane; a lane event that cannot follow is illegal.
pub fn moved(state: &RunState, event: &Event) -> Result<Option<Moved>, Illegal> {
    let Some((path, change)) = change_of(state, event)? else { return Ok(None) };
    let lane = state.lane(&path).ok_or_else(|| Illegal::NoLane(path.clone()))?;
    let begins =
        matches!(event, Event::LaneBegun(_) | Event::LaneBlocked(_) | Event::LaneImported(_));
    let at = match &lane.work {
        Some(work) => work.progress.clone(),
        None if begins => LaneProgress::NotBegun,
        // Nothing is known of a lane without a workspace, and its steps run all the same.
        None if event.step().is_some() && !matches!(event, Event::LaneJoined(_)) => {
            return Ok(None);
        }
        None => return Err(Illegal::LaneNotBegun(path)),
    };
    let Some(change) = change else { return Ok(None) };
    let to = next(&at, change).map_err(|source| Illegal::Lane { lane: path.clone(), source })?;
    Ok(Some((path, to)))
}

/// A lane, and how far it is after an event.
pub type Moved = (LanePath, LaneProgress);

/// What an event is for the progress of its lane; nothing where it is only noted.
fn change_of(
    state: &RunState,
    event: &Event,
) -> Result<Option<(LanePath, Option<Change>)>, Illegal> {
    let (path, change) = match event {
        Event::LaneBegun(e) => (&e.lane, Change::Begun { in_place: e.isolation.is_in_place() }),
        Event::LaneBlocked(e) if e.stage == Stage::BeforeLaneStart => (&e.lane, Change::Refused),
        Event::LaneBlocked(e) => return Ok(Some((e.lane.clone(), None))),
        Event::LaneReady(e) => (&e.lane, Change::Ready),
        Event::LaneCommitted(e) => {
            let (commit, tree, changed) = (e.commit.clone(), e.tree.clone(), e.changed);
            (&e.lane, Change::Committed(Committed { commit, tree, changed }))
        }
        Event::LaneRebased(e) => {
            let (commit, tree, changed) = (e.commit.clone(), e.tree.clone(), e.commit != e.onto);
            let committed = Committed { commit, tree, changed };
            (&e.lane, Change::Rebased { committed, onto: e.onto.clone() })
        }
        Event::LaneReopened(e) => {
            let both = e.onto.clone().zip(e.head.clone());
            (&e.lane, Change::Reopened(both.map(|(onto, head)| Conflict { onto, head })))
        }
        Event::MergeIntended(e) => (&e.lane, Change::MergeIntended(e.clone())),
        Event::MergeMissed(e) => (&e.lane, Change::MergeMissed),
        Event::LaneMerged(e) => (&e.lane, Change::Merged(e.clone())),
        Event::PullRequestOpened(e) => return Ok(Some((e.lane.clone(), None))),
        Event::LaneRemoved(e) => (&e.lane, Change::Removed),
        Event::LaneKept(e) => (&e.lane, Change::Kept),
        Event::LaneForked(e) => (&e.lane, Change::Forked { step: e.step.step.clone() }),
        Event::LaneJoined(e) if state.step(&e.step).is_none() => {
            return Err(Illegal::NoStep(e.step.clone()));
        }
        Event::LaneJoined(e) => (&e.lane, Change::Joined),
        Event::LaneImported(e) => (&e.lane, import::change(e)),
        Event::Rewound(_) if state.rewinding.is_none() => return Err(Illegal::NotRewinding),
        _ => return Ok(event.step().and_then(|step| change_by_step(state, event, step))),
    };
    Ok(Some((path.clone(), Some(change))))
}

fn change_by_step(
    state: &RunState,
    event: &Event,
    step: &StepPath,
) -> Option<(LanePath, Option<Change>)> {
    let role = state.role(step);
    let change = match event {
        Event::StepStarted(_) if role.changes_work() => Change::WorkStarted,
        Event::StepReset(_) | Event::StepRetried(_) if role == Role::Tests => Change::TestsAsked,
        Event::StepFinished(e) if role == Role::Tests && e.outcome == Outcome::Succeeded => {
            let work = state.lane(&step.lane())?.work.as_ref()?;
            let found = work.tests.found.as_ref().or(e.after.as_ref());
            let tree = found.map(|f| f.tree.clone()).or_else(|| work.latest.tree.clone())?;
            Change::TestsPassed { tree, requested: work.pull_request.is_some() }
        }
        _ => return None,
    };
    Some((step.lane(), Some(change)))
}

/// Applies what happens to a lane; its progress and its steps are changed by the caller.
pub fn change(state: &mut RunState, at: Timestamp, event: &Event) {
    let number = state.events;
    match event {
        Event::LaneBegun(e) => begun(state, at, e),
        Event::LaneBlocked(e) => blocked(state, at, e),
        Event::LaneReady(e) => with(state, &e.lane, |work| {
            work.dir.clone_from(&e.dir);
            work.branch.clone_from(&e.branch);
            work.saw(e.snapshot.as_ref());
            let mut record =
                StageRecord::blank(Stage::AfterLaneStart, StageStatus::InProgress, at, number);
            record.notes.clone_from(&e.note);
            record.head_sha.clone_from(&e.head);
            put(work, record);
        }),
        Event::LaneCommitted(e) => committed(state, at, e),
        Event::LaneRebased(e) => with(state, &e.lane, |work| {
            work.base_sha = Some(e.onto.clone());
            work.tests.outdate();
            work.latest.tree = Some(e.tree.clone());
        }),
        Event::LaneReopened(e) => reopened(state, at, e),
        Event::MergeIntended(e) => with(state, &e.lane, |work| {
            let mut record = StageRecord::blank(Stage::PrePr, StageStatus::InProgress, at, number);
            record.base_sha = Some(e.from.clone());
            record.head_sha = Some(e.to.clone());
            put(work, record);
        }),
        Event::MergeMissed(e) => with(state, &e.lane, |work| {
            work.rounds += u32::from(!e.by_runs);
        }),
        Event::LaneMerged(e) => merged(state, at, e),
        Event::PullRequestOpened(e) => with(state, &e.lane, |work| {
            work.pull_request = Some(e.url.clone());
            if let Some(record) = work.records.iter_mut().find(|r| r.stage == Stage::PrePr) {
                record.notes = format!("pull request {}", e.url);
                record.at = at;
            }
        }),
        Event::LaneRemoved(e) => removed(state, at, e),
        Event::LaneForked(e) => tasks::forked(state, at, e),
        Event::LaneJoined(e) => tasks::joined(state, at, e),
        Event::LaneImported(e) => import::imported(state, e),
        _ => {}
    }
}

/// Sets how far a lane is.
pub fn advance(state: &mut RunState, event: &Event, (path, to): Moved) {
    with(state, &path, |work| {
        // Its tests passed on other files than those that were rebased: the queue goes round again.
        let again = matches!((event, &to), (Event::StepFinished(_), LaneProgress::Working { .. }));
        work.rounds += u32::from(again && work.onto().is_some());
        work.progress = to;
    });
}

fn with(state: &mut RunState, path: &LanePath, change: impl FnOnce(&mut LaneWork)) {
    if let Some(work) = state.lane_mut(path).and_then(|l| l.work.as_mut()) {
        change(work);
    }
}

fn blocked(state: &mut RunState, at: Timestamp, event: &LaneBlocked) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    let retried = lane.worked().map_or(0, |s| s.retried);
    let work = lane.work.get_or_insert_default();
    work.blocked = Some(event.refusal.clone());
    if work.base_branch.is_empty() {
        work.base_branch.clone_from(&event.base_branch);
    }
    let failed = event.stage == Stage::PrePr;
    let status = if failed { StageStatus::Failed } else { StageStatus::Blocked };
    let mut record = StageRecord::blank(event.stage, status, at, number);
    record.notes = event.refusal.to_string();
    if failed && work.reopened.count > 0 {
        record.retry_attempt = Some((work.reopened.count + retried).min(work.reopened.max.max(1)));
        record.max_retries = Some(work.reopened.max);
        record.failure_context = context_of(&work.reopened.failures);
        record.failure_context.push(format!(
            "Attempt {}: {}",
            work.reopened.count + 1,
            event.refusal.cause
        ));
        let mut retries = record.clone();
        retries.stage = Stage::RetryAttempt;
        put(work, retries);
    }
    put(work, record.clone());
    let stage = Stage::AfterLaneStart;
    tasks::show(state, &event.lane, StageRecord { stage, status: StageStatus::Blocked, ..record });
}

fn begun(state: &mut RunState, at: Timestamp, event: &LaneBegun) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    // What it recorded before it was taken back stays to be seen, until it gets there again.
    let (records, retries) =
        lane.work.take().map(|old| (old.records, old.retries)).unwrap_or_default();
    let mut work = LaneWork {
        records,
        retries,
        dir: event.dir.clone(),
        branch: event.branch.clone(),
        base_branch: event.base_branch.clone(),
        base_sha: event.base_sha.clone(),
        isolation: event.isolation,
        ..LaneWork::default()
    };
    work.saw(event.snapshot.as_ref());
    let mut record = StageRecord::blank(Stage::BeforeLaneStart, StageStatus::Ready, at, number);
    record.notes.clone_from(&event.note);
    record.head_sha.clone_from(&event.base_sha);
    let record = filled(record, &work);
    work.put(record);
    if event.isolation.is_in_place() {
        let record = StageRecord::blank(Stage::AfterLaneStart, StageStatus::InProgress, at, number);
        let record = filled(record, &work);
        work.put(record);
    }
    lane.work = Some(Box::new(work));
}

/// A step of a lane was started.
pub fn started(state: &mut RunState, at: Timestamp, event: &StepStarted) {
    let (number, role) = (state.events, state.role(&event.step));
    tasks::with_parent(state, &event.step.lane(), |work| tasks::goes_on(work, at));
    with(state, &event.step.lane(), |work| {
        work.saw(event.before.as_ref());
        if role.changes_work() {
            work.tests.outdate();
        } else if role == Role::Tests {
            work.tests.found.clone_from(&event.before);
        }
        tasks::goes_on(work, at);
        if role == Role::PullRequest && !work.isolation.is_in_place() {
            let record = StageRecord::blank(Stage::PrePr, StageStatus::InProgress, at, number);
            put(work, record);
        }
    });
    if let Some(step) = state.step_mut(&event.step)
        && step.before.is_none()
    {
        step.before = event.before.as_ref().map(|b| b.commit.clone());
        step.before_head = event.before.as_ref().and_then(|b| b.head.clone());
        let lacks = event.before.as_ref().filter(|b| !b.degraded.is_empty());
        step.before_tree = lacks.map(|b| b.tree.clone());
    }
}

/// An attempt of a step of a lane ended; its own state is changed already.
pub fn finished(state: &mut RunState, at: Timestamp, event: &StepFinished) {
    let number = state.events;
    let Some(step) = state.step(&event.step) else { return };
    let role = step.role;
    let mut context = context_of(&step.failure_context);
    // Counted together with the retries before it succeeded, and with those of its lane.
    let work = state.lane(&event.step.lane()).and_then(|l| l.work.as_ref());
    let again = work.filter(|w| w.reopened.step == event.step.step);
    let mut retries = step.retried + again.map_or(0, |w| w.reopened.count);
    if let (Role::Tests, Some(lane)) = (role, state.lane(&event.step.lane()))
        && let (Some(work), Some(last)) = (&lane.work, step.failure_context.last())
    {
        // It is the lane's work that failed, not the test of it.
        retries = work.reopened.count + lane.worked().map_or(0, |s| s.retried);
        let (attempt, last) = (lane.worked().map_or(1, |s| s.attempts), last.clone());
        let last = FailedAttempt { attempt, ..last };
        context = context_of(work.reopened.failures.iter().chain([&last]));
    }
    let over = state.lane(&event.step.lane()).is_some_and(LaneState::steps_are_over);
    let lane_tests = state.lane(&event.step.lane()).is_some_and(|l| l.is_tested_by(&event.step));
    let ended = |work: &mut LaneWork, context: Vec<String>, of_lane| match &event.outcome {
        Outcome::Succeeded => {
            // What was taken back stays so: this success needed no retry.
            let counts = |r: &&mut StageRecord| {
                r.stage == Stage::RetryAttempt && r.status != StageStatus::RolledBack
            };
            let open = |r: &&mut StageRecord| counts(r) && r.status != StageStatus::Complete;
            if let Some(retry) = work.records.iter_mut().find(open) {
                (retry.status, retry.at) = (StageStatus::Complete, at);
            }
        }
        Outcome::Failed { class, error, next, .. } => {
            let failure =
                Failure { role, class: *class, error, next: *next, retries, context, of_lane };
            record_failure(work, at, number, event, failure);
        }
        Outcome::Interrupted { .. } => {}
    };
    tasks::with_parent(state, &event.step.lane(), |work| ended(work, context.clone(), false));
    with(state, &event.step.lane(), |work| {
        work.saw(event.after.as_ref());
        ended(work, context, lane_tests);
        if event.outcome != Outcome::Succeeded {
            return;
        }
        let left = work.latest.tree.clone().unwrap_or_default();
        let tests = &mut work.tests;
        if role == Role::Tests {
            let found = tests.found.as_ref().map_or(left.clone(), |found| found.tree.clone());
            tests.changed_files = if found == left { 0 } else { tests.changed_files + 1 };
            tests.pass(&event.tests, &found);
        } else if event.changed_by_tests {
            tests.changed_files = 1;
        } else {
            tests.pass(&event.tests, &left);
        }
        if over && work.isolation.is_in_place() {
            let mut record =
                StageRecord::blank(Stage::AfterLaneTests, StageStatus::Complete, at, number);
            tested(&mut record, &work.tests.passed);
            put(work, record);
        }
    });
}

/// The tests of a lane shall run that stayed on its branch without them: its pull request, which was
/// taken for done when the lane stayed, is opened after all.
pub fn tested_again(state: &mut RunState, step: &StepPath) {
    if state.role(step) != Role::Tests {
        return;
    }
    let Some(lane) = state.lane_mut(&step.lane()) else { return };
    let Some(work) = &lane.work else { return };
    let stays = matches!(&work.progress, LaneProgress::Merged(landed) if landed.stays());
    if !stays || work.pull_request.is_some() {
        return;
    }
    if let Some(step) = lane.steps.iter_mut().find(|s| s.role == Role::PullRequest) {
        step.progress = Progress::Pending;
    }
}

fn committed(state: &mut RunState, at: Timestamp, event: &LaneCommitted) {
    let number = state.events;
    let skipped = state.lane(&event.lane).is_some_and(LaneState::tests_are_skipped);
    with(state, &event.lane, |work| {
        if skipped && !work.tests.prove(&event.tests, &event.tree) {
            return;
        }
        let mut record =
            StageRecord::blank(Stage::AfterLaneTests, StageStatus::Complete, at, number);
        record.head_sha = Some(event.commit.clone());
        let passed: Vec<_> = event.tests.iter().map(|t| (t.clone(), event.tree.clone())).collect();
        tested(&mut record, &passed);
        put(work, record);
    });
}

fn reopened(state: &mut RunState, at: Timestamp, event: &LaneReopened) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    let Some(from) = lane.steps.iter().position(|s| s.id == event.step.step) else { return };
    for (index, step) in lane.steps.iter_mut().enumerate().skip(from) {
        (step.before, step.before_head, step.before_tree) = (None, None, None);
        let stays = matches!(step.progress, Progress::Pending | Progress::Skipped { .. });
        if index > from && stays {
            continue;
        }
        (step.progress, step.interrupted) = (Progress::Pending, false);
        step.rerun = Some(event.error.clone());
    }
    lane.skip_done(from);
    let (attempt, retried) = (lane.steps[from].attempts, lane.steps[from].retried);
    let Some(work) = &mut lane.work else { return };
    work.reopened.count += 1;
    work.reopened.step.clone_from(&event.step.step);
    work.reopened.max = event.retries_max;
    if work.reopened.failures.len() == FAILURES_KEPT_MAX {
        work.reopened.failures.remove(0);
    }
    let (class, error, lines) = (event.class, event.error.clone(), event.lines.clone());
    work.reopened.failures.push(FailedAttempt {
        attempt,
        class,
        error,
        lines,
        budget: None,
        command: None,
        exit_code: None,
    });
    lane.steps[from].failure_context.clone_from(&work.reopened.failures);
    work.tests.outdate();
    if event.onto.is_some() {
        work.base_sha.clone_from(&event.onto);
    }
    let mut record = StageRecord::blank(Stage::RetryAttempt, StageStatus::Retrying, at, number);
    record.notes.clone_from(&event.error);
    record.retry_attempt = Some((work.reopened.count + retried).min(event.retries_max));
    record.max_retries = Some(event.retries_max);
    record.failure_context = context_of(&work.reopened.failures);
    tasks::show(state, &event.lane, record.clone());
    with(state, &event.lane, |work| {
        let record = filled(record, work);
        work.put(record);
    });
}

fn merged(state: &mut RunState, at: Timestamp, event: &crate::lane_event::LaneMerged) {
    let number = state.events;
    let before = state.lane(&event.lane).map(|l| l.work.clone());
    with(state, &event.lane, |work| {
        let mut record = StageRecord::blank(Stage::PrePr, StageStatus::Complete, at, number);
        record.base_sha.clone_from(&event.from);
        record.head_sha.clone_from(&event.to);
        record.notes.clone_from(&event.note);
        put(work, record);
    });
    let (Some(from), Some(to)) = (&event.from, &event.to) else { return };
    // A task's merge is a part of its lane's work, and goes back with that.
    if event.by != MergedBy::Queue || state.awaits(&event.lane).is_some() {
        return;
    }
    let base_branch = before.iter().flatten().map(|w| w.base_branch.clone()).next();
    let in_place = before.iter().flatten().any(|work| work.isolation.is_in_place());
    let what = if in_place { "commit" } else { "merge" };
    let words = format!("{what} of {}", event.lane);
    super::rewind::push(
        state,
        Undoable {
            lanes: before.map(|work| (event.lane.clone(), work)).into_iter().collect(),
            reverts: vec![Revert {
                lane: event.lane.clone(),
                base_branch: base_branch.unwrap_or_default(),
                merged_from: from.clone(),
                merged_to: to.clone(),
                from: String::new(),
                to: String::new(),
            }],
            ..Undoable::blank(number, at, Act::Merge, words)
        },
    );
}

fn removed(state: &mut RunState, at: Timestamp, event: &crate::lane_event::LaneRemoved) {
    let number = state.events;
    let before = state.lane(&event.lane).and_then(|l| l.work.clone());
    if let Some(part) = state.lane_mut(&event.lane).filter(|l| l.task.is_some()) {
        part.work.take_if(|w| w.is_dropped());
        return;
    }
    if crate::undo::goes_again(&state.undo, &event.lane) {
        return;
    }
    let (Some(work), Some(snapshot)) = (before, &event.snapshot) else { return };
    let workspace = RewindWorkspace {
        lane: Some(event.lane.clone()),
        dir: work.dir.clone(),
        present: snapshot.clone(),
        target: snapshot.commit.clone(),
        beside: None,
        paths: Vec::new(),
        keep: Vec::new(),
        branch: work.branch.clone(),
        head_from: None,
        head_to: event.branch_head.clone(),
        large: None,
        goes: false,
        copy: Vec::new(),
    };
    let words = format!("removal of the worktree of {}", event.lane);
    let lanes = vec![(event.lane.clone(), Some(work))];
    let act = Undoable::blank(number, at, Act::Removal, words);
    super::rewind::push(state, Undoable { lanes, workspaces: vec![workspace], ..act });
}

/// A step was left out: what it was can be brought back.
pub fn skipped(state: &mut RunState, at: Timestamp, path: &StepPath) {
    let Some(step) = state.step(path).cloned() else { return };
    let act = Undoable::blank(state.events, at, Act::Skip, format!("skip of {path}"));
    super::rewind::push(state, Undoable { steps: vec![(path.clone(), step)], ..act });
}

impl LaneState {
    fn steps_are_over(&self) -> bool {
        self.current().is_none()
    }

    /// Whether all of a lane's tests have run with that of a step: it is a validation, or no work is to
    /// come after it.
    fn is_tested_by(&self, step: &StepPath) -> bool {
        let at = self.position(&step.step).unwrap_or_default();
        let mut later = self.steps.iter().skip(at + 1);
        self.is_validation() || later.all(|s| matches!(s.role, Role::Tests | Role::PullRequest))
    }

    /// The step that its tests follow.
    pub(super) fn worked(&self) -> Option<&StepState> {
        let tests = self.steps.iter().position(|s| s.role == Role::Tests).unwrap_or_default();
        tests.checked_sub(1).map(|before| &self.steps[before])
    }
}
