//! Changes of a checkpoint, made in place: fields that are not set keep their bytes and order.
//!
//! The fields of the pattern are always set. Status, last error and counters of other forms are kept
//! in step where a file has them, because other tools may read those.

use piton_core::Timestamp;
use piton_formats::diagnostic::{Diagnostic, code};
use piton_formats::json::{Object, Tree};
use piton_formats::sink::Sink;
use serde_json::Value;

use super::model::{Checkpoint, PhaseRecord, Replan, Status};
use super::read::{checkpoint, object};
use crate::time;
use crate::workflow::phase_id::PhaseId;

/// The status of a phase that was completed and is open again.
const ROLLED_BACK: &str = "rolled_back";

/// How a whole workflow stands.
#[derive(Clone, Debug)]
pub struct Stand {
    /// The phase to continue with.
    pub current: PhaseId,
    /// The number of phases.
    pub total: u64,
    /// The status.
    pub status: Status,
    /// The last error.
    pub error: Option<String>,
    /// Whether the tests passed.
    pub tests_passing: bool,
}

/// Edits one checkpoint.
#[derive(Debug)]
pub struct Editor {
    file: String,
    object: Object,
    /// What the file said at first.
    known: Checkpoint,
    /// Fields that could not be set because of the type they have.
    refused: Vec<String>,
}

impl Editor {
    /// Begins with the text of a file.
    pub fn new(file: &str, text: &str) -> Result<Self, Box<Diagnostic>> {
        let object = object(file, text)?;
        let known = checkpoint(&object);
        Ok(Self { file: file.to_owned(), object, known, refused: Vec::new() })
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

    /// Records that a phase is complete.
    pub fn complete(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        self.add(phase);
        self.record(phase, record);
    }

    /// Records that another tool completed a phase; what that wrote about it stays.
    pub fn complete_elsewhere(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        self.add(phase);
        if !self.known.progress.records.keys().any(|id| id.is(phase)) {
            self.record(phase, record);
        }
    }

    /// Records that a phase is left out.
    pub fn skip(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        self.remove_completed(phase);
        self.record(phase, record);
    }

    /// Records that a phase failed; the workflow does not advance.
    pub fn fail(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        self.remove_completed(phase);
        self.record(phase, record);
    }

    /// Records that a phase that was completed is open again.
    pub fn reopen(&mut self, phase: &PhaseId) {
        if self.remove_completed(phase) {
            self.set(&["phase_metadata", phase.as_str(), "status"], ROLLED_BACK);
        }
    }

    /// Sets the phase to continue with, and what other forms say about the whole workflow.
    pub fn stand(&mut self, stand: &Stand) {
        self.set(&["current_phase"], stand.current.to_json());
        self.in_step("status", stand.status.as_str());
        self.in_step("last_error", stand.error.as_deref());
        if self.object.span(&["tests_passing"]).is_some() {
            self.set(&["tests_passing"], stand.tests_passing);
        }
        if self.object.span(&["total_phases"]).is_some() {
            self.set(&["total_phases"], stand.total);
        }
    }

    /// Adds a phase to the completed ones.
    fn add(&mut self, phase: &PhaseId) {
        if self.known.progress.completed.iter().any(|id| id.is(phase)) {
            return;
        }
        let value = self.alike("completed_phases", phase);
        if !self.object.push(&["completed_phases"], value) {
            self.refused.push("completed_phases".to_owned());
        }
        self.known.progress.completed.insert(phase.clone());
    }

    /// Removes a phase from the completed ones; tells whether it was one.
    fn remove_completed(&mut self, phase: &PhaseId) -> bool {
        if !self.known.progress.completed.iter().any(|id| id.is(phase)) {
            return false;
        }
        let is_other = |id: &Value| PhaseId::from_json(id).is_none_or(|id| !id.is(phase));
        if let Some(Value::Array(mut ids)) = self.object.get(&["completed_phases"]) {
            ids.retain(is_other);
            self.set(&["completed_phases"], Value::Array(ids));
        }
        self.known.progress.completed.retain(|id| !id.is(phase));
        true
    }

    /// Sets a field that the pattern does not have, if the file has it.
    fn in_step<'v>(&mut self, name: &str, value: impl Into<Option<&'v str>>) {
        if self.object.span(&[name]).is_some() {
            self.set(&[name], Tree::from(value.into()));
        }
    }

    /// Sets what is recorded about a phase; fields of other tools in that record stay.
    fn record(&mut self, phase: &PhaseId, record: &PhaseRecord) {
        if self.known.progress.records.get(phase) == Some(record) {
            return;
        }
        let PhaseRecord { status, artifacts, duration_minutes, timestamp, error, key_results } =
            record;
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
        if let Some(words) = key_results {
            self.set(&within("key_results"), words.as_str());
        }
        self.known.progress.records.insert(phase.clone(), record.clone());
    }

    /// Adds the replans of a history that the file does not have.
    pub fn replanned(&mut self, history: &[Replan]) {
        let mut there = self.known.replans.history.clone();
        for replan in history {
            let second = |at: &Option<Timestamp>| at.map(|at| at.0.div_euclid(1000));
            let is_same = |found: &Replan| {
                found.phase.is(&replan.phase)
                    && found.reason == replan.reason
                    && second(&found.timestamp) == second(&replan.timestamp)
            };
            if let Some(at) = there.iter().position(is_same) {
                there.swap_remove(at);
                continue;
            }
            let mut entry = vec![
                ("phase", Tree::from(replan.phase.to_json())),
                ("reason", Tree::from(replan.reason.as_str())),
            ];
            entry.extend(replan.timestamp.map(|at| ("timestamp", Tree::from(&*written(at)))));
            if !self.object.push(&["replan_history"], Tree::object(entry)) {
                self.refused.push("replan_history".to_owned());
            }
            self.in_step("last_replan_reason", replan.reason.as_str());
        }
    }

    /// Sets the counter of a phase in all forms that the file has, if it is larger than theirs.
    pub fn replan_count(&mut self, phase: &PhaseId, count: u64) {
        let before = self.known.replans.count(phase);
        let is_listed = self.object.span(&["replan_count", phase.as_str()]).is_some();
        if count == 0 || count < before || count == before && is_listed {
            return;
        }
        self.set(&["replan_count", phase.as_str()], count);
        let (of_map, of_name) = (format!("phase_{phase}"), format!("replan_phase_{phase}_count"));
        if let Some(Value::Object(_)) = self.object.get(&["replan_phase_counts"]) {
            self.set(&["replan_phase_counts", &of_map], count);
        }
        if self.object.get(&[&of_name]).is_some() {
            self.set(&[&of_name], count);
        }
        let total = self.object.get(&["replanning_count"]).and_then(|total| total.as_u64());
        if let Some(total) = total {
            self.set(&["replanning_count"], total + (count - before));
        }
    }

    /// Sets when the file was written, and when the plan was changed before that.
    pub fn touch(&mut self, at: Timestamp, plan_modified: Option<Timestamp>) {
        self.set(&["updated_at"], written(at).as_str());
        if self.object.span(&["plan_modification_time"]).is_some() {
            let modified = plan_modified.map(|at| Tree::from(Value::from(at.0.div_euclid(1000))));
            self.set(&["plan_modification_time"], Tree::from(modified));
        }
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
