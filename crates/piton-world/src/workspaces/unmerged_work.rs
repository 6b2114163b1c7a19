//! Work in a lane's worktree that was done after its commit: no merge has it, so the worktree stays and
//! a person is told.
//!
//! A lane may wait for its pull request for days, with its folder open in somebody's editor.

use std::path::Path;

use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Timestamp};

use piton_workspace::snapshot::Snapshot;
use piton_workspace::{Project, history, merge, missed, refs};

use super::degraded::commit_tree;
use super::{GitWorkspaces, branch_head};
use crate::{notes, refusals};

impl GitWorkspaces {
    /// Why a lane's worktree can't be removed: it has work that base does not have.
    pub(super) fn refuses_unmerged(
        &self,
        work: &LaneWork,
        taken: &Snapshot,
        head: Option<&str>,
    ) -> Option<Refusal> {
        let what = self.unmerged_work(work, taken, head)?;
        Some(refusals::only_copy(Path::new(&work.dir), &what))
    }

    /// Work of a lane that waits for its pull request which the request does not have.
    pub(super) fn work_not_requested(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        at: Timestamp,
    ) -> Option<String> {
        if !Path::new(&work.dir).is_dir() {
            return None;
        }
        let head = branch_head(&self.root, &work.branch);
        let taken = self.take(Some(lane), &work.dir, "while it waits", at).ok()?;
        let what = self.unmerged_work(work, &taken, head.as_deref())?;
        Some(notes::not_in_pull_request(lane, &work.dir, &what))
    }

    /// Work in a lane's worktree that is neither in its commit nor in base, in words. Costs nothing
    /// where the worktree is as it was committed.
    fn unmerged_work(
        &self,
        work: &LaneWork,
        taken: &Snapshot,
        head: Option<&str>,
    ) -> Option<String> {
        let committed = work.committed().filter(|_| !work.is_dropped())?;
        let dir = Path::new(&work.dir);
        let waited = work.pull_request.is_some();
        // A lane that is merged right after its commit is still on its branch.
        let own = || Project::discover_cached(dir).ok().and_then(|project| project.head());
        let head = head.unwrap_or(&committed.commit).to_owned();
        let head = if waited { own().unwrap_or(head) } else { head };
        let is_known = head == committed.commit;
        let kept = if is_known {
            Some(committed.tree.clone())
        } else {
            refs::value(&self.root, &format!("{head}^{{tree}}"))
        };
        let found = commit_tree(&work.dir, taken);
        if kept.as_ref() != Some(&found) && !is_clean(dir) {
            let kept = kept.unwrap_or_else(|| committed.tree.clone());
            return Some(notes::uncommitted(self.changed_files(&kept, &found)));
        }
        if is_known || merge::contains(&self.root, &work.base_branch, &head).unwrap_or(false) {
            return None;
        }
        Some(notes::later_commits(&committed.commit, &head))
    }

    /// The files in which two trees differ; the first few, the rest counted.
    fn changed_files(&self, from: &str, to: &str) -> Option<String> {
        let all = history::changed(&self.root, from, to).unwrap_or_default();
        notes::named(all.iter().map(Vec::as_slice))
    }
}

/// Why a lane's worktree can't be removed: artifacts of its steps are in no commit and no snapshot, and
/// the run reported success because of them.
pub(super) fn refuses_artifacts(
    work: &LaneWork,
    taken: &Snapshot,
    artifacts: &[String],
) -> Option<Refusal> {
    let dir = Path::new(&work.dir);
    // What is too large is in the commit, or keeps the worktree by itself.
    let missed = |path: &String| taken.degraded.iter().any(|m| m.path == path.as_bytes());
    match missed::not_in_tree(dir, &taken.tree, artifacts) {
        Ok(only) => {
            let only: Vec<String> = only.into_iter().filter(|path| !missed(path)).collect();
            Some(refusals::only_copy(dir, &notes::ignored_artifacts(&only)?))
        }
        Err(error) => Some(refusals::unknown_contents(dir, error.into())),
    }
}

/// Whether git finds nothing to commit either: a file that only its next commit would convert is not
/// somebody's work.
fn is_clean(dir: &Path) -> bool {
    history::uncommitted(dir).is_ok_and(|paths| paths.is_empty())
}
