//! The form of the pattern: a fresh checkpoint, its required fields, and the upgrade of older forms.

use piton_core::Timestamp;
use piton_formats::diagnostic::{Diagnostic, code};
use piton_formats::json::{Object, Tree};
use piton_formats::sink::Sink;
use serde_json::Value;

use super::edit::written;
use super::ids::workflow_ids;
use super::model::{Checkpoint, Status};
use super::read::{SCHEMAS, checkpoint, object};
use crate::workflow::phase_id::PhaseId;

/// The fields that the pattern requires, in its order.
pub const REQUIRED: [&str; 9] = [
    "workflow_id",
    "plan_path",
    "current_phase",
    "completed_phases",
    "phase_metadata",
    "replan_history",
    "replan_count",
    "artifact_paths",
    "context_metadata",
];

/// Those that are objects.
const IS_OBJECT: [&str; 4] =
    ["phase_metadata", "replan_count", "artifact_paths", "context_metadata"];

/// What a new checkpoint says.
#[derive(Clone, Debug)]
pub struct Fresh<'a> {
    /// Its id, which is also the name of its file.
    pub workflow_id: &'a str,
    /// The plan, as it was named.
    pub plan_path: &'a str,
    /// The first phase to run.
    pub current_phase: &'a PhaseId,
    /// The number of phases.
    pub total_phases: u64,
    /// The modification time of the plan.
    pub plan_modified: Option<Timestamp>,
    /// Names and paths of what the workflow makes.
    pub artifact_paths: &'a [(&'a str, &'a str)],
    /// Names of the reports that the plan is based on.
    pub research: &'a [String],
    /// The title of the plan.
    pub title: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// A fresh checkpoint: every field of the pattern, and the fields that automatic resume looks at.
pub fn fresh(new: &Fresh<'_>) -> String {
    let mut text = String::from("{}");
    let empty = || Tree::Object(Vec::new());
    let paths = new.artifact_paths.iter().map(|(name, path)| (*name, Tree::from(*path)));
    let reports = Tree::List(new.research.iter().map(|name| Tree::from(name.as_str())).collect());
    let about = Tree::object([
        ("title", Tree::from(new.title)),
        ("total_phases", Tree::from(new.total_phases)),
    ]);
    let modified = new.plan_modified.map(|at| Tree::from(Value::from(at.0.div_euclid(1000))));
    let members = [
        ("workflow_id", Tree::from(new.workflow_id)),
        ("plan_path", Tree::from(new.plan_path)),
        ("current_phase", Tree::from(new.current_phase.to_json())),
        ("completed_phases", Tree::List(Vec::new())),
        ("phase_metadata", empty()),
        ("replan_history", Tree::List(Vec::new())),
        ("replan_count", empty()),
        ("artifact_paths", Tree::object(paths)),
        (
            "context_metadata",
            Tree::object([("research_reports", reports), ("plan_metadata", about)]),
        ),
        ("status", Tree::from(Status::InProgress.as_str())),
        ("total_phases", Tree::from(new.total_phases)),
        ("tests_passing", Tree::from(true)),
        ("last_error", Tree::from(None::<&str>)),
        ("plan_modification_time", Tree::from(modified)),
        ("created_at", Tree::from(written(new.now).as_str())),
        ("updated_at", Tree::from(written(new.now).as_str())),
    ];
    if let Ok(mut object) = Object::new("", &text) {
        for (name, value) in members {
            object.set(&[name], value);
        }
        text = object.into_text();
    }
    text.push('\n');
    text
}

/// The required fields that a checkpoint lacks, or that have the wrong type; a text that is not a
/// JSON object is the error.
pub fn verify(file: &str, text: &str) -> Result<Vec<&'static str>, Box<Diagnostic>> {
    Ok(missing(&object(file, text)?))
}

pub(super) fn missing(object: &Object) -> Vec<&'static str> {
    let lacks = |name: &&'static str| match (*name, object.get(&[name])) {
        ("workflow_id" | "plan_path", Some(Value::String(text))) => text.trim().is_empty(),
        ("current_phase", Some(value @ (Value::Number(_) | Value::String(_)))) => {
            PhaseId::from_json(&value).is_none()
        }
        ("completed_phases" | "replan_history", value) => !matches!(value, Some(Value::Array(_))),
        (_, Some(Value::Object(_))) => !IS_OBJECT.contains(name),
        _ => true,
    };
    REQUIRED.into_iter().filter(lacks).collect()
}

/// The checkpoint in the form of the pattern: what is missing is added, numbers that are texts become
/// numbers, and every other field stays as it is. A checkpoint that names no plan is refused.
pub fn upgrade(file: &str, text: &str) -> Result<String, Box<Diagnostic>> {
    let mut object = object(file, text)?;
    let found = checkpoint(&object);
    let Some(plan) = &found.plan_path else {
        let mut sink = Sink::new(file, text);
        let hint = "add `plan_path`, or archive the checkpoint and start fresh";
        sink.error(code::BAD_RECORD, &(0..0), "the checkpoint names no plan", hint);
        // The sink has exactly one problem.
        return Err(Box::new(sink.finish().swap_remove(0)));
    };
    let lacking = missing(&object);
    for name in REQUIRED {
        let numeric = matches!(name, "current_phase" | "completed_phases");
        if numeric || lacking.contains(&name) {
            object.set(&[name], field(name, plan, &found, &object));
        }
    }
    for (phase, count) in &found.replans.counts {
        object.set(&["replan_count", phase.as_str()], *count);
    }
    // Readers of other tools ask for the version before they read the fields.
    for name in ["schema_version", "version"] {
        if object.span(&[name]).is_some() {
            object.set(&[name], SCHEMAS[SCHEMAS.len() - 1]);
        }
    }
    Ok(object.into_text())
}

/// The value of a required field, from what an older form says.
fn field(name: &str, plan: &str, found: &Checkpoint, object: &Object) -> Tree {
    let id = |id: &PhaseId| Tree::from(id.to_json());
    match name {
        "workflow_id" => Tree::from(workflow_ids(plan)[0].as_str()),
        "plan_path" => Tree::from(plan),
        "current_phase" => found.progress.current.as_ref().map_or_else(|| Tree::from(1_u64), id),
        "completed_phases" => Tree::List(found.progress.completed.iter().map(id).collect()),
        "replan_history" => Tree::List(Vec::new()),
        "artifact_paths" => match object.get(&["workflow_state", "artifact_paths"]) {
            Some(paths @ Value::Object(_)) => Tree::from(paths),
            _ => Tree::Object(Vec::new()),
        },
        _ => Tree::Object(Vec::new()),
    }
}
