//! The prompts of the contract: the stage of a lane, and how to resume or roll back.
//!
//! Printed when a lane failed or is blocked, and on resume and rollback.

use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::state::{LaneState, Progress};
use piton_core::text::first_few;
use piton_core::{LanePath, RunState};

use super::Place;
use super::records::{Hints, Twins, Words};
use crate::files::Occasion;

/// Most lanes that are named; `piton status` shows all.
const LANES_SHOWN_MAX: usize = 10;

/// The lines about the lanes that are concerned: their stages, the file, and both ways to continue.
pub fn words(place: &Place, state: &RunState, occasion: Occasion) -> Vec<String> {
    let Some(run_id) = &state.run_id else { return Vec::new() };
    let Place { root, settings } = place;
    // A task is resumed and rolled back with its lane.
    let lanes = state.lanes().filter(|(_, lane)| lane.task.is_none() && !lane.is_over());
    let meant = lanes.filter_map(|(path, lane)| {
        let work = lane.work.as_deref()?;
        is_meant(state, &path, work, occasion).then_some((path, lane, work))
    });
    let meant: Vec<(LanePath, &LaneState, &LaneWork)> = meant.collect();
    let stages = meant.iter().map(|(path, _, work)| match newest(work) {
        Some(StageRecord { stage, status, .. }) => format!("{path} {stage} ({})", status.as_str()),
        None => format!("{path} none ({})", StageStatus::Ready.as_str()),
    });
    let Some(stages) = first_few(stages, LANES_SHOWN_MAX) else { return Vec::new() };
    let lane = match &meant[..] {
        [(path, lane, _)] => Twins::of(state).words(path, lane),
        _ => Words::default(),
    };
    let hints = Hints { root, plan_path: &state.plan_path, run_id: &run_id.0, lane };
    vec![
        format!("current stage: {stages}"),
        format!("checkpoint: {}", root.join(&settings.checkpoints).display()),
        format!("resume: {}", hints.command("--resume")),
        format!("roll back to {}: {}", Stage::BeforeLaneStart, hints.command("--rollback")),
    ]
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

/// The record of a lane's current stage.
fn newest(work: &LaneWork) -> Option<&StageRecord> {
    work.stage().and_then(|stage| work.record(stage))
}
