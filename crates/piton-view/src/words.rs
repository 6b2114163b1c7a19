//! Events and notes in words, one line each, the same for plain output and above the live tree.
//!
//! Says what happened, not when: the observer puts the time in front. Every text that a person or a
//! step wrote is sanitized here.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;
use piton_core::budget::{amount, size};
use piton_core::event::{
    ApprovalAsked, BudgetExhausted, Class, CommandRefused, Next, Outcome, StepFinished,
    StepStarted, Verdict,
};
use piton_core::request::Reply;
use piton_core::state::{GateState, StepState};
use piton_core::text::first_few;
use piton_core::{Event, GateRef, Millis, RunState, Timestamp};
use piton_engine::Note;
use piton_engine::world::Hashing;

use crate::agent_words;
use crate::lane_words;
use crate::layout::{DIM, Layout};
use crate::place::Place;
use crate::replan;
use crate::run::{RunView, run_id};
use crate::text::{count, sanitize};

/// An event in words, for a person who watches; `at` is when it happened. Nothing for what a summary, the
/// next event or the plan says too: `piton show` and JSON have it all.
pub fn event(at: Timestamp, event: &Event, state: &RunState, place: &Place) -> Option<String> {
    let run = run_id(state);
    Some(match event {
        Event::RunCreated(_) => {
            let (_, steps) = piton_core::summary::progress(state);
            format!("run {}: {}", titled(state), count(steps, "step"))
        }
        Event::DriverAttached(e) if e.takeover => {
            format!("run {run} taken over by process {} on {}", e.pid, sanitize(&e.host))
        }
        Event::DriverAttached(_) | Event::DriverLeft(_) | Event::BudgetExhausted(_) => return None,
        Event::StepStarted(e) => started(e, state),
        Event::StepFinished(e) => format!("{} {}", e.step, finished(at, e, place)),
        Event::StepReset(e) => format!("{} will run again: {}", e.step, sanitize(&e.reason)),
        Event::StepRetried(e) => format!("{} gets new attempts (by {})", e.step, sanitize(&e.by)),
        Event::StepSkipped(e) => {
            let satisfy = if e.satisfy { "; steps that need it continue" } else { "" };
            format!("{} skipped by {}{satisfy}", e.step, sanitize(&e.by))
        }
        Event::GateAsked(e) => {
            let approve = place.piton(format_args!("approve {run} {}", e.gate));
            format!("gate {} \"{}\" needs approval: {approve}", e.gate, sanitize(&e.name))
        }
        Event::ApprovalAsked(e) => {
            let (who, question) = (asking(e), sanitize(&e.question));
            let approve = place.piton(format_args!("approve {run} {}", e.gate));
            format!("{who} asks \"{question}\" ({}): {approve}", e.gate)
        }
        Event::GateDecided(e) => {
            let verb = if e.approved { "approved" } else { "rejected" };
            format!("gate {} {verb} by {}{}", e.gate, sanitize(&e.by), said(&e.message))
        }
        Event::GateReopened(e) => {
            let (by, why) = (sanitize(&e.by), sanitize(&e.why));
            format!("gate {}: the approval was taken back by {by} ({why})", e.gate)
        }
        Event::PlanAccepted(e) if e.by.is_empty() => "the changed plan takes effect".to_owned(),
        Event::PlanAccepted(e) => format!("the changed plan was accepted by {}", sanitize(&e.by)),
        Event::TicksSeen(e) if e.gates.is_empty() => {
            format!("no longer ticked: {}", sanitize(&e.gone.join(", ")))
        }
        Event::TicksSeen(e) => {
            let (gates, by) = (sanitize(&e.gates.join(", ")), sanitize(&e.by));
            let counts = if e.count { "" } else { ", so it does not count yet" };
            format!("ticked: {gates} ({by}{counts})")
        }
        Event::SpecAccepted(e) => format!("the changed spec was accepted by {}", sanitize(&e.by)),
        Event::CheckpointRecorded(e) => {
            format!("checkpoint {} recorded by {}{}", e.name, sanitize(&e.by), said(&e.message))
        }
        Event::TimeSkipped(e) => {
            format!(
                "the machine slept, or its clock was changed: {} do not count for budgets",
                e.ms
            )
        }
        Event::RunAborted(e) => {
            let verb = if e.cancel { "cancelled" } else { "aborted" };
            format!("run {run} {verb} by {}{}", sanitize(&e.by), said(&e.message))
        }
        Event::CommandRefused(e) => {
            let command = sanitize(&e.command);
            format!("{} tried `piton {command}` and was refused", tried_by(e))
        }
        Event::RunArchived(e) => format!("run {run} archived by {}", sanitize(&e.by)),
        other => {
            let words = replan::event(other)
                .or_else(|| agent_words::event(other))
                .or_else(|| crate::session::event(other));
            return words.or_else(|| lane_words::event(other, state, place));
        }
    })
}

fn asking(e: &ApprovalAsked) -> String {
    match (&e.step, &e.session) {
        (Some(step), _) => format!("step {step}"),
        (None, Some(session)) => format!("session {}", sanitize(session)),
        (None, None) => "an agent".to_owned(),
    }
}

/// Who tried a command that only a person may give.
pub fn tried_by(e: &CommandRefused) -> String {
    e.step.as_ref().map_or_else(|| "a step".to_owned(), ToString::to_string)
}

/// A run with its title, unless that is only the name of its plan.
pub fn titled(state: &RunState) -> String {
    let (run, title) = (run_id(state).to_owned(), sanitize(&state.title));
    let stem = Path::new(&state.plan_path).file_stem().unwrap_or_default();
    if title.is_empty() || stem == title.as_str() { run } else { format!("{run} ({title})") }
}

/// An event as lines with the time in front, those of a failure with its last output; each ends in a
/// newline. Empty for what is not said.
pub fn lines(
    at: Timestamp,
    event: &Event,
    state: &RunState,
    place: &Place,
    (layout, style): (&Layout, Style),
) -> String {
    let Some(words) = self::event(at, event, state, place) else { return String::new() };
    let mut out =
        format!("{} {}\n", layout.paint(DIM, &place.clock(at)), layout.paint(style, &words));
    if let Event::StepFinished(e) = event
        && let Outcome::Failed { lines, .. } = &e.outcome
    {
        for line in lines {
            let line = layout.paint(DIM, &format!("         | {}", sanitize(line)));
            out.push_str(&line);
            out.push('\n');
        }
    }
    for line in replan::below(event) {
        let _ = writeln!(out, "{}", layout.paint(DIM, &format!("         | {line}")));
    }
    out
}

/// What is said of an attempt that is a test alone.
const ONLY_TESTS: &str = ": only its test, because files changed since the test failed";

fn started(e: &StepStarted, state: &RunState) -> String {
    let again = state.step(&e.step).and_then(|s| s.rerun.as_deref());
    let why = again.map(|reason| format!(": {}", sanitize(reason))).unwrap_or_default();
    let attempt = if e.attempt > 1 { format!(" (attempt {})", e.attempt) } else { String::new() };
    let only = if e.tests_only { ONLY_TESTS } else { "" };
    let agent = e.agent.as_ref().map(agent_words::begins).unwrap_or_default();
    format!("{} started{attempt}{why}{only}{agent}", e.step)
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
            format!("failed: {}{}", failure(*class, error), after(at, *next, place))
        }
        Outcome::Interrupted { why } => format!("interrupted: {}", sanitize(why)),
    }
}

/// A failure in words: its kind where that explains what follows, and the error.
pub fn failure(class: Class, error: &str) -> String {
    let kind = match class {
        Class::Network => "network: ",
        Class::RateLimit => "rate limit: ",
        Class::Test => "test: ",
        _ => "",
    };
    format!("{kind}{}", sanitize(error))
}

/// Why a step failed last, in words.
pub fn why_failed(step: &StepState) -> String {
    match step.failure_context.last() {
        Some(f) => failure(f.class, &f.error),
        None => step.exit_code.map_or_else(|| "failed".to_owned(), |code| format!("exit {code}")),
    }
}

/// A budget that is used up, in words.
pub fn budget(e: &BudgetExhausted) -> String {
    let said = |value| amount(&e.budget, value);
    let (name, place) = (sanitize(&e.budget), sanitize(&e.place));
    let of = if place.is_empty() { String::new() } else { format!(" of {place}") };
    format!("budget {name}{of} is used up ({} of {})", said(e.used), said(e.limit))
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
        Next::Wait { until: point } => format!("; continues {}", until(point)),
        Next::Fail => String::new(),
        Next::Escalate => "; it failed alike too often, so a person is asked".to_owned(),
        Next::Replan { .. } => "; its phase is to be replanned".to_owned(),
    }
}

/// What is said of a run when its driver left, and what more there is to say.
pub fn verdict(verdict: Verdict, view: &RunView<'_>) -> (&'static str, String) {
    let pulls = view.lanes().filter(|l| l.work.pull_request.is_some() && l.work.merged.is_none());
    let words = match (verdict, view.blocked().count(), pulls.count()) {
        (Verdict::Blocked, 1, _) => return ("is blocked", "1 lane needs you".to_owned()),
        (Verdict::Blocked, lanes @ 2.., _) => {
            return ("is blocked", format!("{lanes} lanes need you"));
        }
        (Verdict::Blocked, ..) => {
            let why = "the remaining steps depend on skipped or rejected work";
            return ("is blocked", why.to_owned());
        }
        (Verdict::Waiting, _, pulls @ 1..) if view.state.open_gates().next().is_none() => {
            return ("is waiting", format!("{} to be merged", count(pulls, "pull request")));
        }
        (Verdict::Complete, ..) => "is complete",
        (Verdict::SelectionDone, ..) => "finished what was selected",
        (Verdict::Failed, ..) => "failed",
        (Verdict::Waiting, ..) => "is waiting for approval",
        (Verdict::Budget, ..) => "was stopped by a budget",
        (Verdict::Interrupted, ..) => "was interrupted",
        (Verdict::Aborted, ..) => "was aborted",
        (Verdict::RolledBack, ..) => "was rolled back",
    };
    (words, String::new())
}

/// More to say, after a colon.
pub fn detail(more: &str) -> String {
    if more.is_empty() { String::new() } else { format!(": {more}") }
}

fn said(message: &str) -> String {
    detail(&sanitize(message))
}

/// A note in words.
pub fn note(note: &Note, place: &Place) -> String {
    match note {
        Note::Draining { running } => format!(
            "waiting for {} to finish; press Ctrl-C again to stop {} now",
            count(*running, "running step"),
            if *running == 1 { "it" } else { "them" }
        ),
        Note::Ending { running } => format!("ending {}", count(*running, "running step")),
        Note::Recovered { step, attempt, found, fallen } => {
            let how = match *found {
                "running" => "is still running",
                "finished" => "has finished",
                "lost" => "was lost",
                _ => "was not started",
            };
            format!("{step}: attempt {attempt} (started by the previous {fallen}) {how}")
        }
        Note::StraysEnded { names } => {
            format!("ended processes that a dead run left running: {}", named(names))
        }
        Note::LeftoversEnded { names } => {
            format!("ended processes that steps left running: {}", named(names))
        }
        Note::KeeperReplaced => "the keeper died and was replaced".to_owned(),
        Note::Request { answer: Reply::Done(words) } => format!("request: {}", sanitize(words)),
        Note::Request { answer: Reply::Refused(refusal) } => {
            format!("refused a request: {}", place.refusal(refusal))
        }
        Note::Hashing { step, hashing: far } => hashing(&step.to_string(), *far),
        Note::Warning(text) => format!("warning: {}", place.remedy(text)),
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
    use super::*;
    use crate::fixture::{finish, state};
    use crate::layout::PLAIN;

    fn said(event: &Event) -> String {
        let (place, layout) = (Place::default(), Layout::plain(80));
        lines(Timestamp(1000), event, &state(), &place, (&layout, PLAIN))
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
                budget: None,
                signature: String::new(),
                next,
            };
            said(&finish("build", failed))
        };
        assert_eq!(
            failed(Next::Fail),
            "00:00:01 P1/A/build failed: no rule\n         | make: *** no rule\n"
        );
        let retry = failed(Next::Retry { at: Timestamp(3000) });
        assert!(retry.contains("no rule; retry at 00:00:03 (in 2.0s)"), "{retry}");
        assert!(failed(Next::Retry { at: Timestamp(0) }).contains("; retry at once\n"));
    }
}
