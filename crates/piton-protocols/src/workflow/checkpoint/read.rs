//! Reads checkpoints of every form into one model.
//!
//! Numbers may be texts. What stands in `workflow_state` or `error_state` counts where the top level
//! says nothing. Fields that are not understood are kept as they are.

use std::collections::BTreeMap;

use piton_core::Timestamp;
use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::json::Object;
use piton_formats::sink::Sink;
use serde_json::{Map, Value};

use super::CHECKPOINT_BYTES_MAX;
use super::model::{
    Checkpoint, Form, Health, PhaseRecord, Progress, Replan, Replans, Status, Times,
};
use crate::time;
use crate::workflow::phase_id::PhaseId;

/// The versions of the schema that are known.
pub(super) const SCHEMAS: [&str; 6] = ["1.0", "1.1", "1.2", "1.3", "2.0", "2.1"];

/// Fields that the model contains.
const KNOWN: [&str; 20] = [
    "workflow_id",
    "plan_path",
    "plan_file",
    "schema_version",
    "version",
    "current_phase",
    "total_phases",
    "completed_phases",
    "phase_metadata",
    "replan_history",
    "replan_count",
    "replan_phase_counts",
    "status",
    "last_error",
    "tests_passing",
    "plan_modification_time",
    "created_at",
    "updated_at",
    "artifact_paths",
    "context_metadata",
];

/// Reads a checkpoint; a text that is not a JSON object is refused.
pub fn read(file: &str, text: &str) -> Result<Checkpoint, Box<Diagnostic>> {
    Ok(checkpoint(&object(file, text)?))
}

/// The document to read or edit.
pub(super) fn object(file: &str, text: &str) -> Result<Object, Box<Diagnostic>> {
    if text.len() <= CHECKPOINT_BYTES_MAX {
        return Object::new(file, text);
    }
    let mut sink = Sink::new(file, "");
    let message = format!("the file is larger than {CHECKPOINT_BYTES_MAX} bytes");
    sink.error(code::TOO_LARGE, &(0..0), message, "check that this is the right file");
    // The sink has exactly one problem.
    Err(Box::new(sink.finish().swap_remove(0)))
}

/// The model of a document.
pub(super) fn checkpoint(object: &Object) -> Checkpoint {
    let root = Fields::of(object);
    let text = |names: &[&str]| names.iter().find_map(|name| root.text(name));
    let has_id = root.text("workflow_id").is_some();
    let progress = progress(&root, has_id);
    let replans = replans(&root);
    let records = progress.records.values().filter_map(|record| record.timestamp);
    let newest_record = records.chain(replans.history.iter().filter_map(|r| r.timestamp)).max();
    let times = Times {
        created: root.text("created_at").and_then(|at| time::read(&at)),
        updated: root.text("updated_at").and_then(|at| time::read(&at)),
        plan_modified: root.text("plan_modification_time").and_then(|at| seconds(&at)),
        newest_record,
    };
    let raw = |(name, raw): (String, &str)| (name, raw.to_owned());
    let other = object.members().into_iter().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    Checkpoint {
        form: if has_id { Form::Pattern } else { Form::Versioned },
        schema: text(&["schema_version", "version"]).unwrap_or_else(|| SCHEMAS[0].to_owned()),
        workflow_id: root.text("workflow_id"),
        plan_path: text(&["plan_path", "plan_file"]),
        health: health(&root, &progress, has_id),
        progress,
        replans,
        times,
        other: other.map(raw).collect(),
    }
}

/// Reads as much of a checkpoint as possible, and all its problems.
pub fn inspect(file: &str, text: &str) -> (Option<Checkpoint>, Vec<Diagnostic>) {
    let object = match object(file, text) {
        Ok(object) => object,
        Err(problem) => return (None, vec![*problem]),
    };
    let found = checkpoint(&object);
    let mut sink = Sink::new(file, text);
    let at = |name: &str| object.span(&[name]).unwrap_or(0..0);
    if !SCHEMAS.contains(&found.schema.as_str()) {
        let name =
            if object.span(&["schema_version"]).is_some() { "schema_version" } else { "version" };
        let message = format!("unknown schema version {}", quoted(&found.schema));
        let hint = "known versions: 1.0 to 2.1; fields that are not known are kept";
        sink.warn(code::BAD_RECORD, &at(name), message, hint);
    }
    if let Some(Status::Unknown(word)) = &found.health.status {
        let message = format!("unknown status {}", quoted(word));
        let hint = "known statuses: in_progress, completed, failed";
        sink.warn(code::BAD_RECORD, &at("status"), message, hint);
    }
    for (name, read) in [
        ("created_at", found.times.created),
        ("updated_at", found.times.updated),
        ("plan_modification_time", found.times.plan_modified),
    ] {
        let written = object.get(&[name]).filter(|value| !value.is_null());
        if let (Some(value), None) = (written, read) {
            let message = format!("`{name}` is not a time: {}", quoted(&value.to_string()));
            sink.warn(code::BAD_RECORD, &at(name), message, "write it like 2025-12-27T10:30:00Z");
        }
    }
    missing(&object, found.form, &mut sink);
    (Some(found), sink.finish())
}

/// Reports fields that are missing or have the wrong type. Without those of the first group nobody
/// can tell where to resume; the others only belong to the form of the pattern.
fn missing(object: &Object, form: Form, sink: &mut Sink<'_>) {
    let lacks = super::own::missing(object);
    let found = checkpoint(object);
    let needed = [
        ("plan_path", found.plan_path.is_some()),
        ("current_phase", found.progress.current.is_some()),
        ("completed_phases", !lacks.contains(&"completed_phases")),
    ];
    let is_needed = |name: &str| needed.iter().any(|(needed, _)| *needed == name);
    for name in lacks {
        let span = object.span(&[name]).unwrap_or(0..0);
        let words = if object.span(&[name]).is_some() { "has a wrong type" } else { "is missing" };
        let message = format!("`{name}` {words}");
        let hint = "restore it from a backup, or archive the checkpoint and start fresh";
        match form {
            Form::Pattern if is_needed(name) => {
                sink.error(code::BAD_RECORD, &span, message, hint);
            }
            Form::Pattern => {
                sink.warn(code::BAD_RECORD, &span, message, "add it, or let Piton write the file");
            }
            Form::Versioned if needed.contains(&(name, false)) && name != "completed_phases" => {
                sink.warn(code::BAD_RECORD, &span, message, hint);
            }
            Form::Versioned => {}
        }
    }
}

/// The root of a checkpoint and the objects in it that repeat its fields.
struct Fields {
    root: Map<String, Value>,
    state: Map<String, Value>,
    errors: Map<String, Value>,
}

impl Fields {
    fn of(object: &Object) -> Self {
        let inner = |name: &str| match object.get(&[name]) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let json = object.text().trim_start_matches('\u{feff}');
        let root = serde_json::from_str(json).unwrap_or_default();
        Self { root, state: inner("workflow_state"), errors: inner("error_state") }
    }

    /// A field that is not null.
    fn value(&self, name: &str) -> Option<&Value> {
        let places = [&self.root, &self.state, &self.errors];
        places.into_iter().find_map(|place| place.get(name).filter(|value| !value.is_null()))
    }

    /// A field as text, numbers too; `None` if it is empty.
    fn text(&self, name: &str) -> Option<String> {
        scalar(self.value(name)?)
    }

    fn number(&self, name: &str) -> Option<u64> {
        number(self.value(name)?)
    }

    fn members(&self, name: &str) -> Vec<(&String, &Value)> {
        match self.value(name) {
            Some(Value::Object(members)) => members.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn items(&self, name: &str) -> Vec<&Value> {
        match self.value(name) {
            Some(Value::Array(items)) => items.iter().collect(),
            _ => Vec::new(),
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null => return None,
        Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    (!text.trim().is_empty()).then_some(text)
}

fn number(value: &Value) -> Option<u64> {
    scalar(value)?.trim().parse().ok()
}

/// A time in seconds since 1970, or as text.
fn seconds(text: &str) -> Option<Timestamp> {
    let whole = text.trim().split('.').next().unwrap_or_default();
    match whole.parse::<i64>() {
        Ok(seconds) => seconds.checked_mul(1000).map(Timestamp),
        Err(_) => time::read(text),
    }
}

/// Why nobody can tell what is done and where to continue. Older forms leave out an empty list.
fn unclear(root: &Fields, is_pattern: bool) -> Option<String> {
    let is_list = |value: &Value| {
        value.as_array().is_some_and(|ids| ids.iter().all(|id| PhaseId::from_json(id).is_some()))
    };
    let fields = [
        ("current_phase", root.value("current_phase").map(|v| PhaseId::from_json(v).is_some())),
        ("completed_phases", root.value("completed_phases").map(is_list)),
    ];
    fields.into_iter().find_map(|(name, is_right)| match is_right {
        Some(true) => None,
        Some(false) => Some(format!("`{name}` has a wrong type")),
        None => (is_pattern || name == "current_phase").then(|| format!("`{name}` is missing")),
    })
}

fn progress(root: &Fields, is_pattern: bool) -> Progress {
    let record = |(id, value): (&String, &Value)| Some((PhaseId::read(id)?, phase_record(value)));
    Progress {
        current: root.value("current_phase").and_then(PhaseId::from_json),
        total: root.number("total_phases"),
        completed: root
            .items("completed_phases")
            .into_iter()
            .filter_map(PhaseId::from_json)
            .collect(),
        records: root.members("phase_metadata").into_iter().filter_map(record).collect(),
        unclear: unclear(root, is_pattern),
    }
}

fn phase_record(value: &Value) -> PhaseRecord {
    let text = |name: &str| value.get(name).and_then(scalar);
    let artifacts = value.get("artifacts").and_then(Value::as_array);
    PhaseRecord {
        status: text("status").unwrap_or_default(),
        artifacts: artifacts.into_iter().flatten().filter_map(scalar).collect(),
        duration_minutes: value.get("duration_minutes").and_then(number),
        timestamp: text("timestamp").and_then(|at| time::read(&at)),
        error: text("error"),
        key_results: text("key_results"),
    }
}

/// The largest of all counters of each phase, the entries of the history included.
fn replans(root: &Fields) -> Replans {
    let replan = |value: &&Value| {
        let text = |name: &str| value.get(name).and_then(scalar);
        Some(Replan {
            phase: PhaseId::from_json(value.get("phase")?)?,
            reason: text("reason").unwrap_or_default(),
            timestamp: text("timestamp").and_then(|at| time::read(&at)),
        })
    };
    let history: Vec<Replan> = root.items("replan_history").iter().filter_map(replan).collect();
    let mut counts: BTreeMap<PhaseId, u64> = BTreeMap::new();
    for entry in &history {
        *counts.entry(entry.phase.clone()).or_default() += 1;
    }
    let of_maps = ["replan_count", "replan_phase_counts"].into_iter().flat_map(|n| root.members(n));
    let of_names = root.root.iter().chain(&root.state).filter_map(|(name, value)| {
        let phase = name.strip_prefix("replan_phase_")?.strip_suffix("_count")?;
        Some((phase, value))
    });
    let stated = of_maps.map(|(id, value)| (id.as_str(), value)).chain(of_names);
    for (id, value) in stated {
        if let (Some(phase), Some(count)) = (PhaseId::read(id), number(value)) {
            let known = counts.entry(phase).or_default();
            *known = count.max(*known);
        }
    }
    counts.retain(|_, count| *count > 0);
    Replans { counts, history }
}

fn health(root: &Fields, progress: &Progress, is_pattern: bool) -> Health {
    let failed = || progress.records.values().rev().find(|record| record.status == "failed");
    let stated = root.text("status").map(|word| Status::read(&word));
    let tests_passing = root.text("tests_passing").and_then(|word| match word.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    let error_of_phase = || {
        let record = failed().filter(|_| is_pattern && stated.is_none())?;
        Some(record.error.clone().unwrap_or_else(|| "a phase failed".to_owned()))
    };
    let status = stated.clone().or_else(|| {
        // The pattern has no status: a checkpoint that is there is of a workflow in progress.
        let is_complete =
            progress.total.is_some_and(|total| progress.completed.len() as u64 >= total);
        is_pattern.then_some(match (failed(), is_complete) {
            (Some(_), _) => Status::Failed,
            (None, true) => Status::Completed,
            (None, false) => Status::InProgress,
        })
    });
    let last_error = root.text("last_error").or_else(error_of_phase);
    Health { status, last_error, tests_passing }
}
