//! Why steps would not run though they are not finished: for whoever looks before anything happens.

use super::unmet::phases_missing;
use super::{Limits, unmet};
use crate::id::{LanePath, StepPath};
use crate::plan::{OnFailure, Plan};
use crate::state::{LaneState, PhaseState, Progress, RunState, StepState};

/// The steps that are left where nothing can move any more, each with what keeps it. Left out are
/// those that failed, and lanes that [`unmet`] tells of.
pub fn held(plan: &Plan, state: &RunState, limits: &Limits) -> Vec<(StepPath, String)> {
    let told: Vec<LanePath> = unmet(plan, state, limits).into_iter().map(|u| u.lane).collect();
    let failed = state.steps().find(|(_, step)| step.progress == Progress::Failed);
    let stopped = failed.filter(|_| plan.on_failure == OnFailure::Stop).map(|(path, _)| path);
    let mut found = Vec::new();
    for phase in &state.phases {
        for lane in &phase.lanes {
            let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
            if told.contains(&path) {
                continue;
            }
            for (at, step) in lane.steps.iter().enumerate() {
                if step.progress.is_over() || step.progress == Progress::Failed {
                    continue;
                }
                let why = if limits.selects(&phase.id, lane) {
                    why(state, phase, lane, at, stopped.as_ref())
                } else {
                    "it was not chosen".to_owned()
                };
                found.push((StepPath::new(&phase.id, &lane.id, &step.id), why));
            }
        }
    }
    found
}

fn why(
    state: &RunState,
    phase: &PhaseState,
    lane: &LaneState,
    at: usize,
    stopped: Option<&StepPath>,
) -> String {
    let failed = lane.steps[..at].iter().find(|step| step.progress == Progress::Failed);
    if let Some(step) = failed {
        let step = StepPath::new(&phase.id, &lane.id, &step.id);
        return format!("it comes after {step}, which failed");
    }
    if let Some(phase) = phases_missing(state, phase).first() {
        return format!("it comes after phase {phase}, which would not be done");
    }
    if let Some(lane) = lane.needs.iter().find(|path| !state.satisfies(path)) {
        let left_out = |step: &StepState| step.progress == Progress::Skipped { satisfy: false };
        let steps = state.lane(lane).into_iter().flat_map(|l| &l.steps);
        return match steps.into_iter().find(|step| left_out(step)) {
            Some(step) => {
                format!("it needs {lane}/{}, which was skipped without --satisfy", step.id)
            }
            None => format!("it needs lane {lane}, which would not be done"),
        };
    }
    match stopped {
        Some(step) => format!("nothing new starts, because {step} failed"),
        None => "what it waits for would not be there".to_owned(),
    }
}
