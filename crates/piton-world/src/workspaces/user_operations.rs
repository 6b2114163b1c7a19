//! What somebody does in a lane's worktree with git itself, such as a rebase: Piton does not change the
//! branch and HEAD until it is finished.
//!
//! Steps do not wait: one of them may be there to finish it.

use std::path::Path;

use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;

use piton_workspace::{Project, checks, merge, worktree};

use super::{GitWorkspaces, branch_head};
use crate::refusals;

impl GitWorkspaces {
    /// Why a lane's branch and HEAD must not change now.
    pub(super) fn refuses_change(&self, work: &LaneWork) -> Option<Refusal> {
        let dir = Path::new(&work.dir);
        // Without its link git would answer for the project's own work tree.
        if !worktree::is_complete(dir) {
            return None;
        }
        // A merge is all in the files: they are committed, or markers in them are reported.
        let mut found = checks::under_way(dir).into_iter().filter(|found| !found.is_merge());
        found.next().map(|found| found.refusal(dir)).or_else(|| self.left_branch(work))
    }

    /// Why the files of a worktree are not the lane's work: its commit is on its branch, and something
    /// else is checked out that does not contain it. Commits on top of the lane's own are its work,
    /// wherever they are.
    fn left_branch(&self, work: &LaneWork) -> Option<Refusal> {
        let project = Project::discover_cached(Path::new(&work.dir)).ok()?;
        let found = project.branch();
        if found.as_ref() == Some(&work.branch) {
            return None;
        }
        let (head, tip) = (project.head()?, branch_head(&self.root, &work.branch)?);
        let within = |commit: &str, tip: &str| merge::is_ancestor(&self.root, commit, tip);
        let is_left = |commit: &&str| {
            within(commit, &tip).unwrap_or(false) && !within(commit, &head).unwrap_or(true)
        };
        let own = committed(work).find(is_left)?;
        let lane = (work.branch.as_str(), own);
        Some(refusals::not_on_branch(lane, (found.as_deref(), &head), &work.dir))
    }
}

/// The commits that are recorded as a lane's work.
fn committed(work: &LaneWork) -> impl Iterator<Item = &str> {
    let stages = [Stage::AfterLaneTests, Stage::PrePr].into_iter();
    let records = stages.filter_map(|stage| work.record(stage));
    let records = records.filter(|record| record.status != StageStatus::RolledBack);
    let now = work.committed().into_iter().map(|c| c.commit.as_str());
    now.chain(records.filter_map(|record| record.head_sha.as_deref()))
}
