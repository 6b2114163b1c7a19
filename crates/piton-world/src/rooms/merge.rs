//! A lane's way to base: its commit, the rebase, the move of base, and the end of its worktree.

use std::path::Path;

use piton_core::event::{LaneRemoved, MergeIntended};
use piton_core::lane::SnapshotRef;
use piton_core::lane_state::LaneWork;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::{Commit, Merging, Rebase, Refusal, Removed};
use piton_engine::{Error, Result};
use piton_workspace::checks::{self, Base};
use piton_workspace::merge::{self, Advanced, Followed, Probe};
use piton_workspace::worktree::{self, BranchEnd, Files, Identity};
use piton_workspace::{refs, snapshot};

use super::asked::{self, Answer};
use super::begin::at;
use super::stays::keeps_artifacts;
use super::{GitRooms, branch_head, failed, of_worktree, recorded, refusal};

/// Where the command that looks at a pull request says something, in the folder of stat caches; the run's id follows.
const SAID: &str = "pull-request-said-";

impl GitRooms {
    pub(super) fn commit_work(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit> {
        self.linked_again(lane, work)?;
        let refusal = self.refuses_touch(work);
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
        let made = made.map_err(of_worktree)?;
        let before = work.base_sha.as_deref().map(|base| format!("{base}^{{tree}}"));
        let before = before.and_then(|name| refs::value(&self.root, &name));
        let changed = before.as_deref() != Some(made.tree.as_str());
        Ok(Commit::Done { commit: made.commit, tree: made.tree, changed })
    }

    pub(super) fn rebase_work(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Rebase> {
        let gone = |what: String| {
            let fix = "bring it back, then `piton resume`".to_owned();
            Ok(Rebase::Refused(Refusal { why: what, fix }))
        };
        let Some(base) = checks::find_base(&self.root, &work.base_branch) else {
            return gone(format!("branch {} is gone", work.base_branch));
        };
        let Some(head) = branch_head(&self.root, &work.branch) else {
            return gone(format!("branch {} is gone", work.branch));
        };
        if let Some(refusal) = self.refuses_touch(work) {
            return Ok(Rebase::Refused(refusal));
        }
        let (onto, start) = (base.commit, work.base_sha.clone().unwrap_or_default());
        // Its files move with it; what nobody committed stands in its snapshots.
        self.take(Some(lane), &work.dir, "before it is put on base", at()).map_err(failed)?;
        match merge::rebase(&self.root, &head, &start, &onto).map_err(of_merge)? {
            merge::Rebase::UpToDate { commit, tree } => Ok(Rebase::Done { onto, commit, tree }),
            // Where base has all that the lane did, as other commits, its branch is at base too.
            merge::Rebase::Nothing { commit, tree } | merge::Rebase::Clean { commit, tree, .. } => {
                let fence = self.fenced()?;
                worktree::move_to(Path::new(&work.dir), &commit, Files::Follow, &fence)
                    .map_err(of_worktree)?;
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
            // Base moved: the move itself says so, and the queue goes round.
            return None;
        }
        merge::would_follow(&base, &intent.from, &intent.to).err().map(refusal)
    }

    pub(super) fn move_base(&mut self, intent: &MergeIntended) -> Result<Merging> {
        let (base, fence) = (self.base_of(intent), self.fenced()?);
        let (from, to) = (intent.from.as_str(), intent.to.as_str());
        let followed = match merge::probe(&self.root, &base, from, to).map_err(of_merge)? {
            Probe::Done => Followed::Done,
            Probe::BaseMoved { found } => return Ok(self.moved(from, found)),
            Probe::RefMoved => merge::follow(&self.root, &base, from, to).map_err(of_merge)?,
            Probe::NotDone => {
                self.moves.note(from, to);
                match merge::advance(&self.root, &base, from, to, &fence) {
                    Ok(Advanced::Done(followed)) => followed,
                    Ok(Advanced::BaseMoved { found }) => return Ok(self.moved(from, found)),
                    Ok(Advanced::InTheWay(paths)) => {
                        let why = format!("your own changes are in the way: {}", paths.join(", "));
                        let fix = "commit, stash or move them away, then `piton resume`".to_owned();
                        return Ok(Merging::Refused(Refusal { why, fix }));
                    }
                    Err(merge::Error::UnderWay(found)) => {
                        return Ok(Merging::Refused(refusal(found)));
                    }
                    Err(error @ merge::Error::Locked(_)) => {
                        let (why, fix) = (error.to_string(), "then `piton resume`".to_owned());
                        return Ok(Merging::Refused(Refusal { why, fix }));
                    }
                    Err(error) => return Err(of_merge(error)),
                }
            }
        };
        Ok(Merging::Done(match followed {
            Followed::Done => String::new(),
            Followed::NotCheckedOut => format!("{} is checked out nowhere", intent.base_branch),
            Followed::Blocked(paths) => format!(
                "the work tree of {} stays behind: your own changes to {} are in the way",
                intent.base_branch,
                paths.join(", ")
            ),
        }))
    }

    /// Base is not where a merge expected it; perhaps because other runs were faster.
    fn moved(&self, from: &str, found: Option<String>) -> Merging {
        let found = found.unwrap_or_default();
        let by_runs = self.moves.lead(from, &found);
        Merging::Moved { found, by_runs }
    }

    /// Frees the user's index from a move of base that was interrupted; what can't be done now is
    /// done by the next move.
    pub(super) fn settle_base(&self, intent: &MergeIntended) -> Option<String> {
        let base = self.base_of(intent);
        let settled = merge::finish_interrupted(&self.root, &base, &intent.from, &intent.to);
        let why = settled.err()?;
        Some(format!("{}: the last merge is not settled yet: {why}", intent.lane))
    }

    pub(super) fn pull_request_merged(&mut self, work: &LaneWork) -> Result<Option<String>> {
        let Some(committed) = &work.committed else { return Ok(None) };
        // Of a lane that was taken over the commit may be unknown, or not be here yet.
        let here = !committed.commit.is_empty()
            && refs::value(&self.root, &format!("{}^{{commit}}", committed.commit)).is_some();
        if here
            && merge::contains(&self.root, &work.base_branch, &committed.commit)
                .map_err(of_merge)?
        {
            return Ok(Some(format!("{} contains it", work.base_branch)));
        }
        std::fs::create_dir_all(&self.cache).map_err(failed)?;
        let said = self.cache.join(format!("{SAID}{}", self.run_id));
        let root = self.root.to_string_lossy();
        let variables = [
            ("PITON_BRANCH", work.branch.as_str()),
            ("PITON_BASE_BRANCH", &work.base_branch),
            ("PITON_HEAD", &committed.commit),
            ("PITON_ROOT", &root),
            ("PITON_PULL_REQUEST", work.pull_request.as_deref().unwrap_or_default()),
        ];
        match asked::ask(&self.options.merged, &self.root, &said, &variables)? {
            Answer::Merged => Ok(Some("reported as merged".to_owned())),
            Answer::NotMerged(why) => {
                self.unmerged = why;
                Ok(None)
            }
        }
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
            let taken = self.take(Some(lane), &work.dir, "before the worktree goes", at);
            let taken = taken.map_err(failed)?;
            kept = self.keeps_work(work, &taken, head.as_deref());
            kept = kept.or_else(|| keeps_artifacts(work, &taken, artifacts));
            Some(recorded(&taken))
        } else {
            // It went before, and whoever removed it fell: its last snapshot is that of its end.
            refs::value(&self.root, &self.chain(Some(lane)))
                .and_then(|commit| snapshot::load(&self.root, &commit).ok())
                .map(|last| recorded(&last))
        };
        let refusal =
            last.as_ref().and_then(|last| self.refuses_removal(work, last, head.as_deref()));
        if let Some(refusal) = refusal.or(kept) {
            return Err(failed(format!("{}; {}", refusal.why, refusal.fix)));
        }
        worktree::remove(&self.root, dir, &fence).map_err(of_worktree)?;
        let owner = (self.run_id.as_str(), &*lane.to_string());
        if work.dropped {
            let end = worktree::drop_branch(&self.root, owner, &fence).map_err(of_worktree)?;
            if let BranchEnd::InUse(path) = end {
                let (branch, path) = (&work.branch, path.display());
                return Err(failed(format!("branch {branch} is checked out in {path}")));
            }
            return Ok(removed(lane, last, head, false));
        }
        let Some(head) = head else {
            let head = work.committed.as_ref().map(|c| c.commit.clone());
            return Ok(removed(lane, last, head, false));
        };
        let end = worktree::delete_branch_if_contained(
            &self.root,
            owner,
            &head,
            &work.base_branch,
            &fence,
        );
        // Commits that change nothing go nowhere: they stay below a ref of the run.
        let empty = work.committed_nothing(&head);
        let end = match end {
            Ok(BranchEnd::NotContained) if empty => {
                worktree::drop_branch(&self.root, owner, &fence)
            }
            end => end,
        };
        let why = match end.map_err(of_worktree) {
            Ok(BranchEnd::Deleted) => return Ok(removed(lane, last, Some(head), false)),
            // Merged elsewhere, as one commit perhaps: what base does not contain stays.
            Ok(BranchEnd::NotContained) => None,
            Ok(BranchEnd::Moved(_)) => Some("because it has other commits by now".to_owned()),
            Ok(BranchEnd::InUse(by)) => {
                Some(format!("because it is checked out in {}", by.display()))
            }
            Ok(BranchEnd::Foreign) => Some("because it was not made for this lane".to_owned()),
            // The worktree is gone all the same.
            Err(Error::World(why)) => Some(format!(
                "because it could not be deleted: {why}; put that right, then `piton gc` deletes it"
            )),
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

pub(super) fn of_merge(error: merge::Error) -> Error {
    match error {
        merge::Error::Superseded => Error::TakenOver,
        other => failed(other),
    }
}
