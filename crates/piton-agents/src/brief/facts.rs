//! What a brief says of the past and of what is under way: objective, steps in flight, failures, work
//! that is done, files, decisions.

use piton_core::lane_state::LaneWork;
use piton_core::state::{FailedAttempt, LaneState, Progress, StepState};
use piton_core::step_event::Class;
use piton_core::summary::progress;
use piton_core::text::{first_few, short};
use piton_core::{StepPath, Timestamp};

use super::course::When;
use super::{Fact, Input, Section, counted};

/// Most lines of output that are looked at for one failure: what matters is near its end.
const FAILURE_LINES_MAX: usize = 40;
/// Most files that a line names.
const FILES_NAMED_MAX: usize = 5;
/// Most facts of a kind that can grow with the run: more than the largest brief has room for.
const FACTS_MAX: usize = 1000;

/// The facts of these sections, the most important of each first.
pub(super) fn collect(input: &Input<'_>) -> Vec<Fact> {
    let mut facts = objective(input);
    facts.extend(in_flight(input));
    facts.extend(failing(input));
    if !input.is_told {
        facts.extend(done(input));
    }
    facts.extend(changed(input));
    facts.extend(decisions(input));
    facts
}

fn objective(input: &Input<'_>) -> Vec<Fact> {
    let state = input.state;
    let from_plan =
        |text: String| Fact::new(Section::Objective, text, &state.plan_path).at(state.created_at);
    let mut facts = vec![from_plan(state.title.clone())];
    if let Some(spec) = &state.spec {
        facts.push(from_plan(format!("the spec is {}", spec.path)));
    }
    let phases: Vec<String> = state.phases.iter().map(|phase| phase.id.clone()).collect();
    if phases.len() > 1 {
        facts.push(from_plan(format!("phases: {}", phases.join(", "))));
    }
    facts
}

fn in_flight(input: &Input<'_>) -> Vec<Fact> {
    let state = input.state;
    let mut facts = Vec::new();
    for (path, step) in state.steps().filter(|(_, step)| !step.progress.is_over()) {
        let Some(words) = open_words(step, input.now) else { continue };
        let when = input.course.started(&path);
        facts.push(recorded(
            Section::InFlight,
            format!("{path}: {words}"),
            when,
            "the run's state",
        ));
    }
    for (path, lane) in state.lanes() {
        let Some(work) = &lane.work else { continue };
        facts.extend(lane_words(lane, work).map(|words| {
            Fact::new(Section::InFlight, format!("{path}: {words}"), "the run's state")
        }));
    }
    for (gate, asked) in state.open_decisions() {
        let words = format!("a person is asked about {gate}: {}", asked.name);
        facts.push(Fact::new(Section::InFlight, words, "the gate").at(asked.asked_at));
    }
    if let Some(replan) = &state.replans.under_way {
        let begun = &replan.begun;
        let words = format!("{} is planned again: {}", begun.phase, begun.reason);
        facts.push(Fact::new(Section::InFlight, words, "the replan").at(replan.since));
    }
    if let Some(rewind) = &state.rewinding {
        let words = format!("files are being taken back to {}", rewind.to);
        facts.push(Fact::new(Section::InFlight, words, "the run's state"));
    }
    facts
}

/// What a step that is not over does, if it has begun.
fn open_words(step: &StepState, now: Timestamp) -> Option<String> {
    let attempt = step.attempts;
    Some(match step.progress {
        Progress::Running { since } => {
            format!("attempt {attempt} has been running for {}", now.since(since))
        }
        Progress::Waiting { until, class, .. } => {
            let why = if class == Class::RateLimit { "a rate limit" } else { "a failure" };
            format!("attempt {attempt} ended with {why}; the next starts in {}", until.since(now))
        }
        Progress::Escalated => format!("failed {attempt} times alike; a person is asked"),
        Progress::Pending if step.interrupted => {
            format!("attempt {attempt} was cut short; what it did may be there")
        }
        Progress::Pending if step.rerun.is_some() => {
            format!("runs again: {}", step.rerun.as_deref().unwrap_or_default())
        }
        _ => return None,
    })
}

/// What is under way with a lane beside its steps.
fn lane_words(lane: &LaneState, work: &LaneWork) -> impl Iterator<Item = String> + use<> {
    let blocked = work.blocked.as_ref().map(|refusal| format!("is blocked: {}", refusal.cause));
    let conflict = work.resolving().map(|conflict| {
        format!("must resolve its conflict with {} at {}", work.base_branch, short(&conflict.onto))
    });
    let merging = work.merging().map(|_| format!("is being merged into {}", work.base_branch));
    let has_worktree = work.has_worktree() && lane.current().is_some();
    let place = has_worktree.then(|| format!("works on branch {} in {}", work.branch, work.dir));
    blocked.into_iter().chain(conflict).chain(merging).chain(place)
}

fn failing(input: &Input<'_>) -> Vec<Fact> {
    let own = input.task();
    let open = input.state.steps().filter(|(_, step)| !step.progress.is_over());
    let mut steps: Vec<_> = open.filter(|(_, step)| step.last_failure().is_some()).collect();
    // What the reader works on comes first; among the others the newest.
    let newest = |path: &StepPath| input.course.ended(path).map_or(0, |when| when.event);
    steps.sort_by_key(|(path, _)| (own.as_ref() != Some(path), u64::MAX - newest(path)));
    let mut facts = Vec::new();
    for (path, step) in steps.into_iter().take(FACTS_MAX) {
        let Some(last) = step.last_failure() else { continue };
        let when = input.course.ended(&path);
        facts.extend(failure(&path.to_string(), last, when));
    }
    for (path, lane) in input.state.lanes().filter(|(_, lane)| !lane.is_over()) {
        let last = lane.work.as_ref().and_then(|work| work.reopened.failures.last());
        facts.extend(last.into_iter().flat_map(|last| failure(&path.to_string(), last, None)));
    }
    facts
}

/// A failed attempt: what went wrong, then the lines of its output, those that name a failure first.
fn failure(place: &str, failed: &FailedAttempt, when: Option<When>) -> Vec<Fact> {
    let fact = |text: String| recorded(Section::Failing, text, when, "the run's state");
    let mut facts = vec![fact(format!("{place}, attempt {}: {}", failed.attempt, failed.error))];
    let lines = failed.lines.iter().rev().filter(|line| !line.trim().is_empty());
    let (named, others): (Vec<&String>, Vec<&String>) =
        lines.take(FAILURE_LINES_MAX).partition(|line| names_failure(line));
    facts.extend(named.into_iter().chain(others).map(|line| fact(format!("output: {line}"))));
    facts
}

/// Whether a line of a test's output is likely to name what failed, in the words of common runners.
fn names_failure(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["fail", "error", "panicked", "assert", "expected", "not ok"].iter().any(|w| line.contains(w))
}

fn done(input: &Input<'_>) -> Vec<Fact> {
    let state = input.state;
    let (over, all) = progress(state);
    let total = format!("{over} of {all} steps are complete or skipped");
    let mut facts = vec![Fact::new(Section::Done, total, "the run's state").at(state.last_at)];
    let mut finished: Vec<(StepPath, &StepState)> =
        state.steps().filter(|(_, step)| step.progress == Progress::Done).collect();
    finished.sort_by_key(|(_, step)| u64::MAX - step.done_event);
    for phase in state.phases.iter().filter(|phase| phase.is_over()) {
        let steps: usize = phase.lanes.iter().map(|lane| lane.steps.len()).sum();
        let words = format!("phase {} is complete ({})", phase.id, counted(steps, "step"));
        let of_phase = finished.iter().filter(|(path, _)| path.phase == phase.id);
        let ended = of_phase.filter_map(|(path, _)| input.course.ended(path)).map(|w| w.at).max();
        facts.push(Fact::new(Section::Done, words, "the run's state").at(ended));
    }
    for (path, step) in finished.into_iter().take(FACTS_MAX) {
        let made = first_few(step.artifacts.iter().map(|a| a.path.clone()), FILES_NAMED_MAX);
        let made = made.map_or(String::new(), |files| format!(", made {files}"));
        let words = format!("{path} is complete{made}");
        let at = input.course.ended(&path).map(|when| when.at);
        facts.push(Fact::new(Section::Done, words, format!("event {}", step.done_event)).at(at));
    }
    facts
}

/// The files on record, those of the reader's own lane first.
fn changed(input: &Input<'_>) -> Vec<Fact> {
    let own = input.task().map(|step| step.lane());
    let mut files: Vec<_> = input.state.recorded.iter().collect();
    files.sort_by_key(|(_, recorded)| Some(recorded.by.lane()) != own);
    let fact = |(path, recorded): (&String, &piton_core::state::Recorded)| {
        let at = input.course.ended(&recorded.by).map(|when| when.at);
        Fact::new(Section::Changed, path.clone(), recorded.by.to_string()).at(at)
    };
    files.into_iter().take(FACTS_MAX).map(fact).collect()
}

/// Decisions, replans and notes, the newest first.
fn decisions(input: &Input<'_>) -> Vec<Fact> {
    let state = input.state;
    let all = state.gates.iter().chain(&state.questions);
    let decided = all.filter_map(|(gate, asked)| {
        let decision = asked.decision.as_ref()?;
        let verb = if decision.approved { "approved" } else { "rejected" };
        let words =
            said(format!("{} {verb} {} ({gate})", decision.by, asked.name), &decision.message);
        Some(Fact::new(Section::Decisions, words, "the gate").at(decision.at))
    });
    let checkpoints = state.checkpoints.iter().map(|checkpoint| {
        let words = said(format!("checkpoint {}", checkpoint.name), &checkpoint.message);
        let source = format!("event {}", checkpoint.event);
        Fact::new(Section::Decisions, words, source).at(checkpoint.at)
    });
    let replans = state.replans.history().into_iter().map(|(phase, past)| {
        let result = past.result.as_str();
        let words =
            said(format!("replan {} of phase {phase}, {result}", past.number), &past.reason);
        Fact::new(Section::Decisions, words, "the replan").at(past.at)
    });
    let mut facts: Vec<Fact> = decided.chain(checkpoints).chain(replans).collect();
    facts.extend(input.course.said().cloned());
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.at));
    facts
}

fn said(what: String, message: &str) -> String {
    if message.is_empty() { what } else { format!("{what}: {message}") }
}

/// A fact of an event, or of the state where its event is not known.
pub(super) fn recorded(
    section: Section,
    text: String,
    when: Option<When>,
    otherwise: &str,
) -> Fact {
    let source = when.map_or_else(|| otherwise.to_owned(), |when| format!("event {}", when.event));
    Fact::new(section, text, source).at(when.map(|when| when.at))
}
