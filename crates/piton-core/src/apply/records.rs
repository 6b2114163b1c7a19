//! The records of a lane's stages: what each holds, and how failures show in them.

use crate::event::{Class, Next, StepFinished};
use crate::lane::{Role, Stage, StageStatus};
use crate::lane_state::{LaneWork, StageRecord};
use crate::state::FailedAttempt;
use crate::time::Timestamp;

/// Fills in what the lane itself knows.
pub fn filled(mut record: StageRecord, work: &LaneWork) -> StageRecord {
    record.snapshot = record.snapshot.or_else(|| work.latest.snapshot.clone());
    record.base_sha = record.base_sha.or_else(|| work.base_sha.clone());
    let head = || work.committed().map(|c| c.commit.clone());
    record.head_sha = record.head_sha.or_else(head);
    if !work.base_branch.is_empty() {
        record.target_branch = Some(work.base_branch.clone());
    }
    record
}

/// Sets the record of a stage. What the fresh workspace held stays with the stage of its start,
/// whatever happens there later: that is where a rollback goes.
pub fn put(work: &mut LaneWork, record: StageRecord) {
    let mut record = record;
    let old = work.record(record.stage).filter(|r| r.stage == Stage::AfterLaneStart);
    if let Some(old) = old.filter(|_| work.has_workspace()) {
        record.event = old.event;
        record.snapshot.clone_from(&old.snapshot);
        record.base_sha.clone_from(&old.base_sha);
        record.head_sha.clone_from(&old.head_sha);
    }
    let record = filled(record, work);
    work.put(record);
}

/// A failed attempt.
pub struct Failure<'a> {
    /// What its step is for.
    pub role: Role,
    /// Its class.
    pub class: Class,
    /// What went wrong.
    pub error: &'a str,
    /// What follows.
    pub next: Next,
    /// Retries so far, with the one that follows.
    pub retries: u32,
    /// All of them in words.
    pub context: Vec<String>,
    /// Whether a test that failed is the lane's own, and not that of one of its tasks.
    pub of_lane: bool,
}

/// Records a failed attempt at the stage it belongs to, and at the one of retries.
pub fn record_failure(
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
    let tests = matches!(failure.role, Role::Tests | Role::Validation);
    let stage = match failure.class {
        _ if own && failure.role == Role::PullRequest => Stage::PrePr,
        // While one task fails its own test others may not have begun: the lane was not tested.
        Class::Test if failure.of_lane => Stage::AfterLaneTests,
        // Tests that take too long have failed too.
        Class::Timeout if tests => Stage::AfterLaneTests,
        _ => Stage::AfterLaneStart,
    };
    let ends = !matches!(failure.next, Next::Retry { .. });
    let max = event.retries_max.unwrap_or_default();
    // A retry that was allowed but never happened does not count.
    let retried = max > 0 && failure.retries > 0;
    if ends || stage == Stage::AfterLaneTests {
        let mut record = StageRecord::blank(stage, StageStatus::Failed, at, number);
        record.notes = format!("{}: {}", event.step.step, failure.error);
        record.exit_code = event.exit_code;
        record.last_command.clone_from(&event.command);
        if stage == Stage::AfterLaneTests || failure.class == Class::Test {
            record.test_command.clone_from(&event.command);
        }
        if max > 0 {
            record.failure_context.clone_from(&failure.context);
        }
        if retried {
            record.max_retries = Some(max);
            record.retry_attempt = Some(failure.retries.min(max));
        }
        put(work, record);
    }
    if retried {
        let status = if ends { StageStatus::Failed } else { StageStatus::Retrying };
        let mut record = StageRecord::blank(Stage::RetryAttempt, status, at, number);
        record.notes = format!("{}: {}", event.step.step, failure.error);
        record.retry_attempt = Some(failure.retries.min(max));
        record.max_retries = Some(max);
        record.failure_context = failure.context;
        record.last_command.clone_from(&event.command);
        record.exit_code = event.exit_code;
        put(work, record);
        return;
    }
    // Retries were asked for that are no more: what is on record of them ends with this attempt.
    let retrying =
        |r: &&mut StageRecord| r.stage == Stage::RetryAttempt && r.status == StageStatus::Retrying;
    if let (true, Some(record)) = (ends, work.records.iter_mut().find(retrying)) {
        record.status = StageStatus::Failed;
        (record.at, record.event) = (at, number);
        record.notes = format!("{}: {}", event.step.step, failure.error);
        record.failure_context = failure.context;
        record.exit_code = event.exit_code;
    }
}

/// The failed attempts as the contract lists them: one line for each error, then its last lines.
pub fn context_of<'a>(failures: impl IntoIterator<Item = &'a FailedAttempt>) -> Vec<String> {
    let mut all = Vec::new();
    for failed in failures {
        all.push(format!("Attempt {}: {}", failed.attempt, failed.error));
        all.extend(failed.lines.iter().cloned());
    }
    all
}

/// Says which tests passed.
pub fn tested(record: &mut StageRecord, tests: &[(String, String)]) {
    if tests.is_empty() {
        "the lane has no tests".clone_into(&mut record.notes);
        return;
    }
    let commands: Vec<&str> = tests.iter().map(|(test, _)| test.as_str()).collect();
    record.test_command = Some(crate::shell::joined(&commands));
    record.exit_code = Some(0);
}
