//! Steps that a person leaves out.

use super::{Refused, finished, running, task_steps};
use crate::decide::dependents;
use crate::event::{Event, StepSkipped};
use crate::id::StepPath;
use crate::lane::Role;
use crate::state::{Progress, RunState, StepState};

/// Leaves a step out.
pub(super) fn skip(
    state: &RunState,
    path: &StepPath,
    satisfy: bool,
    by: &str,
) -> Result<Vec<Event>, Refused> {
    let step = state.step(path).ok_or_else(|| Refused::NoStep(path.to_string()))?;
    // Skipping a step that waits for tasks skips its unfinished tasks.
    let tasks = task_steps(state, path);
    let open = tasks.into_iter().filter(|(_, s)| !s.progress.is_over());
    let mut meant: Vec<(StepPath, &StepState)> = open.collect();
    if meant.is_empty() {
        meant.push((path.clone(), step));
    }
    let skipped = |(path, step): (StepPath, &StepState)| match step.progress {
        Progress::Running { .. } => Err(running(state, &path)),
        Progress::Done => Err(finished(state, &path)),
        _ => {
            let by = by.to_owned();
            Ok(Event::StepSkipped(StepSkipped { step: path, satisfy, by }))
        }
    };
    meant.into_iter().map(skipped).collect()
}

/// What stays waiting or unmerged when a step is skipped, in words; `None` if nothing does.
pub fn skip_warning(state: &RunState, path: &StepPath, satisfy: bool) -> Option<String> {
    let lane = path.lane();
    let branch = state.lane(&lane).and_then(|l| l.work.as_ref()).map_or("", |w| &w.branch);
    let mut words = Vec::new();
    if state.role(path) == Role::Tests && !branch.is_empty() {
        words.push(format!("the work of {lane} stays on {branch}: only tested work is merged"));
    }
    let list = dependents(state, path).join(", ");
    if !list.is_empty() && satisfy {
        words.push(format!("{list} will continue as if {path} had finished"));
    } else if !list.is_empty() {
        words.push(format!("{list} depend on it and will not run; use `--satisfy` to run them"));
    }
    (!words.is_empty()).then(|| words.join("; "))
}
