//! The state file of a pipeline, `.pipeline-state.md`: reading it in all its dialects, changing it in
//! place, and writing a new one.
//!
//! The file is written by agents and people as well. The reader accepts their forms and reports what
//! it does not understand; the editor keeps every byte that a change does not concern.

mod checkpoints;
mod edit;
mod fresh;
mod layout;
mod ledger;
mod model;
mod place;
mod read;
mod words;

#[cfg(test)]
mod tests;

pub use checkpoints::BOXES;
pub use edit::Editor;
pub use fresh::{NewRun, fresh};
pub use model::{
    Checkpoint, Cluster, Completed, Detail, Field, Iteration, LedgerRow, Progress, State, Substance,
};
pub use read::{STATE_BYTES_MAX, read};
pub use words::{JobStatus, Said, Status, stage_key};

use layout::{Layout, Part};
use piton_formats::markdown::inline::title;

/// Tells whether a text is a state file, by its headings and fields.
pub fn is_state(text: &str) -> bool {
    let layout = Layout::new(text);
    let headed = layout.lines.iter().find_map(piton_formats::markdown::Line::heading);
    let is_named = headed.is_some_and(|(_, text)| title(text).starts_with("pipeline state"));
    let own = layout.sections.iter().filter(|section| section.part != Part::Notes).count();
    let has = |key: &str| layout.entries(&layout.header).iter().any(|entry| entry.key == key);
    let has_fields = || has("status") || has("current_stage") || has("run_id") || has("spec_hash");
    (is_named && (own > 0 || has_fields())) || own > 1 || (own > 0 && has_fields())
}
