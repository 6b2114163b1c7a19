//! How events change gates, and the steps that wait at them or run again because of them.

use super::{gate_name, steps};
use crate::approval;
use crate::event::{ChangesWanted, GateDecided, Review};
use crate::id::{GateRef, StepPath};
use crate::state::{Approved, Decision, GateState, Progress, Reviewed, RunState};
use crate::time::Timestamp;

/// Most reviews that are passed on to the next attempt: older ones were answered by attempts since.
const REVIEWS_KEPT_MAX: usize = 5;

/// A person is asked.
pub(super) fn asked(state: &mut RunState, at: Timestamp, gate: &GateRef, name: &str) {
    let name = name.to_owned();
    let fresh = GateState { name, asked_at: at, decision: None };
    state.gates.entry(gate.clone()).or_insert(fresh);
}

/// An agent asks. Nothing of the run waits for the answer, so no gate of its plan is touched.
pub(super) fn question(state: &mut RunState, at: Timestamp, place: &GateRef, text: &str) {
    let asked = GateState { name: text.to_owned(), asked_at: at, decision: None };
    state.questions.insert(place.clone(), asked);
}

/// A person decided. A step that waits for that goes on, or has failed.
pub(super) fn decided(state: &mut RunState, at: Timestamp, event: &GateDecided) {
    if let Some(question) = state.questions.get_mut(&event.gate) {
        let GateDecided { approved, by, message, .. } = event.clone();
        question.decision = Some(Decision { approved, by, message, at });
        return;
    }
    let name = gate_name(state, &event.gate).unwrap_or_default();
    asked(state, at, &event.gate, &name);
    state.reopened.remove(&event.gate);
    let GateDecided { approved, by, message, .. } = event.clone();
    let said = Review { by: by.clone(), message: message.clone(), comments: Vec::new() };
    if let Some(gate) = state.gates.get_mut(&event.gate) {
        gate.decision = Some(Decision { approved, by: by.clone(), message, at });
    }
    if approved {
        state.reviews.remove(&event.gate);
        let (gate, seen) = (event.gate.clone(), approval::newest_snapshot(state));
        state.approved = Some(Approved { gate, name, by, seen });
    }
    super::replans::decided(state, &event.gate, approved);
    let Ok(path) = StepPath::try_from(event.gate.0.clone()) else { return };
    let waits = |s: &&mut crate::state::StepState| s.progress == Progress::Escalated;
    let Some(step) = state.step_mut(&path).filter(waits) else { return };
    if !approved {
        step.progress = Progress::Failed;
        return;
    }
    steps::grant(step);
    if !said.is_empty() {
        keep(&mut step.reviews, said);
    }
}

/// A person wants changes: nobody is asked again before the work was done again.
pub(super) fn changes_wanted(state: &mut RunState, event: &ChangesWanted) {
    state.gates.remove(&event.gate);
    let round = state.reviews.get(&event.gate).map_or(1, |last| last.round + 1);
    let reviewed = Reviewed { round, by: event.review.by.clone(), seen: event.seen.clone() };
    state.reviews.insert(event.gate.clone(), reviewed);
    for path in &event.steps {
        let Some(step) = state.step_mut(path) else { continue };
        // Counted in its budget: what it is granted is not more than what it had.
        let (retried, failures) = (step.retried + 1, step.failures + 1);
        steps::grant(step);
        (step.retried, step.failures) = (retried, failures);
        step.rerun = Some(format!("{} wants changes", event.review.by));
        keep(&mut step.reviews, event.review.clone());
        state.skip_done(path);
    }
}

/// A person answered for a step in another way: its question is open no more.
pub(super) fn answered(state: &mut RunState, step: &StepPath) {
    let place = GateRef(step.to_string());
    let open = |g: &GateState| g.decision.is_none();
    if state.gates.get(&place).is_some_and(open) {
        state.gates.remove(&place);
    }
}

fn keep(reviews: &mut Vec<Review>, review: Review) {
    if reviews.len() == REVIEWS_KEPT_MAX {
        reviews.remove(0);
    }
    reviews.push(review);
}
