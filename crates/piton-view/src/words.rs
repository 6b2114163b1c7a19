//! Events and notes in words, one line each, the same for plain output and above the live tree.
//!
//! Says what happened, not when: the observer puts the time in front. Every text that a person or a
//! step wrote is sanitized here.

use anstyle::Style;
use piton_core::budget::{amount, size};
use piton_core::event::{
    BudgetExhausted, Class, Next, Outcome, StepFinished, StepStarted, Verdict,
};
use piton_core::state::{GateState, StepState};
use piton_core::text::first_few;
use piton_core::{Event, GateRef, Millis, RunState, Timestamp};
use piton_engine::Note;
use piton_engine::world::Hashing;

use crate::lane_words;
use crate::look::{DIM, Look};
use crate::place::Place;
use crate::run::{RunView, run_id};
use crate::text::{count, sanitize};

/// An event in words; `at` is when it happened.
pub fn event(at: Timestamp, event: &Event, state: &RunState, place: &Place) -> String {
    let run = run_id(state);
    match event {
        Event::RunCreated(e) => {
            let (_, steps) = piton_core::summary::progress(state);
            format!("run {run} created: {} ({})", sanitize(&e.title), count(steps, "step"))
        }
        Event::DriverAttached(e) => {
            let taken = if e.takeover { ", taken over" } else { "" };
            format!("run {run} driven by process {} on {}{taken}", e.pid, sanitize(&e.host))
        }
        Event::DriverLeft(e) => {
            format!("run {run} {}", verdict(e.verdict, &RunView::by_driver(state, at, place)))
        }
        Event::StepStarted(e) => started(e, state),
        Event::StepFinished(e) => format!("{} {}", e.step, finished(at, e, place)),
        Event::StepReset(e) => format!("{} is to run again: {}", e.step, sanitize(&e.reason)),
        Event::StepRetried(e) => format!("{} gets new attempts from {}", e.step, sanitize(&e.by)),
        Event::StepSkipped(e) => {
            let satisfy = if e.satisfy { "; what needs it goes on" } else { "" };
            format!("{} skipped by {}{satisfy}", e.step, sanitize(&e.by))
        }
        Event::GateAsked(e) => {
            let approve = place.piton(format_args!("approve {run} {}", e.gate));
            let name = sanitize(&e.name);
            format!("gate \"{name}\" ({}) waits for a person: {approve}", e.gate)
        }
        Event::GateDecided(e) => {
            let verb = if e.approved { "approved" } else { "rejected" };
            format!("gate {} {verb} by {}{}", e.gate, sanitize(&e.by), said(&e.message))
        }
        Event::GateReopened(e) => {
            let (by, why) = (sanitize(&e.by), sanitize(&e.why));
            format!("gate {}: its approval is taken back by {by} ({why})", e.gate)
        }
        Event::PlanAccepted(e) if e.by.is_empty() => "the changed plan takes effect".to_owned(),
        Event::PlanAccepted(e) => format!("the changed plan was accepted by {}", sanitize(&e.by)),
        Event::TicksSeen(e) => {
            let (gates, by) = (sanitize(&e.gates.join(", ")), sanitize(&e.by));
            let counts = if e.count { "" } else { ", so it does not count yet" };
            format!("ticked: {gates} ({by}{counts})")
        }
        Event::SpecAccepted(e) => format!("the changed spec was accepted by {}", sanitize(&e.by)),
        Event::CheckpointRecorded(e) => {
            format!("checkpoint {} recorded by {}{}", e.name, sanitize(&e.by), said(&e.message))
        }
        // The last step was dearer than it might be, and nothing is left to go on with.
        Event::BudgetExhausted(e) if state.is_over() => budget(e),
        Event::BudgetExhausted(e) => {
            let resume = place.piton(format_args!("resume {run}"));
            format!("{}: raise it in the plan and run `{resume}`", budget(e))
        }
        Event::TimeSkipped(e) => {
            format!("the machine slept, or its clock was set: {} count for no budget", e.ms)
        }
        Event::RunAborted(e) => {
            let verb = if e.cancel { "cancelled" } else { "aborted" };
            format!("run {run} {verb} by {}{}", sanitize(&e.by), said(&e.message))
        }
        Event::RunArchived(e) => format!("run {run} archived by {}", sanitize(&e.by)),
        other => lane_words::event(other, place),
    }
}

/// An event as lines with the time in front, those of a failure with its last output; each ends in a
/// newline.
pub fn lines(
    at: Timestamp,
    event: &Event,
    state: &RunState,
    place: &Place,
    (look, style): (&Look, Style),
) -> String {
    let words = self::event(at, event, state, place);
    let mut out = format!("{} {}\n", look.paint(DIM, &place.clock(at)), look.paint(style, &words));
    if let Event::StepFinished(e) = event
        && let Outcome::Failed { lines, .. } = &e.outcome
    {
        for line in lines {
            let line = look.paint(DIM, &format!("         | {}", sanitize(line)));
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// What is said of an attempt that is a test alone.
const ONLY_TESTS: &str = ": files changed since its test failed, so only the test runs first";

fn started(e: &StepStarted, state: &RunState) -> String {
    let again = state.step(&e.step).and_then(|s| s.rerun.as_deref());
    let why = again.map(|reason| format!(" again: {}", sanitize(reason))).unwrap_or_default();
    let attempt = if e.attempt > 1 { format!(" (attempt {})", e.attempt) } else { String::new() };
    let only = if e.tests_only { ONLY_TESTS } else { "" };
    format!("{} started{why}{attempt}{only}", e.step)
}

fn finished(at: Timestamp, e: &StepFinished, place: &Place) -> String {
    match &e.outcome {
        Outcome::Succeeded => {
            let made = match e.artifacts.len() {
                0 => String::new(),
                n => format!(", {}", count(n, "artifact")),
            };
            format!("finished in {}{made}", e.duration_ms)
        }
        Outcome::Failed { class, error, next, .. } => {
            format!("failed: {}{}", failure(*class, e.exit_code, error), after(at, *next, place))
        }
        Outcome::Interrupted { why } => format!("interrupted: {}", sanitize(why)),
    }
}

/// A failure in words: its kind where that explains what follows, the exit code, the error.
pub fn failure(class: Class, exit_code: Option<i32>, error: &str) -> String {
    let error = sanitize(error);
    let kind = match class {
        Class::Network => "network: ",
        Class::RateLimit => "rate limit: ",
        Class::Test => "test: ",
        _ => "",
    };
    match exit_code {
        Some(code) if code != 0 && !error.contains("exit") => format!("{kind}exit {code}: {error}"),
        _ => format!("{kind}{error}"),
    }
}

/// Why a step failed last, in words.
pub fn why_failed(step: &StepState) -> String {
    match step.failure_context.last() {
        Some(f) => failure(f.class, step.exit_code, &f.error),
        None => step.exit_code.map_or_else(|| "failed".to_owned(), |code| format!("exit {code}")),
    }
}

/// A budget that is used up, in words.
pub fn budget(e: &BudgetExhausted) -> String {
    let said = |value| amount(&e.budget, value);
    format!("budget {} is used up ({} of {})", sanitize(&e.budget), said(e.used), said(e.limit))
}

/// The gates that were rejected, each with who and why.
pub fn rejected(state: &RunState) -> Vec<String> {
    let line = |(gate, asked): (&GateRef, &GateState)| {
        let no = asked.decision.as_ref().filter(|d| !d.approved)?;
        let why = if no.message.is_empty() { "" } else { ": " };
        let (name, by, message) = (sanitize(&asked.name), sanitize(&no.by), sanitize(&no.message));
        Some(format!("rejected: gate \"{name}\" ({gate}) by {by}{why}{message}"))
    };
    state.gates.iter().filter_map(line).collect()
}

fn after(at: Timestamp, next: Next, place: &Place) -> String {
    let until = |point: Timestamp| {
        let length = point.since(at);
        if length == Millis(0) {
            "at once".to_owned()
        } else {
            format!("at {} (in {length})", place.ahead(point, at))
        }
    };
    match next {
        Next::Retry { at: point } => format!("; retry {}", until(point)),
        Next::Wait { until: point } => format!("; goes on {}", until(point)),
        Next::Fail => String::new(),
    }
}

/// What is said of a run when its driver left, with what its lanes say about it.
pub fn verdict(verdict: Verdict, view: &RunView<'_>) -> String {
    let pulls = view.lanes().filter(|l| l.work.pull_request.is_some() && l.work.merged.is_none());
    let words = match (verdict, view.blocked().count(), pulls.count()) {
        (Verdict::Blocked, held @ 1.., _) => {
            return format!("is blocked: {} can't go on before a person acts", count(held, "lane"));
        }
        (Verdict::Waiting, _, pulls @ 1..) if view.state.open_gates().next().is_none() => {
            let pulls = if pulls == 1 { "a pull request is" } else { "pull requests are" };
            return format!("waits until {pulls} merged");
        }
        (Verdict::Complete, ..) => "is complete",
        (Verdict::SelectionDone, ..) => "has done what was selected",
        (Verdict::Failed, ..) => "failed",
        (Verdict::Waiting, ..) => "waits for a person",
        (Verdict::Blocked, ..) => "is blocked: what remains depends on skipped or rejected work",
        (Verdict::Budget, ..) => "was stopped by a budget",
        (Verdict::Interrupted, ..) => "was interrupted",
        (Verdict::Aborted, ..) => "was ended by a person",
        (Verdict::RolledBack, ..) => "was taken back",
    };
    words.to_owned()
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {}", sanitize(message)) }
}

/// A note in words.
pub fn note(note: &Note, place: &Place) -> String {
    match note {
        Note::Draining { running } => format!(
            "stopping: {} may finish; press Ctrl-C again to end {}",
            count(*running, "running step"),
            if *running == 1 { "it" } else { "them" }
        ),
        Note::Ending { running } => format!("ending {}", count(*running, "running step")),
        Note::Recovered { step, attempt, found, fallen } => {
            format!("{step} attempt {attempt} of the {fallen} before: {found}")
        }
        Note::StraysEnded { names } => {
            format!("ended what a dead run had left running: {}", named(names))
        }
        Note::LeftoversEnded { names } => {
            format!("ended what steps had left running: {}", named(names))
        }
        Note::KeeperReplaced => "the keeper died and was replaced".to_owned(),
        Note::Request { answer } => format!("request: {}", place.told(&sanitize(answer))),
        Note::Hashing { step, hashing: far } => hashing(&step.to_string(), *far),
        Note::Warning(text) => format!("warning: {}", place.told(&sanitize(text))),
    }
}

/// Most process names in one line; the rest are counted.
const NAMES_SHOWN_MAX: usize = 8;

fn named(names: &[String]) -> String {
    sanitize(&first_few(names.iter().cloned(), NAMES_SHOWN_MAX).unwrap_or_default())
}

/// How far the hashing of files is, for whom.
pub fn hashing(who: &str, Hashing { done, of }: Hashing) -> String {
    format!("{who}: hashing files, {} of {}", size(done), size(of))
}

/// The kind of a note, for programs.
pub fn note_kind(note: &Note) -> &'static str {
    match note {
        Note::Draining { .. } => "draining",
        Note::Ending { .. } => "ending",
        Note::Recovered { .. } => "recovered",
        Note::StraysEnded { .. } => "strays_ended",
        Note::LeftoversEnded { .. } => "leftovers_ended",
        Note::KeeperReplaced => "keeper_replaced",
        Note::Request { .. } => "request",
        Note::Hashing { .. } => "hashing",
        Note::Warning(_) => "warning",
    }
}

#[cfg(test)]
mod tests {
    use piton_core::StepPath;
    use piton_core::event::{GateAsked, StepReset};

    use super::*;
    use crate::fixture::{finish, start, state};
    use crate::look::PLAIN;

    fn said(event: &Event) -> String {
        let (place, look) = (Place::default(), Look::plain(80));
        lines(Timestamp(1000), event, &state(), &place, (&look, PLAIN))
    }

    #[test]
    fn a_start_names_the_attempt_from_the_second_on() {
        assert_eq!(said(&start("build", 1)), "00:00:01 P1/A/build started\n");
        assert_eq!(said(&start("build", 2)), "00:00:01 P1/A/build started (attempt 2)\n");
    }

    #[test]
    fn success_and_failure_say_how() {
        let done = finish("build", Outcome::Succeeded);
        assert_eq!(said(&done), "00:00:01 P1/A/build finished in 3.2s\n");
        let failed = |next| {
            let failed = Outcome::Failed {
                class: Class::Command,
                error: "no \u{1b}[31mrule".to_owned(),
                lines: vec!["make: ***\u{7} no rule".to_owned()],
                next,
            };
            said(&finish("build", failed))
        };
        assert_eq!(
            failed(Next::Fail),
            "00:00:01 P1/A/build failed: exit 1: no rule\n         | make: *** no rule\n"
        );
        let retry = failed(Next::Retry { at: Timestamp(3000) });
        assert!(retry.contains("no rule; retry at 00:00:03 (in 2.0s)"), "{retry}");
        assert!(failed(Next::Retry { at: Timestamp(0) }).contains("; retry at once\n"));
    }

    #[test]
    fn a_gate_names_its_command() {
        let (gate, name) = (GateRef("P1".to_owned()), "Spec approval".to_owned());
        assert_eq!(
            said(&Event::GateAsked(GateAsked { gate, name })),
            "00:00:01 gate \"Spec approval\" (P1) waits for a person: piton approve r-1 P1\n"
        );
    }

    #[test]
    fn why_something_runs_again_is_said() {
        let step = StepPath::new("P1", "A", "build");
        let reason = "artifact a.txt is missing".to_owned();
        assert_eq!(
            said(&Event::StepReset(StepReset { step, reason })),
            "00:00:01 P1/A/build is to run again: artifact a.txt is missing\n"
        );
    }
}
