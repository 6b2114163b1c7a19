//! What a driver knows of the files of lanes: snapshots of this turn, and who changed what.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::lane::{OnRetry, SnapshotRef};
use piton_core::plan::OnChange;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, StepPath, remedy};

use super::Driver;
use super::tallies::exceeds;
use crate::error::{Error, Result};

/// Times one driver runs a step again because its inputs were made anew: steps that change each
/// other's inputs, or their own, would go on for ever.
const REDONE_MAX: u32 = 3;

#[derive(Default)]
pub(super) struct Files {
    /// Snapshots of this turn, by the folder; nothing ran since they were taken.
    pub(super) fresh: BTreeMap<String, SnapshotRef>,
    /// Lanes that a person edited after a driver before this one had committed them.
    pub(super) edited: BTreeSet<LanePath>,
    /// Whether something was made anew that finished steps may read.
    pub(super) recheck_inputs: bool,
}

impl Driver<'_> {
    /// The folder of a lane; empty for the root.
    pub(super) fn dir_of(&self, lane: &LanePath) -> String {
        self.state.lane(lane).map_or("", |l| l.dir()).to_owned()
    }

    /// Commits before files are looked at again: that takes its time, and outcomes do not wait for it.
    pub(super) fn commit_before_files(&mut self) -> Result<()> {
        self.commit()?;
        self.files.fresh.clear();
        Ok(())
    }

    /// Snapshots where a lane works; the same turn needs it once.
    pub(super) fn snapshot(
        &mut self,
        path: &LanePath,
        why: &str,
    ) -> Result<Option<SnapshotRef>, Refusal> {
        let Some(work) = self.state.lane(path).and_then(|l| l.work.as_deref()) else {
            return Ok(None);
        };
        if !work.has_workspace() {
            return Ok(None);
        }
        let own = !work.isolation.is_in_place();
        let dir = if own { work.dir.clone() } else { String::new() };
        if let Some(fresh) = self.files.fresh.get(&dir) {
            return Ok(Some(fresh.clone()));
        }
        let Some(workspaces) = self.world.workspaces() else {
            return Ok(None);
        };
        let taken = workspaces.snapshot(own.then_some(path), &dir, why, self.clock.at)?;
        self.files.fresh.insert(dir, taken.clone());
        Ok(Some(taken))
    }

    /// Takes a lane's files and branch back to what its first attempt found, where the plan says so.
    pub(super) fn reset(&mut self, step: &StepPath) -> Result<(), Refusal> {
        let path = step.lane();
        let resets = self.plan.lane(&path).is_some_and(|l| {
            l.rules.on_retry == OnRetry::Reset && !l.rules.isolation.is_in_place()
        });
        let found = self.state.step(step);
        let found =
            found.map(|s| (s.before.clone(), (s.before_head.clone(), s.before_tree.clone())));
        let (true, Some((Some(before), (head, tree)))) = (resets, found) else { return Ok(()) };
        let dir = self.work(&path).dir;
        self.files.fresh.remove(&dir);
        let Some(workspaces) = self.world.workspaces() else { return Ok(()) };
        let stood = (head.as_deref(), tree.as_deref());
        if let Some(text) = workspaces.reset(&path, &dir, &before, stood, self.clock.at)? {
            self.warn(text);
        }
        Ok(())
    }

    /// Whether a lane has other files than a driver before this one committed: a person changed them.
    pub(super) fn was_edited(&mut self, path: &LanePath) -> Result<bool> {
        let Some(committed) = self.work(path).committed().cloned() else { return Ok(false) };
        self.commit_before_files()?;
        // What can't be checkpointed is reported when the lane is rebased.
        let Ok(Some(present)) = self.snapshot(path, "before it is put on base") else {
            return Ok(false);
        };
        let is_at_commit = present.head.as_ref() == Some(&committed.commit);
        let was_edited = is_at_commit && present.tree != committed.tree;
        self.files.edited.extend(was_edited.then(|| path.clone()));
        Ok(was_edited)
    }

    /// Looks again at inputs of finished steps after something they may read was made anew.
    pub(super) fn recheck(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.files.recheck_inputs) {
            return Ok(());
        }
        let stale = match crate::resume::stale_inputs(&self.plan, &self.state, self.world) {
            // A signal came before all were hashed; it is handled next.
            Err(Error::Interrupted(_)) => return Ok(()),
            other => other?,
        };
        let asks = self.plan.on_change == OnChange::Ask;
        for rerun in stale {
            if asks {
                let (run, step, reason) = (self.run.id(), &rerun.step, &rerun.reason);
                self.warn(remedy![
                    Words "{step}: {reason}; it stays as it is, ", Piton "retry {run} {step} --again",
                    Words " runs it again"
                ]);
            } else if exceeds(&mut self.tallies.redone, &rerun.step, REDONE_MAX) {
                self.warn(format!(
                    "{}: {} once more, perhaps by the step itself; it is left as it is",
                    rerun.step, rerun.reason
                ));
            } else {
                self.run_again(rerun.step, rerun.reason)?;
            }
        }
        Ok(())
    }
}
