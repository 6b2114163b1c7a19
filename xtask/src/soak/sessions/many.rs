//! Thirty-two agents in one repository at once, each with its hooks, its commands and its calls over MCP.
//!
//! Nobody is killed: what is looked for is a lock that somebody meets, and work that becomes another's.

use std::fs;
use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use super::super::scratch::Scratch;
use super::super::{Broken, Round};
use super::agent::{has_mcp, mcp_lines};

/// Agents at the same time.
const AGENTS: usize = 32;
/// Tokens at which a checkpoint is due, and at which the agent stops.
const TOKENS: [u64; 2] = [151_000, 182_000];
/// The board.
const BOARD: &str = "work/backlog.yaml";

/// One round.
pub(in super::super) fn many(round: &mut Round<'_>) -> Result<(), Broken> {
    let task =
        |n: usize| format!("  - id: A{n}\n    title: task {n} # of agent {n}\n    est: 10m\n");
    let tasks: String = (0..AGENTS).map(task).collect();
    let files = vec![
        ("projectConfig.md", "---\nSTACK_ID: fastapi\n---\n".to_owned()),
        (BOARD, format!("backlog:\n{tasks}inProgress: []\ndone: []\n")),
    ];
    let mut scratch = Scratch::with_files(round, false, |_| files)?;
    let has_mcp = has_mcp(&scratch);
    // A session that starts later continues what another one was stopped in: that is another story.
    let started = Barrier::new(AGENTS);
    let failed: Vec<Broken> = thread::scope(|scope| {
        let (scratch, started) = (&scratch, &started);
        let agents: Vec<_> =
            (0..AGENTS).map(|n| scope.spawn(move || agent(scratch, n, has_mcp, started))).collect();
        agents.into_iter().filter_map(|agent| agent.join().ok()?.err()).collect()
    });
    round.tally.kills += AGENTS as u64;
    let checked = match failed.first() {
        Some(first) => Err(format!("{} agents failed, the first: {first}", failed.len())),
        None => check(&scratch).and_then(|()| scratch.clean()),
    };
    checked.map_err(|broken| scratch.report(&broken))
}

/// One agent: its hooks, its task, its limit, its end.
fn agent(scratch: &Scratch, n: usize, has_mcp: bool, started: &Barrier) -> Result<(), Broken> {
    let (session, task) = (format!("agent-{n}"), format!("A{n}"));
    let hook = |event: &str, tokens: Option<u64>| {
        let cwd = scratch.base().join("repo");
        let mut input = json!({"session_id": session, "hook_event_name": event, "cwd": cwd});
        if let Some(tokens) = tokens {
            let record = scratch.outside().join(format!("record-{n}.jsonl"));
            let line = json!({"type": "assistant", "message": {"usage": {"input_tokens": tokens}}});
            fs::write(&record, format!("{line}\n")).map_err(|e| e.to_string())?;
            input["transcript_path"] = json!(record);
        }
        call(scratch, &["hook", "claude"], &input.to_string())
    };
    let moves = |act: &str| {
        if has_mcp {
            let input =
                mcp_lines(&format!("task_{act}"), &json!({"task": task, "session": session}));
            let said = call(scratch, &["mcp"], &input)?;
            let is_error = said.contains("\"isError\":true") || said.contains("\"error\":");
            return if is_error { Err(said) } else { Ok(()) };
        }
        call(scratch, &["session", "task", act, &task, "--session", &session], "").map(drop)
    };
    let begun = hook("SessionStart", None);
    started.wait();
    begun?;
    moves("start")?;
    let warned = hook("PostToolBatch", Some(TOKENS[0]))?;
    if !warned.contains("75 %") {
        return Err(format!("{session} was not warned: {warned}"));
    }
    let stopped = hook("PostToolBatch", Some(TOKENS[1]))?;
    if !stopped.contains(&format!("Session interrupted at {task}.")) {
        return Err(format!("{session} was not stopped at {task}: {stopped}"));
    }
    hook("UserPromptSubmit", None)?;
    moves("finish")?;
    hook("SessionEnd", None).map(drop)
}

/// What the program answers; it must succeed.
fn call(scratch: &Scratch, words: &[&str], input: &str) -> Result<String, Broken> {
    let ended = scratch.answers(words, input)?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Err(format!("piton {} ended with {}: {said}", words.join(" "), ended.status))
}

fn check(scratch: &Scratch) -> Result<(), Broken> {
    let board = fs::read_to_string(scratch.base().join("repo").join(BOARD));
    let board = board.map_err(|e| e.to_string())?;
    let done = board.split_once("\ndone:").map_or("", |(_, done)| done);
    let is_done = |n: &usize| done.matches(&format!("task {n} # of agent {n}\n")).count() == 1;
    if let Some(n) = (0..AGENTS).find(|n| !is_done(n)) {
        return Err(format!("the task of agent {n} is not done once:\n{board}"));
    }
    let log = fs::read_to_string(scratch.base().join("repo/.git/piton/hooks.log"));
    if let Some(log) = log.ok().filter(|log| !log.is_empty()) {
        return Err(format!("hooks failed, and nobody was killed:\n{log}"));
    }
    let runs = call(scratch, &["runs", "--json"], "")?;
    let runs: Value = serde_json::from_str(&runs).map_err(|e| e.to_string())?;
    let runs = runs.as_array().cloned().unwrap_or_default();
    let complete = runs.iter().filter(|run| run["status"] == "complete").count();
    if (runs.len(), complete) == (AGENTS, AGENTS) {
        return Ok(());
    }
    Err(format!("{} runs, {complete} of them complete", runs.len()))
}
