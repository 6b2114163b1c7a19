//! The files of the lanes protocol for `piton inspect`: phase documents, checkpoints, run logs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::run_log::Entry;
use super::{NONE, checkpoints, phase, run_log};
use crate::format::{Claim, Format, Reading, Source};
use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::sink::Sink;

/// The formats of the protocol.
pub const FORMATS: &[Format] = &[
    Format { name: "lanes/phase", claim: claim_phase, read: read_phase },
    Format { name: "lanes/checkpoints", claim: claim_checkpoints, read: read_checkpoints },
    Format { name: "lanes/run-log", claim: claim_run_log, read: read_run_log },
];

/// How much of a file is read to recognize it: one record is far shorter.
const HEAD_BYTES: usize = 64 << 10;
/// How many of the last entries of a run log are shown.
const LAST_ENTRIES: usize = 5;

/// The beginning of a file, without byte order mark and blank space.
fn beginning<'a>(source: &Source<'a>) -> &'a str {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    let mut end = text.len().min(HEAD_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn claim_phase(source: &Source<'_>) -> Claim {
    if phase::is_phase(source.text) { Claim::Content } else { Claim::No }
}

fn read_phase(source: &Source<'_>) -> Reading {
    let (found, mut problems) = phase::inspect(source.file, source.text);
    problems.extend(idle(source, &found));
    problems.sort_by_key(|problem| problem.line);
    let lane = |lane: &phase::Lane| {
        json!({
            "id": lane.id,
            "name": lane.name,
            "depends_on": lane.stated_dependencies().map(|d| &d.raw).collect::<Vec<_>>(),
            "parallel_safe": lane.parallel_safe.word(),
            "tasks": lane.tasks.len(),
            "tasks_by_type": by_type(&lane.tasks),
            "ready": lane.ready,
            "blocked_by": lane.blocked_by,
        })
    };
    let gate = |gate: &phase::Gate| json!({ "id": gate.id, "closed": gate.closed });
    let data = json!({
        "phase_id": if found.id.is_empty() { Value::Null } else { Value::from(found.id.as_str()) },
        "gates": found.gates.iter().map(gate).collect::<Vec<_>>(),
        "lanes": found.lanes.iter().map(lane).collect::<Vec<_>>(),
        "tasks_by_type": by_type(found.lanes.iter().flat_map(|lane| &lane.tasks)),
    });
    Reading { problems, data, summary: phase_summary(&found) }
}

/// How many tasks there are of each type; those without a known type are in the total only.
fn by_type<'t>(tasks: impl IntoIterator<Item = &'t phase::Task>) -> Value {
    let mut counts = phase::TaskKind::KNOWN.map(|kind| (kind, 0_usize));
    for task in tasks {
        counts.iter_mut().filter(|(kind, _)| *kind == task.kind).for_each(|(_, n)| *n += 1);
    }
    counts.into_iter().map(|(kind, count)| (kind.word(), count)).collect()
}

/// Lanes without a task: such a document is refused when it is to be run.
fn idle(source: &Source<'_>, found: &phase::Phase) -> Vec<Diagnostic> {
    let mut sink = Sink::new(source.file, source.text);
    for lane in found.lanes.iter().filter(|lane| lane.tasks.is_empty()) {
        let span = sink.line_span(lane.line);
        let message = format!("the lane {} has no tasks", quoted(&lane.id));
        let hint = "ask for a plan update that adds tasks to it";
        sink.error(code::MISSING_FIELD, &span, message, hint);
    }
    sink.finish()
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn phase_summary(found: &phase::Phase) -> Vec<String> {
    let closed = found.gates.iter().filter(|gate| gate.closed).count();
    let tasks: usize = found.lanes.iter().map(|lane| lane.tasks.len()).sum();
    let mut lines = vec![
        format!("phase {}: {}", found.id, found.title),
        format!("gates: {closed} of {} closed", found.gates.len()),
    ];
    for gate in &found.gates {
        lines.push(format!("  [{}] {}", if gate.closed { "x" } else { " " }, gate.id));
    }
    lines.push(format!("lanes: {}, with {}", found.lanes.len(), counted(tasks, "task")));
    for lane in &found.lanes {
        let blockers = lane.blocked_by.join(", ");
        let waits = || format!("waits for {blockers}");
        let state = if lane.ready { "ready".to_owned() } else { waits() };
        let tasks = counted(lane.tasks.len(), "task");
        lines.push(format!("  {} ({}): {tasks}, {state}", lane.id, lane.name));
    }
    lines.push(match found.test_plan.len() {
        0 => "after all merges: no command; nothing validates the phase".to_owned(),
        many => format!("after all merges: {}", counted(many, "command")),
    });
    let checks = found.checks().len();
    if checks > 0 {
        lines.push(format!("for a person to check: {}", counted(checks, "item")));
    }
    lines
}

fn claim_checkpoints(source: &Source<'_>) -> Claim {
    let text = beginning(source);
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    if text.starts_with('[') && has("run_id") && has("stage") {
        return Claim::Content;
    }
    let named = source.name().starts_with("checkpoints.json");
    let possible = text.is_empty() || text.starts_with(['[', '{']);
    if named && possible { Claim::Name } else { Claim::No }
}

fn read_checkpoints(source: &Source<'_>) -> Reading {
    let (records, problems) = checkpoints::inspect(source.file, source.text);
    let mut lanes: BTreeMap<(&str, &str), Vec<&checkpoints::Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.missing().is_empty()) {
        lanes.entry((&record.run_id, &record.lane)).or_default().push(record);
    }
    let mut runs: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut summary = vec![counted(records.len(), "record")];
    for ((run, lane), of_lane) in &lanes {
        let Some(latest) = checkpoints::newest(of_lane.iter().copied()) else { continue };
        let (stage, status) = (latest.stage.as_str(), latest.status.as_str());
        let at = &latest.timestamp;
        let value = json!({ "stage": stage, "status": status, "timestamp": at });
        runs.entry(run).or_default().insert((*lane).to_owned(), value);
        summary.push(format!("  {run} {lane}: {stage} {status} at {at}"));
    }
    let data = json!({ "records": records.len(), "runs": runs });
    Reading { problems, data, summary }
}

fn claim_run_log(source: &Source<'_>) -> Claim {
    let text = beginning(source);
    let first = text.lines().next().unwrap_or_default();
    let object = serde_json::from_str::<Map<String, Value>>(first).unwrap_or_default();
    let has = |name: &str| object.contains_key(name);
    if has("event") && (has("ts") || has("run_id")) {
        return Claim::Content;
    }
    // A log whose first line is damaged is still known by its name.
    let damaged = object.is_empty() && (text.is_empty() || text.contains("\"event\""));
    let named = source.name().rsplit('.').next() == Some("jsonl");
    if named && damaged { Claim::Name } else { Claim::No }
}

fn read_run_log(source: &Source<'_>) -> Reading {
    let (entries, problems) = run_log::read(source.file, source.text);
    let mut lanes: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.lane != NONE) {
        lanes.insert(&entry.lane, &entry.event);
    }
    let last = &entries[entries.len().saturating_sub(LAST_ENTRIES)..];
    let run_id = entries.first().map(|entry| &entry.run_id);
    let shown = |entry: &Entry| {
        json!({
            "ts": entry.ts,
            "lane": entry.lane,
            "task": entry.task,
            "event": entry.event,
            "status": entry.status.as_str(),
            "cmd": entry.cmd,
            "exit_code": entry.exit_code,
            "notes": entry.notes,
        })
    };
    let data = json!({
        "run_id": run_id,
        "events": entries.len(),
        "lanes": lanes,
        "last": last.iter().map(shown).collect::<Vec<_>>(),
    });
    let run = run_id.map_or("", String::as_str);
    let mut summary = vec![format!("run {run}: {}", counted(entries.len(), "event"))];
    summary.extend(lanes.iter().map(|(lane, event)| format!("  {lane}: {event}")));
    summary.push("last:".to_owned());
    for entry in last {
        let status = entry.status.as_str();
        summary.push(format!("  {} {} {} {status}", entry.ts, entry.lane, entry.event));
    }
    Reading { problems, data, summary }
}
