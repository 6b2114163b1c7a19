//! The scripted agent, and who kills what it calls.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::record;
use super::super::scratch::{RUN, Scratch, Started};
use super::super::{Broken, Round};
use super::bank::{DELTA, TASKS, task};
use super::{COMMAND, DRIVER, HOOK, MCP};

/// Sessions that share the work.
const SESSIONS: usize = 4;
/// Times that one call is killed before it is spared: every loop ends.
const KILLS_PER_CALL: u32 = 4;
/// What a call takes before one was measured, in milliseconds.
const CALL_MS: u64 = 60;
/// Tokens at which nothing is due, at which a checkpoint is, and at which the agent stops.
const TOKENS: [u64; 3] = [100_000, 151_000, 182_000];

/// Works through the board, killed now and then.
pub(super) fn works(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let has_mcp = has_mcp(scratch);
    let (driver, typical_ms) = (None, CALL_MS);
    let mut agent = Agent { round, scratch, session: String::new(), has_mcp, driver, typical_ms };
    for number in 0..SESSIONS {
        agent.session(number)?;
    }
    agent.driver_ends()
}

/// Whether the program has a server for MCP.
pub(super) fn has_mcp(scratch: &Scratch) -> bool {
    scratch.piton(&["help", "mcp"]).output().is_ok_and(|output| output.status.success())
}

/// What a client says that calls one tool over MCP.
pub(super) fn mcp_lines(tool: &str, arguments: &Value) -> String {
    let client = json!({"name": "soak", "version": "1"});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}),
    ];
    lines.map(|line| line.to_string() + "\n").concat()
}

struct Agent<'a, 'r> {
    round: &'a mut Round<'r>,
    scratch: &'a Scratch,
    session: String,
    has_mcp: bool,
    /// The driver of the run beside.
    driver: Option<Started>,
    /// How long a call takes that nobody kills, in milliseconds.
    typical_ms: u64,
}

impl Agent<'_, '_> {
    /// One session: it finishes what the last one left, does two more tasks and is stopped in the next.
    fn session(&mut self, number: usize) -> Result<(), Broken> {
        self.session = format!("session-{number}");
        self.hook("SessionStart", None)?;
        let each = TASKS / SESSIONS;
        let own: Vec<usize> = (number * each + 1..=(number + 1) * each).collect();
        for done in own {
            self.task("start", done)?;
            self.collects(done)?;
            self.hook("PostToolBatch", Some(TOKENS[0]))?;
            if self.round.rng.one_in(3) {
                self.checkpoint()?;
            }
            self.task("finish", done)?;
        }
        let next = (number + 1) * each + 1;
        if next > TASKS {
            return self.hook("SessionEnd", None);
        }
        self.task("start", next)?;
        self.collects(next)?;
        self.hook("PostToolBatch", Some(TOKENS[1]))?;
        self.hook("PostToolBatch", Some(TOKENS[2]))?;
        self.hook("Stop", None)?;
        self.hook("SessionEnd", None)
    }

    /// Collects two changes: an entry of the log, and a later task that waits for something. The task
    /// is started in its turn all the same: a change that is made twice would take it back.
    fn collects(&self, number: usize) -> Result<(), Broken> {
        let path = self.scratch.base().join("repo").join(DELTA);
        let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let mut delta: Value = serde_json::from_str(&text).map_err(|e| format!("{DELTA}: {e}"))?;
        let changes = delta["changes"].as_array_mut().ok_or("there are no changes")?;
        let at = format!("{}-{number}", self.session);
        changes.push(json!({"timestamp": at, "file": "progress", "operation": "add", "field": "log", "value": at}));
        if number < TASKS {
            changes.push(json!({"timestamp": at, "file": "taskBoard", "operation": "move", "taskId": task(number + 1), "from": "backlog", "to": "blocked"}));
        }
        fs::write(&path, delta.to_string()).map_err(|e| e.to_string())
    }

    fn task(&mut self, act: &str, number: usize) -> Result<(), Broken> {
        let (id, session) = (task(number), self.session.clone());
        if self.has_mcp && self.round.rng.one_in(2) {
            return self.mcp(&format!("task_{act}"), &json!({"task": id, "session": session}));
        }
        self.call(COMMAND, &["session", "task", act, &id, "--session", &session], "")
    }

    fn checkpoint(&mut self) -> Result<(), Broken> {
        let session = self.session.clone();
        if self.has_mcp && self.round.rng.one_in(2) {
            return self.mcp("checkpoint", &json!({"session": session}));
        }
        self.call(COMMAND, &["session", "checkpoint", "--session", &session], "")
    }

    /// Calls a tool over MCP.
    fn mcp(&mut self, tool: &str, arguments: &Value) -> Result<(), Broken> {
        let input = mcp_lines(tool, arguments);
        self.call(MCP, &["mcp"], &input)
    }

    fn hook(&mut self, event: &str, tokens: Option<u64>) -> Result<(), Broken> {
        let cwd = self.scratch.base().join("repo");
        let mut input = json!({"session_id": self.session, "hook_event_name": event, "cwd": cwd});
        if let Some(tokens) = tokens {
            let record = self.scratch.outside().join("record.jsonl");
            let usage = json!({"input_tokens": tokens});
            let line = json!({"type": "assistant", "message": {"usage": usage}});
            fs::write(&record, format!("{line}\n")).map_err(|e| e.to_string())?;
            input["transcript_path"] = json!(record);
        }
        self.call(HOOK, &["hook", "claude"], &input.to_string())
    }

    /// Calls the program until it was not killed; it must succeed then.
    fn call(&mut self, what: &'static str, words: &[&str], input: &str) -> Result<(), Broken> {
        for time in 0.. {
            self.drives()?;
            let begun = Instant::now();
            let mut call = self.scratch.start_with(words, input)?;
            let is_spared = time >= KILLS_PER_CALL || self.round.rng.one_in(3);
            let moment = Duration::from_millis(self.typical_ms * 5 / 4);
            let moment =
                self.round.rng.millis_below(u64::try_from(moment.as_millis()).unwrap_or(1));
            let ended = if is_spared { None } else { call.wait_for(moment)? };
            let ended = match ended {
                Some(ended) => ended,
                None if is_spared => call.wait()?,
                None => {
                    let killed = call.kill()?;
                    if killed.killed() {
                        self.round.tally.kills += 1;
                        self.round.tally.met(&[what]);
                        continue;
                    }
                    killed
                }
            };
            if ended.code() != 0 {
                return Err(format!("piton {} ended with {}", words.join(" "), ended.word()));
            }
            let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(CALL_MS);
            self.typical_ms = (3 * self.typical_ms + took.max(4)) / 4;
            return Ok(());
        }
        Ok(())
    }

    /// Keeps a driver at work beside, and kills it now and then.
    fn drives(&mut self) -> Result<(), Broken> {
        if let Some(driver) = &mut self.driver {
            if driver.is_over()? {
                self.driver = None;
            } else if self.round.rng.one_in(5) && driver.kill()?.killed() {
                self.round.tally.kills += 1;
                self.round.tally.met(&[DRIVER]);
                self.round.tally.hits += u64::from(record::running(self.scratch) > 0);
                self.driver = None;
            }
            return Ok(());
        }
        if record::status(self.scratch).as_deref() != Some("complete") && self.round.rng.one_in(2) {
            self.driver = Some(self.scratch.start(&self.words())?);
        }
        Ok(())
    }

    fn words(&self) -> Vec<&'static str> {
        match record::status(self.scratch) {
            None => Scratch::run_words().to_vec(),
            Some(_) => vec!["resume", RUN],
        }
    }

    /// Lets the run beside end.
    fn driver_ends(&mut self) -> Result<(), Broken> {
        if let Some(driver) = self.driver.take() {
            driver.wait()?;
        }
        let ended = self.scratch.start(&self.words())?.wait()?;
        if ended.code() == 0 {
            Ok(())
        } else {
            Err(format!("the driver ended with {}", ended.word()))
        }
    }
}
