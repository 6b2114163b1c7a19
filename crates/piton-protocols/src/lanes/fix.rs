//! The task that fixes a failed validation across lanes: `FIX-<PHASE>-001`.
//!
//! Derived from the state of a run, so it is gone once the validation passes.

use piton_core::RunState;
use piton_core::lane::{Stage, StageStatus};
use piton_core::state::{LaneState, Progress};

use crate::protocol::Blocker;

/// The fix tasks of a run.
pub fn blockers(state: &RunState) -> Vec<Blocker> {
    let mut found = Vec::new();
    for phase in &state.phases {
        let lanes = phase.lanes.iter().filter(|lane| lane.is_validation());
        for lane in lanes {
            let failed = lane.steps.iter().find(|s| s.progress == Progress::Failed);
            let Some(step) = failed else { continue };
            found.push(Blocker {
                id: format!("FIX-{}-001", phase.id),
                phase: phase.id.clone(),
                command: command_of(lane).unwrap_or_default(),
                exit_code: step.exit_code,
            });
        }
    }
    found
}

/// The command that failed, by the lane's checkpoints.
fn command_of(lane: &LaneState) -> Option<String> {
    let work = lane.work.as_ref()?;
    let stages = [Stage::AfterLaneStart, Stage::AfterLaneTests];
    let records = stages.into_iter().filter_map(|stage| work.record(stage));
    let mut failed = records.filter(|r| r.status == StageStatus::Failed);
    failed.find_map(|r| r.last_command.clone())
}

#[cfg(test)]
mod tests {
    use piton_core::lane::Role;
    use piton_core::state::{PhaseState, StepState};

    use super::*;

    fn state(role: Role, progress: Progress) -> RunState {
        let id = "validate-1".to_owned();
        let step = StepState { id, role, progress, exit_code: Some(7), ..StepState::default() };
        let lane =
            LaneState { id: "validation".to_owned(), steps: vec![step], ..LaneState::default() };
        let phase = PhaseState { id: "P1".to_owned(), lanes: vec![lane], ..PhaseState::default() };
        RunState { phases: vec![phase], ..RunState::default() }
    }

    /// Lost: a phase would fail after its merges without a name for what is to be done.
    #[test]
    fn a_failed_validation_names_the_task_that_mends_it() {
        let found = blockers(&state(Role::Validation, Progress::Failed));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].words(), "blocked by FIX-P1-001: validation, exit code 7");
        assert_eq!(blockers(&state(Role::Validation, Progress::Done)), []);
        assert_eq!(blockers(&state(Role::Work, Progress::Failed)), [], "a lane's name is no role");
    }
}
