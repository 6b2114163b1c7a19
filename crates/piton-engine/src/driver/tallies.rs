//! What a driver counts, so that every loop ends.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::{LanePath, Millis, StepPath};

use super::halting::Asked;
use crate::world::Attempt;

#[derive(Default)]
pub(super) struct Tallies {
    /// Steps that this driver has begun since a person last asked for further attempts.
    pub(super) begun: BTreeSet<StepPath>,
    /// Interruptions of each step since a person last asked for it.
    pub(super) restarts: BTreeMap<StepPath, u32>,
    /// Agents that were ended because they showed no sign of life, and for how long they had not.
    pub(super) silent: BTreeMap<Attempt, Millis>,
    /// Agents that were asked to stop.
    pub(super) asked: BTreeMap<Attempt, Asked>,
    /// The time awake when the spending of other runs was last looked at.
    pub(super) day_read: Option<Millis>,
    /// Times each step ran again because its inputs were made anew.
    pub(super) redone: BTreeMap<StepPath, u32>,
    /// How much was done for each lane since it last started a step.
    pub(super) acts: BTreeMap<LanePath, u32>,
}

/// Counts one more; whether that is too many.
pub(super) fn exceeds<K: Clone + Ord>(tally: &mut BTreeMap<K, u32>, of: &K, max: u32) -> bool {
    let count = tally.entry(of.clone()).or_default();
    *count += 1;
    *count > max
}
