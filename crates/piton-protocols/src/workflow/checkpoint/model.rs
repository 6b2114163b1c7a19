//! What a checkpoint says, whatever its form.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::Timestamp;

use crate::workflow::phase_id::PhaseId;

/// A checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Which family of files it belongs to.
    pub form: Form,
    /// The version of its schema, as written; 1.0 if it names none.
    pub schema: String,
    /// Its `workflow_id`.
    pub workflow_id: Option<String>,
    /// The plan that it is about.
    pub plan_path: Option<String>,
    /// How far the workflow came.
    pub progress: Progress,
    /// How often phases were replanned.
    pub replans: Replans,
    /// How the last phase went.
    pub health: Health,
    /// When it was written.
    pub times: Times,
    /// The fields that this model does not contain, with their values as JSON text.
    pub other: Vec<(String, String)>,
}

/// Families of checkpoint files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The form of the pattern, which Piton writes: it has a `workflow_id`.
    Pattern,
    /// A form with a schema version, from 1.0 to 2.1.
    Versioned,
}

/// How far a workflow came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The phase to continue with.
    pub current: Option<PhaseId>,
    /// The number of phases.
    pub total: Option<u64>,
    /// The phases that are complete.
    pub completed: BTreeSet<PhaseId>,
    /// What is known about single phases.
    pub records: BTreeMap<PhaseId, PhaseRecord>,
    /// Why nobody can tell how far the workflow came.
    pub unclear: Option<String>,
}

/// What a checkpoint says about one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseRecord {
    /// Its status, as written; `completed` and `failed` are known.
    pub status: String,
    /// The files that it made.
    pub artifacts: Vec<String>,
    /// How long it took.
    pub duration_minutes: Option<u64>,
    /// When it ended.
    pub timestamp: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<String>,
    /// What came of it, in a few words.
    pub key_results: Option<String>,
}

/// How often phases were replanned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replans {
    /// The count of each phase: the largest that any of the file's counters gives.
    pub counts: BTreeMap<PhaseId, u64>,
    /// What happened, the oldest first.
    pub history: Vec<Replan>,
}

impl Replans {
    /// How often a phase was replanned.
    pub fn count(&self, phase: &PhaseId) -> u64 {
        let of_phase = self.counts.iter().filter(|(id, _)| id.is(phase));
        of_phase.map(|(_, count)| *count).max().unwrap_or_default()
    }
}

/// One replan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replan {
    /// The phase.
    pub phase: PhaseId,
    /// Why.
    pub reason: String,
    /// When, if that is known.
    pub timestamp: Option<Timestamp>,
}

/// How the last phase went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The status of the workflow. The pattern has none: there it is that of its phases.
    pub status: Option<Status>,
    /// The last error, if there was one.
    pub last_error: Option<String>,
    /// Whether the tests passed, if the file says so.
    pub tests_passing: Option<bool>,
}

/// The status of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can continue.
    InProgress,
    /// It is complete.
    Completed,
    /// A phase failed.
    Failed,
    /// Another word, which is kept.
    Unknown(String),
}

impl Status {
    /// Reads a word.
    pub fn read(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().replace([' ', '-'], "_").as_str() {
            "in_progress" => Self::InProgress,
            "completed" | "complete" => Self::Completed,
            "failed" => Self::Failed,
            _ => Self::Unknown(word.to_owned()),
        }
    }

    /// The word as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Unknown(word) => word,
        }
    }
}

/// When a checkpoint was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it was changed last.
    pub updated: Option<Timestamp>,
    /// The modification time of the plan at that time; whole seconds.
    pub plan_modified: Option<Timestamp>,
    /// The newest time that a phase or replan records.
    pub newest_record: Option<Timestamp>,
}

impl Times {
    /// When the checkpoint was written last, as far as the file tells.
    pub fn written(&self) -> Option<Timestamp> {
        self.updated.max(self.created).or(self.newest_record)
    }
}
