//! How a lane reaches base: its commit, the rebase, the merge, and the removal of its worktree.

use std::path::Path;

use piton_core::event::{LaneRemoved, MergeIntended};
use piton_core::lane::SnapshotRef;
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::{Commit, Merging, PullRequest, Rebase, Removed};
use piton_workspace::checks::{self, Base};
use piton_workspace::merge::{self, Advanced, Followed, Probe};
use piton_workspace::worktree::{self, BranchEnd, Files, Identity};
use piton_workspace::{refs, snapshot};

use super::error::{Error, Result};
use super::snapshots::recorded;
use super::unmerged_work::refuses_artifacts;
use super::{GitWorkspaces, branch_head, merged_command};
use crate::{notes, now, refusals};

/// The output of the `merged` command, in the folder of stat caches; the run's id follows.
const SAID: &str = "pull-request-said-";

impl GitWorkspaces {
    pub(super) fn commit_work(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit> {
        if work.isolation.is_in_place() {
            return self.commit_in_place(work, snapshot, message);
        }
        self.restore_link(lane, work)?;
        let refusal = self.refuses_change(work);
        if let Some(refusal) = refusal.or_else(|| self.refuses_commit(lane, work, snapshot)) {
            return Ok(Commit::Refused(refusal));
        }
        let unresolved = self.unresolved(work, &snapshot.tree)?;
        if !unresolved.is_empty() {
            return Ok(Commit::Unresolved(unresolved));
        }
        let fence = self.fenced()?;
        let dir = Path::new(&work.dir);
        let identity = Identity::Configured;
        let made = worktree::commit(dir, &snapshot.tree, message, &identity, &fence);
        let made = made?;
        let before = work.base_sha.as_deref().map(|base| format!("{base}^{{tree}}"));
        let before = before.and_then(|name| refs::value(&self.root, &name));
        let changed = before.as_deref() != Some(made.tree.as_str());
        Ok(Commit::Done { commit: made.commit, tree: made.tree, changed })
    }

    pub(super) fn rebase_work(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Rebase> {
        let gone = |branch: &str| Ok(Rebase::Refused(refusals::branch_gone(branch)));
        let Some(base) = checks::find_base(&self.root, &work.base_branch) else {
            return gone(&work.base_branch);
        };
        if work.isolation.is_in_place() {
            return self.rebase_in_place(work, base.commit);
        }
        let Some(head) = branch_head(&self.root, &work.branch) else {
            return gone(&work.branch);
        };
        if let Some(refusal) = self.refuses_change(work) {
            return Ok(Rebase::Refused(refusal));
        }
        let (onto, start) = (base.commit, work.base_sha.clone().unwrap_or_default());
        // Its files move with it; its snapshots have what nobody committed.
        self.take(Some(lane), &work.dir, "before the rebase", now())?;
        match merge::rebase(&self.root, &head, &start, &onto)? {
            merge::Rebase::UpToDate { commit, tree } => Ok(Rebase::Done { onto, commit, tree }),
            // Where base has all that the lane did in other commits, its branch is at base too.
            merge::Rebase::Nothing { commit, tree } | merge::Rebase::Clean { commit, tree, .. } => {
                let fence = self.fenced()?;
                worktree::move_to(Path::new(&work.dir), &commit, Files::Follow, &fence)?;
                Ok(Rebase::Done { onto, commit, tree })
            }
            merge::Rebase::Conflict { files, .. } => Ok(Rebase::Conflict { onto, head, files }),
        }
    }

    fn base_of(&self, intent: &MergeIntended) -> Base {
        checks::find_base(&self.root, &intent.base_branch).unwrap_or_else(|| Base {
            branch: intent.base_branch.clone(),
            commit: intent.from.clone(),
            worktree: None,
            rebased_in: None,
        })
    }

    pub(super) fn refuses_merge(&self, intent: &MergeIntended) -> Option<Refusal> {
        let base = self.base_of(intent);
        if base.commit != intent.from {
            // The merge itself finds that base moved, and tries again.
            return None;
        }
        merge::would_follow(&base, &intent.from, &intent.to).err()
    }

    pub(super) fn move_base(&mut self, intent: &MergeIntended) -> Result<Merging> {
        let (base, fence) = (self.base_of(intent), self.fenced()?);
        let (from, to) = (intent.from.as_str(), intent.to.as_str());
        let followed = match merge::probe(&self.root, &base, from, to)? {
            Probe::Done => Followed::Done,
            Probe::BaseMoved { found } => return Ok(self.moved(from, found)),
            Probe::RefMoved => merge::follow(&self.root, &base, from, to)?,
            Probe::NotDone => {
                self.moves.note(from, to);
                match merge::advance(&self.root, &base, from, to, &fence)? {
                    Advanced::Done(followed) => followed,
                    Advanced::BaseMoved { found } => return Ok(self.moved(from, found)),
                    Advanced::InTheWay(paths) => {
                        return Ok(Merging::Refused(refusals::changes_in_the_way(&paths)));
                    }
                }
            }
        };
        Ok(Merging::Done(match followed {
            Followed::Done => String::new(),
            Followed::NotCheckedOut => notes::not_checked_out(&intent.base_branch),
            Followed::Blocked(paths) => notes::work_tree_stays_behind(&intent.base_branch, &paths),
        }))
    }

    /// Base is not where a merge expected it, perhaps because other runs were faster.
    fn moved(&self, from: &str, found: Option<String>) -> Merging {
        let found = found.unwrap_or_default();
        let by_runs = self.moves.lead(from, &found);
        Merging::Moved { found, by_runs }
    }

    /// Releases the user's index after an interrupted merge; what can't be done now is done by the next
    /// merge.
    pub(super) fn finish_merge(&self, intent: &MergeIntended) -> Option<String> {
        let base = self.base_of(intent);
        let done = merge::finish_interrupted(&self.root, &base, &intent.from, &intent.to);
        Some(notes::merge_not_finished(&intent.lane, &done.err()?.to_string()))
    }

    pub(super) fn check_pull_request(&mut self, work: &LaneWork) -> Result<PullRequest> {
        let Some(committed) = work.committed() else { return Ok(PullRequest::Open(None)) };
        // The commit of a lane that was imported may be unknown, or not be here yet.
        let here = !committed.commit.is_empty()
            && refs::value(&self.root, &format!("{}^{{commit}}", committed.commit)).is_some();
        if here && merge::contains(&self.root, &work.base_branch, &committed.commit)? {
            return Ok(PullRequest::Merged(notes::contained(&work.base_branch)));
        }
        std::fs::create_dir_all(&self.cache)?;
        let said = self.cache.join(format!("{SAID}{}", self.run_id));
        let root = self.root.to_string_lossy();
        let variables = [
            ("PITON_BRANCH", work.branch.as_str()),
            ("PITON_BASE_BRANCH", &work.base_branch),
            ("PITON_HEAD", &committed.commit),
            ("PITON_ROOT", &root),
            ("PITON_PULL_REQUEST", work.pull_request.as_deref().unwrap_or_default()),
        ];
        merged_command::run(&self.options.merged, &self.root, &said, &variables)
    }

    pub(super) fn remove_worktree(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        artifacts: &[String],
        at: Timestamp,
    ) -> Result<Removed> {
        let head = branch_head(&self.root, &work.branch);
        let fence = self.fenced()?;
        let dir = Path::new(&work.dir);
        let mut kept = None;
        let last = if dir.is_dir() {
            let taken = self.take(Some(lane), &work.dir, "before the worktree goes", at)?;
            kept = self.refuses_unmerged(work, &taken, head.as_deref());
            kept = kept.or_else(|| refuses_artifacts(work, &taken, artifacts));
            Some(recorded(&taken))
        } else {
            // A driver that was killed removed it: its last snapshot is the one from before.
            refs::value(&self.root, &self.chain(Some(lane)))
                .and_then(|commit| snapshot::load(&self.root, &commit).ok())
                .map(|last| recorded(&last))
        };
        let refusal =
            last.as_ref().and_then(|last| self.refuses_removal(work, last, head.as_deref()));
        if let Some(refusal) = refusal.or(kept) {
            return Err(refusal.into());
        }
        worktree::remove(&self.root, dir, &fence)?;
        let owner = (self.run_id.as_str(), &*lane.to_string());
        if work.is_dropped() {
            let end = worktree::drop_branch(&self.root, owner, &fence)?;
            if let BranchEnd::InUse(path) = end {
                return Err(refusals::branch_in_use(&work.branch, &path).into());
            }
            return Ok(removed(lane, last, head, false));
        }
        let Some(head) = head else {
            let head = work.committed().map(|c| c.commit.clone());
            return Ok(removed(lane, last, head, false));
        };
        let end = worktree::delete_branch_if_contained(
            &self.root,
            owner,
            &head,
            &work.base_branch,
            &fence,
        );
        // Commits that change nothing are not merged: a ref of the run keeps them.
        let empty = work.committed_nothing(&head);
        let end = match end {
            Ok(BranchEnd::NotContained) if empty => {
                worktree::drop_branch(&self.root, owner, &fence)
            }
            end => end,
        };
        let why = match end.map_err(Error::from) {
            Ok(BranchEnd::Deleted) => return Ok(removed(lane, last, Some(head), false)),
            // Merged elsewhere, perhaps as one commit: what base does not contain stays.
            Ok(BranchEnd::NotContained) => None,
            Ok(BranchEnd::Moved(_)) => Some(notes::BRANCH_HAS_COMMITS.to_owned()),
            Ok(BranchEnd::InUse(by)) => Some(notes::branch_is_checked_out(&by)),
            Ok(BranchEnd::Foreign) => Some(notes::BRANCH_IS_FOREIGN.to_owned()),
            // The worktree is gone all the same.
            Err(Error::Refused(why)) => Some(notes::branch_not_deleted(&why.to_string())),
            Err(error) => return Err(error),
        };
        Ok(Removed { why_branch_stays: why, ..removed(lane, last, Some(head), true) })
    }
}

fn removed(
    lane: &LanePath,
    snapshot: Option<SnapshotRef>,
    branch_head: Option<String>,
    branch_stays: bool,
) -> Removed {
    LaneRemoved { lane: lane.clone(), snapshot, branch_head, branch_stays }.into()
}
