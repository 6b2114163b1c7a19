//! Claude Code: `claude -p` with a stream of JSON lines.
//!
//! Context is counted per request, from the last message of the agent itself: sums in the final event
//! add up requests, and messages of subagents fill other windows. The order of keys varies.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use piton_core::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mcp::{Mcp, Servers};
use crate::program::{Ask, Halt, Invocation, MCP_TOOL, Permissions, Program};
use crate::setup::{Stop, StopPlace, hook};
use crate::stream::{Clock, Reader, Said, Tokens, Totals, doing, micros};
use crate::verdict::{
    Exit, Verdict, denied, from_status, from_words, stopped_by_own_hook, without_servers,
};

/// Claude Code.
#[derive(Debug)]
pub struct Claude;

impl Program for Claude {
    fn id(&self) -> &'static str {
        "claude"
    }

    fn binary(&self) -> &'static str {
        "claude"
    }

    fn start(&self, ask: &Ask<'_>) -> Invocation {
        let id = (!ask.session.is_empty()).then_some(ask.session);
        common(ask).option("--session-id", id).own(ask.args).session(ask.session)
    }

    fn resume(&self, session: &str, ask: &Ask<'_>) -> Option<Invocation> {
        Some(common(ask).arg(&["--resume", session]).own(ask.args).session(session))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Stream::default())
    }

    fn halt(&self) -> Halt {
        Halt::Hook
    }

    fn stop(&self, place: &StopPlace<'_>) -> Stop {
        let path = format!("{}/claude-settings.json", place.folder);
        // Once for all tools of an answer, when the last of them has ended.
        let stop = Stop::new(place).file(&path, &hook("PostToolBatch"));
        Stop { settings: Some(path), ..stop }
    }

    fn mcp(&self, file: &str, servers: &Servers, _: &str, _: Permissions) -> Mcp {
        let tools = servers.keys().map(|name| format!("{MCP_TOOL}{name}")).collect();
        Mcp { args: vec!["--mcp-config".to_owned(), file.to_owned()], tools, ..Mcp::default() }
    }

    fn window(&self) -> u64 {
        200_000
    }
}

fn common(ask: &Ask<'_>) -> Invocation {
    let mode = match ask.permissions {
        Permissions::Own => None,
        Permissions::Edits => Some("acceptEdits"),
        Permissions::All => Some("bypassPermissions"),
    };
    let start = Invocation::new(ask, "claude");
    // Without --verbose the program refuses the stream.
    start
        .arg(&["-p", "--output-format", "stream-json", "--verbose"])
        .option("--model", ask.model)
        .option("--permission-mode", mode)
        .option("--allowedTools", ask.allowed("Bash").as_deref())
        .option("--settings", ask.settings)
}

/// A line of the stream: the fields of all events that matter here.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    subtype: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    mcp_servers: Vec<Server<'a>>,
    #[serde(default, borrow)]
    message: Option<&'a RawValue>,
    #[serde(default, borrow)]
    parent_tool_use_id: Option<Cow<'a, str>>,
    #[serde(default)]
    rate_limit_info: Option<RateLimit>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    api_error_status: Option<u16>,
    #[serde(default, borrow)]
    api_error: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    terminal_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    result: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    errors: Vec<Cow<'a, str>>,
    #[serde(default, borrow)]
    permission_denials: Vec<Denial<'a>>,
    #[serde(default, borrow, rename = "modelUsage")]
    model_usage: BTreeMap<Cow<'a, str>, ModelUsage>,
    #[serde(default, borrow)]
    model_usage_since_last_result: Option<BTreeMap<Cow<'a, str>, ModelUsage>>,
}

#[derive(Debug, Deserialize)]
struct Server<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, borrow)]
    status: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct Denial<'a> {
    #[serde(default, borrow)]
    tool_name: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RateLimit {
    #[serde(default)]
    status: String,
    /// Seconds since the Unix epoch.
    #[serde(default)]
    resets_at: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: f64,
    context_window: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(default, borrow)]
    id: Cow<'a, str>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
}

#[expect(clippy::struct_field_names, reason = "the program's own names")]
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

#[derive(Debug, Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    input: Option<Input<'a>>,
}

/// The inputs of tools that tell a person most.
#[derive(Debug, Deserialize)]
struct Input<'a> {
    #[serde(default, borrow)]
    command: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    file_path: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pattern: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    description: Option<Cow<'a, str>>,
}

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Stream {
    session: Option<String>,
    totals: Totals,
    /// Messages that were counted: each content block comes as an event of its own.
    counted: BTreeSet<String>,
    in_flight: Vec<(String, String)>,
    /// When the account's limit ends, as the program says it.
    resets: Option<Timestamp>,
    is_rejected: bool,
    denied: Vec<String>,
    dead_servers: Vec<String>,
    end: Option<End>,
}

/// The final event.
#[derive(Debug, Default)]
struct End {
    is_error: bool,
    subtype: String,
    reason: String,
    status: Option<u16>,
    error: String,
    said: String,
}

impl Stream {
    fn assistant(&mut self, line: &Line<'_>) -> Vec<Said> {
        let Some(message) = parsed::<Message<'_>>(line.message) else { return Vec::new() };
        let is_own = line.parent_tool_use_id.is_none();
        let mut said = Vec::new();
        let is_new = !message.id.is_empty() && self.counted.insert(message.id.clone().into_owned());
        if let Some(usage) = message.usage {
            let sent = usage.input_tokens + usage.cache_creation_input_tokens;
            let context = sent + usage.cache_read_input_tokens;
            // What the program itself writes in the place of an answer has no tokens.
            if is_new && context > 0 {
                let (cached, output) = (usage.cache_read_input_tokens, usage.output_tokens);
                self.totals.tokens += Tokens { input: sent, cached, output };
                self.totals.requests += 1;
            }
            if is_own && context > 0 && self.totals.context != Some(context) {
                self.totals.context = Some(context);
                said.push(Said::Context(context));
            }
        }
        for block in parsed::<Vec<Block<'_>>>(message.content).unwrap_or_default() {
            said.extend(self.block(&block, is_own));
        }
        said
    }

    fn block(&mut self, block: &Block<'_>, is_own: bool) -> Option<Said> {
        match (&*block.kind, &block.name) {
            ("tool_use", Some(name)) => {
                let what = block.input.as_ref().and_then(|input| {
                    let known = [&input.command, &input.file_path, &input.pattern];
                    known.into_iter().chain([&input.description]).find_map(Option::as_deref)
                });
                let said = doing(&[name, what.unwrap_or_default()]);
                if let (Some(id), Some(Said::Doing(line)), true) = (&block.id, &said, is_own) {
                    self.in_flight.push((id.clone().into_owned(), line.clone()));
                }
                said
            }
            ("text", _) => doing(&[block.text.as_deref().unwrap_or_default()]),
            _ => None,
        }
    }

    /// Results of tools: these operations have ended.
    fn results(&mut self, line: &Line<'_>) {
        let message = parsed::<Message<'_>>(line.message);
        let blocks = message.and_then(|message| parsed::<Vec<Block<'_>>>(message.content));
        for ended in blocks.unwrap_or_default().iter().filter_map(|b| b.tool_use_id.as_deref()) {
            self.in_flight.retain(|(id, _)| id != ended);
        }
    }

    fn system(&mut self, line: &Line<'_>) -> Vec<Said> {
        match line.subtype.as_deref() {
            Some("init") => {
                let dead = line.mcp_servers.iter().filter(|server| server.status == "failed");
                self.dead_servers.extend(dead.map(|server| server.name.clone().into_owned()));
                line.model.iter().map(|model| Said::Model(model.clone().into_owned())).collect()
            }
            Some("api_retry") => {
                let error = parsed::<Cow<'_, str>>(line.error);
                vec![Said::Retrying(error.unwrap_or_default().into_owned())]
            }
            Some("compact_boundary") => vec![Said::Compacted],
            _ => Vec::new(),
        }
    }

    fn limit(&mut self, info: &RateLimit) -> Vec<Said> {
        let until = info.resets_at.map(|secs| Timestamp(secs.saturating_mul(1000)));
        self.is_rejected = info.status == "rejected";
        if self.is_rejected {
            self.resets = until;
        }
        let is_reached = self.is_rejected;
        let is_told = is_reached || info.status == "allowed_warning";
        is_told.then_some(Said::Limit { is_reached, until }).into_iter().collect()
    }

    fn finish(&mut self, line: &Line<'_>) -> Vec<Said> {
        let windows = line.model_usage.values().filter_map(|usage| usage.context_window);
        self.totals.window = windows.max().or(self.totals.window);
        // What this process used: the other table goes on adding up over all resumes of the session.
        if let Some(used) = line.model_usage_since_last_result.as_ref() {
            let mut tokens = Tokens::default();
            for usage in used.values() {
                tokens += Tokens {
                    input: usage.input_tokens + usage.cache_creation_input_tokens,
                    cached: usage.cache_read_input_tokens,
                    output: usage.output_tokens,
                };
            }
            if tokens.total() >= self.totals.tokens.total() {
                self.totals.tokens = tokens;
            }
            self.totals.cost_micros = micros(used.values().map(|usage| usage.cost_usd).sum());
        }
        let names = line.permission_denials.iter().map(|d| d.tool_name.clone().into_owned());
        self.denied = names.collect();
        let text = |value: &Option<Cow<'_, str>>| value.as_deref().unwrap_or_default().to_owned();
        let mut said = text(&line.result);
        if said.is_empty() {
            said = line.errors.join("; ");
        }
        self.end = Some(End {
            is_error: line.is_error,
            subtype: text(&line.subtype),
            reason: text(&line.terminal_reason),
            status: line.api_error_status,
            error: text(&line.api_error),
            said,
        });
        let denied = self.denied.iter().map(|tool| Said::Denied(tool.clone()));
        denied.chain([Said::Finished]).collect()
    }
}

impl Reader for Stream {
    fn line(&mut self, line: &str) -> Vec<Said> {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return Vec::new() };
        let mut said = Vec::new();
        if let (Some(id), None) = (&line.session_id, &self.session) {
            self.session = Some(id.clone().into_owned());
            said.push(Said::Session(id.clone().into_owned()));
        }
        said.extend(match &*line.kind {
            "assistant" => self.assistant(&line),
            "system" => self.system(&line),
            "result" => self.finish(&line),
            "rate_limit_event" => {
                line.rate_limit_info.as_ref().map(|info| self.limit(info)).unwrap_or_default()
            }
            "user" => {
                self.results(&line);
                Vec::new()
            }
            _ => Vec::new(),
        });
        said
    }

    fn totals(&self) -> Totals {
        self.totals.clone()
    }

    fn verdict(&self, exit: Exit, errors: &[String], clock: Clock) -> Verdict {
        let Some(end) = &self.end else {
            let said = errors.join("\n");
            // It refused to begin: a wrong option, an id that is in use.
            if exit.code == Some(1) && self.session.is_none() && !said.is_empty() {
                return from_words(&said, clock);
            }
            return Verdict::Interrupted("it ended without a result".to_owned());
        };
        let said = if end.said.is_empty() { end.subtype.clone() } else { end.said.clone() };
        match end.reason.as_str() {
            "hook_stopped" if exit.is_asked => return Verdict::Stopped,
            "hook_stopped" => return stopped_by_own_hook(&said),
            "aborted_tools" => return Verdict::Interrupted(said),
            "prompt_too_long" | "rapid_refill_breaker" => return Verdict::Full(said),
            "max_turns" | "budget_exhausted" => return Verdict::Spent(said),
            _ => {}
        }
        if end.subtype == "error_during_execution" {
            return Verdict::Interrupted(said);
        }
        if end.error == "usage_limit_reached" || self.is_rejected && end.status == Some(429) {
            let words = match from_words(&said, clock) {
                Verdict::Limited { until, .. } => until,
                _ => None,
            };
            return Verdict::Limited { until: self.resets.or(words), said };
        }
        if end.is_error || !exit.is_zero() {
            let by_words = || from_words(&said, clock);
            return end.status.map_or_else(by_words, |status| from_status(status, &said, clock));
        }
        let missed = || without_servers(&self.dead_servers);
        denied(&self.denied).or_else(missed).unwrap_or(Verdict::Succeeded)
    }

    fn in_flight(&self) -> Vec<String> {
        self.in_flight.iter().map(|(_, what)| what.clone()).collect()
    }
}

fn parsed<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}
