//! The state of a lane beside its steps: its workspace, its stages, its way to base; and what can
//! be undone.

use serde::{Deserialize, Serialize};

use crate::id::{GateRef, LanePath, StepPath};
use crate::lane::{Isolation, Missed, SnapshotRef, Stage, StageStatus};
use crate::lane_event::{LaneMerged, MergeIntended, MergedBy, Revert, RewindKind, RewindRoom};
use crate::state::{FailedAttempt, GateState, StepState};
use crate::text::short;
use crate::time::Timestamp;

/// Acts that can be undone; older ones only through their checkpoints.
pub const UNDO_KEPT_MAX: usize = 20;
/// Rounds a lane may go through the merge queue because base moved under it.
pub const MERGE_ROUNDS_MAX: u32 = 5;

/// A lane at work: where it works, what stages it passed, how far it is on its way to base.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, stored by its name")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneWork {
    /// The folder it works in.
    pub dir: String,
    /// The branch it works on; empty in place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch: String,
    /// The branch its work goes to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_branch: String,
    /// The commit it started from, or was last moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_sha: Option<String>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Isolation::is_in_place")]
    pub isolation: Isolation,
    /// Whether its workspace is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// Its checkpoints, one for each stage it passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<StageRecord>,
    /// Its last snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The tree of its last snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What its last snapshot does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<Missed>,
    /// Where its branch stood at its last snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Each test that passed, and the tree it last passed on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<(String, String)>,
    /// The files that its test step found when it last started, until other work begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_found: Option<SnapshotRef>,
    /// How often in a row its tests left other files than they ran on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stirred: u32,
    /// Its work as a commit of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<Committed>,
    /// The commit of base its work stands on for the merge at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    /// The merge that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merging: Option<MergeIntended>,
    /// The two commits whose conflict is to be put into its workspace: of base, and its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<(String, String)>,
    /// The same two, until what was made of their conflict is a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<(String, String)>,
    /// Times base moved under its merge.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// How often its work went on although its steps had finished.
    #[serde(default, skip_serializing_if = "Reopenings::is_none")]
    pub reopened: Reopenings,
    /// Its pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
    /// The retries that the tool it was taken over from allowed; for a plan that names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How its work reached base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<LaneMerged>,
    /// Whether its worktree is gone again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Whether its worktree stays, because a person brought it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// Whether a person took its merge back, and it waits for their word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Why it can't go on, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<(String, String)>,
    /// The step whose tasks may start from its branch: all it did before is committed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<String>,
    /// Whether it starts over, and what it did so far goes first: the lane it is a part of went
    /// back behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// The checkpoint it was rolled back to, until it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<String>,
}

/// How often a lane's work went on after its steps had finished, and why.
///
/// Kept beside the steps: a step that succeeds forgets its failures, and a lane whose tests fail
/// after each success would go on for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reopenings {
    /// How often.
    pub count: u32,
    /// How often it may.
    pub max: u32,
    /// What went wrong each time.
    pub failures: Vec<FailedAttempt>,
    /// The step that went on; its own retries and these are counted together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
}

impl Reopenings {
    /// Whether its work never went on.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A lane's work as a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// Whether it differs from what the lane started from.
    pub changed: bool,
}

/// A checkpoint of a lane at one of its stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Which stage.
    pub stage: Stage,
    /// Where it stands.
    pub status: StageStatus,
    /// When it was recorded.
    pub at: Timestamp,
    /// The number of the event that recorded it, counted from the first of the run.
    pub event: u64,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The files at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The commit of base at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_sha: Option<String>,
    /// The lane's own commit at that point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,
    /// The branch its work goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<String>,
    /// The test that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    /// How it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The last command that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_command: Option<String>,
    /// Number of the retry, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_attempt: Option<u32>,
    /// Retries there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// What went wrong so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_context: Vec<String>,
    /// Whether nobody recorded it: a lane that was taken over needs it for its way back, and no view
    /// shows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl StageRecord {
    /// A record with nothing in it but when it was made.
    pub fn blank(stage: Stage, status: StageStatus, at: Timestamp, event: u64) -> Self {
        Self {
            stage,
            status,
            at,
            event,
            notes: String::new(),
            snapshot: None,
            base_sha: None,
            head_sha: None,
            target_branch: None,
            test_command: None,
            exit_code: None,
            last_command: None,
            retry_attempt: None,
            max_retries: None,
            failure_context: Vec::new(),
            assumed: false,
        }
    }
}

/// An act that can be undone, with what it needs for that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undoable {
    /// Its number: that of its event.
    pub id: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What it was.
    pub act: Act,
    /// What it was about, in words.
    pub words: String,
    /// The steps as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<(StepPath, StepState)>,
    /// The lanes as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<(LanePath, Option<Box<LaneWork>>)>,
    /// The work trees it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooms: Vec<RewindRoom>,
    /// The moves of base it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverts: Vec<Revert>,
    /// The gates whose decisions it took back, as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<(GateRef, Option<GateState>)>,
    /// The act that it undid, where it is an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Whether it was undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undone: bool,
}

impl Undoable {
    /// An act that changed nothing yet.
    pub(crate) fn blank(id: u64, at: Timestamp, act: Act, words: String) -> Self {
        Self {
            id,
            at,
            act,
            words,
            steps: Vec::new(),
            lanes: Vec::new(),
            rooms: Vec::new(),
            reverts: Vec::new(),
            gates: Vec::new(),
            undoes: None,
            undone: false,
        }
    }
}

/// The kinds of acts that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A rollback.
    Rollback,
    /// A restore.
    Restore,
    /// A merge.
    Merge,
    /// A step left out.
    Skip,
    /// A worktree removed.
    Removal,
    /// The undoing of another act.
    Undo,
}

impl Act {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rollback => "rollback",
            Self::Restore => "restore",
            Self::Merge => "merge",
            Self::Skip => "skip",
            Self::Removal => "removal of a worktree",
            Self::Undo => "undo",
        }
    }
}

impl From<RewindKind> for Act {
    fn from(kind: RewindKind) -> Self {
        match kind {
            RewindKind::Restore => Self::Restore,
            RewindKind::Undo => Self::Undo,
            RewindKind::Rollback => Self::Rollback,
        }
    }
}

impl LaneWork {
    /// The records that somebody made, in their order.
    pub fn seen(&self) -> impl Iterator<Item = &StageRecord> {
        self.records.iter().filter(|r| !r.assumed)
    }

    /// The record of a stage.
    pub fn record(&self, stage: Stage) -> Option<&StageRecord> {
        self.records.iter().find(|r| r.stage == stage)
    }

    /// Sets the record of a stage, in the place of an older one.
    pub(crate) fn put(&mut self, record: StageRecord) {
        self.records.retain(|r| r.stage != record.stage);
        self.records.push(record);
    }

    /// The stage it stands at: the last one recorded that advances, and is not rolled back.
    pub fn stage(&self) -> Option<Stage> {
        let advances = |r: &&StageRecord| {
            r.stage != Stage::RetryAttempt && r.status != StageStatus::RolledBack
        };
        let last = self.records.iter().filter(advances).max_by_key(|r| (r.at, r.event));
        last.map(|r| r.stage)
    }

    /// Whether it was taken back to before anything was created: it begins again, from the base of
    /// now, although its worktree is still there.
    pub fn begins_again(&self) -> bool {
        let back = self.rolled_back.is_some() && !self.isolation.is_in_place();
        back && self.stage() == Some(Stage::BeforeLaneStart)
    }

    /// Whether each test passed on a tree.
    pub fn proven(&self, tests: &[String], tree: &str) -> bool {
        tests.iter().all(|test| self.tested.iter().any(|(t, on)| t == test && on == tree))
    }

    /// What its test step ran on, if it passed and left other files.
    pub fn tested_before(&self) -> Option<&SnapshotRef> {
        let found = self.tests_found.as_ref().filter(|_| self.stirred > 0)?;
        (self.tree.as_ref() != Some(&found.tree)).then_some(found)
    }

    /// What its test step ran on, if that was the commit to be merged and it left other files or other
    /// commits.
    pub fn retested(&self) -> Option<&SnapshotRef> {
        let (found, committed) = (self.tests_found.as_ref()?, self.committed.as_ref()?);
        let at_commit = found.head.as_ref() == Some(&committed.commit);
        let strayed = at_commit && self.head.is_some() && self.head != found.head;
        let left = strayed || self.tested_before().is_some();
        (left && found.tree == committed.tree).then_some(found)
    }

    /// Whether a workspace is as an attempt of its tests left it, or is on the way from there back to
    /// what they found: nobody else changed it since.
    pub fn left_by_tests(&self, found: &SnapshotRef, present: &SnapshotRef) -> bool {
        let files = self.tree.as_ref() == Some(&present.tree) || found.tree == present.tree;
        files && (self.head == present.head || found.head == present.head)
    }

    /// Notes that a test passed on a tree.
    pub(crate) fn passed(&mut self, test: &str, tree: &str) {
        self.tested.retain(|(t, _)| t != test);
        self.tested.push((test.to_owned(), tree.to_owned()));
    }

    /// The commit of base it began with.
    pub fn started_from(&self) -> Option<&str> {
        self.record(Stage::BeforeLaneStart)?.base_sha.as_deref()
    }

    /// Whether it had nothing to merge, and a commit is all that it did: base needs none of it, whether it
    /// contains that or not.
    pub fn committed_nothing(&self, head: &str) -> bool {
        let nothing = self.merged.as_ref().is_some_and(|m| m.by == MergedBy::Nothing);
        nothing && self.committed.as_ref().is_some_and(|c| !c.changed && c.commit == head)
    }

    /// Whether it has a worktree that work is done in.
    pub fn stands(&self) -> bool {
        let own = !self.isolation.is_in_place() && !self.branch.is_empty();
        own && self.ready && !self.removed && !self.dropped
    }

    /// Whether nothing more is to be done for it, once its steps are over.
    pub fn is_over(&self) -> bool {
        let rests = |by| by == MergedBy::Kept || self.removed || self.stays;
        self.merged.as_ref().map_or_else(|| self.has_no_room(), |m| rests(m.by))
    }

    /// Whether there is no place where it worked, and nothing that it did: it was refused at its start, or
    /// taken back to it, and all its steps may have been left out since.
    pub fn has_no_room(&self) -> bool {
        let nowhere = (self.branch.is_empty() || self.removed) && !self.dropped;
        nowhere && !self.ready && self.committed.is_none() && self.merging.is_none()
    }
}

/// That base is not where a lane left it any more, in words; nothing where it is.
pub fn base_moved(base: &str, from: &str, to: &str) -> Option<String> {
    (from != to)
        .then(|| format!("{base} moved from {} to {} since it began", short(from), short(to)))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
