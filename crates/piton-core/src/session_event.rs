//! What happens in a session: the work of an agent that a person talks to, without a plan.
//!
//! A session has no driver. Its events are recorded by the commands that the agent, its hooks or a
//! person call, each in one commit.

use serde::{Deserialize, Serialize};

use crate::hash::Sha;

/// A session began to work, or went on with the work of an earlier one.
///
/// See [`crate::Event::SessionOpened`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// What the agent program calls it: tells two agents in one project apart.
    pub session: String,
    /// The checkpoint that it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
    /// Tokens of the conversation when it began, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// A checkpoint that a session goes on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Its time, as its file says it.
    pub timestamp: String,
    /// The task in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Tokens of the checkpoint that was read.
    pub load_tokens: u64,
    /// Tokens of the context that the agent was given.
    pub context_tokens: u64,
}

/// Changes of the task board, the progress file and other files of the project.
///
/// The event is the intent: each file gets its changes once, whoever dies in between.
///
/// See [`crate::Event::SessionChanged`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionChanged {
    /// The session.
    pub session: String,
    /// The changes as the protocol writes them, each a JSON object.
    pub changes: Vec<String>,
    /// Why they are made.
    pub cause: Cause,
    /// The task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Why files of a session are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Changes that were collected are written.
    #[serde(rename = "flush")]
    Flush,
    /// Changes of a checkpoint are applied by the session that goes on from it.
    #[serde(rename = "resume")]
    Resume,
    /// A task began.
    #[serde(rename = "task_started")]
    TaskStarted,
    /// A task is finished.
    #[serde(rename = "task_finished")]
    TaskFinished,
    /// A task was split into subtasks.
    #[serde(rename = "decomposed")]
    Decomposed,
}

/// The content of a checkpoint of a session; it follows the checkpoint with the same name.
///
/// See [`crate::Event::SessionSaved`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSaved {
    /// The session.
    pub session: String,
    /// The checkpoint.
    pub name: String,
    /// Why it was made.
    pub reason: Reason,
    /// The time in the names of its files.
    pub stamp: String,
    /// The bytes of its file.
    pub document: String,
    /// The task in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Tokens of the conversation, and how many fit; none if they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<(u64, u64)>,
    /// Tokens that the agent reads and writes for it.
    pub cost_tokens: u64,
}

/// Why a checkpoint of a session was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The conversation reached the warning threshold.
    #[serde(rename = "token_warning")]
    TokenWarning,
    /// The conversation reached the critical threshold.
    #[serde(rename = "token_critical")]
    TokenCritical,
    /// The session ended.
    #[serde(rename = "session_end")]
    SessionEnd,
    /// A task was finished.
    #[serde(rename = "task_completion")]
    TaskCompletion,
    /// A person or the agent asked for it.
    #[serde(rename = "manual")]
    Manual,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::TokenWarning,
        Self::TokenCritical,
        Self::SessionEnd,
        Self::TaskCompletion,
        Self::Manual,
    ];

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokenWarning => "token_warning",
            Self::TokenCritical => "token_critical",
            Self::SessionEnd => "session_end",
            Self::TaskCompletion => "task_completion",
            Self::Manual => "manual",
        }
    }
}

/// A checkpoint could not be resumed from, and the session began without it.
///
/// See [`crate::Event::SessionNotResumed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNotResumed {
    /// The session.
    pub session: String,
    /// The time of the checkpoint, as its file says it.
    pub timestamp: String,
    /// Why.
    pub why: String,
    /// The time in the name of the copy that is kept.
    pub stamp: String,
    /// The bytes of the checkpoint.
    pub document: String,
}

/// The work that a session went on with is finished and written: its checkpoint is done with.
///
/// See [`crate::Event::SessionSynced`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSynced {
    /// The session.
    pub session: String,
    /// Tokens of the conversation, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Tokens that the agent reads and writes for it.
    pub cost_tokens: u64,
}

/// A session ended.
///
/// See [`crate::Event::SessionEnded`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The session.
    pub session: String,
    /// The task that is still in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// See [`crate::Event::SessionPhase`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPhase {
    /// The session.
    pub session: String,
    /// What the phase is called.
    pub phase: String,
    /// Whether it ended; else it began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// See [`crate::Event::SessionArtifact`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionArtifact {
    /// The session.
    pub session: String,
    /// The file, from the project's root.
    pub path: String,
    /// The hash of its bytes.
    pub sha256: Sha,
    /// How many bytes it has.
    pub bytes: u64,
    /// The task that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
