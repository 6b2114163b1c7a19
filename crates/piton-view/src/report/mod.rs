//! The report of a run: its course from the first event to now, for people who were not there.
//!
//! [`Trail`] collects what the recorded events tell, [`Report`] puts it together with where the run
//! stands ([`crate::RunView`]). It is rendered as Markdown, as one HTML file and as JSON; JSON has all there is,
//! the pages leave out what nobody would read. Times are UTC.

mod build;
mod decide;
mod document;
#[cfg(test)]
mod fixture;
mod html;
mod markdown;
mod replans;
mod saved;
mod scale;
mod sections;
mod span;
#[cfg(test)]
mod tests;
mod time_line;
mod trail;

use piton_core::event::{Class, FileHash, ProtocolRef, Trigger};
use piton_core::{GateRef, LanePath, Millis, Status, StepPath};
use serde::Serialize;

pub use decide::{Decision, Kind};
pub use saved::Saved;
pub use trail::Trail;

use self::span::Span;
use crate::place::At;
use crate::shape::shapes;

shapes! {
    /// The report of a run.
    Report<'a> {
        run_id: &'a str, title: &'a str, plan: &'a str, protocol: Option<&'a ProtocolRef>,
        status: Status, created_at: At, updated_at: At,
        /// When it was made; what goes on goes on until then.
        as_of: At,
        times: Times, tokens: u64, money_micros: u64, saved: Saved,
        phases: Vec<Phase>, failures: Vec<Failure>, replans: Vec<Replan>,
        stops: Vec<Stop>, waits: Vec<Wait>, decisions: Vec<Decision>, artifacts: Vec<Artifact<'a>>,
        /// Lanes that changed nothing, and files that steps changed outside of their scope.
        #[serde(skip_serializing_if = "Vec::is_empty")] oddities: Vec<String>,
        /// The session that it is of.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a piton_core::session_state::SessionState>,
    }

    /// Where the time of a run went.
    #[derive(Default, PartialEq, Eq)]
    Times {
        /// From its first event to its last, or to now.
        elapsed_ms: Millis,
        /// A driver was attached.
        driven_ms: Millis,
        /// At least one attempt or replan was at work.
        busy_ms: Millis,
        /// All attempts, one after the other.
        attempts_ms: Millis,
        /// A person was asked, and had not decided.
        waiting_ms: Millis,
    }

    /// A phase.
    Phase { id: String, status: Option<Status>, busy_ms: Millis, lanes: Vec<Lane> }

    /// A lane; without a status if the plan does not have it any more.
    Lane {
        id: String, status: Option<Status>,
        /// How far its work is on its way to base, in words.
        way: Option<String>,
        busy_ms: Millis, tokens: u64, money_micros: u64, steps: Vec<Step>,
    }

    /// A step; without a status if the plan does not have it any more.
    Step { id: String, status: Option<Status>, attempts: Vec<Attempt> }

    /// One attempt.
    #[derive(Default, PartialEq)]
    Attempt {
        #[serde(rename = "attempt")] number: u32, outcome: Ended, started_at: At,
        ended_at: Option<At>, duration_ms: Millis, exit_code: Option<i32>, tokens: u64,
        money_micros: u64,
    }

    /// What went wrong, with the last lines of output.
    Failure {
        at: At, place: String, attempt: Option<u32>, class: Option<Class>, error: String,
        lines: Vec<String>,
    }

    /// A replan of a phase, or the refusal of one.
    Replan {
        phase: String, trigger: Option<Trigger>, reason: String,
        /// Who wanted it whatever the limits say.
        forced_by: String,
        began_at: At, ended_at: Option<At>, outcome: Replanned,
        /// Why it came to nothing, or what changed in the plan, one line each.
        words: Vec<String>,
    }

    /// A stop of the work, and what of it was kept.
    Stop {
        at: At, cause: Cause, continued_at: Option<At>,
        /// What was finished then and did not have to be done again.
        kept_ms: Millis,
    }

    /// A wait for a person.
    Wait { #[serde(flatten)] for_: WaitFor, from: At, until: Option<At>, waited_ms: Millis }

    /// A file that the run made.
    Artifact<'a> { step: StepPath, #[serde(flatten)] file: &'a FileHash }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Ended {
    #[default]
    Running,
    Succeeded,
    Interrupted,
    Failed,
}

/// What came of a replan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Replanned {
    /// It is at work.
    Running,
    /// Another plan took effect.
    Replanned,
    /// It failed, and the plan stayed as it was.
    Failed,
    /// It went back to an earlier plan, and the plan stayed as it was.
    Looped,
    /// It was cut short, and began again.
    Interrupted,
    /// It was not begun.
    Refused,
    /// Another tool recorded it.
    Imported,
}

/// What stopped the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its driver was gone without a word.
    Killed,
    /// Another driver took it over.
    TakenOver,
    /// A step failed for good, or a gate was rejected.
    Failed,
    /// Something was in the way that a person had to change.
    Blocked,
    /// A budget was used up.
    Budget,
    /// A signal asked the driver to stop.
    Interrupted,
    /// A person ended it.
    Aborted,
    /// The plan was changed because of how the work went.
    Replan,
}

/// What a person was waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it: they are the keys of its JSON")]
pub enum WaitFor {
    Gate { gate: GateRef, name: String },
    PullRequest { lane: LanePath, url: String },
    Person { after: Cause },
}

impl Report<'_> {
    /// All lanes with their phases, in the plan's order.
    fn lanes(&self) -> impl Iterator<Item = (&Phase, &Lane)> {
        self.phases.iter().flat_map(|phase| phase.lanes.iter().map(move |lane| (phase, lane)))
    }
}

impl Lane {
    /// Its attempts, in the order they began, with their steps.
    fn attempts(&self) -> Vec<(&Step, &Attempt)> {
        let of = |step| move |attempt| (step, attempt);
        let mut all: Vec<_> =
            self.steps.iter().flat_map(|step| step.attempts.iter().map(of(step))).collect();
        all.sort_by_key(|(_, attempt)| attempt.started_at.0);
        all
    }

    /// How many of its steps are over.
    fn steps_done(&self) -> usize {
        let over = |step: &&Step| matches!(step.status, Some(Status::Complete | Status::Skipped));
        self.steps.iter().filter(over).count()
    }
}

impl Attempt {
    fn span(&self) -> Span {
        Span::new(self.started_at.0, self.started_at.0.after(self.duration_ms))
    }
}

impl Wait {
    fn span(&self) -> Span {
        Span::new(self.from.0, self.from.0.after(self.waited_ms))
    }
}

impl Replan {
    /// The time it took; none if it was not begun here.
    fn span(&self, until: At) -> Option<Span> {
        let began = !matches!(self.outcome, Replanned::Refused | Replanned::Imported);
        began.then(|| Span::new(self.began_at.0, self.ended_at.unwrap_or(until).0))
    }
}

fn all_attempts(phases: &[Phase]) -> impl Iterator<Item = &Attempt> {
    let steps = phases.iter().flat_map(|phase| &phase.lanes).flat_map(|lane| &lane.steps);
    steps.flat_map(|step| &step.attempts)
}
