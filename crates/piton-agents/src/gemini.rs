//! Gemini CLI: `gemini -o stream-json`.
//!
//! Its sums come with the final event alone; what each request used is in the file in which it records
//! the session. It exits with 0 and without a final event when a signal ends it, so only the final event
//! is a success.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::program::{Ask, Halt, Invocation, Permissions, Program};
use crate::setup::{Record, Stop, StopPlace, extension, hook};
use crate::stream::{Clock, Reader, Said, Tokens, Totals, doing};
use crate::verdict::{Exit, Verdict, denied, from_status, from_words, stopped_by_own_hook};

/// Gemini CLI.
#[derive(Debug)]
pub struct Gemini;

impl Program for Gemini {
    fn id(&self) -> &'static str {
        "gemini"
    }

    fn binary(&self) -> &'static str {
        "gemini"
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

    /// An extension: the only place for hooks that belongs neither to the project nor to root. It does
    /// nothing for a process that Piton did not start.
    fn stop(&self, place: &StopPlace<'_>) -> Stop {
        // Not the one of `piton init`, which a person may have.
        let folder = format!("{}/.gemini/extensions/piton-stop", place.home);
        Stop::new(place)
            .file(&format!("{folder}/gemini-extension.json"), &extension())
            .file(&format!("{folder}/hooks/hooks.json"), &hook("AfterTool"))
    }

    fn record(&self, session: &str) -> Option<Record> {
        let ending = format!("-{}.jsonl", session.split('-').next()?);
        Some(Record { variable: "GEMINI_CLI_HOME", usual: "", folder: ".gemini/tmp", ending })
    }

    fn window(&self) -> u64 {
        1_048_576
    }
}

fn common(ask: &Ask<'_>) -> Invocation {
    let mode = match ask.permissions {
        Permissions::Own => None,
        Permissions::Edits => Some("auto_edit"),
        Permissions::All => Some("yolo"),
    };
    // Without a terminal nobody is asked, so it offers the model no shell that is not allowed.
    let tools = ask.allowed("run_shell_command");
    Invocation::new(ask, "gemini")
        .arg(&["-o", "stream-json"])
        .option("--approval-mode", mode)
        .option("--allowed-tools", tools.as_deref())
        .option("-m", ask.model)
        // Its wrapper would not pass the signal to end on.
        .env("GEMINI_CLI_NO_RELAUNCH", "true")
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
}

#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    role: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    parameters: Option<Parameters<'a>>,
    #[serde(default, borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<Problem<'a>>,
    #[serde(default)]
    stats: Option<Stats>,
}

#[derive(Debug, Deserialize)]
struct Parameters<'a> {
    #[serde(default, borrow)]
    command: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    file_path: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Problem<'a> {
    #[serde(default, rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    message: Cow<'a, str>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Stats {
    /// Sent and not cached.
    input: u64,
    cached: u64,
    output_tokens: u64,
}

/// A line of the recorded session.
#[derive(Debug, Deserialize)]
struct Recorded<'a> {
    #[serde(default, borrow)]
    id: Cow<'a, str>,
    #[serde(default, rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    tokens: Option<Used>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Used {
    /// Sent, the cached ones included.
    input: u64,
    cached: u64,
    output: u64,
    thoughts: u64,
}

/// What the API answered, where the program passes it on.
#[derive(Debug, Deserialize)]
struct ApiError {
    error: ApiProblem,
}

#[derive(Debug, Deserialize)]
struct ApiProblem {
    code: u16,
}

/// What the stream has said so far.
#[derive(Debug, Default)]
struct Stream {
    totals: Totals,
    /// What each recorded answer used. A line comes again when the tools of its answer have ended.
    recorded: BTreeMap<String, Used>,
    has_totals: bool,
    has_begun: bool,
    in_flight: Vec<(String, String)>,
    /// What a hook said that stopped it, ours or another.
    stopped: Option<String>,
    /// Tools that it was not allowed to use.
    denied: Vec<String>,
    /// Whether it could not reach all its MCP servers.
    lacks_servers: bool,
    end: Option<Result<(), String>>,
}

impl Reader for Stream {
    fn line(&mut self, line: &str) -> Vec<Said> {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return Vec::new() };
        let text = |value: &Option<Cow<'_, str>>| value.as_deref().unwrap_or_default().to_owned();
        match &*line.kind {
            "init" => {
                self.has_begun = true;
                let session = line.session_id.map(|id| Said::Session(id.into_owned()));
                let model = line.model.map(|model| Said::Model(model.into_owned()));
                session.into_iter().chain(model).collect()
            }
            "message" if line.role.as_deref() == Some("assistant") => {
                doing(&[&text(&line.content)]).into_iter().collect()
            }
            "tool_use" => {
                let what = line.parameters.as_ref().and_then(|parameters| {
                    parameters.command.as_deref().or(parameters.file_path.as_deref())
                });
                let said = doing(&[&text(&line.tool_name), what.unwrap_or_default()]);
                if let (Some(id), Some(Said::Doing(what))) = (&line.tool_id, &said) {
                    self.in_flight.push((id.clone().into_owned(), what.clone()));
                }
                said.into_iter().collect()
            }
            "tool_result" => {
                let ended = text(&line.tool_id);
                let operation = self.in_flight.iter().find(|(id, _)| *id == ended);
                let operation = operation.map(|(_, what)| what.clone()).unwrap_or_default();
                self.in_flight.retain(|(id, _)| *id != ended);
                match line.error {
                    Some(error) if error.kind == "stop_execution" => {
                        self.stopped = Some(error.message.into_owned());
                        Vec::new()
                    }
                    Some(error) if is_denial(&error) => {
                        self.denied.push(operation.clone());
                        vec![Said::Denied(operation)]
                    }
                    _ => Vec::new(),
                }
            }
            "result" => {
                if let Some(stats) = line.stats {
                    self.has_totals = true;
                    let Stats { input, cached, output_tokens } = stats;
                    self.totals.tokens = Tokens { input, cached, output: output_tokens };
                }
                let failed = line.status.as_deref() != Some("success");
                let said = line.error.map(|error| error.message.into_owned()).unwrap_or_default();
                self.end = Some(if failed { Err(said) } else { Ok(()) });
                vec![Said::Finished]
            }
            _ => Vec::new(),
        }
    }

    fn record(&mut self, line: &str) -> Vec<Said> {
        let Ok(line) = serde_json::from_str::<Recorded<'_>>(line) else { return Vec::new() };
        let (true, Some(used)) = (line.kind == "gemini", line.tokens) else { return Vec::new() };
        let is_new = self.recorded.insert(line.id.into_owned(), used).is_none();
        if !is_new {
            return Vec::new();
        }
        self.totals.requests += 1;
        self.totals.context = Some(used.input);
        vec![Said::Context(used.input)]
    }

    fn totals(&self) -> Totals {
        let mut totals = self.totals.clone();
        if !self.has_totals {
            for used in self.recorded.values() {
                let input = used.input.saturating_sub(used.cached);
                let output = used.output.saturating_add(used.thoughts);
                totals.tokens += Tokens { input, cached: used.cached, output };
            }
        }
        totals
    }

    fn verdict(&self, exit: Exit, errors: &[String], clock: Clock) -> Verdict {
        match &self.end {
            Some(Ok(())) => match &self.stopped {
                Some(_) if exit.is_asked => Verdict::Stopped,
                Some(why) => stopped_by_own_hook(why),
                None if !exit.is_zero() => Verdict::Failed(how(exit)),
                None => {
                    let missed = self.lacks_servers.then(|| {
                        Verdict::Denied(format!("an MCP server did not start ({LISTS_SERVERS})"))
                    });
                    denied(&self.denied).or(missed).unwrap_or(Verdict::Succeeded)
                }
            },
            Some(Err(said)) => failed(said, clock),
            None if !self.has_begun && exit.code.is_some_and(|code| code != 0) => {
                from_words(&errors.join("\n"), clock)
            }
            None if exit.is_asked => Verdict::Stopped,
            None => Verdict::Interrupted("it ended without a result".to_owned()),
        }
    }

    fn aside(&mut self, line: &str) {
        self.lacks_servers |= line.starts_with(LACKS_SERVERS);
    }

    fn in_flight(&self) -> Vec<String> {
        self.in_flight.iter().map(|(_, what)| what.clone()).collect()
    }
}

/// What it says of servers that it could not reach; it does not name them.
const LACKS_SERVERS: &str = "MCP issues detected";
/// What names them.
const LISTS_SERVERS: &str = "`gemini mcp list` says which";

/// What Gemini CLI says of a tool that needs somebody who confirms it, or that its rules forbid.
const DENIALS: [&str; 3] =
    ["requires user confirmation", "denied by policy", "not supported in non-interactive mode"];

fn is_denial(error: &Problem<'_>) -> bool {
    let said = error.message.to_lowercase();
    error.kind == "policy_violation" || DENIALS.iter().any(|sign| said.contains(sign))
}

fn how(exit: Exit) -> String {
    exit.code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit code {code}"))
}

/// What a failure means: by the status that the API gave, else by its words. A used-up quota of the day
/// has no time at which it ends.
fn failed(said: &str, clock: Clock) -> Verdict {
    let body = said.find('{').zip(said.rfind('}')).and_then(|(from, to)| said.get(from..=to));
    let passed_on = body.and_then(|body| serde_json::from_str::<ApiError>(body).ok());
    if let Some(ApiError { error }) = passed_on {
        return from_status(error.code, said, clock);
    }
    match from_words(said, clock) {
        Verdict::Failed(said) if said.to_lowercase().contains("quota") => {
            Verdict::Limited { until: None, said }
        }
        other => other,
    }
}
