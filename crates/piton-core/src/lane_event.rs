//! What happens to a lane beside its steps: begun, ready, committed, rebased, merged, rolled back.

use serde::{Deserialize, Serialize};

use crate::hash::Sha;
use crate::id::{LanePath, StepPath};
use crate::lane::{Isolation, SnapshotRef, Stage};
use crate::refusal::Refusal;
use crate::stage_record::StageRecord;
use crate::step_event::Class;
use crate::step_event::FileHash;
use crate::step_state::FailedAttempt;

/// The lane's preconditions hold; nothing is created yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneBegun {
    /// Which lane.
    pub lane: LanePath,
    /// Where it works.
    pub isolation: Isolation,
    /// The folder it will work in.
    pub dir: String,
    /// The branch it will work on; empty in place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch: String,
    /// The branch its work goes to; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_branch: String,
    /// The commit it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_sha: Option<String>,
    /// The files it starts from, where they are no commit: in place, or the user's own changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Something must be changed by a person before the lane can go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneBlocked {
    /// Which lane.
    pub lane: LanePath,
    /// At which stage.
    pub stage: Stage,
    /// Why, and what to do about it.
    pub refusal: Refusal,
    /// The branch its work would go to, where it has not begun.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_branch: String,
}

/// The lane's workspace is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneReady {
    /// Which lane.
    pub lane: LanePath,
    /// The folder it works in.
    pub dir: String,
    /// The branch it works on; empty in place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch: String,
    /// The commit its branch stands at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
    /// What a person should know, such as that it was there already.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A step is done without running: its tests passed on the same tree before, it is not needed, or what
/// it makes is complete although its last attempt was cut short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepProven {
    /// Which step.
    pub step: StepPath,
    /// The tree that tests passed on; empty for other steps.
    pub tree: String,
    /// Hash of the step's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Sha>,
    /// What it made, if that is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<FileHash>,
}

/// The lane's work is a commit on its branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneCommitted {
    /// Which lane.
    pub lane: LanePath,
    /// The branch's commit now.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// Whether it differs from what the lane started from.
    pub changed: bool,
    /// The tests that passed on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

/// The lane's work now stands on a newer base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneRebased {
    /// Which lane.
    pub lane: LanePath,
    /// The commit of base it stands on.
    pub onto: String,
    /// Its commit now.
    pub commit: String,
    /// Its tree now.
    pub tree: String,
}

/// The lane's work must go on although its steps had finished: a conflict, or a test that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneReopened {
    /// Which lane.
    pub lane: LanePath,
    /// The step that works on it again; later ones follow.
    pub step: StepPath,
    /// What kind of failure.
    pub class: Class,
    /// What went wrong, in one line.
    pub error: String,
    /// Details for the next attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The base its files now stand on, after a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    /// The lane's own commit, after a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Retries of the step that works again.
    pub retries_max: u32,
}

/// The intent to move base; committed before the ref moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeIntended {
    /// Which lane.
    pub lane: LanePath,
    /// The branch.
    pub base_branch: String,
    /// Its commit before.
    pub from: String,
    /// Its commit after.
    pub to: String,
}

/// Base was moved by somebody else: the queue goes round again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeMissed {
    /// Which lane.
    pub lane: LanePath,
    /// Where base stands.
    pub found: String,
    /// Whether only merges of other runs moved it: those end by themselves, so the round does not
    /// count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_runs: bool,
}

/// How a lane's work reached base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergedBy {
    /// By the queue.
    #[serde(rename = "queue")]
    Queue,
    /// By somebody else, through a pull request.
    #[serde(rename = "pr")]
    PullRequest,
    /// There was nothing to merge.
    #[serde(rename = "nothing")]
    Nothing,
    /// It stays on its branch.
    #[serde(rename = "none")]
    Kept,
}

/// The lane's work is in base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneMerged {
    /// Which lane.
    pub lane: LanePath,
    /// How.
    pub by: MergedBy,
    /// Base before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Base after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A pull request for the lane's branch exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PullRequestOpened {
    /// Which lane.
    pub lane: LanePath,
    /// Where it is.
    pub url: String,
}

/// The lane's worktree is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneRemoved {
    /// Which lane.
    pub lane: LanePath,
    /// Its files, before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
    /// Where its branch stood, or stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_head: Option<String>,
    /// Whether its branch is still there: base does not contain it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branch_stays: bool,
}

/// The lane's work is merged, but its worktree stays: it could not be removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneKept {
    /// Which lane.
    pub lane: LanePath,
    /// Why, and what to do about it.
    pub refusal: Refusal,
}

/// What the lane did so far is a commit of its branch, from which its tasks start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneForked {
    /// Which lane.
    pub lane: LanePath,
    /// Its step that waits for the tasks.
    pub step: StepPath,
    /// The branch's commit now.
    pub commit: String,
    /// Its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
}

/// All tasks that a step of the lane waited for are in its branch and its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneJoined {
    /// Which lane.
    pub lane: LanePath,
    /// Its step that waited.
    pub step: StepPath,
    /// Hash of the step's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Sha>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
}

/// What another tool recorded of the lane is taken over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneImported {
    /// Which lane.
    pub lane: LanePath,
    /// Its checkpoints as they were recorded; those of a stage that is on record here keep the
    /// number of their event.
    pub records: Vec<StageRecord>,
    /// The files of its worktree as they were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotRef>,
    /// How its work reached base, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<LaneMerged>,
    /// Whether its worktree is there, and is none of ours to remove.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// The branch its work goes to, as recorded there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_branch: String,
    /// What is said to be on its way to base, and is not here to be tested and merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<Outstanding>,
    /// What went wrong before, for the next attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
    /// Retries that were begun there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<u32>,
    /// Retries there may be, as recorded there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// What is not known, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Work of a lane that another tool handed on: it is done once base has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outstanding {
    /// Its commit; empty where none is on record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Where its pull request is, or what is known of it.
    pub pull_request: String,
}

/// What takes files and steps back, or forth again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RewindKind {
    /// A rollback to a checkpoint.
    #[serde(rename = "rollback")]
    Rollback,
    /// Files of a checkpoint brought back; steps stay.
    #[serde(rename = "restore")]
    Restore,
    /// An earlier act undone.
    #[serde(rename = "undo")]
    Undo,
}

/// The intent to take files back; committed before the first file changes. The files as they are
/// stand in the snapshots it names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewindIntended {
    /// What it is.
    pub kind: RewindKind,
    /// The stage or checkpoint it goes to, in words.
    pub to: String,
    /// The stage it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// Steps that finished after this event run again.
    #[serde(default)]
    pub after_event: u64,
    /// The same for lanes that go back to a point of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(LanePath, u64)>,
    /// The lanes whose steps go back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LanePath>,
    /// The work trees it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<RewindWorkspace>,
    /// Commits of base that are reverted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverts: Vec<Revert>,
    /// The act it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Who asked.
    pub by: String,
}

impl RewindIntended {
    /// The event a lane goes back to: what it did later does not count any more.
    pub fn point(&self, lane: &LanePath) -> u64 {
        let own = self.points.iter().find(|(path, _)| path == lane);
        own.map_or(self.after_event, |(_, event)| *event)
    }

    /// The tasks whose worktrees go with it, in words.
    pub fn leaving(&self) -> Option<String> {
        let workspaces = self.workspaces.iter().filter(|workspace| workspace.goes);
        let lanes: Vec<String> =
            workspaces.filter_map(|workspace| Some(workspace.lane.as_ref()?.to_string())).collect();
        match lanes.as_slice() {
            [] => None,
            [one] => Some(format!("the worktree of {one} goes")),
            many => Some(format!("the worktrees of {} go", many.join(", "))),
        }
    }
}

/// A work tree that a rewind changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewindWorkspace {
    /// The lane that works in it; none for the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LanePath>,
    /// The folder.
    pub dir: String,
    /// Its files before.
    pub present: SnapshotRef,
    /// The snapshot its files come from.
    pub target: String,
    /// A snapshot of whose files the target has all that were there, ignored ones too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Only these paths; all where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Files that stay although the target has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// The branch that moves with it; empty in place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch: String,
    /// Where the branch stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_from: Option<String>,
    /// Where the branch goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_to: Option<String>,
    /// A commit or tree with the files that are too large for the target, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<String>,
    /// Whether worktree and branch go: they are of a task that has none then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes: bool,
    /// What is copied into a worktree that has to be made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
}

impl RewindWorkspace {
    /// Whether it is the worktree of a lane, and stands when the rewind is done.
    pub fn is_left_to(&self, lane: &LanePath) -> bool {
        self.lane.as_ref() == Some(lane) && !self.goes
    }

    /// Whether it is the worktree of a lane that had neither worktree nor branch before.
    pub fn comes(&self) -> bool {
        self.lane.is_some() && !self.goes && self.head_from.is_none() && self.head_to.is_some()
    }

    /// Whether it is the worktree of a lane, and is gone when the rewind is done.
    pub fn is_taken_from(&self, lane: &LanePath) -> bool {
        self.lane.as_ref() == Some(lane) && self.goes
    }
}

/// Commits of base that are taken back by a commit of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revert {
    /// The lane they came from.
    pub lane: LanePath,
    /// The branch.
    pub base_branch: String,
    /// Base before the merge.
    pub merged_from: String,
    /// Base after the merge.
    pub merged_to: String,
    /// Base before the revert.
    pub from: String,
    /// Base after the revert.
    pub to: String,
}

/// The rewind that was intended is done and verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewound {
    /// Whether it failed and everything is as before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reverted: String,
}
