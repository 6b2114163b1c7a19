//! The files of a run's plan, which a replan writes.

use piton_core::redact::Redactor;
use piton_core::{Plan, RunState};

use crate::error::Result;

/// A plan as its files say it.
#[derive(Clone, Debug)]
pub struct PlanRead {
    /// As recorded: without its secrets.
    pub recorded: Plan,
    /// What steps start from.
    pub live: Plan,
    /// Knows its secrets; nothing where it has none of its own.
    pub redactor: Option<Redactor>,
}

/// Why files are no plan, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPlan(pub String);

/// Which files of a plan are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// As they were before a replan.
    Before,
    /// As the replan left them.
    After,
}

/// The files of a run's plan.
pub trait Plans {
    /// Keeps them as they are before a replan, durably, under the number of its process.
    fn keep(&mut self, state: &RunState, before: &Plan, attempt: u32) -> Result<()>;
    /// Keeps them as a replan left them, durably and once, and reads that: the plan as `before` is
    /// recorded, or why it is none.
    fn left(
        &mut self,
        state: &RunState,
        attempt: u32,
        before: &Plan,
    ) -> Result<Result<PlanRead, NotAPlan>>;
    /// Makes them what they were before a replan, or what it left. Others that are there now are kept.
    fn put(&mut self, state: &RunState, attempt: u32, version: Version) -> Result<()>;
}
