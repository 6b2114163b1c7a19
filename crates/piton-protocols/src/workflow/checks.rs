//! The checks before a workflow resumes: whether its checkpoint is sound, and whether the plan says
//! something about phases that the run does not know.

use piton_core::Plan;
use piton_core::state::RunState;

use super::plan::PhaseStatus;
use super::standing::{self, Standing};
use super::{checkpoint, plan as markdown};
use crate::protocol::{Effect, Finding, Reader};

/// The rows of the table.
pub(super) fn checks(plan: &Plan, state: &RunState, read: &Reader<'_>) -> Vec<Finding> {
    let record = plan.record.as_deref().and_then(|path| record(path, state, read));
    record.into_iter().chain(marked(state, read)).collect()
}

fn finding(check: &'static str, effect: Effect, message: String) -> Finding {
    Finding { check, effect, message }
}

fn record(path: &str, state: &RunState, read: &Reader<'_>) -> Option<Finding> {
    const CHECK: &str = "checkpoint";
    let Ok(text) = read(path) else {
        // Nobody wrote it yet.
        if state.epoch == 0 {
            return None;
        }
        let message = format!("{path} is missing: it is written again from the ledger");
        return Some(finding(CHECK, Effect::Warns, message));
    };
    Some(match checkpoint::verify(path, &text) {
        Ok(missing) if missing.is_empty() => {
            let done = state.phases.iter().filter(|p| standing::of(p) == Standing::Completed);
            let (done, all) = (done.count(), state.phases.len());
            let message = format!("{path} is valid, {done} of {all} phases are completed");
            finding(CHECK, Effect::Holds, message)
        }
        Ok(missing) => {
            let message = format!("{path} lacks {}: they are added", missing.join(", "));
            finding(CHECK, Effect::Warns, message)
        }
        Err(problem) => {
            let message = format!(
                "{path} cannot be read ({}): it is kept under another name and written again",
                problem.message
            );
            finding(CHECK, Effect::Warns, message)
        }
    })
}

/// Phases that somebody marked in the plan while the run still has to do them.
fn marked(state: &RunState, read: &Reader<'_>) -> Option<Finding> {
    let text = read(&state.plan_path).ok()?;
    let (document, _) = markdown::inspect("", &text);
    let is_open = |id: &super::PhaseId| {
        let phase = state.phases.iter().find(|phase| standing::id(&phase.id).is(id));
        phase.is_some_and(|phase| !phase.is_over())
    };
    let ids: Vec<&str> = document
        .phases
        .iter()
        .filter(|phase| phase.marker.is_some() && phase.is_settled() && is_open(&phase.id))
        .filter(|phase| phase.status != PhaseStatus::Unknown)
        .map(|phase| phase.id.as_str())
        .collect();
    if ids.is_empty() {
        return None;
    }
    let message = format!(
        "phase {} is marked as settled in {}, but the run has not done it: it runs, unless you skip it",
        ids.join(", "),
        state.plan_path
    );
    Some(finding("markers", Effect::Warns, message))
}
