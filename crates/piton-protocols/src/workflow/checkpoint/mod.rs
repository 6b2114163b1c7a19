//! The checkpoint of a workflow: one JSON file per workflow, in the form of the pattern and in the
//! forms of its older tools.
//!
//! One model is read from all of them. Writing edits in place: what it does not set stays byte for
//! byte, fields of other tools included.

mod edit;
mod ids;
mod model;
mod own;
mod read;
mod resume;

#[cfg(test)]
mod tests;

pub use edit::{Editor, Stand};
pub use ids::{VersionedName, workflow_ids};
pub use model::{Checkpoint, Form, Health, PhaseRecord, Progress, Replan, Replans, Status, Times};
pub use own::{Fresh, REQUIRED, fresh, upgrade, verify};
pub use read::{inspect, read};
pub use resume::{AGE_MAX_DAYS, AutoResume, Reason, age, auto_resume};

/// Largest checkpoint: a thousand times the longest known; a larger file is the wrong one.
pub const CHECKPOINT_BYTES_MAX: usize = 8 << 20;
