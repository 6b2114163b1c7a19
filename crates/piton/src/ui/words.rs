//! Events and notes in words, one line each, the same for plain output and above the live tree.
//!
//! Says what happened, not when: the observer puts the time in front. Every text that a person or a
//! step wrote is sanitized here.

use piton_core::budget::{amount, size};
use piton_core::decide::held_without;
use piton_core::event::{
    BudgetExhausted, Class, Next, Outcome, StepFinished, StepStarted, Verdict,
};
use piton_core::state::{GateState, Progress, StepState};
use piton_core::{Event, GateRef, Millis, RunState, StepPath, Timestamp};
use piton_engine::Note;
use piton_engine::world::Hashing;

use super::text::{count, sanitize};
use super::{here, time};

/// Most process names in one line; the rest are counted.
const NAMES_SHOWN_MAX: usize = 8;

/// The name of a run in commands; before its first event there is none.
pub fn run_id(state: &RunState) -> &str {
    state.run_id.as_ref().map_or("RUN", |id| id.0.as_str())
}

/// An event in words; `at` is when it happened.
pub fn event(at: Timestamp, event: &Event, state: &RunState) -> String {
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
        Event::DriverLeft(e) => format!("run {run} {}", verdict_of(e.verdict, state)),
        Event::StepStarted(e) => started(e, state),
        Event::StepFinished(e) => format!("{} {}", e.step, finished(at, e)),
        Event::StepReset(e) => format!("{} is to run again: {}", e.step, sanitize(&e.reason)),
        Event::StepRetried(e) => format!("{} gets new attempts from {}", e.step, sanitize(&e.by)),
        Event::StepSkipped(e) => {
            let satisfy = if e.satisfy { "; what needs it goes on" } else { "" };
            format!("{} skipped by {}{satisfy}", e.step, sanitize(&e.by))
        }
        Event::GateAsked(e) => {
            let approve = format!("piton approve {run} {}", e.gate);
            let (name, approve) = (sanitize(&e.name), here::told(&approve));
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
            let resume = format!("`piton resume {run}`");
            format!("{}: raise it in the plan and run {}", budget(e), here::told(&resume))
        }
        Event::TimeSkipped(e) => {
            format!("the machine slept, or its clock was set: {} count for no budget", e.ms)
        }
        Event::RunAborted(e) => {
            let verb = if e.cancel { "cancelled" } else { "aborted" };
            format!("run {run} {verb} by {}{}", sanitize(&e.by), said(&e.message))
        }
        Event::RunArchived(e) => format!("run {run} archived by {}", sanitize(&e.by)),
        other => super::lane_words::event(other),
    }
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

fn finished(at: Timestamp, e: &StepFinished) -> String {
    match &e.outcome {
        Outcome::Succeeded => {
            let made = match e.artifacts.len() {
                0 => String::new(),
                n => format!(", {}", count(n, "artifact")),
            };
            format!("finished in {}{made}", e.duration_ms)
        }
        Outcome::Failed { class, error, next, .. } => {
            format!("failed: {}{}", failure(*class, e.exit_code, error), after(at, *next))
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

fn after(at: Timestamp, next: Next) -> String {
    let until = |point: Timestamp| {
        let length = point.since(at);
        if length == Millis(0) {
            "at once".to_owned()
        } else {
            format!("at {} (in {length})", time::ahead(point, at))
        }
    };
    match next {
        Next::Retry { at: point } => format!("; retry {}", until(point)),
        Next::Wait { until: point } => format!("; goes on {}", until(point)),
        Next::Fail => String::new(),
    }
}

/// What is said of a run when its driver left, with what its lanes say about it.
pub fn verdict_of(verdict: Verdict, state: &RunState) -> String {
    let held = state.lanes().filter(|(_, l)| l.work.as_ref().is_some_and(|w| w.blocked.is_some()));
    let pulls = state.lanes().filter(|(_, l)| {
        l.work.as_ref().is_some_and(|w| w.pull_request.is_some() && w.merged.is_none())
    });
    match (verdict, held.count(), pulls.count()) {
        (Verdict::Blocked, held @ 1.., _) => {
            format!("is blocked: {} can't go on before a person acts", count(held, "lane"))
        }
        (Verdict::Waiting, _, pulls @ 1..) if state.open_gates().next().is_none() => {
            format!(
                "waits until {} merged",
                if pulls == 1 { "a pull request is" } else { "pull requests are" }
            )
        }
        _ => self::verdict(verdict).to_owned(),
    }
}

/// What is said of a run when its driver left.
fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Complete => "is complete",
        Verdict::SelectionDone => "has done what was selected",
        Verdict::Failed => "failed",
        Verdict::Waiting => "waits for a person",
        Verdict::Blocked => "is blocked: what remains depends on skipped or rejected work",
        Verdict::Budget => "was stopped by a budget",
        Verdict::Interrupted => "was interrupted",
        Verdict::Aborted => "was ended by a person",
        Verdict::RolledBack => "was taken back",
    }
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {}", sanitize(message)) }
}

/// A note in words.
pub fn note(note: &Note) -> String {
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
            format!("ended what a dead run had left running: {}", list(names))
        }
        Note::LeftoversEnded { names } => {
            format!("ended what steps had left running: {}", list(names))
        }
        Note::KeeperReplaced => "the keeper died and was replaced".to_owned(),
        Note::Request { answer } => format!("request: {}", here::told(&sanitize(answer))),
        Note::Hashing { step, hashing: far } => hashing(&step.to_string(), *far),
        Note::Warning(text) => format!("warning: {}", here::told(&sanitize(text))),
    }
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

fn list(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMES_SHOWN_MAX).map(|n| sanitize(n)).collect();
    let rest = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
/// The steps that were left out and that something waits for; where that can't be told, all that were.
pub fn holding(state: &RunState) -> Vec<StepPath> {
    let skipped = |s: &StepState| matches!(s.progress, Progress::Skipped { satisfy: false });
    let all: Vec<StepPath> =
        state.steps().filter(|(_, s)| skipped(s)).map(|(path, _)| path).collect();
    let held: Vec<StepPath> =
        all.iter().filter(|path| !held_without(state, path).is_empty()).cloned().collect();
    if held.is_empty() { all } else { held }
}
