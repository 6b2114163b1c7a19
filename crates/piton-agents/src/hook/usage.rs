//! How full a context is, from the end of the record that a program keeps of a session.

use std::time::Duration;

use serde::Deserialize;

use super::Caller;

/// Bytes of a record that are read at first: what follows the last answer of a model is mostly shorter.
pub const TAIL_BYTES: u64 = 64 << 10;

/// How often a record that is behind is looked at again, and how many times: Claude Code writes its
/// record about ten times a second.
pub const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 40;
/// From so many hundredths of the first threshold on it is waited for: one more request may pass that.
const WAITS_FROM: u64 = 80;

/// What the end of a record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Tokens in use.
    pub used: u64,
    /// Tokens that fit, where the record says it.
    pub window: Option<u64>,
    /// The model that answered, where the record says it.
    pub model: Option<String>,
    /// Whether the operations that have just ended are in the record.
    pub is_current: bool,
}

impl Found {
    /// What one line says, unless it counts nothing.
    fn of(used: u64, model: Option<String>) -> Option<Self> {
        (used > 0).then(|| Self { used, model, ..Self::default() })
    }
}

/// What is known before a record is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// Tokens that fit.
    pub window: u64,
    /// The first threshold, in thousandths of that.
    pub warning: u32,
    /// Tokens that were in use at the call before.
    pub used: u64,
}

/// What a record says once it has the operations that have just ended. A record that is behind is waited
/// for only where the first threshold is near, or where it has said nothing new since the call before: then
/// a whole request is missing, or more.
pub fn in_time(
    before: Before,
    mut look: impl FnMut() -> Option<Found>,
    mut wait: impl FnMut(),
) -> Option<Found> {
    let mut found = look()?;
    for _ in 0..LOOKS_MAX {
        let window = found.window.unwrap_or(before.window);
        let near = window.saturating_mul(u64::from(before.warning)).saturating_mul(WAITS_FROM);
        let is_far = found.used.saturating_mul(1000 * 100) < near && found.used != before.used;
        if found.is_current || is_far {
            break;
        }
        wait();
        found = look()?;
    }
    Some(found)
}

/// Tokens of a request to Claude.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Claude {
    #[serde(rename = "input_tokens")]
    fresh: u64,
    #[serde(rename = "cache_read_input_tokens")]
    cached: u64,
    #[serde(rename = "cache_creation_input_tokens")]
    created: u64,
}

impl Claude {
    pub(super) fn total(&self) -> u64 {
        self.fresh + self.cached + self.created
    }
}

/// A line of Claude Code's record.
#[derive(Deserialize)]
struct ClaudeLine {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default, rename = "isSidechain")]
    is_side: bool,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Claude>,
    model: Option<String>,
}

/// A line of Codex's record.
#[derive(Deserialize)]
struct CodexLine {
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    info: Option<Info>,
    usage: Option<Request>,
}

#[derive(Deserialize)]
struct Info {
    last_token_usage: Request,
    model_context_window: Option<u64>,
}

#[derive(Deserialize)]
struct Request {
    input_tokens: u64,
}

/// A line of Gemini CLI's record.
#[derive(Deserialize)]
struct GeminiLine {
    tokens: Option<Sent>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Sent {
    input: u64,
}

/// Tokens in use and, where the record says it, how many fit and which model answered: from the last
/// lines of a record, whose first one may be cut. Nothing if none of them says it.
pub fn in_transcript(caller: Caller, tail: &str) -> Option<Found> {
    let lines = || tail.lines().rev();
    match caller {
        Caller::Claude => lines().filter(|line| line.contains("\"usage\"")).find_map(claude),
        Caller::Codex => {
            let (used, window) = lines().find_map(codex)?;
            let window = window.or_else(|| lines().find_map(|line| codex(line)?.1));
            Some(Found { used, window, ..Found::default() })
        }
        Caller::Gemini => lines().filter(|line| line.contains("\"tokens\"")).find_map(gemini),
        Caller::Opencode => None,
    }
}

fn claude(line: &str) -> Option<Found> {
    let line: ClaudeLine = serde_json::from_str(line).ok()?;
    if line.kind != "assistant" || line.is_side {
        return None;
    }
    let message = line.message?;
    Found::of(message.usage?.total(), message.model)
}

fn gemini(line: &str) -> Option<Found> {
    let line: GeminiLine = serde_json::from_str(line).ok()?;
    Found::of(line.tokens?.input, line.model)
}

fn codex(line: &str) -> Option<(u64, Option<u64>)> {
    if !line.contains("\"token_count\"") && !line.contains("\"token_usage_record\"") {
        return None;
    }
    let payload = serde_json::from_str::<CodexLine>(line).ok()?.payload?;
    let found = match (payload.info, payload.usage) {
        (Some(info), _) => (info.last_token_usage.input_tokens, info.model_context_window),
        (None, usage) => (usage?.input_tokens, None),
    };
    (found.0 > 0).then_some(found)
}
