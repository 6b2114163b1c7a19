//! How a lane that another tool worked on becomes one of ours: its records as they are, its files as
//! they were found, its steps where the events beside say.

use super::lanes::saw;
use crate::lane::Stage;
use crate::lane_event::LaneImported;
use crate::lane_state::StageRecord;
use crate::state::RunState;

/// A lane was taken over.
pub fn imported(state: &mut RunState, event: &LaneImported) {
    let number = state.events;
    let Some(lane) = state.lane_mut(&event.lane) else { return };
    let at_work = lane.current();
    // A lane that did not begin here begins with its preconditions, whatever is on record.
    let begun = lane.work.as_ref().is_some_and(|w| w.record(Stage::BeforeLaneStart).is_some());
    let isolation = lane.isolation;
    let work = lane.work.get_or_insert_default();
    work.isolation = isolation;
    work.removed = !begun;
    let mut records = event.records.clone();
    for record in &mut records {
        record.event = work.record(record.stage).map_or(number, |there| there.event);
    }
    // What was recorded here and not there stays: a rollback needs it. It is no newer than the rest.
    let oldest = event.records.iter().map(|r| r.at).min();
    let stays = |stage: Stage| !event.records.iter().any(|r| r.stage == stage);
    for record in work.records.iter().filter(|r| stays(r.stage)) {
        records.push(StageRecord { at: oldest.unwrap_or(record.at), ..record.clone() });
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
    saw(work, event.snapshot.as_ref());
    if event.merged.is_some() {
        work.merged.clone_from(&event.merged);
        (work.stays, work.removed) = (event.stays, !event.stays);
    }
    if let (Some(at), false) = (at_work, event.failures.is_empty()) {
        lane.steps[at].failure_context.clone_from(&event.failures);
    }
}
