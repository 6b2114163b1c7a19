//! What somebody is about to do in a lane's worktree, by git's own means: Piton's acts on its branch
//! and HEAD wait for that.
//!
//! Steps do not wait: one of them may be there to end it.

use std::path::Path;

use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::LaneWork;
use piton_core::shell::git;
use piton_engine::world::Refusal;
use piton_workspace::{Project, checks, merge, worktree};

use super::{GitRooms, branch_head};
use piton_core::text::short;

impl GitRooms {
    /// Why a lane's branch and HEAD stay as they are for now.
    pub(super) fn refuses_touch(&self, work: &LaneWork) -> Option<Refusal> {
        // Without its link git would tell of the project's own work tree.
        if !worktree::is_complete(Path::new(&work.dir)) {
            return None;
        }
        self.under_way(work).or_else(|| self.left_branch(work))
    }

    fn under_way(&self, work: &LaneWork) -> Option<Refusal> {
        // Of a merge all is in the files: they are committed, or markers in them are told.
        let all = checks::under_way(Path::new(&work.dir));
        let found = all.into_iter().find(|found| !found.is_merge())?;
        Some(Refusal {
            why: format!("{} is under way in {}", found.what, work.dir),
            fix: format!("{}, then `piton resume {}`", found.ends_in(&work.dir), self.run_id),
        })
    }
    /// Why the files of a worktree are not the lane's work: its commit is on its branch, and something
    /// else is checked out that does not contain it. Commits that grew from the lane's own are its work,
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
        let branch = &work.branch;
        let found = found.unwrap_or_else(|| "no branch".to_owned());
        Some(Refusal {
            why: format!(
                "its commit {} is on {branch}, and {found} is checked out in its worktree, at {}",
                short(own),
                short(&head)
            ),
            fix: format!(
                "`{}`, then `piton resume {}`",
                git(Some(&work.dir), &["switch", branch]),
                self.run_id
            ),
        })
    }
}

/// The commits that are on record as a lane's work.
fn committed(work: &LaneWork) -> impl Iterator<Item = &str> {
    let stages = [Stage::AfterLaneTests, Stage::PrePr].into_iter();
    let records = stages.filter_map(|stage| work.record(stage));
    let records = records.filter(|record| record.status != StageStatus::RolledBack);
    let now = work.committed.iter().map(|c| c.commit.as_str());
    now.chain(records.filter_map(|record| record.head_sha.as_deref()))
}
