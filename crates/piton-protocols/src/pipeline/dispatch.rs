//! What a stage is given when it is dispatched, and whether what it made is good enough.

use std::collections::BTreeMap;

use piton_core::plan::Step;
use piton_formats::template::Given;

use super::stages::{ADR, ARCHITECT, CLARIFY, CONSTITUTION, PROGRAMMER};
use super::{adr, gaps, plan, state};
use crate::protocol::Starting;

/// Most lines of notes that a stage is given of a run before.
const NOTES_LINES_MAX: usize = 40;

/// Most files of earlier attempts that a stage is told of: with more, it looks for itself.
const LEFT_MAX: usize = 100;

/// What an attempt is given for its templates.
pub(super) fn given(starting: &Starting<'_>) -> Given {
    let Some(step) = starting.plan.step(starting.step) else { return Given::default() };
    let folder = starting.state.plan_path.as_str();
    let there = |path: &str| (starting.read)(path).is_ok();
    let constitution = [plan::below(folder, CONSTITUTION), CONSTITUTION.to_owned()];
    let constitution = constitution.into_iter().find(|path| there(path));
    // What writes code is given everything that was made for it, and what was found out about it.
    let all = starting.plan.steps().filter(|_| starting.step.phase == PROGRAMMER);
    let made = all.flat_map(|(_, step)| &step.artifacts);
    let mut existing: Vec<String> = Vec::new();
    for path in step.inputs.iter().chain(&step.artifacts).chain(made) {
        if there(path) && !existing.contains(path) {
            existing.push(path.clone());
        }
    }
    let mut left = (starting.left)();
    let made = |path: &String| starting.plan.steps().any(|(_, step)| step.artifacts.contains(path));
    let is_known = |path: &String| existing.contains(path) || made(path);
    left.retain(|path| !is_known(path) && Some(path) != starting.plan.record.as_ref());
    left.retain(|path| Some(path) != constitution.as_ref());
    existing.extend(constitution.filter(|_| starting.step.phase == ARCHITECT));
    left.truncate(LEFT_MAX);
    let markers = starting.plan.spec.as_deref().filter(|_| starting.step.phase == CLARIFY);
    let context = [
        ("feature", plan::feature(folder).to_owned()),
        ("folder", folder.trim_end_matches('/').to_owned()),
        ("outputs", list(&step.artifacts)),
        ("existing", list(&existing)),
        ("left", list(&left)),
        ("markers", markers.map(|spec| open_markers(starting, spec)).unwrap_or_default()),
        ("notes", notes(starting)),
        ("record", starting.plan.record.clone().unwrap_or_default()),
    ];
    let context = context.map(|(name, text)| (name.to_owned(), text));
    Given { context: BTreeMap::from(context), ..Given::default() }
}

/// Texts as lines of a list.
fn list(items: &[String]) -> String {
    items.iter().flat_map(|item| ["- ", item, "\n"]).collect()
}

fn open_markers(starting: &Starting<'_>, spec: &str) -> String {
    let text = (starting.read)(spec).unwrap_or_default();
    let markers = gaps::open_markers(&text);
    let lines = markers.iter().map(|marker| format!("line {}: {}", marker.line, marker.text));
    list(&lines.collect::<Vec<_>>())
}

/// The notes of the run before, for the first stage.
fn notes(starting: &Starting<'_>) -> String {
    let first = starting.plan.phases.first();
    let is_first = first.is_some_and(|phase| phase.id == starting.step.phase);
    let previous = starting.state.previous.as_deref().filter(|_| is_first);
    let text = previous.and_then(|path| (starting.read)(path).ok()).unwrap_or_default();
    let notes = state::read("", &text).0.notes;
    notes[notes.len().saturating_sub(NOTES_LINES_MAX)..].join("\n")
}

/// Tells whether all that a stage makes is there and looks complete.
pub(super) fn is_complete(starting: &Starting<'_>) -> bool {
    let Some(step) = starting.plan.step(starting.step) else { return false };
    let complete =
        |path: &String| (starting.read)(path).is_ok_and(|text| gaps::looks_complete(&text));
    // What only changes code leaves nothing to tell by.
    !step.artifacts.is_empty()
        && step.artifacts.iter().all(complete)
        && flaw(&starting.step.phase, step, starting).is_none()
}

/// What is wrong with the output of a stage whose program succeeded.
pub(super) fn flaw(stage: &str, step: &Step, starting: &Starting<'_>) -> Option<String> {
    for path in &step.artifacts {
        let text = (starting.read)(path).unwrap_or_default();
        if text.trim().is_empty() {
            return Some(format!("{path} is empty"));
        }
        if stage == CLARIFY
            && let Some(marker) = gaps::open_markers(&text).first()
        {
            return Some(format!("{path}, line {} is still open: {}", marker.line, marker.text));
        }
        if stage == ARCHITECT && path.rsplit('/').next() == Some(ADR) {
            let (check, problems) = adr::read(path, &text);
            if check.outcome != adr::Outcome::Complete {
                let first = problems.first().map(|p| format!("line {}: {}", p.line, p.message));
                let why = first.unwrap_or_else(|| "it is missing".to_owned());
                return Some(format!("the Constitution Check of {path} is not complete: {why}"));
            }
        }
    }
    None
}
