//! The checks before a pipeline resumes: what the playbook's second step asks for, one row each.
//!
//! That the spec and the outputs of finished stages are as recorded is compared for every run; here it
//! is only said when they are.

use piton_core::state::{PhaseState, RunState};
use piton_core::{GateRef, Plan, StepPath, approval};

use super::stages::{ADR, ARCHITECT};
use super::{adr, hashes};
use crate::protocol::{Effect, Finding, Reader};
use crate::shown::Shown;

/// The rows of the table.
pub(super) fn checks(plan: &Plan, state: &RunState, read: &Reader<'_>) -> Vec<Finding> {
    let all = [spec(state, read), outputs(state, read), constitution(plan, state, read)];
    all.into_iter().flatten().collect()
}

fn holds(check: &'static str, message: String) -> Finding {
    Finding { check, effect: Effect::Holds, message }
}

fn spec(state: &RunState, read: &Reader<'_>) -> Option<Finding> {
    let spec = state.spec.as_ref()?;
    let text = read(&spec.path).ok()?;
    let is_same = hashes::compare(&spec.sha256.0, text.as_bytes()).is_match();
    is_same.then(|| holds("spec hash", format!("{} is as recorded", spec.path)))
}

fn outputs(state: &RunState, read: &Reader<'_>) -> Option<Finding> {
    let made = state.steps().filter(|(_, step)| step.progress.is_over());
    let made: Vec<String> = made
        .flat_map(|(path, step)| {
            step.artifacts.iter().map(move |file| state.place_of(&path, &file.path))
        })
        .collect();
    let there = made.iter().filter(|path| read(path).is_ok()).count();
    let all = made.len();
    let is_all = all > 0 && there == all;
    is_all.then(|| holds("outputs", format!("{all} of {all} of finished stages exist")))
}

fn constitution(plan: &Plan, state: &RunState, read: &Reader<'_>) -> Option<Finding> {
    let phase = state.phase(ARCHITECT).filter(|phase| phase.is_over())?;
    let step = work_of(phase)?;
    let planned = plan.step(&step)?;
    let path = planned.artifacts.iter().find(|path| path.rsplit('/').next() == Some(ADR))?;
    // One that is gone is an output that is missing.
    let text = read(path).ok()?;
    let (check, _) = adr::read(path, &text);
    let articles = check.articles.len();
    if check.outcome == adr::Outcome::Complete {
        return Some(holds(
            "constitution check",
            format!("complete, {articles} of {articles} articles decided"),
        ));
    }
    let message = format!("that of {path} is {}: architect runs again", check.outcome.as_str());
    Some(Finding { check: "constitution check", effect: Effect::RunsAgain(step), message })
}

/// What is shown of a decision: the articles of the architecture, if it is about that.
pub(super) fn presented(
    plan: &Plan,
    state: &RunState,
    gate: &GateRef,
    read: &Reader<'_>,
) -> Vec<Shown> {
    let reviewed = approval::reviewed(state, gate);
    let is_adr = |path: &&String| path.rsplit('/').next() == Some(ADR);
    let steps = reviewed.iter().filter_map(|path| plan.step(path));
    let Some(path) = steps.flat_map(|step| &step.artifacts).find(is_adr) else { return Vec::new() };
    let (check, _) = adr::read(path, &read(path).unwrap_or_default());
    let row = |article: adr::Article| vec![article.name, article.status, article.notes];
    vec![Shown {
        title: format!("Constitution Check of {path}: {}", check.outcome.as_str()),
        columns: vec!["article", "status", "notes"],
        rows: check.articles.into_iter().map(row).collect(),
    }]
}

/// The step that does the work of a stage.
pub(super) fn work_of(phase: &PhaseState) -> Option<StepPath> {
    let lane = phase.lanes.first()?;
    Some(StepPath::new(&phase.id, &lane.id, &lane.steps.first()?.id))
}
