//! What an agent program tells a hook: which session it is, where it is, and how full its context is.
//!
//! A hook is called between any two operations, so little is read, and nothing that is not needed.
//! Programs add keys and events with each version: what is not known is ignored.

mod usage;

use serde::Deserialize;

pub use usage::{Before, Found, LOOK, TAIL_BYTES, in_time, in_transcript};

/// A program that calls hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode, by the plugin that `init` writes.
    Opencode,
}

impl Caller {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// The name in commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// The program with a name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|caller| caller.as_str() == name)
    }

    /// Tokens that fit into a conversation, where the program does not say.
    pub fn window(self) -> u64 {
        match self {
            Self::Claude | Self::Opencode => 200_000,
            Self::Codex => 258_400,
            Self::Gemini => 1_048_576,
        }
    }
}

/// The moment of a session at which a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A session begins, continues, or has been compacted.
    Start,
    /// A person asks for something.
    Prompt,
    /// An operation is about to begin.
    Before,
    /// Operations have ended, and the model is about to be asked again.
    Between,
    /// The conversation is about to be compacted.
    Compact,
    /// The agent ends its turn.
    Stop,
    /// The session ends.
    End,
    /// Anything else.
    Other,
}

/// What a hook is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Call {
    /// The session.
    #[serde(rename = "session_id", deserialize_with = "or_default")]
    pub session: String,
    /// The record of the session.
    pub transcript_path: Option<String>,
    /// The folder that the agent works in.
    pub cwd: Option<String>,
    /// The program's name of the moment.
    #[serde(rename = "hook_event_name", deserialize_with = "or_default")]
    pub event: String,
    /// Why a session starts.
    pub source: Option<String>,
    /// Whether the turn goes on only because of a hook.
    #[serde(deserialize_with = "or_default")]
    pub stop_hook_active: bool,
    /// Tokens of the conversation, if the program says it at a start.
    pub context_tokens: Option<u64>,
    /// The same, from our own plugin.
    pub used: Option<u64>,
    /// Tokens that fit, from our own plugin.
    pub window: Option<u64>,
    /// The model, where the program says it.
    #[serde(deserialize_with = "model")]
    pub model: Option<String>,
    /// The id of a subagent that the call belongs to.
    pub agent_id: Option<String>,
    context_window: Option<Window>,
    #[serde(deserialize_with = "or_default")]
    tool_calls: Vec<Operation>,
}

/// An operation that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Operation {
    #[serde(rename = "tool_use_id", deserialize_with = "or_default")]
    id: String,
}

/// What a program says, or nothing where it says `null`.
fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// A model by its name, or with its id among other things, as a status line is told.
fn model<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let said = serde_json::Value::deserialize(from)?;
    Ok(said.as_str().or_else(|| said.get("id")?.as_str()).map(str::to_owned))
}

/// Why a call cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It did not arrive.
    #[error("{0}")]
    Cut(std::io::Error),
    /// It is not what programs send.
    #[error("{0}")]
    NotJson(serde_json::Error),
    /// Nobody knows whose it is.
    #[error("it names no session")]
    NoSession,
}

/// What a status line is told of the context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Window {
    context_window_size: Option<u64>,
    current_usage: Option<usage::Claude>,
}

impl Call {
    /// Reads what is on standard input.
    pub fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let call: Self = serde_json::from_slice(bytes).map_err(Unreadable::NotJson)?;
        if call.session.is_empty() { Err(Unreadable::NoSession) } else { Ok(call) }
    }

    /// The moment.
    pub fn moment(&self, caller: Caller) -> Moment {
        match (caller, self.event.as_str()) {
            (_, "SessionStart") => Moment::Start,
            (_, "UserPromptSubmit" | "BeforeAgent") => Moment::Prompt,
            (Caller::Codex, "PreToolUse") => Moment::Before,
            (_, "PostToolBatch" | "AfterTool")
            | (Caller::Codex | Caller::Opencode, "PostToolUse") => Moment::Between,
            (Caller::Claude | Caller::Codex | Caller::Opencode, "PreCompact") => Moment::Compact,
            (_, "Stop" | "AfterAgent" | "Interrupt") => Moment::Stop,
            (_, "SessionEnd") => Moment::End,
            // Gemini calls `PreCompress` before every request, whether it compresses or not.
            _ => Moment::Other,
        }
    }

    /// Tells whether a session starts again after its conversation was compacted.
    pub fn is_compacted(&self) -> bool {
        self.source.as_deref() == Some("compact")
    }

    /// The id of the last operation that has ended, where the program names them: a record without it is
    /// behind, because programs write records when they have time.
    pub fn operation(&self) -> Option<&str> {
        self.tool_calls.last().map(|operation| operation.id.as_str()).filter(|id| !id.is_empty())
    }

    /// Tokens in use, where the call itself says it.
    pub fn tokens(&self) -> Option<u64> {
        let window = self.context_window.as_ref().and_then(|window| window.current_usage.as_ref());
        self.used.or(window.map(usage::Claude::total)).or(self.context_tokens)
    }

    /// Tokens that fit, where the call itself says it.
    pub fn fits(&self) -> Option<u64> {
        let window = self.context_window.as_ref();
        self.window.or(window.and_then(|window| window.context_window_size)).filter(|n| *n > 0)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
