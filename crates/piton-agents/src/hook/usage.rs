//! How full a context is, from the end of the record that a program keeps of a session.

use serde::Deserialize;

use super::Caller;

/// Bytes of a record that are read at first: what follows the last answer of a model is mostly shorter.
pub const TAIL_BYTES: u64 = 64 << 10;

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

/// Tokens in use and, where the record says it, how many fit: from the last lines of a record, whose
/// first one may be cut. Nothing if none of them says it.
pub fn in_transcript(caller: Caller, tail: &str) -> Option<(u64, Option<u64>)> {
    let lines = || tail.lines().rev();
    match caller {
        Caller::Claude => lines().filter(|line| line.contains("\"usage\"")).find_map(claude),
        Caller::Codex => {
            let used = lines().find_map(codex)?;
            let window = lines().find_map(|line| codex(line)?.1);
            Some((used.0, used.1.or(window)))
        }
        Caller::Gemini | Caller::Opencode => None,
    }
}

fn claude(line: &str) -> Option<(u64, Option<u64>)> {
    let line: ClaudeLine = serde_json::from_str(line).ok()?;
    if line.kind != "assistant" || line.is_side {
        return None;
    }
    let total = line.message?.usage?.total();
    (total > 0).then_some((total, None))
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
