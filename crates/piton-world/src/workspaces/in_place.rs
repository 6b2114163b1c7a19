//! Lanes in place that hand on a commit: made from snapshots of the project's root, and put on base.

use piton_core::lane::{SnapshotRef, Stage};
use piton_core::lane_state::LaneWork;
use piton_engine::world::{Commit, Rebase};
use piton_workspace::merge::{self, Rebase as Rebased};
use piton_workspace::worktree::Identity;
use piton_workspace::{Project, checks, refs, snapshot};

use super::error::Result;
use super::{GitWorkspaces, branch_head};
use crate::refusals;

impl GitWorkspaces {
    /// Makes a commit of what changed in the project's root since a lane began there. It is not on base
    /// yet.
    pub(super) fn commit_in_place(
        &self,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit> {
        let here = Project::discover_cached(&self.root).ok().and_then(|project| project.branch());
        if here.as_ref() != Some(&work.base_branch) {
            let base = &work.base_branch;
            let refusal = refusals::base_not_checked_out(base, here.as_deref());
            return Ok(Commit::Refused(refusal));
        }
        if let Err(refusal) = checks::idle(&self.root) {
            return Ok(Commit::Refused(refusal));
        }
        let Some(onto) = branch_head(&self.root, &work.base_branch) else {
            return Ok(Commit::Refused(refusals::branch_gone(&work.base_branch)));
        };
        let began = work.record(Stage::BeforeLaneStart).and_then(|r| r.snapshot.as_deref());
        let before = match began {
            Some(commit) => snapshot::load(&self.root, commit)?.tree,
            None => onto.clone(),
        };
        let is_own = |path: &[u8]| self.rules.excludes(path);
        let trees = (before.as_str(), snapshot.tree.as_str());
        let identity = Identity::Configured;
        let made = merge::commit_in_place(&self.root, &onto, trees, &is_own, message, &identity)?;
        Ok(Commit::Done { commit: made.commit, tree: made.tree, changed: made.changed })
    }

    /// Puts such a commit on the base of now, in the object store alone.
    pub(super) fn rebase_in_place(&self, work: &LaneWork, onto: String) -> Result<Rebase> {
        let committed = work.committed().map(|c| c.commit.clone()).unwrap_or_default();
        let Some(parent) = refs::value(&self.root, &format!("{committed}^")) else {
            return Ok(Rebase::Refused(refusals::branch_gone(&committed)));
        };
        Ok(match merge::rebase(&self.root, &committed, &parent, &onto)? {
            Rebased::UpToDate { commit, tree }
            | Rebased::Nothing { commit, tree }
            | Rebased::Clean { commit, tree, .. } => Rebase::Done { onto, commit, tree },
            Rebased::Conflict { files, .. } => {
                Rebase::Refused(refusals::changes_in_the_way(&files))
            }
        })
    }
}
