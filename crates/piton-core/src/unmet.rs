//! Why lanes cannot begin and steps would not run: what they need was not chosen, failed, or was
//! skipped.

use crate::decide::Limits;
use crate::id::{LanePath, StepPath};
use crate::plan::{OnFailure, Plan};
use crate::state::{LaneState, PhaseState, Progress, RunState, StepState};
use crate::status::Status;
use crate::summary::lane_status;

/// What a lane that was chosen waits for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The lane.
    pub lane: LanePath,
    /// What it needs, in words.
    pub why: String,
    /// The first lane or phase that is missing, as the command line chooses it.
    pub first: String,
}

/// The chosen lanes that have not begun because what they need is not done; nothing where nothing
/// was chosen, for then all of it runs.
pub fn unmet(plan: &Plan, state: &RunState, limits: &Limits) -> Vec<Unmet> {
    if !limits.is_selection() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for phase in &state.phases {
        let phases = phases_missing(state, phase);
        for lane in phase.lanes.iter().filter(|l| l.task.is_none()) {
            let blocked = lane.work.as_ref().is_some_and(|w| w.blocked.is_some());
            if !limits.selects(&phase.id, lane) || lane.is_over() || blocked {
                continue;
            }
            let chosen = |path: &LanePath| {
                state.lane(path).is_some_and(|needed| limits.selects(&path.phase, needed))
            };
            let missing = |path: &&LanePath| !state.satisfies(path) && !chosen(path);
            let lanes: Vec<&LanePath> = lane.needs.iter().filter(missing).collect();
            let missing = phases.iter().map(|id| format!("phase {id}, which is not done"));
            let missing = missing.chain(lanes.iter().map(|path| lane_missing(plan, state, path)));
            let missing: Vec<String> = missing.collect();
            let first = phases.first().map(|id| format!("--phase {id}"));
            let lane_words = || lanes.first().map(|path| chosen_by(state, path));
            let Some(first) = first.or_else(lane_words) else { continue };
            let lane = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
            found.push(Unmet { lane, why: format!("it needs {}", missing.join(", and ")), first });
        }
    }
    found
}

/// What chooses a lane on the command line: its phase too where another has a lane of that name.
fn chosen_by(state: &RunState, path: &LanePath) -> String {
    let twins = state.lanes().filter(|(other, _)| other.lane == path.lane).count();
    let phase = if twins > 1 { format!("--phase {} ", path.phase) } else { String::new() };
    format!("{phase}--lane {}", path.lane)
}

/// The phases that keep a phase from its beginning.
fn phases_missing<'a>(state: &RunState, phase: &'a PhaseState) -> Vec<&'a str> {
    let needs = phase.needs.iter().filter(|id| !state.phase(id).is_some_and(PhaseState::satisfies));
    let after = phase.after.iter().filter(|id| !state.phase(id).is_some_and(PhaseState::is_over));
    needs.chain(after).map(String::as_str).collect()
}

/// A lane that is needed, with the gates it closes and where it stands.
fn lane_missing(plan: &Plan, state: &RunState, path: &LanePath) -> String {
    let gates = plan.lane(path).map(|l| l.rules.provides.join(", ")).unwrap_or_default();
    let gates = if gates.is_empty() { String::new() } else { format!(" (closes gate {gates})") };
    let phase = state.phase(&path.phase);
    let status = phase.zip(state.lane(path)).map(|(p, l)| match lane_status(state, p, l) {
        // It was begun, and nothing of it is at work: it is not among the chosen.
        Status::Running if !l.is_running() => "not finished",
        status => status.as_str(),
    });
    let status = status.unwrap_or("not there");
    format!("{path}{gates}, which is {status}")
}

/// The steps that are left where nothing can move any more, each with what keeps it. Left out are
/// those that failed, and lanes that [`unmet`] tells of.
pub fn unreached(plan: &Plan, state: &RunState, limits: &Limits) -> Vec<(StepPath, String)> {
    let unmet: Vec<LanePath> = unmet(plan, state, limits).into_iter().map(|u| u.lane).collect();
    let failed = state.steps().find(|(_, step)| step.progress == Progress::Failed);
    let stopped = failed.filter(|_| plan.on_failure == OnFailure::Stop).map(|(path, _)| path);
    let mut found = Vec::new();
    for phase in &state.phases {
        for lane in &phase.lanes {
            let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
            if unmet.contains(&path) {
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
