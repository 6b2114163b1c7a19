//! The files of the session protocol for `piton inspect`.

use piton_formats::Diagnostic;
use piton_formats::yaml::Document;
use serde_json::{Value, json};

use super::bank::{objective, stack_id};
use super::board::{Board, Column};
use super::change::Pending;
use super::checkpoint::Checkpoint;
use super::cleanup::stamp_of;
use super::config::Config;
use crate::format::{Claim, Format, Reading, Source};

/// The formats of the protocol.
pub const FORMATS: &[Format] = &[
    Format { name: "session/checkpoint", claim: claim_checkpoint, read: read_checkpoint },
    Format { name: "session/delta", claim: claim_delta, read: read_delta },
    Format { name: "session/board", claim: claim_board, read: read_board },
    Format { name: "session/config", claim: claim_config, read: read_config },
    Format { name: "session/context", claim: claim_context, read: read_context },
];

/// Tells whether a text is a JSON object with these members, by its look.
fn has_members(source: &Source<'_>, names: &[&str]) -> bool {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('{') && names.iter().all(|name| text.contains(&format!("\"{name}\"")))
}

/// Tells whether a text is YAML, or begins with YAML, that has this key at the top.
fn has_key(source: &Source<'_>, name: &str) -> bool {
    let key = format!("{name}:");
    let mut lines = source.text.trim_start_matches('\u{feff}').lines();
    let markers = if source.text.trim_start_matches('\u{feff}').starts_with("---") { 2 } else { 1 };
    let mut seen = 0;
    lines.any(|line| {
        seen += usize::from(line.trim_end() == "---");
        seen < markers && line.starts_with(&key)
    })
}

fn is_json_or_empty(source: &Source<'_>) -> bool {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    text.is_empty() || text.starts_with('{')
}

fn claim_checkpoint(source: &Source<'_>) -> Claim {
    if has_members(source, &["tokenUsage", "state"])
        || has_members(source, &["deltaChanges", "timestamp"])
    {
        return Claim::Content;
    }
    let name = source.name();
    let is_named = name == "latest.json" || stamp_of(&name).is_some();
    if is_named && is_json_or_empty(source) { Claim::Name } else { Claim::No }
}

fn claim_delta(source: &Source<'_>) -> Claim {
    let is_delta = ["flushThreshold", "pendingWrites", "lastFullSync"]
        .iter()
        .any(|name| has_members(source, &["changes", name]));
    match source.name() == "progress-delta.json" && is_json_or_empty(source) {
        _ if is_delta => Claim::Content,
        true => Claim::Name,
        false => Claim::No,
    }
}

fn claim_board(source: &Source<'_>) -> Claim {
    let has = |name: &str| has_key(source, name);
    if has("backlog") && (has("inProgress") || has("done")) {
        return Claim::Content;
    }
    let name = source.name();
    let is_named = name == "taskboard.md" || (name.starts_with("backlog") && is_yaml(&name));
    if is_named { Claim::Name } else { Claim::No }
}

fn is_yaml(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| end == "yaml" || end == "yml")
}

fn claim_config(source: &Source<'_>) -> Claim {
    if has_key(source, "STACK_ID") || has_key(source, "checkpointTriggers") {
        return Claim::Content;
    }
    if source.name() == "projectconfig.md" { Claim::Name } else { Claim::No }
}

fn claim_context(source: &Source<'_>) -> Claim {
    if has_key(source, "currentObjective") {
        return Claim::Content;
    }
    if source.name() == "activecontext.md" { Claim::Name } else { Claim::No }
}

fn refused(problem: &Diagnostic) -> Reading {
    Reading { problems: vec![problem.clone()], data: Value::Null, summary: Vec::new() }
}

fn read_checkpoint(source: &Source<'_>) -> Reading {
    let (found, problems) = match Checkpoint::read(source.file, source.text) {
        Ok(read) => read,
        Err(problem) => return refused(&problem),
    };
    let summary = if found.is_active() {
        vec![
            format!("checkpoint of {}, {}", found.timestamp, found.reason),
            format!("in progress: {}", listed(&found.in_progress)),
            format!("completed: {}", listed(&found.completed)),
        ]
    } else {
        vec!["no checkpoint: a session starts normally".to_owned()]
    };
    Reading { problems, data: found.to_json(), summary }
}

fn read_delta(source: &Source<'_>) -> Reading {
    let (found, problems) = match Pending::read(source.file, source.text) {
        Ok(read) => read,
        Err(problem) => return refused(&problem),
    };
    let (changes, threshold) = (found.changes.len(), found.threshold);
    let data = json!({ "changes": changes, "flush_threshold": threshold });
    let summary = vec![format!("{changes} changes; they are written at {threshold}")];
    Reading { problems, data, summary }
}

fn read_board(source: &Source<'_>) -> Reading {
    let (board, problems) = match Board::read(source.file, source.text) {
        Ok(read) => read,
        Err(problem) => return refused(&problem),
    };
    let data = json!({
        "backlog": board.ids(Column::Backlog),
        "in_progress": board.ids(Column::InProgress),
        "blocked": board.ids(Column::Blocked),
        "done": board.ids(Column::Done),
        "active_sprint": board.active_sprint(),
    });
    let line = |column: Column| format!("{}: {}", column.as_str(), listed(&board.ids(column)));
    let mut summary: Vec<String> = Column::ALL.into_iter().map(line).collect();
    summary.push(format!("active sprint: {}", board.active_sprint().unwrap_or("none")));
    Reading { problems, data, summary }
}

fn read_config(source: &Source<'_>) -> Reading {
    if has_key(source, "checkpointTriggers") {
        return match Config::read(source.file, source.text) {
            Ok((config, problems)) => {
                let state = if config.enabled { "on" } else { "off" };
                let summary = vec![format!("session protocol {}, {state}", config.version)];
                Reading { problems, data: config.to_json(), summary }
            }
            Err(problem) => refused(&problem),
        };
    }
    let read = |document: &Document| {
        let id = stack_id(document);
        let summary = format!("STACK_ID: {}", if id.is_empty() { "none" } else { &id });
        (json!({ "stack_id": id }), summary)
    };
    read_document(source, read)
}

fn read_context(source: &Source<'_>) -> Reading {
    let read = |document: &Document| {
        let objective = objective(document);
        let shown = if objective.is_empty() { "none" } else { &objective };
        let summary = format!("objective: {shown}");
        (json!({ "objective": objective }), summary)
    };
    read_document(source, read)
}

fn read_document(source: &Source<'_>, read: impl Fn(&Document) -> (Value, String)) -> Reading {
    match Document::new(source.file, source.text) {
        Ok(document) => {
            let (data, summary) = read(&document);
            let problems: Vec<Diagnostic> = Vec::new();
            Reading { problems, data, summary: vec![summary] }
        }
        Err(problem) => refused(&problem),
    }
}

fn listed(ids: &[String]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}
