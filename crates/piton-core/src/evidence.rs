//! The one rule of what counts as finished: the same definition and inputs, artifacts still there.
//!
//! A file counts as changed only against what the run itself last recorded for it, so a later step
//! that rewrites an earlier one's artifact makes nothing run again.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::FileHash;
use crate::hash::Sha;
use crate::id::StepPath;
use crate::plan::Plan;
use crate::state::{Progress, RunState, StepState};

/// What the world shows of the files that evidence speaks of: the hash, or nothing if missing.
pub type Files = BTreeMap<String, Option<Sha>>;

/// What was seen of one finished step's declared inputs now.
pub type Inputs = BTreeMap<StepPath, Vec<FileHash>>;

/// A finished step that is to run again, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rerun {
    /// Which step.
    pub step: StepPath,
    /// Why, in words.
    pub reason: String,
}

/// The paths whose hashes [`stale`] needs: every artifact of a finished step.
pub fn paths_to_see(state: &RunState) -> Vec<String> {
    let mut paths: Vec<String> = done(state)
        .filter(|(path, _)| !in_base(state, path))
        .flat_map(|(path, step)| {
            step.artifacts.iter().map(move |f| state.place_of(&path, &f.path)).collect::<Vec<_>>()
        })
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The finished steps that declare inputs: their inputs have to be looked at.
pub fn steps_with_inputs<'a>(plan: &'a Plan, state: &RunState) -> Vec<(StepPath, &'a [String])> {
    done(state)
        .filter(|(path, _)| !in_base(state, path))
        .filter_map(|(path, _)| {
            let inputs = plan.step(&path)?.inputs.as_slice();
            (!inputs.is_empty()).then_some((path, inputs))
        })
        .collect()
}

/// Names the finished steps whose evidence is gone, in the plan's order.
pub fn stale(plan: &Plan, state: &RunState, files: &Files, inputs: &Inputs) -> Vec<Rerun> {
    done(state)
        .filter_map(|(path, step)| {
            let reason = reason(plan, state, files, inputs, &path, step)?;
            Some(Rerun { step: path, reason })
        })
        .collect()
}

/// Whether a step's work is in base, in its own commits: later merges may change the same files.
fn in_base(state: &RunState, path: &StepPath) -> bool {
    let merged = |l: &crate::state::LaneState| l.work.as_ref().is_some_and(|w| w.merged.is_some());
    state.lane(&path.lane()).is_some_and(merged)
}

fn done(state: &RunState) -> impl Iterator<Item = (StepPath, &StepState)> {
    state.steps().filter(|(_, s)| s.progress == Progress::Done)
}

fn reason(
    plan: &Plan,
    state: &RunState,
    files: &Files,
    inputs: &Inputs,
    path: &StepPath,
    step: &StepState,
) -> Option<String> {
    let planned = plan.step(path)?;
    // A test that is proven by an earlier one never started, and has no definition.
    if step.definition.as_ref().is_some_and(|d| *d != planned.definition()) {
        return Some("its definition in the plan changed".to_owned());
    }
    for artifact in &step.artifacts {
        let place = state.place_of(path, &artifact.path);
        match files.get(&place) {
            Some(None) => return Some(format!("artifact {} is missing", artifact.path)),
            Some(Some(found)) => {
                let last = state.recorded.get(&place).map(|r| &r.sha256);
                if last.unwrap_or(&artifact.sha256) != found {
                    return Some(format!(
                        "artifact {} changed since it was recorded",
                        artifact.path
                    ));
                }
            }
            None => {}
        }
    }
    let seen = inputs.get(path)?;
    changed_input(plan, state, path, &step.inputs, seen)
}

fn changed_input(
    plan: &Plan,
    state: &RunState,
    path: &StepPath,
    before: &[FileHash],
    now: &[FileHash],
) -> Option<String> {
    for file in now {
        let known = before.iter().find(|b| b.path == file.path);
        let same = known.is_some_and(|b| b.sha256 == file.sha256);
        if !same && !rewritten_later(plan, state, path, file) {
            let what = if known.is_some() { "changed" } else { "is new" };
            return Some(format!("input {} {what}", file.path));
        }
    }
    let gone = before.iter().find(|b| !now.iter().any(|n| n.path == b.path))?;
    Some(format!("input {} is missing", gone.path))
}

/// Whether the bytes seen are those that the step itself, or one after it, recorded.
fn rewritten_later(plan: &Plan, state: &RunState, path: &StepPath, file: &FileHash) -> bool {
    let Some(recorded) = state.recorded.get(&state.place_of(path, &file.path)) else {
        return false;
    };
    let position = |wanted: &StepPath| plan.steps().position(|(p, _)| &p == wanted);
    recorded.sha256 == file.sha256 && position(&recorded.by) >= position(path)
}
