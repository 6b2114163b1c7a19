//! (m) Reading the streams of agent programs, against `serde_json` reading the same bytes into values.
//!
//! The streams are written here after what the programs print, with the sizes of real ones: most lines
//! are short, and a few hold a file or the output of a command.

use piton_agents::find;
use serde_json::{Value, json};

use super::measure::{in_turn, millis, time};
use super::table::{Outcome, Row};
use super::{Bench, Measured};
use crate::rng::Rng;

/// Requests of a stream: a long session.
const REQUESTS: u64 = 2000;
/// Rounds; each reads some megabytes.
const ROUNDS: usize = 20;
/// Most times that `serde_json` may take.
const LIMIT: f64 = 2.0;

/// Measures each program.
pub(super) fn measure(bench: &Bench) -> Measured {
    let streams = [
        ("claude", claude as fn(&mut Rng) -> Vec<Value>),
        ("codex", codex),
        ("gemini", gemini),
        ("opencode", opencode),
    ];
    streams.into_iter().map(|(name, lines)| row(bench, name, lines)).collect()
}

fn row(bench: &Bench, name: &str, lines: fn(&mut Rng) -> Vec<Value>) -> Result<Row, String> {
    let mut rng = Rng::of_round(0, name, 0);
    let lines: Vec<String> =
        (0..REQUESTS).flat_map(|_| lines(&mut rng)).map(|line| line.to_string()).collect();
    let bytes: usize = lines.iter().map(String::len).sum();
    let program = find(name).ok_or("the program is in the table")?;
    let theirs = || {
        let (read, took) = time(|| {
            lines.iter().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count()
        });
        if read == lines.len() { Ok(millis(took)) } else { Err("a line is not JSON".to_owned()) }
    };
    let ours = || {
        let mut reader = program.reader();
        let (_, took) = time(|| lines.iter().map(|line| reader.line(line).len()).sum::<usize>());
        let heard = reader.totals().tokens.total() > 0;
        if heard { Ok(millis(took)) } else { Err(format!("{name}: no tokens were counted")) }
    };
    let (floor, ours) = in_turn(bench.rounds(ROUNDS), theirs, ours)?;
    Ok(Row {
        id: "m",
        what: format!("reading a stream of {name}"),
        floor_name: "serde_json into values",
        result: Outcome::Measured { floor, ours, unit: "ms" },
        limit: Some(LIMIT),
        remark: format!("{} kB", bytes / 1000),
    })
}

/// Text as a tool returns it: mostly a few lines, now and then a whole file.
fn output(rng: &mut Rng) -> String {
    let lines = if rng.one_in(8) { 100 + rng.below(300) } else { 1 + rng.below(20) };
    let line = "    let found = index.get(\"key\").map(|entry| entry.path.clone());\t// why\n";
    line.repeat(usize::try_from(lines).unwrap_or(1))
}

fn claude(rng: &mut Rng) -> Vec<Value> {
    let id = rng.next().to_string();
    let usage = json!({"input_tokens": 4, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 60_000 + rng.below(9000), "output_tokens": 7, "service_tier": "standard"});
    let said = json!({"type": "assistant", "message": {"model": "m", "id": id, "type": "message", "role": "assistant", "content": [{"type": "text", "text": "I will look at the index first."}], "stop_reason": null, "usage": usage}, "parent_tool_use_id": null, "session_id": "11111111-1111-4111-8111-111111111111", "uuid": "u"});
    let mut asked = said.clone();
    asked["message"]["content"] = json!([{"type": "tool_use", "id": format!("t{id}"), "name": "Bash", "input": {"command": "cargo check", "description": "Check"}}]);
    let text = output(rng);
    let answered = json!({"type": "user", "message": {"role": "user", "content": [{"tool_use_id": format!("t{id}"), "type": "tool_result", "content": text, "is_error": false}]}, "parent_tool_use_id": null, "session_id": "11111111-1111-4111-8111-111111111111", "uuid": "u", "tool_use_result": {"stdout": text, "stderr": "", "interrupted": false}});
    vec![said, asked, answered]
}

fn codex(rng: &mut Rng) -> Vec<Value> {
    let id = format!("item_{}", rng.next());
    let begun = json!({"type": "item.started", "item": {"id": id, "type": "command_execution", "command": "bash -lc 'cargo check'", "aggregated_output": "", "status": "in_progress"}});
    let ended = json!({"type": "item.completed", "item": {"id": id, "type": "command_execution", "command": "bash -lc 'cargo check'", "aggregated_output": output(rng), "exit_code": 0, "status": "completed"}});
    let said = json!({"type": "item.completed", "item": {"id": "m", "type": "agent_message", "text": "The index is read first."}});
    let used = json!({"type": "turn.completed", "usage": {"input_tokens": 60_000 + rng.below(9000), "cached_input_tokens": 50_000, "output_tokens": 70}});
    vec![begun, ended, said, used]
}

fn gemini(rng: &mut Rng) -> Vec<Value> {
    let id = rng.next().to_string();
    let said = json!({"type": "message", "timestamp": "2026-11-17T08:00:00.000Z", "role": "assistant", "content": "I will look at the index first.", "delta": true});
    let asked = json!({"type": "tool_use", "timestamp": "2026-11-17T08:00:00.000Z", "tool_name": "run_shell_command", "tool_id": id, "parameters": {"command": "cargo check"}});
    let answered = json!({"type": "tool_result", "timestamp": "2026-11-17T08:00:00.000Z", "tool_id": id, "status": "success", "output": output(rng)});
    let ended = json!({"type": "result", "timestamp": "2026-11-17T08:00:00.000Z", "status": "success", "stats": {"total_tokens": 61_000, "input_tokens": 60_000, "output_tokens": 1000, "cached": 0, "input": 60_000, "duration_ms": 5, "tool_calls": 1}});
    vec![said, asked, answered, ended]
}

fn opencode(rng: &mut Rng) -> Vec<Value> {
    let id = rng.next().to_string();
    let line = |kind: &str, part: Value| json!({"type": kind, "timestamp": 1_794_902_400_000_u64, "sessionID": "ses_1", "part": part});
    let begun = line(
        "step_start",
        json!({"id": id, "messageID": "msg", "sessionID": "ses_1", "type": "step-start"}),
    );
    let tool = line(
        "tool_use",
        json!({"id": id, "messageID": "msg", "sessionID": "ses_1", "type": "tool", "callID": id, "tool": "bash", "state": {"status": "completed", "input": {"command": "cargo check", "description": "Check"}, "output": output(rng), "title": "Check", "metadata": {"exit": 0}, "time": {"start": 1, "end": 2}}}),
    );
    let ended = line(
        "step_finish",
        json!({"id": id, "messageID": "msg", "sessionID": "ses_1", "type": "step-finish", "reason": "tool-calls", "cost": 0.01, "tokens": {"input": 60_000, "output": 70, "reasoning": 0, "cache": {"read": 5, "write": 0}}}),
    );
    vec![begun, tool, ended]
}
