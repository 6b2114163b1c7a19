//! The contract's words to a person: where a lane stands, and the ways on and back.
//!
//! Pure. Said when a lane failed or is held up, and on resume and rollback; who prints it is decided
//! elsewhere.

use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::state::{LaneState, Progress};
use piton_core::{LanePath, RunState};

use super::Place;
use super::records::{Hints, Twins};
use crate::files::Occasion;

/// Most lanes that are told of; `piton status` shows them all.
const LANES_TOLD_MAX: usize = 10;

/// The lines about each lane that is meant; none for a run without lanes of this kind.
pub fn words(place: &Place, state: &RunState, occasion: Occasion) -> Vec<String> {
    let Some(run_id) = &state.run_id else { return Vec::new() };
    let Place { root, settings } = place;
    let twins = Twins::of(state);
    let mut lines = Vec::new();
    // A task goes on and back with its lane.
    let lanes = state.lanes().filter(|(_, lane)| lane.task.is_none());
    let meant = lanes.filter(|(path, lane)| {
        let work = lane.work.as_deref().filter(|_| !lane.is_over());
        work.is_some_and(|work| is_meant(state, path, work, occasion))
    });
    for (path, lane) in meant.take(LANES_TOLD_MAX) {
        let Some(work) = lane.work.as_deref() else { continue };
        let hints = Hints {
            root,
            plan_path: &state.plan_path,
            run_id: &run_id.0,
            lane: twins.words(&path, lane),
        };
        let (stage, status) = match newest(work) {
            Some(record) => (record.stage.as_str(), record.status.as_str()),
            None => ("none", StageStatus::Ready.as_str()),
        };
        lines.push(format!("{path}: current stage: {stage} ({status})"));
        lines.push(format!("  checkpoint: {}", root.join(&settings.checkpoints).display()));
        lines.push(format!("  go on:      {}", hints.command("--resume")));
        lines.push(format!("  back to {}:", Stage::BeforeLaneStart));
        lines.push(format!("              {}", hints.command("--rollback")));
    }
    lines
}

fn is_meant(state: &RunState, path: &LanePath, work: &LaneWork, occasion: Occasion) -> bool {
    match occasion {
        Occasion::Resumed => true,
        Occasion::RolledBack => work.rolled_back.is_some(),
        Occasion::Stopped => {
            let stuck = |lane: &LaneState| {
                let blocked = lane.work.as_ref().is_some_and(|w| w.blocked.is_some());
                blocked || lane.steps.iter().any(|s| s.progress == Progress::Failed)
            };
            let parts = state.parts_of(path);
            let mut lanes = parts.iter().chain([path]).filter_map(|p| state.lane(p));
            lanes.any(stuck)
        }
    }
}

/// The record of the stage a lane stands at.
fn newest(work: &LaneWork) -> Option<&StageRecord> {
    work.stage().and_then(|stage| work.record(stage))
}
