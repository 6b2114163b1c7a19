//! opencode: `opencode run --format json`.
//!
//! It says nothing before its first step and nothing while it retries. Each step that ends names its
//! tokens. A turn is complete if the last step stopped for a reason other than tools.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mcp::{self, Mcp, Servers};
use crate::program::{Ask, Halt, Invocation, Permissions, Program};
use crate::setup::{STOP_FILE, Stop, StopPlace, plugin};
use crate::stream::{Clock, Reader, Said, Tokens, Totals, doing, micros};
use crate::verdict::{Exit, Verdict, denied, from_status, from_words, without_servers};

/// opencode.
#[derive(Debug)]
pub struct Opencode;

impl Program for Opencode {
    fn id(&self) -> &'static str {
        "opencode"
    }

    fn binary(&self) -> &'static str {
        "opencode"
    }

    fn start(&self, ask: &Ask<'_>) -> Invocation {
        common(ask).own(ask.args)
    }

    fn resume(&self, session: &str, ask: &Ask<'_>) -> Option<Invocation> {
        Some(common(ask).arg(&["-s", session]).own(ask.args).session(session))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Stream::default())
    }

    fn halt(&self) -> Halt {
        Halt::Hook
    }

    /// It loads the plugin from where it lies. At its first plugin it also installs a package into its
    /// folder of settings, for which it needs the network.
    fn stop(&self, place: &StopPlace<'_>) -> Stop {
        let path = format!("{}/opencode-stop.js", place.folder);
        let mut stop = Stop::new(place)
            .file(&path, &PLUGIN.replace("STOP_FILE", STOP_FILE).replace("NO_SERVER", NO_SERVER));
        stop.env.push(("OPENCODE_CONFIG_CONTENT".to_owned(), plugin(&path)));
        stop
    }

    fn mcp(&self, _: &str, servers: &Servers, folder: &str, _: Permissions) -> Mcp {
        let path = format!("{folder}/opencode-mcp.json");
        Mcp {
            env: vec![("OPENCODE_CONFIG".to_owned(), path.clone())],
            files: vec![(path, mcp::opencode(servers))],
            ..Mcp::default()
        }
    }

    fn window(&self) -> u64 {
        200_000
    }
}

/// Ends the turn when a tool has ended; its result stays in the session. It also says which MCP servers
/// did not start: opencode goes on without them and says nothing.
const PLUGIN: &str = r#"import { existsSync } from "node:fs";
let told = false;
export const Stop = async ({ client }) => ({
  "chat.message": async () => {
    if (told) return;
    told = true;
    try {
      const { data } = await client.mcp.status();
      for (const [name, server] of Object.entries(data ?? {}))
        if (server.status === "failed") console.error("NO_SERVER" + name);
    } catch {}
  },
  "tool.execute.after": async ({ sessionID }) => {
    const file = process.env.STOP_FILE;
    if (file && existsSync(file)) await client.session.abort({ path: { id: sessionID } });
  },
});
"#;

/// What the plugin says before the name of a server that did not start.
const NO_SERVER: &str = "piton: no MCP server ";

fn common(ask: &Ask<'_>) -> Invocation {
    let begun = Invocation::new(ask, "opencode").arg(&["run", "--format", "json"]);
    let begun = begun.option("--model", ask.model);
    match ask.permissions {
        Permissions::Own => begun,
        // It has one switch for all of them; a sandbox is up to the user.
        Permissions::Edits | Permissions::All => {
            begun.env("OPENCODE_PERMISSION", r#"{"*":"allow"}"#)
        }
    }
}

#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, rename = "sessionID", borrow)]
    session: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    part: Option<Part<'a>>,
    #[serde(default, borrow)]
    error: Option<Problem<'a>>,
}

#[derive(Debug, Deserialize)]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    state: Option<ToolState<'a>>,
    #[serde(default)]
    tokens: Option<Used>,
    #[serde(default)]
    cost: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct ToolState<'a> {
    #[serde(default, borrow)]
    title: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Used {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: u64,
    write: u64,
}

#[derive(Debug, Deserialize)]
struct Problem<'a> {
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(default, borrow)]
    message: Cow<'a, str>,
    #[serde(default)]
    status_code: Option<u16>,
}

impl ToolState<'_> {
    /// Whether it was not allowed. An operation that only failed was.
    fn is_denied(&self) -> bool {
        let said = self.error.as_deref().unwrap_or_default().to_lowercase();
        self.status.as_deref() == Some("error") && DENIALS.iter().any(|sign| said.contains(sign))
    }
}

/// What opencode says of a tool that nobody or a rule allowed.
const DENIALS: [&str; 2] =
    ["rejected permission to use", "has specified a rule which prevents you from using"];

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Stream {
    session: Option<String>,
    totals: Totals,
    is_complete: bool,
    failed: Option<Failure>,
    /// Operations that it was not allowed.
    denied: Vec<String>,
    dead_servers: Vec<String>,
}

#[derive(Debug, Default)]
struct Failure {
    name: String,
    said: String,
    status: Option<u16>,
}

impl Failure {
    /// Some errors have no message; their name and what comes with it are all that tells of them.
    fn of(problem: &Problem<'_>) -> Self {
        let data = problem.data.map(RawValue::get);
        let details = data.and_then(|data| serde_json::from_str::<Details<'_>>(data).ok());
        let status = details.as_ref().and_then(|details| details.status_code);
        let message = details.map(|details| details.message.into_owned()).unwrap_or_default();
        let name = problem.name.clone().into_owned();
        let said = if message.is_empty() {
            format!("{name} {}", data.unwrap_or_default()).trim().to_owned()
        } else {
            message
        };
        Self { name, said, status }
    }
}

impl Stream {
    fn step_finished(&mut self, part: &Part<'_>) -> Vec<Said> {
        let mut said = Vec::new();
        if let Some(used) = part.tokens {
            let sent = used.input + used.cache.write;
            let context = sent + used.cache.read;
            let output = used.output + used.reasoning;
            self.totals.tokens += Tokens { input: sent, cached: used.cache.read, output };
            self.totals.requests += 1;
            self.totals.context = Some(context);
            said.push(Said::Context(context));
        }
        // A price of nothing is no price: the model is not in its table.
        if let Some(cost) = part.cost.filter(|cost| *cost > 0.0).and_then(micros) {
            self.totals.cost_micros = Some(self.totals.cost_micros.unwrap_or_default() + cost);
        }
        self.is_complete = part.reason.as_deref() != Some("tool-calls");
        if self.is_complete {
            said.push(Said::Finished);
        }
        said
    }
}

impl Reader for Stream {
    fn line(&mut self, line: &str) -> Vec<Said> {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return Vec::new() };
        let mut said = Vec::new();
        if let (Some(id), None) = (&line.session, &self.session) {
            self.session = Some(id.clone().into_owned());
            said.push(Said::Session(id.clone().into_owned()));
        }
        match (&*line.kind, &line.part) {
            ("step_start", _) => self.is_complete = false,
            ("text", Some(part)) => said.extend(doing(&[part.text.as_deref().unwrap_or_default()])),
            ("tool_use", Some(part)) => {
                let title = part.state.as_ref().and_then(|state| state.title.as_deref());
                let tool = part.tool.as_deref().unwrap_or_default();
                if part.state.as_ref().is_some_and(ToolState::is_denied) {
                    self.denied.push(tool.to_owned());
                    said.push(Said::Denied(tool.to_owned()));
                } else {
                    said.extend(doing(&[tool, title.unwrap_or_default()]));
                }
            }
            ("step_finish", Some(part)) => said.extend(self.step_finished(part)),
            ("error", _) => {
                self.failed = Some(line.error.as_ref().map(Failure::of).unwrap_or_default());
            }
            _ => {}
        }
        said
    }

    fn aside(&mut self, line: &str) {
        self.dead_servers.extend(line.strip_prefix(NO_SERVER).map(str::to_owned));
    }

    fn totals(&self) -> Totals {
        self.totals.clone()
    }

    fn verdict(&self, exit: Exit, errors: &[String], clock: Clock) -> Verdict {
        match &self.failed {
            Some(failure) => match failure.name.as_str() {
                "MessageAbortedError" if exit.is_asked => Verdict::Stopped,
                "MessageAbortedError" => Verdict::Interrupted(failure.said.clone()),
                "ContextOverflowError" => Verdict::Full(failure.said.clone()),
                "ProviderAuthError" | "ProviderModelNotFoundError" => {
                    Verdict::Refused(failure.said.clone())
                }
                _ => failure.status.map_or_else(
                    || from_words(&failure.said, clock),
                    |status| from_status(status, &failure.said, clock),
                ),
            },
            None if self.is_complete && exit.is_zero() => {
                let missed = || without_servers(&self.dead_servers);
                denied(&self.denied).or_else(missed).unwrap_or(Verdict::Succeeded)
            }
            None if exit.is_asked => Verdict::Stopped,
            // What it asked about and nobody answered ends the turn.
            None if exit.is_zero() && !self.denied.is_empty() => {
                denied(&self.denied).unwrap_or(Verdict::Succeeded)
            }
            None if self.session.is_none() && exit.code.is_some_and(|code| code != 0) => {
                from_words(&errors.join("\n"), clock)
            }
            None => Verdict::Interrupted("it ended before its turn was complete".to_owned()),
        }
    }
}
