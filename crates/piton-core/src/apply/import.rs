//! How a lane that another tool worked on becomes one of ours: its records as they are, its files as
//! they were found, its steps where the events beside say.

use crate::lane::{Role, Stage, StageStatus};
use crate::lane_event::LaneImported;
use crate::lane_progress::{Change, Committed, Handover};
use crate::lane_state::{Reopenings, StageRecord};
use crate::state::{LaneState, RunState, StepState};

/// How far the other tool was.
pub fn change(event: &LaneImported) -> Change {
    let merged = event.merged.clone().map(|merged| Handover::Merged(merged, event.stays));
    Change::Imported(merged.or_else(|| {
        let (commit, tree) = (event.outstanding.as_ref()?.commit.clone(), String::new());
        Some(Handover::Outstanding(Committed { commit, tree, changed: true }))
    }))
}

/// A lane was taken over.
pub fn imported(state: &mut RunState, event: &LaneImported) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    let isolation = lane.isolation;
    let work = lane.work.get_or_insert_default();
    work.isolation = isolation;
    let mut records = event.records.clone();
    for record in &mut records {
        record.event = work.record(record.stage).map_or(number, |there| there.event);
    }
    // What was recorded here and not there stays: a rollback needs it. It is not newer than the rest.
    let oldest = event.records.iter().map(|r| r.at).min();
    let stays = |stage: Stage| !event.records.iter().any(|r| r.stage == stage);
    for record in work.records.iter().filter(|r| stays(r.stage)) {
        let (at, assumed) = (oldest.unwrap_or(record.at), true);
        records.push(StageRecord { at, assumed, ..record.clone() });
    }
    let start = Stage::BeforeLaneStart;
    if !records.is_empty() && !records.iter().any(|r| r.stage == start) {
        // It begins here: that is where a rollback goes.
        let at = oldest.unwrap_or_default();
        let record = StageRecord::blank(start, StageStatus::Ready, at, number);
        records.push(StageRecord { assumed: true, ..record });
    }
    records.sort_by_key(|r| r.stage);
    for record in &mut records {
        let there = work.record(record.stage);
        let known = |of: fn(&StageRecord) -> Option<String>| there.and_then(of);
        record.snapshot = record.snapshot.take().or_else(|| known(|r| r.snapshot.clone()));
        record.base_sha = record.base_sha.take().or_else(|| known(|r| r.base_sha.clone()));
        record.head_sha = record.head_sha.take().or_else(|| known(|r| r.head_sha.clone()));
    }
    work.records = records;
    work.saw(event.snapshot.as_ref());
    if work.base_branch.is_empty() {
        work.base_branch.clone_from(&event.base_branch);
    }
    if let Some(outstanding) = &event.outstanding {
        work.pull_request = Some(outstanding.pull_request.clone());
    }
    work.retries = event.retries;
    failed_before(lane, event);
}

/// Gives what failed there, and the retries that it cost, to who works next.
fn failed_before(lane: &mut LaneState, event: &LaneImported) {
    let spent = event.retried.unwrap_or_default();
    if event.failures.is_empty() && spent == 0 {
        return;
    }
    let works = |s: &StepState| !s.progress.is_over() && s.role != Role::Setup;
    let Some(at) = lane.steps.iter().position(works) else { return };
    if lane.steps[at].role != Role::Tests {
        let step = &mut lane.steps[at];
        step.failure_context.clone_from(&event.failures);
        (step.attempts, step.failures, step.retried) = (spent, spent, spent);
        return;
    }
    // Its work is done as far as anybody knows: if the tests say otherwise, it goes on.
    let worker = lane.worked().map(|s| s.id.clone()).unwrap_or_default();
    let Some(work) = &mut lane.work else { return };
    work.reopened = Reopenings {
        count: spent,
        max: event.retries.unwrap_or_default(),
        failures: event.failures.clone(),
        step: worker,
    };
}
