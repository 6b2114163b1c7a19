//! What a state file says: its fields, its stages, its boxes.
//!
//! Values only, each with the line it was read from. Unknown fields and words are kept as they are
//! written.

use super::words::{JobStatus, Said, Status, stage_key};

/// The state of a run, as a file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The fields before the first section, in their order.
    pub fields: Vec<Field>,
    /// The status of the run.
    pub status: Said<Status>,
    /// The current stage, as stages are compared; of a stage ledger the first that is not done.
    pub current_stage: Option<String>,
    /// The stages that are done, in the order of the file.
    pub completed: Vec<Completed>,
    /// What is known about the current stage.
    pub detail: Detail,
    /// How often stages were tried.
    pub iterations: Vec<Iteration>,
    /// Failures that occur again and again.
    pub clusters: Vec<Cluster>,
    /// The boxes of people.
    pub checkpoints: Vec<Checkpoint>,
    /// The rows of a stage ledger.
    pub ledger: Vec<LedgerRow>,
    /// The lines of the notes, blank ones at both ends left out.
    pub notes: Vec<String>,
    /// Whether it describes a run at all.
    pub substance: Substance,
}

impl State {
    /// The value of a field of the header, by its key; the first counts, and an empty one is none.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key && !field.value.is_empty())
    }

    /// The value of such a field without emphasis and prose; `None` if nobody has filled it in.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.field(key).filter(|field| !field.is_unfilled).map(|field| field.value.as_str())
    }

    /// Tells whether a stage is done.
    pub fn is_completed(&self, stage: &str) -> bool {
        let key = stage_key(stage);
        self.completed.iter().any(|done| done.key() == key)
    }

    /// The boxes that are ticked.
    pub fn cleared(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter().filter(|checkpoint| checkpoint.is_cleared)
    }

    /// The boxes that are not.
    pub fn pending(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter().filter(|checkpoint| !checkpoint.is_cleared)
    }
}

/// Whether a file describes a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Substance {
    /// It does.
    Run,
    /// It is a template that nobody has filled in.
    Template,
    /// It has nothing of a state file.
    #[default]
    Nothing,
}

/// A field of the header or of the current stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its key, in lower case with underscores.
    pub key: String,
    /// Its value, without emphasis and prose.
    pub value: String,
    /// Its value as it is written.
    pub raw: String,
    /// Whether it is still that of a template.
    pub is_unfilled: bool,
    /// Its line, from 1.
    pub line: usize,
}

/// A stage that is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// The stage, as it is written.
    pub stage: String,
    /// When it was done, as it is written.
    pub completed_at: Option<String>,
    /// The artifact, usually a path.
    pub artifact: Option<String>,
    /// The hash of the artifact, as it is written.
    pub hash: Option<String>,
    /// Its line, from 1.
    pub line: usize,
}

impl Completed {
    /// The stage, as stages are compared.
    pub fn key(&self) -> String {
        stage_key(&self.stage)
    }
}

/// What is known about the current stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// All fields, in their order.
    pub fields: Vec<Field>,
    /// The status of its job.
    pub job_status: Said<JobStatus>,
    /// How often it was tried again.
    pub retry_count: Option<u32>,
}

impl Detail {
    /// The value of a field, by its key; `None` if it is empty or nobody has filled it in.
    pub fn value(&self, key: &str) -> Option<&str> {
        let mut fields = self.fields.iter().filter(|f| f.key == key && !f.value.is_empty());
        fields.next().filter(|field| !field.is_unfilled).map(|field| field.value.as_str())
    }
}

/// How often a stage was tried: a row of Iteration Counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iteration {
    /// The stage.
    pub stage: String,
    /// How often it was tried, as it is written.
    pub cycle_count: String,
    /// How often it may be tried.
    pub budget: String,
    /// Such as `WITHIN_BUDGET`.
    pub status: String,
}

/// A failure that occurs again and again: a row of Failure Clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// What fails.
    pub name: String,
    /// When it was first seen, as it is written.
    pub first_seen: String,
    /// How often it was tried again.
    pub retry_count: String,
    /// The stage.
    pub stage: String,
    /// Anything else.
    pub notes: String,
}

/// A decision of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The text of its box.
    pub text: String,
    /// Whether it is ticked, or approved in the stage ledger.
    pub is_cleared: bool,
    /// Its line, from 1.
    pub line: usize,
}

/// A row of a stage ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// The stage, or the checkpoint of a person, as it is written.
    pub name: String,
    /// How far it is.
    pub progress: Progress,
    /// The status, as it is written.
    pub status: String,
    /// When, as it is written.
    pub date: String,
    /// Anything else.
    pub notes: String,
    /// Its line, from 1.
    pub line: usize,
}

/// How far a row of a stage ledger is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Completed or approved.
    Done,
    /// Still to be done.
    Open,
    /// Left out on purpose.
    Skipped,
    /// The word is unknown.
    Unknown,
}
