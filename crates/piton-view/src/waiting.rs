//! What waits for a person, over all runs of a project: the oldest first, with one command each.

use std::fmt::Write as _;

use piton_core::refusal::Remedy;
use piton_core::state::Progress;
use piton_core::{GateRef, RunState, StepPath, Timestamp};
use piton_engine::resume::{ACCEPT_OUTPUTS, ACCEPT_SPEC, Check, Severity};
use serde::Serialize;

use crate::decision::Decision;
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
    Output,
    Plan,
    Blocked,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::FailedStep => "failed step",
            Self::BlockedLane => "blocked lane",
            Self::Budget => "budget",
            Self::Spec => "changed spec",
            Self::Output => "changed output",
            Self::Plan => "changed plan",
            Self::Blocked => "stopped run",
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
        /// What a person should see before they decide about a gate.
        #[serde(skip_serializing_if = "Option::is_none")] decide: Option<Decision>,
    }
}

/// A difference between the world and the record that a person must decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What kind of thing differs.
    pub kind: Kind,
    /// The step that it is about; empty for the whole run.
    pub place: String,
    /// What differs.
    pub what: String,
    /// Since when, if it is known.
    pub since: Option<Timestamp>,
}

/// The differences of a comparison that stop a run. `since` tells when the files of a step were last
/// changed, or the spec where there is none.
pub fn stops(check: &Check, since: &dyn Fn(Option<&StepPath>) -> Option<Timestamp>) -> Vec<Stop> {
    let stops = check.differences.iter().filter(|found| found.severity == Severity::Stops);
    stops
        .map(|found| {
            let kind = match found.next.accept {
                Some(ACCEPT_SPEC) => Kind::Spec,
                Some(ACCEPT_OUTPUTS) => Kind::Output,
                Some(_) => Kind::Plan,
                None => Kind::Blocked,
            };
            let place = found.step.as_ref().map(ToString::to_string).unwrap_or_default();
            let is_file = matches!(kind, Kind::Spec | Kind::Output);
            let since = if is_file { since(found.step.as_ref()) } else { None };
            Stop { kind, place, what: found.message.clone(), since }
        })
        .collect()
}

/// What waits in one run. Of what stops it, `resume` accepts everything that can be accepted.
pub fn waiting(state: &RunState, stops: Vec<Stop>, resume: &str, place: &Place) -> Vec<Item> {
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
        decide: None,
    };
    let last = state.last_at;
    let mut all: Vec<Item> = state
        .open_decisions()
        .map(|(place, gate)| {
            let why = why_asked(state, place).map(|why| format!("; not replanned: {why}"));
            let (GateRef(at), what) = (place, gate.name.clone() + &why.unwrap_or_default());
            item(Kind::Gate, at, what, gate.asked_at, &format!("approve {run} {at}"))
        })
        .collect();
    for (path, step) in state.steps().filter(|(_, step)| step.progress == Progress::Failed) {
        let error = step.failure_context.last().map(|f| f.error.clone()).unwrap_or_default();
        let since = step.clusters.iter().map(|cluster| cluster.first_at).max();
        let next = format!("retry {run} {path}");
        let (path, since) = (path.to_string(), since.unwrap_or(last));
        all.push(item(Kind::FailedStep, &path, error, since, &next));
    }
    let resumes = format!("resume {run}");
    for (path, lane) in state.lanes() {
        let Some(work) = &lane.work else { continue };
        let Some(refusal) = &work.blocked else { continue };
        let since = work.records.iter().map(|record| record.at).max().unwrap_or(last);
        let (path, cause) = (path.to_string(), refusal.cause.clone());
        all.push(item(Kind::BlockedLane, &path, cause, since, &resumes));
    }
    if let Some(budget) = &state.exhausted {
        let what = format!("the budget {budget} is used up; raise it in the plan");
        all.push(item(Kind::Budget, "", what, last, &resumes));
    }
    for Stop { kind, place, what, since } in stops {
        all.push(item(kind, &place, what, since.unwrap_or(last), resume));
    }
    all
}

/// All of it for people: two lines each.
pub fn list(items: &[Item], now: Timestamp) -> String {
    let mut out = String::new();
    for item in items {
        let Item { run_id, kind, place, what, since, next, decide: _ } = item;
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
        let stop = |kind, place: &str| Stop {
            kind,
            place: place.to_owned(),
            what: "spec.md differs".to_owned(),
            since: None,
        };
        let stops = vec![stop(Kind::Spec, ""), stop(Kind::Output, "P1/main/s1")];
        let resume = "resume r-1 --accept-spec --accept-outputs";
        let items = waiting(&state, stops, resume, &Place::default());
        let kinds: Vec<Kind> = items.iter().map(|item| item.kind).collect();
        let wanted = [Kind::Gate, Kind::FailedStep, Kind::Budget, Kind::Spec, Kind::Output];
        assert_eq!(kinds, wanted);
        assert_eq!(items[0].next, "piton approve r-1 P2");
        let text = list(&items, Timestamp(62_000));
        assert!(
            text.contains("r-1: gate P2, for 1m 00s: Spec approval\n  piton approve r-1 P2\n"),
            "{text}"
        );
        assert!(text.contains("piton resume r-1 --accept-spec --accept-outputs"), "{text}");
    }
}
