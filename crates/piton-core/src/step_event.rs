//! What happens to steps: started, finished, reset, retried, skipped.

use serde::{Deserialize, Serialize};

use crate::agent_event::AgentBegun;
use crate::hash::Sha;
use crate::id::StepPath;
use crate::lane::SnapshotRef;
use crate::time::{Millis, Timestamp};
use crate::trigger::Trigger;

/// See [`crate::Event::StepStarted`].
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
    /// The files it finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<SnapshotRef>,
    /// Whether only its test runs, on files that changed since that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests_only: bool,
    /// Names of the secrets that it can know. Whoever does not know them all copies nothing that it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// How its agent begins, if that is a program which Piton knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentBegun>,
}

/// A file and the hash of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// Relative to the project's root.
    pub path: String,
    /// Hash of its bytes.
    pub sha256: Sha,
}

impl StepStarted {
    /// The start of an attempt about which no more is known.
    pub fn new(step: StepPath, attempt: u32, definition: Sha) -> Self {
        let (inputs, secrets) = (Vec::new(), Vec::new());
        let (before, agent) = (None, None);
        Self { step, attempt, definition, inputs, before, tests_only: false, secrets, agent }
    }
}

/// See [`crate::Event::StepFinished`].
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
    /// Its declared inputs at its end, where it changed them itself. Of an attempt that did not
    /// succeed: the files on record that it changed, of those it declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<FileHash>>,
    /// What it said of itself.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// The files it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SnapshotRef>,
    /// The tests that passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Whether files changed after those tests had begun: what they passed on is not what is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_by_tests: bool,
    /// The command that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The retries it has, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries_max: Option<u32>,
    /// Files outside of its scope that it changed, where it succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<String>,
    /// Files outside of its scope that it changed, where that is only reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Files that it changed and that are there, where its protocol lists them; the first of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

impl StepFinished {
    /// The end of an attempt about which no more is known.
    pub fn new(step: StepPath, attempt: u32, outcome: Outcome) -> Self {
        Self {
            step,
            attempt,
            outcome,
            exit_code: None,
            signal: None,
            duration_ms: Millis(0),
            logs: LogRanges::default(),
            artifacts: Vec::new(),
            inputs: None,
            facts: Facts::default(),
            after: None,
            tests: Vec::new(),
            changed_by_tests: false,
            command: None,
            retries_max: None,
            drifted: Vec::new(),
            outside: Vec::new(),
            changed: Vec::new(),
        }
    }
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
        /// The budget that allows no further attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<String>,
        /// What it has in common with failures of the same mistake.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        signature: String,
        /// What follows.
        next: Next,
    },
    /// It was ended, or lost with its keeper: nobody knows how far it came.
    #[serde(rename = "interrupted")]
    Interrupted {
        /// By what.
        why: String,
    },
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
    /// The lane's work and base changed the same lines.
    #[serde(rename = "conflict")]
    Conflict,
    /// The pull request could not be opened.
    #[serde(rename = "pull_request")]
    PullRequest,
    /// It changed files that it may not write.
    #[serde(rename = "scope")]
    Scope,
    /// It asked for another plan.
    #[serde(rename = "replan")]
    Replan,
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
    /// A person is asked: it failed alike too often.
    #[serde(rename = "escalate")]
    Escalate,
    /// Its phase is planned again, then it is tried again.
    #[serde(rename = "replan")]
    Replan {
        /// What asks for that.
        trigger: Trigger,
    },
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

    /// Bytes that are kept of what the attempt wrote.
    pub fn bytes(&self) -> u64 {
        let length = |range: (u64, u64)| range.1.saturating_sub(range.0);
        let kept =
            |whole, dropped: Option<_>| length(whole).saturating_sub(dropped.map_or(0, length));
        kept(self.stdout, self.stdout_dropped) + kept(self.stderr, self.stderr_dropped)
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

/// See [`crate::Event::StepImported`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepImported {
    /// Which step.
    pub step: StepPath,
    /// How often it was started.
    #[serde(default)]
    pub attempts: u32,
    /// How often it failed.
    #[serde(default)]
    pub failures: u32,
    /// Its failures, those of the same mistake together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// Whether it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_done: bool,
    /// When that was, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What it made, as recorded there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<FileHash>,
    /// Hash of the step's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Sha>,
}

/// Failures of one mistake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// What they have in common.
    pub signature: String,
    /// The first of them in words.
    pub error: String,
    /// When that was.
    pub first_at: Timestamp,
    /// How many there were.
    pub count: u32,
}

/// See [`crate::Event::StepReset`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReset {
    /// Which step.
    pub step: StepPath,
    /// Why it runs again, in words.
    pub reason: String,
}

/// See [`crate::Event::StepRetried`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRetried {
    /// Which step.
    pub step: StepPath,
    /// Who asked.
    pub by: String,
}

/// See [`crate::Event::StepSkipped`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSkipped {
    /// Which step.
    pub step: StepPath,
    /// Whether it counts as done for what needs it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub satisfy: bool,
    /// Who asked.
    pub by: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a run that keeps little of its logs is stopped by the budget of all it ever wrote.
    #[test]
    fn what_was_dropped_takes_no_room() {
        let all = LogRanges { stdout: (100, 1_100), stderr: (0, 50), ..LogRanges::default() };
        assert_eq!(all.bytes(), 1_050);
        assert_eq!(LogRanges { stdout_dropped: Some((200, 900)), ..all }.bytes(), 350);
        assert_eq!(LogRanges { stderr: (9, 0), ..all }.bytes(), 1_000);
    }
}
