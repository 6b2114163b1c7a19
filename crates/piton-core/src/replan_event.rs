//! What happens to replans: wanted, begun, ended, refused, taken over from another tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hash::Sha;
use crate::id::StepPath;
use crate::shape::Shape;
use crate::step_event::LogRanges;
use crate::time::{Millis, Timestamp};
pub use crate::trigger::Trigger;

/// See [`crate::Event::ReplanWanted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplanWanted {
    /// The phase to plan again.
    pub phase: String,
    /// Why, in the words of whoever asks.
    pub reason: String,
    /// Who asks.
    pub by: String,
    /// The step that asks, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepPath>,
    /// Whether a person wants it whatever the limits say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// See [`crate::Event::ReplanBegun`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplanBegun {
    /// The phase that is planned again.
    pub phase: String,
    /// What asked for it.
    pub trigger: Trigger,
    /// Why, in one line.
    pub reason: String,
    /// The step that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepPath>,
    /// What the failure has in common with others of the same mistake; empty without a failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// The person who wanted it whatever the limits say; empty where they allow it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub forced_by: String,
    /// How many replans the phase has had with this one. Begun again after an interruption, it is the
    /// same number.
    pub number: u32,
    /// The number of its process, never used twice in a run.
    pub attempt: u32,
    /// The structure of the plan before.
    pub plan: Sha,
    /// Names of the secrets that its process can know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// See [`crate::Event::ReplanEnded`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplanEnded {
    /// The phase that was planned again.
    pub phase: String,
    /// Which process.
    pub attempt: u32,
    /// What came of it.
    pub outcome: ReplanOutcome,
    /// Exit code of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time it took.
    #[serde(default)]
    pub duration_ms: Millis,
    /// Where its output lies.
    #[serde(default, skip_serializing_if = "LogRanges::is_empty")]
    pub logs: LogRanges,
}

/// What came of a replan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum ReplanOutcome {
    /// Another plan took effect.
    #[serde(rename = "replanned")]
    Replanned(Box<NewPlan>),
    /// The plan stays as it was.
    #[serde(rename = "failed")]
    Failed {
        /// What went wrong.
        error: String,
        /// The last lines of its output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lines: Vec<String>,
    },
    /// It went back to an earlier plan, and the plan stays as it was.
    #[serde(rename = "looped")]
    Looped {
        /// The two that are equal.
        equal: Equal,
    },
    /// It was ended, or lost with its keeper; it begins again and counts once.
    #[serde(rename = "interrupted")]
    Interrupted {
        /// By what.
        why: String,
    },
}

/// A plan that a replan put into effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewPlan {
    /// The plan before.
    pub from: Sha,
    /// The plan now.
    pub to: Sha,
    /// Title of the plan now.
    pub title: String,
    /// What it is made of.
    pub shape: Shape,
    /// The hash of its structure: ids, commands and dependencies.
    pub structure: Sha,
    /// What changed, by phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PhaseChange>,
}

/// What a replan changed in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseChange {
    /// Which phase.
    pub phase: String,
    /// What happened to it.
    pub what: PhaseChanged,
    /// The same in words, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// How a phase differs from the one in the plan before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PhaseChanged {
    /// It is new.
    #[serde(rename = "added")]
    Added,
    /// It is gone.
    #[serde(rename = "removed")]
    Removed,
    /// It is another.
    #[serde(rename = "changed")]
    Changed,
}

impl PhaseChanged {
    /// Its frozen word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

/// Two plans or failures that are equal, in words: why a replan would be a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equal {
    /// The later one.
    pub this: String,
    /// The earlier one.
    pub that: String,
}

impl std::fmt::Display for Equal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} equals {}", self.this, self.that)
    }
}

/// See [`crate::Event::ReplanRefused`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplanRefused {
    /// The phase that is not planned again.
    pub phase: String,
    /// What asked for it.
    pub trigger: Trigger,
    /// Why it was asked for.
    pub reason: String,
    /// Why it is not done; a person is asked.
    pub why: NoReplan,
}

/// Why the plan stays as it is until a person decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum NoReplan {
    /// The phase has had as many replans as it may have.
    #[serde(rename = "limit")]
    Limit {
        /// So many.
        count: u32,
    },
    /// The run has had as many replans as it may have.
    #[serde(rename = "run_limit")]
    RunLimit {
        /// So many.
        count: u32,
    },
    /// The last replan changed nothing, and the same happened again.
    #[serde(rename = "loop")]
    Loop {
        /// The two that are equal.
        equal: Equal,
    },
    /// Nothing is configured that writes another plan.
    #[serde(rename = "no_command")]
    NoCommand,
    /// The replan failed.
    #[serde(rename = "failed")]
    Failed {
        /// What went wrong.
        error: String,
    },
    /// A person took the replan back.
    #[serde(rename = "undone")]
    Undone,
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

impl std::fmt::Display for NoReplan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Limit { count } => write!(f, "the phase was already replanned {}", times(*count)),
            Self::RunLimit { count } => {
                write!(f, "the run was already replanned {}", times(*count))
            }
            Self::Loop { equal } => write!(f, "it would be a loop: {equal}"),
            Self::NoCommand => f.write_str("no replan command is configured"),
            Self::Failed { error } => write!(f, "the replan failed: {error}"),
            Self::Undone => f.write_str("the last replan was undone"),
        }
    }
}

/// See [`crate::Event::ReplansImported`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplansImported {
    /// How many replans each phase has had.
    #[serde(default)]
    pub counts: BTreeMap<String, u32>,
    /// Those that are described, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ImportedReplan>,
}

/// A replan that another tool recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedReplan {
    /// The phase that was planned again.
    pub phase: String,
    /// Why, as the other tool wrote it.
    pub reason: String,
    /// When, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}
