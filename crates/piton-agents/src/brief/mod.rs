//! The brief: what a fresh agent needs to go on with a run, in at most so many tokens.
//!
//! Rebuilt each time from the state of the run, its plan and its events; nothing of it is stored. Facts
//! are collected by section (`facts`, `ahead`), the most important first, and chosen in turns (`fit`),
//! so that every section keeps the most important ones, whatever the limit. The count is that of
//! [`crate::tokens`].

mod ahead;
mod course;
mod facts;
mod fit;

use piton_core::redact::{Redactor, as_seen};
use piton_core::summary::current;
use piton_core::{Plan, RunState, StepPath, Timestamp};

pub use course::Course;
pub use fit::{Chosen, Shown};

/// The tokens of a brief where nobody asks for another number: little beside any window, and enough for
/// what matters of a long run.
pub const LIMIT_DEFAULT: usize = 2000;
/// The fewest tokens that can be asked for: room for the heading, the objective and the task.
pub const LIMIT_MIN: usize = 100;
/// The most tokens that can be asked for: what is larger is a transcript.
pub const LIMIT_MAX: usize = 100_000;

/// The parts of a brief, in the order in which they are written and filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What the run is for.
    Objective,
    /// What is to be done now.
    Task,
    /// What must hold when it is done.
    Acceptance,
    /// What has begun and has not ended.
    InFlight,
    /// What failed last.
    Failing,
    /// What comes after.
    Next,
    /// What is finished.
    Done,
    /// The files that were changed.
    Changed,
    /// What people decided, replans and notes.
    Decisions,
    /// Where to read more.
    More,
}

impl Section {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::Objective,
        Self::Task,
        Self::Acceptance,
        Self::InFlight,
        Self::Failing,
        Self::Next,
        Self::Done,
        Self::Changed,
        Self::Decisions,
        Self::More,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Objective => "Objective",
            Self::Task => "Current task",
            Self::Acceptance => "Acceptance",
            Self::InFlight => "In flight",
            Self::Failing => "Failing",
            Self::Next => "Next",
            Self::Done => "Done",
            Self::Changed => "Files changed",
            Self::Decisions => "Decisions",
            Self::More => "Read more",
        }
    }

    /// Its key for programs.
    pub fn key(self) -> &'static str {
        match self {
            Self::Objective => "objective",
            Self::Task => "task",
            Self::Acceptance => "acceptance",
            Self::InFlight => "in_flight",
            Self::Failing => "failing",
            Self::Next => "next",
            Self::Done => "done",
            Self::Changed => "changed",
            Self::Decisions => "decisions",
            Self::More => "more",
        }
    }

    /// How many facts it gets in a turn: a task and a failure take several lines to be understood.
    fn per_turn(self) -> usize {
        match self {
            Self::Task | Self::Failing => 2,
            _ => 1,
        }
    }
}

/// One line of a brief.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Where it belongs.
    pub section: Section,
    /// What is the case.
    pub text: String,
    /// Where that is recorded: an event, the plan, a file.
    pub source: String,
    /// When it became so; the last event of the run where that is not known.
    pub at: Option<Timestamp>,
}

impl Fact {
    /// A fact without a time.
    pub fn new(section: Section, text: impl Into<String>, source: impl Into<String>) -> Self {
        Self { section, text: text.into(), source: source.into(), at: None }
    }

    /// The same with the time when it became so.
    #[must_use]
    pub fn at(mut self, at: impl Into<Option<Timestamp>>) -> Self {
        self.at = at.into();
        self
    }
}

/// What a brief is made from.
#[derive(Debug)]
pub struct Input<'a> {
    /// Where the run stands.
    pub state: &'a RunState,
    /// Its plan, if that can be read.
    pub plan: Option<&'a Plan>,
    /// What its events tell beside that; empty where nobody read them.
    pub course: &'a Course,
    /// The step that the reader works on; the current one of the run where there is none.
    pub step: Option<&'a StepPath>,
    /// Facts that only the caller knows, such as changed files or operations of an agent that were cut
    /// short. They come before the others of their sections.
    pub more: Vec<Fact>,
    /// Whether they say what is to be done, because the steps of the plan do not.
    pub is_told: bool,
    /// The time that ages are counted to.
    pub now: Timestamp,
    /// Keeps secrets out.
    pub redactor: &'a Redactor,
}

impl Input<'_> {
    /// The step that the brief is about.
    fn task(&self) -> Option<StepPath> {
        if self.is_told { None } else { self.step.cloned().or_else(|| current(self.state)) }
    }
}

/// A brief of a run in at most `limit` tokens.
pub fn brief(input: &Input<'_>, limit: usize) -> Chosen {
    let mut facts = input.more.clone();
    facts.extend(facts::collect(input));
    facts.extend(ahead::collect(input));
    for fact in &mut facts {
        fact.text = one_line(input.redactor, &fact.text);
        fact.source = one_line(input.redactor, &fact.source);
        // What the state says without a time is as old as its last event, at most.
        fact.at.get_or_insert(input.state.last_at);
    }
    facts.retain(|fact| !fact.text.is_empty());
    let run = input.state.run_id.as_ref().map_or("", |id| id.0.as_str());
    fit::choose(run, facts, input.now, limit)
}

/// A text on one line, as a person would see it: without secrets, escapes and control characters.
fn one_line(redactor: &Redactor, text: &str) -> String {
    let text = redactor.redact(text);
    as_seen(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number of things: `1 step`, `3 steps`.
fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// How many per cent more tokens another tokenizer may need for a brief than `o200k_base`, by the name
/// of the agent program.
///
/// Codex speaks to models of that family. Others may count more for the same text; how much was not
/// measured, and a third is assumed, because a brief that is too short costs little.
pub fn margin_percent(program: &str) -> usize {
    match program {
        "codex" => 0,
        _ => 35,
    }
}

/// The limit to count to, so that an agent's own count stays within `limit`.
pub fn limit_for(program: &str, limit: usize) -> usize {
    limit.saturating_mul(100) / (100 + margin_percent(program))
}
