//! Codex: `codex exec --json`.
//!
//! The stream has no counts per request, and its sum is that of the whole thread. Both are in the file
//! in which Codex records the thread, which is read beside the stream where it can be found. Warnings
//! come as items of type `error` and are no failure.

use std::borrow::Cow;

use piton_core::Timestamp;
use serde::Deserialize;

use crate::mcp::{self, Mcp, Servers};
use crate::program::{Ask, Halt, Invocation, Permissions, Program};
use crate::setup::Record;
use crate::stream::{Clock, Reader, Said, Tokens, Totals, doing};
use crate::verdict::{Exit, Verdict, denied, from_words};

/// Codex.
#[derive(Debug)]
pub struct Codex;

impl Program for Codex {
    fn id(&self) -> &'static str {
        "codex"
    }

    fn binary(&self) -> &'static str {
        "codex"
    }

    fn start(&self, ask: &Ask<'_>) -> Invocation {
        // A dash: the prompt comes on standard input.
        common(ask, &["exec"]).own(ask.args).arg(&["-"])
    }

    fn resume(&self, session: &str, ask: &Ask<'_>) -> Option<Invocation> {
        let continued = common(ask, &["exec"]).own(ask.args).arg(&["resume", session, "-"]);
        Some(continued.session(session))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Stream::default())
    }

    fn halt(&self) -> Halt {
        Halt::Interrupt
    }

    fn record(&self, session: &str) -> Option<Record> {
        let ending = format!("{session}.jsonl");
        Some(Record { variable: "CODEX_HOME", usual: ".codex", folder: "sessions", ending })
    }

    fn mcp(&self, _: &str, servers: &Servers, _: &str, permissions: Permissions) -> Mcp {
        Mcp { args: mcp::codex(servers, permissions != Permissions::Own), ..Mcp::default() }
    }

    fn requires(&self, servers: &[String]) -> Vec<String> {
        mcp::codex_requires(servers)
    }

    fn window(&self) -> u64 {
        258_400
    }
}

fn common(ask: &Ask<'_>, words: &[&str]) -> Invocation {
    let begun = Invocation::new(ask, "codex").arg(words).arg(&["--json", "--skip-git-repo-check"]);
    let begun = match ask.permissions {
        Permissions::Own => begun,
        Permissions::Edits => begun.arg(&["--sandbox", "workspace-write"]),
        Permissions::All => begun.arg(&["--sandbox", "danger-full-access"]),
    };
    begun.option("--model", ask.model)
}

#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    thread_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    item: Option<Item<'a>>,
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<Problem<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Item<'a> {
    #[serde(default, borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    command: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    server: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    query: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<Problem<'a>>,
}

impl Item<'_> {
    /// Whether it was not allowed. An operation that only failed was.
    fn is_denied(&self) -> bool {
        let said =
            self.error.as_ref().map(|error| error.message.to_lowercase()).unwrap_or_default();
        let is_told = DENIALS.iter().any(|sign| said.contains(sign));
        match self.status.as_deref() {
            Some("declined") => true,
            Some("failed") => is_told,
            _ => false,
        }
    }
}

/// What Codex says of a call of an MCP server that nobody approved.
const DENIALS: [&str; 3] = ["requires approval", "user rejected", "user cancelled"];

#[derive(Debug, Deserialize)]
struct Problem<'a> {
    #[serde(default, borrow)]
    message: Cow<'a, str>,
}

#[expect(clippy::struct_field_names, reason = "the program's own names")]
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
}

impl Usage {
    fn tokens(self) -> Tokens {
        let input = self.input_tokens.saturating_sub(self.cached_input_tokens);
        Tokens { input, cached: self.cached_input_tokens, output: self.output_tokens }
    }
}

/// A line of the recorded thread.
#[derive(Debug, Deserialize)]
struct Recorded<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    payload: Option<Payload<'a>>,
}

#[derive(Debug, Deserialize)]
struct Payload<'a> {
    #[serde(default, rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    response_id: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    info: Option<Info>,
    #[serde(default)]
    rate_limits: Option<RateLimits>,
}

#[derive(Debug, Deserialize)]
struct Info {
    #[serde(default)]
    last_token_usage: Usage,
    #[serde(default)]
    model_context_window: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct RateLimits {
    #[serde(default)]
    primary: Option<Window>,
    #[serde(default)]
    secondary: Option<Window>,
}

#[derive(Debug, Deserialize)]
struct Window {
    #[serde(default)]
    used_percent: f64,
    /// Seconds since the Unix epoch.
    #[serde(default)]
    resets_at: Option<i64>,
}

/// A share of a limit at which requests are refused.
const USED_UP_PERCENT: f64 = 100.0;

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Stream {
    session: Option<String>,
    totals: Totals,
    /// The sum for the thread at its last turn; used where the thread's record cannot be read.
    thread: Option<Tokens>,
    in_flight: Vec<(String, String)>,
    resets: Option<Timestamp>,
    failed: Option<String>,
    is_complete: bool,
    /// Operations that it was not allowed.
    denied: Vec<String>,
}

impl Stream {
    fn item(&mut self, item: &Item<'_>, has_begun: bool) -> Option<Said> {
        let word = |value: &Option<Cow<'_, str>>| value.as_deref().unwrap_or_default().to_owned();
        let said = match &*item.kind {
            "agent_message" | "reasoning" => return doing(&[&word(&item.text)]),
            "command_execution" => doing(&["Bash", &word(&item.command)]),
            "mcp_tool_call" => doing(&[&word(&item.server), &word(&item.tool)]),
            "web_search" => doing(&["search", &word(&item.query)]),
            "error" => return None,
            other => doing(&[&other.replace('_', " ")]),
        };
        self.in_flight.retain(|(id, _)| *id != item.id);
        if let (Some(Said::Doing(line)), true) = (&said, has_begun) {
            self.in_flight.push((item.id.clone().into_owned(), line.clone()));
        }
        if let (Some(Said::Doing(line)), true) = (&said, !has_begun && item.is_denied()) {
            self.denied.push(line.clone());
            return Some(Said::Denied(line.clone()));
        }
        said.filter(|_| has_begun)
    }
}

impl Reader for Stream {
    fn line(&mut self, line: &str) -> Vec<Said> {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return Vec::new() };
        let said = match &*line.kind {
            "thread.started" => line.thread_id.map(|id| {
                self.session = Some(id.clone().into_owned());
                Said::Session(id.into_owned())
            }),
            "item.started" => line.item.and_then(|item| self.item(&item, true)),
            "item.completed" => line.item.and_then(|item| self.item(&item, false)),
            "turn.started" => {
                (self.is_complete, self.failed) = (false, None);
                None
            }
            "turn.completed" => {
                self.is_complete = true;
                self.thread = line.usage.map(Usage::tokens).or(self.thread);
                Some(Said::Finished)
            }
            "turn.failed" => {
                let said = line.error.map(|error| error.message.into_owned());
                self.failed = said.or_else(|| Some(String::new()));
                Some(Said::Finished)
            }
            "error" => line.message.map(|message| Said::Retrying(message.into_owned())),
            _ => None,
        };
        said.into_iter().collect()
    }

    fn record(&mut self, line: &str) -> Vec<Said> {
        let Ok(line) = serde_json::from_str::<Recorded<'_>>(line) else { return Vec::new() };
        let Some(payload) = line.payload else { return Vec::new() };
        let mut said = Vec::new();
        if line.kind == "token_usage_record" {
            if let (Some(usage), Some(_)) = (payload.usage, &payload.response_id) {
                self.totals.tokens += usage.tokens();
                self.totals.requests += 1;
                self.totals.context = Some(usage.input_tokens);
                said.push(Said::Context(usage.input_tokens));
            }
        } else if payload.kind.as_deref() == Some("token_count") {
            if let Some(info) = payload.info {
                self.totals.window = info.model_context_window.or(self.totals.window);
                let context = info.last_token_usage.input_tokens;
                if context > 0 && self.totals.context != Some(context) {
                    self.totals.context = Some(context);
                    said.push(Said::Context(context));
                }
            }
            let limits = payload.rate_limits.into_iter();
            let windows = limits.flat_map(|l| l.primary.into_iter().chain(l.secondary));
            let used_up = windows.filter(|window| window.used_percent >= USED_UP_PERCENT);
            let resets = used_up.filter_map(|window| window.resets_at).max();
            self.resets = resets.map(|secs| Timestamp(secs.saturating_mul(1000)));
        }
        said
    }

    fn totals(&self) -> Totals {
        let mut totals = self.totals.clone();
        if totals.requests == 0 {
            totals.tokens = self.thread.unwrap_or_default();
        }
        totals
    }

    fn verdict(&self, exit: Exit, errors: &[String], clock: Clock) -> Verdict {
        match &self.failed {
            Some(said) => match from_words(said, clock) {
                Verdict::Limited { until, said } => {
                    Verdict::Limited { until: self.resets.or(until), said }
                }
                other => other,
            },
            None if self.is_complete && exit.is_zero() => {
                denied(&self.denied).unwrap_or(Verdict::Succeeded)
            }
            None if exit.is_asked => Verdict::Stopped,
            None if self.session.is_none() && exit.code.is_some_and(|code| code != 0) => {
                from_words(&errors.join("\n"), clock)
            }
            None => Verdict::Interrupted("it ended before its turn was complete".to_owned()),
        }
    }

    fn in_flight(&self) -> Vec<String> {
        self.in_flight.iter().map(|(_, what)| what.clone()).collect()
    }
}
