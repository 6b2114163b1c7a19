//! Which files an attempt changed besides those it may change, or was expected to.

use piton_core::lane::SnapshotRef;
use piton_core::plan::Step;
use piton_core::replan;

use super::Driver;
use crate::error::Result;
use crate::world::Attempt;

/// Most files outside of a step's scope that are recorded: enough to see where it went.
const DRIFTED_KEPT_MAX: usize = 20;
/// Most files that are recorded as changed by a step: all that a person reads, and an event stays small.
const CHANGED_KEPT_MAX: usize = 100;

impl Driver<'_> {
    /// The files outside of its scope that an attempt changed: those that call for a replan, and those
    /// that are only reported.
    pub(super) fn drifted(&mut self, attempt: &Attempt) -> Result<(Vec<String>, Vec<String>)> {
        let Some(step) = self.planned(&attempt.step).cloned() else {
            return Ok(Default::default());
        };
        let rules = self.plan.replan_rules();
        let (minds, asks) =
            (replan::minds_drift(&self.plan, &self.state, &attempt.step), rules.scope_drift);
        // Where a person has agreed to the drift, it is no news.
        if step.scope.is_none() || (asks && !minds) {
            return Ok(Default::default());
        }
        let mut changed = self.changed_beyond(step.scope.as_ref(), &step, attempt)?;
        changed.truncate(DRIFTED_KEPT_MAX);
        let changed: Vec<String> = changed.iter().map(|path| self.redact(path)).collect();
        Ok(if minds { (changed, Vec::new()) } else { (Vec::new(), changed) })
    }

    /// The files that a step changed with all its attempts, without those that are gone.
    pub(super) fn left_by(
        &mut self,
        attempt: &Attempt,
        after: Option<&SnapshotRef>,
    ) -> Result<Vec<String>> {
        let found = self.state.step(&attempt.step).and_then(|s| s.scope_from.clone());
        let (Some(found), Some(after)) = (found, after) else { return Ok(Vec::new()) };
        let mut changed = self.workspaces()?.left(&found, &after.commit)?;
        changed.truncate(CHANGED_KEPT_MAX);
        Ok(changed.iter().map(|path| self.redact(path)).collect())
    }

    /// The files that an attempt changed besides these and its artifacts.
    pub(super) fn changed_beyond(
        &mut self,
        allowed: Option<&Vec<String>>,
        step: &Step,
        attempt: &Attempt,
    ) -> Result<Vec<String>> {
        let Some(allowed) = allowed else { return Ok(Vec::new()) };
        let may: Vec<String> = allowed.iter().chain(&step.artifacts).cloned().collect();
        let found = self.state.step(&attempt.step).and_then(|s| s.scope_from.clone());
        let left = self.snapshot(&attempt.step.lane(), &format!("after {attempt}"));
        // What can't be checkpointed is reported when the outcome is recorded.
        let (Some(found), Ok(Some(left))) = (found, left) else { return Ok(Vec::new()) };
        self.workspaces()?.changed(&found, &left.commit, &may)
    }
}
