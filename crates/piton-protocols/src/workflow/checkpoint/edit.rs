//! Changes of a checkpoint, made in place: fields that are not set keep their bytes and order.
//!
//! The fields of the pattern are always set. Status, last error and counters of other forms are kept
//! in step where a file has them, because other tools may read those.

use piton_core::Timestamp;
use piton_formats::diagnostic::{Diagnostic, code};
use piton_formats::json::{Object, Tree};
use piton_formats::sink::Sink;
use serde_json::Value;

use super::model::{PhaseRecord, Status};
use super::read::{checkpoint, object};
use crate::time;
use crate::workflow::phase_id::PhaseId;

/// Edits one checkpoint.
#[derive(Debug)]
pub struct Editor {
    file: String,
    object: Object,
    /// Fields that could not be set because of the type they have.
    refused: Vec<String>,
}

impl Editor {
    /// Begins with the text of a file.
    pub fn new(file: &str, text: &str) -> Result<Self, Box<Diagnostic>> {
        let object = object(file, text)?;
        Ok(Self { file: file.to_owned(), object, refused: Vec::new() })
    }

    /// Sets a field by its path of names.
    pub fn set(&mut self, path: &[&str], value: impl Into<Tree>) {
        if !self.object.set(path, value) {
            self.refused.push(path.join("."));
        }
    }

    /// Removes a field by its path of names.
    pub fn remove(&mut self, path: &[&str]) {
        self.object.remove(path);
    }

    /// Records that a phase is complete; `next` is the phase to continue with.
    pub fn complete(&mut self, phase: &PhaseId, record: &PhaseRecord, next: &PhaseId) {
        let known = checkpoint(&self.object).progress.completed;
        if !known.iter().any(|id| id.is(phase)) {
            let value = self.alike("completed_phases", phase);
            if !self.object.push(&["completed_phases"], value) {
                self.refused.push("completed_phases".to_owned());
            }
        }
        self.set(&["current_phase"], next.to_json());
        self.record(phase, record);
        self.in_step("status", Status::InProgress.as_str());
        self.in_step("last_error", None::<&str>);
    }

    /// Records that a phase failed; the workflow does not advance.
    pub fn fail(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        self.record(phase, record);
        self.in_step("status", Status::Failed.as_str());
        self.in_step("last_error", record.error.as_deref());
    }

    /// Sets a field that the pattern does not have, if the file has it.
    fn in_step<'v>(&mut self, name: &str, value: impl Into<Option<&'v str>>) {
        if self.object.span(&[name]).is_some() {
            self.set(&[name], Tree::from(value.into()));
        }
    }

    /// Sets what is recorded about a phase; fields of other tools in that record stay.
    fn record(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        let PhaseRecord { status, artifacts, duration_minutes, timestamp, error } = record;
        let within = |name: &'static str| ["phase_metadata", phase.as_str(), name];
        self.set(&within("status"), status.as_str());
        let artifacts = artifacts.iter().map(|path| Tree::from(path.as_str())).collect();
        self.set(&within("artifacts"), Tree::List(artifacts));
        if let Some(minutes) = duration_minutes {
            self.set(&within("duration_minutes"), *minutes);
        }
        if let Some(at) = timestamp {
            self.set(&within("timestamp"), written(*at).as_str());
        }
        match error {
            Some(error) => self.set(&within("error"), error.as_str()),
            None => self.remove(&within("error")),
        }
    }

    /// Records a replan of a phase; its counter becomes one more than the largest that the file has.
    pub fn replan(&mut self, phase: &PhaseId, reason: &str, at: Timestamp) {
        let replans = checkpoint(&self.object).replans;
        let count = replans.count(phase) + 1;
        let entry = Tree::object([
            ("phase", Tree::from(phase.to_json())),
            ("reason", Tree::from(reason)),
            ("timestamp", Tree::from(written(at).as_str())),
        ]);
        if !self.object.push(&["replan_history"], entry) {
            self.refused.push("replan_history".to_owned());
        }
        self.set(&["replan_count", phase.as_str()], count);
        let (of_map, of_name) = (format!("phase_{phase}"), format!("replan_phase_{phase}_count"));
        if let Some(Value::Object(_)) = self.object.get(&["replan_phase_counts"]) {
            self.set(&["replan_phase_counts", &of_map], count);
        }
        if self.object.get(&[&of_name]).is_some() {
            self.set(&[&of_name], count);
        }
        if let Some(total) = self.object.get(&["replanning_count"]).and_then(|total| total.as_u64())
        {
            self.set(&["replanning_count"], total + 1);
        }
        self.in_step("last_replan_reason", reason);
    }

    /// Sets `updated_at`.
    pub fn touch(&mut self, at: Timestamp) {
        self.set(&["updated_at"], written(at).as_str());
    }

    /// The new text; the error names the fields whose type prevented a change.
    pub fn finish(self) -> Result<String, Box<Diagnostic>> {
        if self.refused.is_empty() {
            return Ok(self.object.into_text());
        }
        let mut sink = Sink::new(&self.file, self.object.text());
        let message = format!("fields with a wrong type: {}", self.refused.join(", "));
        let hint = "correct them, or archive the checkpoint and start fresh";
        sink.error(code::BAD_RECORD, &(0..0), message, hint);
        // The sink has exactly one problem.
        Err(Box::new(sink.finish().swap_remove(0)))
    }

    /// An id as a list writes its ids: as text if it has only texts.
    fn alike(&self, list: &str, phase: &PhaseId) -> Value {
        match self.object.get(&[list]) {
            Some(Value::Array(ids)) if !ids.is_empty() && ids.iter().all(Value::is_string) => {
                Value::from(phase.as_str())
            }
            _ => phase.to_json(),
        }
    }
}

/// A time as the pattern writes it: `2025-10-21T10:30:00Z`.
pub(super) fn written(at: Timestamp) -> String {
    let text = time::write(at);
    let whole = text.split('.').next().unwrap_or_default();
    format!("{whole}Z")
}
