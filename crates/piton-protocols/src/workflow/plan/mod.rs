//! Implementation plans: Markdown with numbered phases, read into a [`Plan`] and edited in place.
//!
//! A plan is read line by line in one pass. The marker of a phase's heading beats its boxes; without a
//! marker a phase is complete if all its boxes are ticked. Nothing here knows of runs.

mod dependencies;
mod edit;
mod fields;
mod heading;
mod model;
mod read;
mod waves;

#[cfg(test)]
mod tests;

pub use edit::{Edit, edit, tick_all};
pub use fields::{file_lines, status};
pub use heading::{Heading, is_phase_heading};
pub use model::{Complexity, Marker, Phase, PhaseStatus, Plan, Task, TestCommand};
pub use read::{inspect, is_plan, read, tasks_of};
pub use waves::{Cycle, order, resume_at, waves};

/// Largest plan: a hundred times the longest known; a larger file is the wrong one.
pub const PLAN_BYTES_MAX: usize = 16 << 20;
