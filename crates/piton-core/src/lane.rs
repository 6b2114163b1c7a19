//! How a lane works: where, what happens to its work in the end, and its stages.
//!
//! These are parts of plans, events and states alike. Nothing here decides anything.

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::text::first_few;

/// The implicit step that makes a fresh worktree usable.
pub const SETUP_STEP: &str = "setup";
/// The implicit step that runs a lane's tests on the very tree that is merged.
pub const TESTS_STEP: &str = "tests";
/// The implicit step that opens a lane's pull request, or finds the one there is.
pub const PULL_REQUEST_STEP: &str = "pull-request";
/// What that step does, in words: its command is a script of ours, which says less.
pub const PULL_REQUEST_WORDS: &str = "push the branch, find or open its pull request";
/// The implicit step that puts right what went wrong after the last tasks of a lane, which were done
/// in worktrees of their own; without trouble it does not run.
pub const MEND_STEP: &str = "mend";

/// What a plan says about how a lane works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneRules {
    /// Where it works.
    #[serde(default, skip_serializing_if = "Isolation::is_in_place")]
    pub isolation: Isolation,
    /// How its work reaches base.
    #[serde(default, skip_serializing_if = "Merge::is_queue")]
    pub merge: Merge,
    /// Files copied from base into a fresh worktree, such as `.env`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// What an attempt finds of the one before.
    #[serde(default, skip_serializing_if = "OnRetry::is_keep")]
    pub on_retry: OnRetry,
    /// Template of the message for work it left uncommitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether what it leaves in the project's root is committed once the lanes in place of its phase
    /// are over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commits: bool,
    /// Whether no other lane may run beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Gates of the phase document that it closes when it completes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provides: Vec<String>,
    /// Gates of the phase document that must be closed before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<String>,
    /// Commands that must pass on exactly the tree that is merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Command>,
    /// The task it does, where it is a part of another lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskOf>,
}

/// Which task of which lane a lane does. It starts from that lane's branch and goes back to it,
/// while the step that waits for it is that lane's current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOf {
    /// The lane of the same phase that it is a part of.
    pub lane: String,
    /// The step of that lane that waits for it.
    pub step: String,
    /// The task's own id.
    pub task: String,
}

/// Whether tasks of a lane get worktrees of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskWorktrees {
    /// Never: they work in the lane's worktree, one after the other.
    #[default]
    Off,
    /// Those that can run at once and own different files.
    Auto,
    /// All of them.
    On,
}

impl TaskWorktrees {
    /// Whether there are none.
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }

    /// The word on the command line and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::On => "on",
        }
    }
}

impl LaneRules {
    /// Whether nothing was said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a lane works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// In the project's root, beside the others.
    #[default]
    #[serde(rename = "in-place")]
    InPlace,
    /// In a git worktree of its own.
    #[serde(rename = "worktree")]
    Worktree,
}

impl Isolation {
    /// Whether it works in the project's root.
    pub fn is_in_place(&self) -> bool {
        *self == Self::InPlace
    }
}

/// How a lane's work reaches base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Merge {
    /// Rebased, tested, fast-forwarded: one lane at a time.
    #[default]
    #[serde(rename = "queue")]
    Queue,
    /// Through a pull request that somebody else merges.
    #[serde(rename = "pr")]
    PullRequest,
    /// Not at all: branch and worktree stay.
    #[serde(rename = "none")]
    None,
}

impl Merge {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_queue(&self) -> bool {
        *self == Self::Queue
    }
}

/// What an attempt finds of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnRetry {
    /// The files as they were left.
    #[default]
    #[serde(rename = "keep")]
    Keep,
    /// The files as the first attempt found them.
    #[serde(rename = "reset")]
    Reset,
}

impl OnRetry {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

/// What a step is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The lane's work.
    #[default]
    Work,
    /// Makes a fresh worktree usable.
    Setup,
    /// Runs the lane's tests on the tree to be merged.
    Tests,
    /// Opens the pull request.
    PullRequest,
    /// Waits for tasks that are done in worktrees of their own; no process runs for it.
    Tasks,
    /// Runs only when the lane's work must go on after its last tasks.
    Mend,
    /// Tests what all lanes of a phase merged; a lane of such steps is the validation of its phase.
    Validation,
}

impl Role {
    /// Whether it is the lane's work.
    pub fn is_work(&self) -> bool {
        *self == Self::Work
    }

    /// Whether it changes what the lane hands on, so that what was committed or merged is outdated.
    pub fn changes_work(self) -> bool {
        !matches!(self, Self::Setup | Self::Tests | Self::PullRequest)
    }
}

/// The named points of a lane, in order; a retry is a point of its own that advances nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Preconditions hold, nothing is created yet.
    BeforeLaneStart,
    /// The worktree is there.
    AfterLaneStart,
    /// The tests have run.
    AfterLaneTests,
    /// About to be merged, or to open a pull request.
    PrePr,
    /// A failed attempt is about to be followed by another.
    RetryAttempt,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Self; 5] = [
        Self::BeforeLaneStart,
        Self::AfterLaneStart,
        Self::AfterLaneTests,
        Self::PrePr,
        Self::RetryAttempt,
    ];

    /// The word in views and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeLaneStart => "before_lane_start",
            Self::AfterLaneStart => "after_lane_start",
            Self::AfterLaneTests => "after_lane_tests",
            Self::PrePr => "pre_pr",
            Self::RetryAttempt => "retry_attempt",
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a stage of a lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// It may begin.
    Ready,
    /// At work.
    InProgress,
    /// It failed.
    Failed,
    /// Something must be done by a person first.
    Blocked,
    /// It is done.
    Complete,
    /// A rollback went behind it.
    RolledBack,
    /// Another attempt follows.
    Retrying,
}

impl StageStatus {
    /// The word in views.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::InProgress => "in_progress",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
            Self::RolledBack => "rolled_back",
            Self::Retrying => "retrying",
        }
    }
}

/// A snapshot of a workspace, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRef {
    /// The commit that holds it.
    pub commit: String,
    /// What git would commit of it.
    pub tree: String,
    /// What is not in it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<Missed>,
    /// The commit that the branch of a worktree stood at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// Something a snapshot does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// Its path.
    pub path: String,
    /// Why it is not in the snapshot.
    pub why: String,
}

/// Most files that are named; the rest are counted.
const MISSED_NAMED_MAX: usize = 3;

impl Missed {
    /// What snapshots do not hold, in words; nothing where they hold all.
    pub fn words(all: &[Self]) -> Option<String> {
        first_few(all.iter().map(|m| format!("{} ({})", m.path, m.why)), MISSED_NAMED_MAX)
    }
}
