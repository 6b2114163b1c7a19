//! The state of a step: its progress, its counters, its last attempt.

pub mod short;

use serde::{Deserialize, Serialize};

use crate::agent_state::{AgentState, Spent};
use crate::gate_event::Review;
use crate::hash::Sha;
use crate::lane::Role;
use crate::status::Status;
pub use crate::step_event::Cluster;
use crate::step_event::{Class, FileHash, LogRanges};
use crate::time::{Millis, Timestamp};

/// The state of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct StepState {
    /// Its id.
    pub id: String,
    /// What it is for.
    #[serde(rename = "r", default, skip_serializing_if = "Role::is_work")]
    pub role: Role,
    /// Where it stands.
    #[serde(rename = "p", default, skip_serializing_if = "Progress::is_pending")]
    pub progress: Progress,
    /// Number of the last attempt.
    #[serde(rename = "n", default, skip_serializing_if = "zero")]
    pub attempts: u32,
    /// Failed attempts since a person last granted new ones.
    #[serde(default, skip_serializing_if = "zero")]
    pub failures: u32,
    /// Failed attempts that were followed by another since then, whether or not one succeeded.
    #[serde(default, skip_serializing_if = "zero")]
    pub retried: u32,
    /// Test failures in a row since its last success, a person's word or a replan.
    #[serde(rename = "tf", default, skip_serializing_if = "zero")]
    pub tests_failed: u32,
    /// Attempts that were ended or lost.
    #[serde(default, skip_serializing_if = "zero")]
    pub interruptions: u32,
    /// Times it finished with success.
    #[serde(rename = "k", default, skip_serializing_if = "zero")]
    pub successes: u32,
    /// Attempts since the last success or grant that ended in a wait for the network.
    #[serde(default, skip_serializing_if = "zero")]
    pub network_waits: u32,
    /// The same for rate limits.
    #[serde(default, skip_serializing_if = "zero")]
    pub rate_limit_waits: u32,
    /// Time spent waiting for the network since then.
    #[serde(default, skip_serializing_if = "zero_ms")]
    pub network_waited_ms: Millis,
    /// Time spent waiting for rate limits since then.
    #[serde(default, skip_serializing_if = "zero_ms")]
    pub rate_limit_waited_ms: Millis,
    /// Exit code of the last attempt.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time the last finished attempt took.
    #[serde(rename = "t", default, skip_serializing_if = "zero_ms")]
    pub duration_ms: Millis,
    /// Its definition when it last started.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Sha>,
    /// Names of the secrets that its attempt in flight can know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Its inputs when it last started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<FileHash>,
    /// What it last made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<FileHash>,
    /// Where its last attempt's output lies.
    #[serde(default, skip_serializing_if = "LogRanges::is_empty")]
    pub logs: LogRanges,
    /// Its failed attempts so far, for the next one to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_context: Vec<FailedAttempt>,
    /// Files outside of its scope that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Whether its last attempt was cut short: it is to be started again.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Whether another tool began it: what that left is in no snapshot of ours.
    #[serde(rename = "to", default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// Whether its last attempt is its test alone: its work runs if that fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests_only: bool,
    /// Why it runs again although it had finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun: Option<String>,
    /// The event of its last success.
    #[serde(rename = "e", default, skip_serializing_if = "is_zero")]
    pub done_event: u64,
    /// The gate at which a person is asked when it keeps failing alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<String>,
    /// Its failures since its last success, those of the same mistake together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// What reviewers want changed, until it succeeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// The files that it found when it first started after a person's word or its last success: what
    /// changed since is its own.
    #[serde(rename = "sf", default, skip_serializing_if = "Option::is_none")]
    pub scope_from: Option<String>,
    /// The files its first attempt found.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Where the branch of its lane stood then.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub before_head: Option<String>,
    /// The tree with all that was there, where the snapshot of those files lacks some.
    #[serde(rename = "bt", default, skip_serializing_if = "Option::is_none")]
    pub before_tree: Option<String>,
    /// The agent of its last attempt, where it has one that reports on itself.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentState>>,
    /// What all its attempts used.
    #[serde(rename = "u", default, skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// To be started.
    #[default]
    Pending,
    /// An attempt was started.
    Running {
        /// When.
        since: Timestamp,
    },
    /// To be started again, not before a time.
    Waiting {
        /// When the wait began: a clock that says less was set back since.
        since: Timestamp,
        /// Not before.
        until: Timestamp,
        /// After what kind of failure.
        class: Class,
    },
    /// No attempt is left.
    Failed,
    /// It failed alike too often: a person is asked at its gate.
    Escalated,
    /// Finished with success.
    Done,
    /// Left out.
    Skipped {
        /// Whether it counts as done for what needs it.
        satisfy: bool,
    },
}

/// A failed attempt, as the next one learns of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// Its number.
    pub attempt: u32,
    /// What kind of failure.
    pub class: Class,
    /// What went wrong.
    pub error: String,
    /// The last lines of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The budget that allowed no attempt after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The command that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl FailedAttempt {
    /// Whether it tells nothing of the work: a limit or a network, which pass by themselves.
    pub fn passes_by_itself(&self) -> bool {
        matches!(self.class, Class::RateLimit | Class::Network)
    }
}

impl Progress {
    fn is_pending(&self) -> bool {
        *self == Self::Pending
    }

    /// Until when nothing is to be started; nothing where that is over.
    ///
    /// A wait lasts no longer than it was meant to: if the clock was set back to before it began, the
    /// moment it waits for may lie days ahead.
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        match *self {
            Self::Waiting { since, until, .. } if since <= now && now < until => Some(until),
            _ => None,
        }
    }

    /// Whether nothing more is to be done: finished or left out.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done | Self::Skipped { .. })
    }
}

impl StepState {
    /// Its status in words.
    pub fn status(&self) -> Status {
        match self.progress {
            Progress::Pending => Status::Pending,
            Progress::Running { .. } => Status::Running,
            Progress::Waiting { class: Class::RateLimit, .. } => Status::Parked,
            Progress::Waiting { .. } => Status::Retrying,
            Progress::Failed => Status::Failed,
            Progress::Escalated => Status::Waiting,
            Progress::Done => Status::Complete,
            Progress::Skipped { .. } => Status::Skipped,
        }
    }

    /// The step as if nothing had happened to it; what is counted for ever stays.
    pub(crate) fn anew(&self, rerun: Option<String>) -> Self {
        Self {
            id: self.id.clone(),
            role: self.role,
            attempts: self.attempts,
            interruptions: self.interruptions,
            successes: self.successes,
            spent: self.spent,
            escalation: self.escalation.clone(),
            rerun,
            ..Self::default()
        }
    }

    /// Whether it counts as done for what needs it.
    pub fn satisfies(&self) -> bool {
        matches!(self.progress, Progress::Done | Progress::Skipped { satisfy: true })
    }

    /// How often it failed with the same signature.
    pub fn failed_alike(&self, signature: &str) -> u32 {
        let cluster = self.clusters.iter().find(|c| c.signature == signature);
        cluster.map_or(0, |c| c.count)
    }

    /// The last failed attempt that tells something of the work.
    pub fn last_failure(&self) -> Option<&FailedAttempt> {
        self.failure_context.iter().rev().find(|failed| !failed.passes_by_itself())
    }

    /// What the next attempt has to know: what reviewers want changed, then the failed attempts, as
    /// `Attempt N: error` and the last lines of each. What passes by itself is left out.
    pub fn failure_text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for review in &self.reviews {
            let _ = writeln!(text, "Changes wanted by {}:", review.by);
            for line in review.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        for failed in self.failure_context.iter().filter(|failed| !failed.passes_by_itself()) {
            let _ = writeln!(text, "Attempt {}: {}", failed.attempt, failed.error);
            if let Some(command) = &failed.command {
                let exit = failed.exit_code.map(|code| format!(" (exit {code})"));
                let exit = exit.unwrap_or_default();
                // A script is in the plan; its first line tells which one it is.
                let mut lines = command.trim().lines();
                let (first, more) = (lines.next().unwrap_or_default(), lines.next().is_some());
                let _ = writeln!(text, "  failed: {first}{}{exit}", if more { " …" } else { "" });
            }
            for line in &failed.lines {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn zero_ms(value: &Millis) -> bool {
    value.0 == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
