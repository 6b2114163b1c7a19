//! What happens to the agents of steps: what they say, how full their windows are, hand-offs, limits.

use serde::{Deserialize, Serialize};

use crate::agent::{Level, Tokens};
use crate::id::StepPath;
use crate::time::Timestamp;

/// How the agent of an attempt begins; part of [`crate::event::StepStarted`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentBegun {
    /// The agent.
    pub agent: String,
    /// The program it is.
    pub program: String,
    /// The session, if its id is known before the process begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it is new.
    pub how: Beginning,
    /// Why it begins so, in words; empty for a first attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// How the agent of an attempt begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// With a new session and the prompt.
    #[default]
    Fresh,
    /// With a new session, the prompt and a brief about what was done before.
    Briefed,
    /// With the session of an attempt before.
    Continued,
}

/// See [`crate::Event::AgentSaid`]. Counts are those of the attempt since it began: a stream that is
/// read again counts nothing twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSaid {
    /// Which step.
    pub step: StepPath,
    /// Which attempt.
    pub attempt: u32,
    /// The id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Tokens so far.
    #[serde(default)]
    pub tokens: Tokens,
    /// What they cost so far, in millionths of a dollar, as it counts for budgets.
    #[serde(default)]
    pub money_micros: u64,
    /// Whether that is more than a guess.
    #[serde(default)]
    pub is_cost_known: bool,
    /// Requests so far.
    #[serde(default)]
    pub requests: u32,
    /// Tokens in its context at the last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The window of its model.
    #[serde(default)]
    pub window: u64,
    /// What it did last, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// The operations that were under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<String>,
}

/// See [`crate::Event::ContextFilled`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFilled {
    /// Which step.
    pub step: StepPath,
    /// Which attempt.
    pub attempt: u32,
    /// How full its window is.
    pub level: Level,
    /// Tokens in its context.
    pub context: u64,
    /// The window of its model.
    pub window: u64,
}

/// See [`crate::Event::AgentHandedOff`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHandedOff {
    /// Which step.
    pub step: StepPath,
    /// The attempt that ended with it.
    pub attempt: u32,
    /// Why, in words.
    pub why: String,
    /// Whether its session could not be continued. That is no hand-off that counts: its window was not
    /// full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
}

/// See [`crate::Event::AgentLimited`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLimited {
    /// The step that met the limit.
    pub step: StepPath,
    /// Which attempt.
    pub attempt: u32,
    /// The agent.
    pub agent: String,
    /// When the limit ends, as it was said or guessed.
    pub until: Timestamp,
}

/// See [`crate::Event::BudgetWarned`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetWarned {
    /// Its name.
    pub budget: String,
    /// The step, lane or phase that it limits, or the day; empty for the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// What was used.
    pub used: u64,
    /// What is allowed.
    pub limit: u64,
}
