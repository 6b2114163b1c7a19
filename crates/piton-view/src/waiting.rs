//! What waits for a person, over all runs of a project: the oldest first, with one command each.

use std::fmt::Write as _;

use piton_core::refusal::Remedy;
use piton_core::state::Progress;
use piton_core::{GateRef, RunState, Timestamp};
use serde::Serialize;

use crate::place::{At, Place};
use crate::replan::why_asked;
use crate::shape::shapes;
use crate::text::sanitize;

/// What kind of thing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Gate,
    FailedStep,
    BlockedLane,
    Budget,
    Spec,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::FailedStep => "failed step",
            Self::BlockedLane => "blocked lane",
            Self::Budget => "budget",
            Self::Spec => "changed spec",
        }
    }
}

shapes! {
    /// Something that waits for a person.
    Item {
        run_id: String, kind: Kind,
        /// The gate, step or lane; empty for the whole run.
        place: String,
        /// What is to be decided, or what is wrong.
        what: String,
        /// Since when, as far as it is known.
        since: At,
        /// The command that answers it.
        next: String,
    }
}

/// What waits in one run; `spec_changed` says how its spec differs from the record.
pub fn waiting(state: &RunState, spec_changed: Option<String>, place: &Place) -> Vec<Item> {
    let run = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    if state.ended.is_some() || state.is_over() {
        return Vec::new();
    }
    let item = |kind, at: &str, what: String, since: Timestamp, next: &str| Item {
        run_id: run.clone(),
        kind,
        place: at.to_owned(),
        what: sanitize(&what),
        since: At(since),
        next: place.piton(next),
    };
    let last = state.last_at;
    let mut all: Vec<Item> = state
        .open_gates()
        .map(|(place, gate)| {
            let why = why_asked(state, place).map(|why| format!("; not replanned: {why}"));
            let (GateRef(at), what) = (place, gate.name.clone() + &why.unwrap_or_default());
            item(Kind::Gate, at, what, gate.asked_at, &format!("approve {run} {at}"))
        })
        .collect();
    for (path, step) in state.steps().filter(|(_, step)| step.progress == Progress::Failed) {
        let error = step.failure_context.last().map(|f| f.error.clone()).unwrap_or_default();
        let next = format!("retry {run} {path}");
        all.push(item(Kind::FailedStep, &path.to_string(), error, last, &next));
    }
    for (path, lane) in state.lanes() {
        let blocked = lane.work.as_ref().and_then(|work| work.blocked.as_ref());
        if let Some(refusal) = blocked {
            let next = format!("resume {run}");
            all.push(item(
                Kind::BlockedLane,
                &path.to_string(),
                refusal.cause.clone(),
                last,
                &next,
            ));
        }
    }
    if let Some(budget) = &state.exhausted {
        let what = format!("the budget {budget} is used up; raise it in the plan");
        all.push(item(Kind::Budget, "", what, last, &format!("resume {run}")));
    }
    if let Some(what) = spec_changed {
        all.push(item(Kind::Spec, "", what, last, &format!("resume {run} --accept-spec")));
    }
    all
}

/// All of it for people: two lines each.
pub fn list(items: &[Item], now: Timestamp) -> String {
    let mut out = String::new();
    for item in items {
        let Item { run_id, kind, place, what, since, next } = item;
        let age = now.since(since.0);
        let at = if place.is_empty() { String::new() } else { format!(" {place}") };
        let _ = writeln!(out, "{run_id}: {}{at}, for {age}: {what}", kind.word());
        let _ = writeln!(out, "  {next}");
    }
    out
}

/// What a person may do about nothing.
pub fn nothing() -> Remedy {
    "nothing waits for you".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::state;

    /// Lost: a run stands still for days because nobody sees that it waits.
    #[test]
    fn everything_that_waits_is_listed_with_its_command() {
        let mut state = state();
        state.phases[0].lanes[0].steps[0].progress = Progress::Failed;
        state.exhausted = Some("tokens".to_owned());
        let items = waiting(&state, Some("spec.md differs".to_owned()), &Place::default());
        let kinds: Vec<Kind> = items.iter().map(|item| item.kind).collect();
        assert_eq!(kinds, [Kind::Gate, Kind::FailedStep, Kind::Budget, Kind::Spec]);
        assert_eq!(items[0].next, "piton approve r-1 P2");
        let text = list(&items, Timestamp(62_000));
        assert!(
            text.contains("r-1: gate P2, for 1m 00s: Spec approval\n  piton approve r-1 P2\n"),
            "{text}"
        );
        assert!(text.contains("piton resume r-1 --accept-spec"), "{text}");
    }
}
