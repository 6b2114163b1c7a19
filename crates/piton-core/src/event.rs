//! What happened: the only things that are written down, never edited.
//!
//! Tags and field names are frozen: they are on disk for ever. New fields get a default, new events a
//! new tag. Every enum that is stored has a variant for what a newer program may have written.

use serde::{Deserialize, Serialize};

use crate::hash::Sha;
use crate::id::{GateRef, RunId, StepPath};
pub use crate::shape::{Shape, ShapeLane, ShapePhase};
use crate::time::{Millis, Timestamp};

/// One thing that happened to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run exists; always the first event.
    RunCreated(Box<RunCreated>),
    /// A driver began to advance the run.
    DriverAttached(DriverAttached),
    /// A driver stopped by its own will.
    DriverLeft(DriverLeft),
    /// The intent to start an attempt; committed before the process exists.
    StepStarted(StepStarted),
    /// The outcome of an attempt.
    StepFinished(Box<StepFinished>),
    /// A finished step is to run again.
    StepReset(StepReset),
    /// A person gave a failed step further attempts.
    StepRetried(StepRetried),
    /// A person left a step out.
    StepSkipped(StepSkipped),
    /// A gate was reached and a person is asked.
    GateAsked(GateAsked),
    /// A person decided about a gate.
    GateDecided(GateDecided),
    /// A changed plan took effect.
    PlanAccepted(Box<PlanAccepted>),
    /// A changed spec was accepted by a person.
    SpecAccepted(SpecAccepted),
    /// A person or a tool recorded a checkpoint.
    CheckpointRecorded(CheckpointRecorded),
    /// A budget is used up.
    BudgetExhausted(BudgetExhausted),
    /// The machine slept, or its clock was set: that time counts for no budget.
    TimeSkipped(TimeSkipped),
    /// A person ended the run.
    RunAborted(RunAborted),
    /// A person set the run aside.
    RunArchived(RunArchived),
}

impl Event {
    /// The step whose progress it changes.
    pub fn step(&self) -> Option<&StepPath> {
        match self {
            Self::StepStarted(e) => Some(&e.step),
            Self::StepFinished(e) => Some(&e.step),
            Self::StepReset(e) => Some(&e.step),
            Self::StepRetried(e) => Some(&e.step),
            Self::StepSkipped(e) => Some(&e.step),
            _ => None,
        }
    }
}

/// See [`Event::RunCreated`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCreated {
    /// The stable name.
    pub run_id: RunId,
    /// Path of the plan, relative to the project's root where it lies below it.
    pub plan_path: String,
    /// Hash of the plan as resolved.
    pub plan_hash: Sha,
    /// Title of the plan.
    pub title: String,
    /// The spec and its bytes at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<FileHash>,
    /// The project's root: where steps run.
    pub root: String,
    /// Whether that is a linked work tree of a repository that lies elsewhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub linked: bool,
    /// A random word in the environment of every child, to find strays by.
    pub mark: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The plan's structure.
    pub shape: Shape,
}

/// See [`Event::DriverAttached`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverAttached {
    /// The epoch of its lease.
    pub epoch: u64,
    /// Its process id.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Whether it took the lease from a driver that may still live.
    #[serde(default, skip_serializing_if = "is_false")]
    pub takeover: bool,
}

/// See [`Event::DriverLeft`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverLeft {
    /// Why it stopped.
    pub verdict: Verdict,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The signal that stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// How a driver's work on a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// All is done.
    #[serde(rename = "complete")]
    Complete,
    /// What was selected is done, the rest is not.
    #[serde(rename = "selection_done")]
    SelectionDone,
    /// A step failed for good, or a gate was rejected.
    #[serde(rename = "failed")]
    Failed,
    /// A person must decide.
    #[serde(rename = "waiting")]
    Waiting,
    /// What remains depends on skipped work.
    #[serde(rename = "blocked")]
    Blocked,
    /// A budget is used up.
    #[serde(rename = "budget")]
    Budget,
    /// A signal asked it to stop.
    #[serde(rename = "interrupted")]
    Interrupted,
    /// A person ended the run.
    #[serde(rename = "aborted")]
    Aborted,
    /// Written by a newer program.
    #[serde(other, rename = "unknown")]
    Unknown,
}

/// See [`Event::StepStarted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepStarted {
    /// Which step.
    pub step: StepPath,
    /// Number of the attempt, from 1, never used twice.
    pub attempt: u32,
    /// Hash of the step's definition.
    pub definition: Sha,
    /// The declared inputs as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<FileHash>,
}

/// A file and the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Relative to the project's root.
    pub path: String,
    /// Hash of its bytes.
    pub sha256: Sha,
}

/// See [`Event::StepFinished`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    /// Which step.
    pub step: StepPath,
    /// Which attempt.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Exit code of the last process, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the last process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Time it took.
    #[serde(default)]
    pub duration_ms: Millis,
    /// Where its output lies in the lane's logs.
    #[serde(default, skip_serializing_if = "LogRanges::is_empty")]
    pub logs: LogRanges,
    /// What it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<FileHash>,
    /// Its declared inputs at its end, where it changed them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<FileHash>>,
    /// What it said of itself.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Outcome {
    /// Exit 0 and every artifact there.
    #[serde(rename = "succeeded")]
    Succeeded,
    /// It ran and did not succeed.
    #[serde(rename = "failed")]
    Failed {
        /// What kind of failure.
        class: Class,
        /// What went wrong, in one line.
        error: String,
        /// The last lines of its output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<String>,
        /// What follows.
        next: Next,
    },
    /// It was ended, or lost with its keeper: nobody knows how far it came.
    #[serde(rename = "interrupted")]
    Interrupted {
        /// By what.
        why: String,
    },
    /// Written by a newer program.
    #[serde(other, rename = "unknown")]
    Unknown,
}

/// The kinds of failure; the kind decides what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// The network was not there.
    #[serde(rename = "network")]
    Network,
    /// A service asked to come back later.
    #[serde(rename = "rate_limit")]
    RateLimit,
    /// An agent program failed.
    #[serde(rename = "agent")]
    Agent,
    /// The step's test failed.
    #[serde(rename = "test")]
    Test,
    /// The command failed.
    #[serde(rename = "command")]
    Command,
    /// It took too long, or was silent too long.
    #[serde(rename = "timeout")]
    Timeout,
    /// A declared artifact is missing.
    #[serde(rename = "artifact")]
    Artifact,
    /// It could not be started: no such program, no such folder, a template that fails.
    #[serde(rename = "input")]
    Input,
    /// A limit of the run was reached.
    #[serde(rename = "budget")]
    Budget,
    /// Written by a newer program.
    #[serde(other, rename = "unknown")]
    Unknown,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do")]
pub enum Next {
    /// Nothing: the step has failed.
    #[serde(rename = "fail")]
    Fail,
    /// Another attempt, which uses up a retry.
    #[serde(rename = "retry")]
    Retry {
        /// Not before.
        at: Timestamp,
    },
    /// Another attempt after a wait that uses up no retry.
    #[serde(rename = "wait")]
    Wait {
        /// Not before.
        until: Timestamp,
    },
    /// Written by a newer program.
    #[serde(other, rename = "unknown")]
    Unknown,
}

/// Byte ranges of an attempt in its lane's two log files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRanges {
    /// Of standard output.
    pub stdout: (u64, u64),
    /// Of standard error.
    pub stderr: (u64, u64),
    /// What was dropped from the middle of standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_dropped: Option<(u64, u64)>,
    /// What was dropped from the middle of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_dropped: Option<(u64, u64)>,
}

impl LogRanges {
    /// Whether the attempt wrote nothing and stands nowhere.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes written by the attempt.
    pub fn bytes(&self) -> u64 {
        (self.stdout.1 - self.stdout.0.min(self.stdout.1))
            + (self.stderr.1 - self.stderr.0.min(self.stderr.1))
    }
}

/// What a step wrote about itself to `PITON_OUTPUT`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Tokens it used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// Money it used, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub money_micros: u64,
    /// Its notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Facts {
    /// Whether it said nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// See [`Event::StepReset`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReset {
    /// Which step.
    pub step: StepPath,
    /// Why it runs again, in words.
    pub reason: String,
}

/// See [`Event::StepRetried`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRetried {
    /// Which step.
    pub step: StepPath,
    /// Who asked.
    pub by: String,
}

/// See [`Event::StepSkipped`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSkipped {
    /// Which step.
    pub step: StepPath,
    /// Whether it counts as done for what needs it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub satisfy: bool,
    /// Who asked.
    pub by: String,
}

/// See [`Event::GateAsked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateAsked {
    /// The place it guards.
    pub gate: GateRef,
    /// What is asked for.
    pub name: String,
}

/// See [`Event::GateDecided`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateDecided {
    /// The place it guards.
    pub gate: GateRef,
    /// Yes or no.
    pub approved: bool,
    /// Who decided.
    pub by: String,
    /// What they said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The plan that was approved.
    pub plan_hash: Sha,
    /// The artifacts that were there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<FileHash>,
}

/// See [`Event::PlanAccepted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanAccepted {
    /// The plan before.
    pub from: Sha,
    /// The plan now.
    pub to: Sha,
    /// Title of the plan now.
    pub title: String,
    /// Its structure.
    pub shape: Shape,
    /// Who accepted it; empty where nothing finished was touched and nobody had to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// See [`Event::SpecAccepted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpecAccepted {
    /// The recorded bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FileHash>,
    /// The bytes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FileHash>,
    /// Who accepted it.
    pub by: String,
}

/// See [`Event::CheckpointRecorded`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRecorded {
    /// Its name, unique within the run.
    pub name: String,
    /// What a person said of it.
    pub message: String,
    /// Who recorded it.
    pub by: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// See [`Event::BudgetExhausted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetExhausted {
    /// Its name.
    pub budget: String,
    /// What was used.
    pub used: u64,
    /// What was allowed.
    pub limit: u64,
}

/// See [`Event::TimeSkipped`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeSkipped {
    /// How much the clock went ahead of the time the driver was awake.
    pub ms: Millis,
}

/// See [`Event::RunAborted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunAborted {
    /// Who asked.
    pub by: String,
    /// What they said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it is for good.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancel: bool,
}

/// See [`Event::RunArchived`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunArchived {
    /// Who asked.
    pub by: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
