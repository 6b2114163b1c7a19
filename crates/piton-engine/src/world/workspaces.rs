//! What the world does for lanes: worktrees, snapshots, merges, rollbacks.
//!
//! Everything here is idempotent, or looks at the world first (a probe): it is called again after a
//! crash, with what the ledger knows, and must finish what was begun. Moves of base and rewinds are
//! only performed after their intent is durable.

use piton_core::event::{LaneBegun, LaneReady, LaneRemoved, MergeIntended, Revert};
use piton_core::event::{RewindIntended, RewindKind, RewindWorkspace};
use piton_core::lane::{LaneRules, SnapshotRef};
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Plan, RunState, Timestamp};

use crate::error::Result;

/// Whether a lane may begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// It may, and from here.
    Ready(Box<LaneBegun>),
    /// It may not.
    Refused(Refusal),
}

/// Whether a lane's workspace is there.
#[derive(Clone, Debug, PartialEq)]
pub enum MadeWorkspace {
    /// It is.
    Ready(Box<LaneReady>),
    /// It can't be made.
    Refused(Refusal),
}

/// What became of a lane's uncommitted work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// All of it is in this commit.
    Done {
        /// The commit.
        commit: String,
        /// Its tree.
        tree: String,
        /// Whether it differs from what the lane started from.
        changed: bool,
    },
    /// The last conflict is not resolved in these files; each says what is left of it.
    Unresolved(Vec<String>),
    /// Not all of it can be committed.
    Refused(Refusal),
}

/// What became of a lane's work on the base of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebase {
    /// It stands on it.
    Done {
        /// The commit of base.
        onto: String,
        /// The lane's commit now.
        commit: String,
        /// Its tree.
        tree: String,
    },
    /// Both changed the same lines.
    Conflict {
        /// The commit of base.
        onto: String,
        /// The lane's commit.
        head: String,
        /// The files.
        files: Vec<String>,
    },
    /// It can't be tried.
    Refused(Refusal),
}

/// What became of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Base is there; what a person should know.
    Done(String),
    /// Somebody moved base meanwhile.
    Moved {
        /// Where it stands.
        found: String,
        /// Whether merges of other runs moved it, and nobody else.
        by_runs: bool,
    },
    /// It can't be done.
    Refused(Refusal),
}

/// Whether a pull request is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequest {
    /// It is; how that is known.
    Merged(String),
    /// It is not; what the command that was asked printed.
    Open(Option<String>),
}

/// What became of a lane's worktree, and of its branch.
#[derive(Clone, Debug, PartialEq)]
pub struct Removed {
    /// What goes on record.
    pub record: LaneRemoved,
    /// Why its branch stays, if it is not that base does not contain it.
    pub why_branch_stays: Option<String>,
}

impl From<LaneRemoved> for Removed {
    fn from(record: LaneRemoved) -> Self {
        Self { record, why_branch_stays: None }
    }
}

/// A work tree that shall go back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewindTarget {
    /// The lane that works in it; none for the project's root.
    pub lane: Option<LanePath>,
    /// The folder.
    pub dir: String,
    /// The snapshot to go to.
    pub target: String,
    /// A snapshot of whose files the target has all that were there, ignored ones too.
    pub beside: Option<String>,
    /// Only these paths; all where there are none.
    pub paths: Vec<String>,
    /// Attempts at work since then: the files each found, and those it left, if it ended.
    pub windows: Vec<(String, Option<String>)>,
    /// Whether files that came from elsewhere go too.
    pub exact: bool,
    /// The branch that moves with it; empty in place.
    pub branch: String,
    /// Where the branch goes.
    pub head_to: Option<String>,
    /// A commit or tree with the files that are too large for the target, where that is known.
    pub large: Option<String>,
    /// Whether worktree and branch go, with the artifacts of the steps that worked there.
    pub goes: Option<Vec<String>>,
    /// What is copied into a worktree that has to be made again.
    pub copy: Vec<String>,
}

/// A rollback, restore or undo to carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewind {
    /// What it is; its workspaces and reverts are still empty.
    pub intent: RewindIntended,
    /// The work trees that go back.
    pub targets: Vec<RewindTarget>,
    /// The merges that are taken back.
    pub merges: Vec<Revert>,
}

impl Rewind {
    /// Adds the worktrees of tasks that go with it, as a run stands now; those come last.
    pub fn with_tasks(&mut self, state: &RunState) {
        let reverted: Vec<LanePath> = self.merges.iter().map(|merge| merge.lane.clone()).collect();
        for path in state.tasks_leaving(&self.intent, &reverted) {
            let Some(lane) = state.lane(&path) else { continue };
            let Some(work) = &lane.work else { continue };
            self.targets.retain(|target| target.lane.as_ref() != Some(&path));
            self.targets.push(RewindTarget {
                dir: work.dir.clone(),
                target: work.latest.snapshot.clone().unwrap_or_default(),
                branch: work.branch.clone(),
                exact: true,
                goes: Some(lane.artifacts()),
                lane: Some(path),
                ..RewindTarget::default()
            });
        }
    }
}

/// What was found and repaired in the worktrees of lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// What a person should know.
    pub notes: Vec<String>,
    /// Lanes whose worktrees had to be created again: what their setup made there is gone.
    pub recreated: Vec<LanePath>,
}

/// What the world does for lanes.
pub trait Workspaces {
    /// Says which epoch every ref update verifies from here on.
    fn fence(&mut self, epoch: u64) -> Result<()>;

    /// Says how far the record is durable: snapshots name it.
    fn recorded(&mut self, _seq: u64) {}

    /// Mends what a former driver left half done in the worktrees of lanes that no step is at work
    /// in (those of `busy` are), and makes those again that are gone.
    fn recover(
        &mut self,
        plan: &Plan,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<Repaired>;

    /// Finds files that a restart of the machine tore in worktrees of lanes that no step is at work
    /// in: what puts them back, and what a person should know.
    fn torn(
        &mut self,
        _state: &RunState,
        _busy: &[LanePath],
        _at: Timestamp,
    ) -> Result<(Vec<RewindTarget>, Vec<String>)> {
        Ok(Default::default())
    }

    /// The branch that lanes go to, where that is known before one begins.
    fn base_branch(&mut self, _state: &RunState) -> Option<String> {
        None
    }
    /// The commit a branch stands at.
    fn tip(&mut self, _branch: &str) -> Option<String> {
        None
    }
    /// Observes whether a lane may begin, and from where.
    fn begin(&mut self, lane: &LanePath, rules: &LaneRules, state: &RunState) -> Result<Begin>;
    /// Makes a lane's workspace; after a conflict, puts both sides into it.
    fn make_workspace(
        &mut self,
        lane: &LanePath,
        rules: &LaneRules,
        work: &LaneWork,
    ) -> Result<MadeWorkspace>;
    /// Whether the folder of a lane is there: a step may have deleted it.
    fn is_there(&self, _dir: &str) -> bool {
        true
    }
    /// What a lane's worktree still lacks when its work is about to begin; said once.
    fn lacks(&mut self, lane: &LanePath, dir: &str) -> Option<String> {
        let _ = (lane, dir);
        None
    }
    /// Snapshots a lane's workspace, or the root.
    fn snapshot(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<SnapshotRef, Refusal>;
    /// Whether anything that a snapshot holds changed, came or went since a time by the clock that files
    /// are stamped with; yes where that is not known.
    fn changed_since(&mut self, dir: &str, at: i64) -> bool;
    /// The files that differ between two snapshots and that none of these paths and globs matches.
    fn changed(&mut self, from: &str, to: &str, except: &[String]) -> Result<Vec<String>>;
    /// The files that differ between two snapshots and that the second has.
    fn left(&mut self, from: &str, to: &str) -> Result<Vec<String>>;
    /// Takes a lane's files back to a snapshot, and its branch to the commit it stood at then, for an
    /// attempt that starts afresh; `stood` is that commit, and a tree with the files that the snapshot
    /// lacks. What a person should know.
    fn reset(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        stood: (Option<&str>, Option<&str>),
        at: Timestamp,
    ) -> Result<Option<String>, Refusal>;

    /// Why a lane's branch and HEAD must not change now: a git operation of somebody else is in
    /// progress there.
    fn user_operation(&mut self, _lane: &LanePath, _work: &LaneWork) -> Result<Option<Refusal>> {
        Ok(None)
    }
    /// Commits what a lane left uncommitted.
    fn commit(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit>;
    /// Puts a lane's work on the base of now.
    fn rebase(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Rebase>;
    /// What both sides made of the files of a conflict, for whoever resolves it; nothing where their
    /// names say all.
    fn sides(&mut self, _onto: &str, _head: &str) -> Vec<String> {
        Vec::new()
    }
    /// Says whether base could be moved now.
    fn may_merge(&mut self, intent: &MergeIntended) -> Result<Option<Refusal>>;
    /// Moves base; its intent is durable. Finishes what a former driver began.
    fn merge(&mut self, intent: &MergeIntended) -> Result<Merging>;
    /// Observes whether a lane's pull request is merged.
    fn pull_request(&mut self, lane: &LanePath, work: &LaneWork) -> Result<PullRequest>;
    /// Work in the worktree of a lane that waits for its pull request which the request does not
    /// have, in words.
    fn not_requested(
        &mut self,
        _lane: &LanePath,
        _work: &LaneWork,
        _at: Timestamp,
    ) -> Result<Option<String>> {
        Ok(None)
    }
    /// Removes a lane's worktree, and its branch where base contains it. It stays if it alone holds one
    /// of the artifacts.
    fn remove(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        artifacts: &[String],
        at: Timestamp,
    ) -> Result<Removed>;

    /// Snapshots a work tree that shall go back, and says what stays.
    fn plan_rewind(
        &mut self,
        target: &RewindTarget,
        at: Timestamp,
    ) -> Result<RewindWorkspace, Refusal>;
    /// Computes where base goes to take a move of it back: a commit on top of `from`, or of base
    /// where that is empty. An undo goes back to the commit before, unless somebody built on it.
    fn plan_revert(&mut self, merge: &Revert, kind: RewindKind) -> Result<Revert, Refusal>;
    /// Takes files and branches back; its intent is durable. On failure everything is as before.
    fn rewind(&mut self, intent: &RewindIntended) -> Result<(), Refusal>;
}
