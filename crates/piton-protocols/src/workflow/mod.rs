//! The workflow protocol: numbered phases of an implementation plan, one checkpoint file per workflow.
//!
//! Readers accept what real plans, task lists and checkpoints contain and report what they do not
//! understand; writers edit in place.

pub mod checkpoint;
mod inspect;
pub mod phase_id;
pub mod plan;
pub mod tasks;

#[cfg(test)]
mod tests;

use piton_core::refusal::Refusal;

use crate::format::{Claim, Format};
use crate::protocol::{Protocol, Reading, Source, Unreadable};

pub use phase_id::PhaseId;

/// The workflow protocol.
#[derive(Debug)]
pub struct Workflow;

impl Protocol for Workflow {
    fn id(&self) -> &'static str {
        "workflow"
    }

    /// It claims no plans: its files can be inspected, but not run.
    fn claim(&self, _: &Source<'_>) -> Claim {
        Claim::No
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        let cause = format!("{} is a workflow plan, and workflow plans cannot be run", source.file);
        let refusal = Refusal::new("plan-unreadable", cause);
        Err(Unreadable::Refused(refusal.or("write a plan.toml with the same phases")))
    }

    fn formats(&self) -> &'static [Format] {
        inspect::FORMATS
    }
}
