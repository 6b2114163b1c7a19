//! The state of a lane beside its steps: its workspace, its stages, its way to base; and what can
//! be undone.

use serde::{Deserialize, Serialize};

use crate::gate::GateState;
use crate::hash::Sha;
use crate::id::{GateRef, LanePath, StepPath};
use crate::lane::{Isolation, Missed, SnapshotRef, Stage, StageStatus};
use crate::lane_event::{LaneMerged, MergeIntended, MergedBy, Revert, RewindKind, RewindWorkspace};
use crate::lane_progress::{Change, next};
pub use crate::lane_progress::{Committed, Conflict, Landed, LaneProgress};
use crate::refusal::Refusal;
use crate::replan_event::Trigger;
use crate::replan_state::Due;
use crate::shape::Shape;
pub use crate::stage_record::StageRecord;
use crate::step_state::{FailedAttempt, StepState};
use crate::text::short;
use crate::time::Timestamp;

/// Acts that can be undone; older ones only through their checkpoints.
pub const UNDO_KEPT_MAX: usize = 20;
/// Rounds a lane may go through the merge queue because base moved under it.
pub const MERGE_ROUNDS_MAX: u32 = 5;

/// A lane at work: where it works, how far it is, what it left on the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneWork {
    /// The folder it works in.
    pub dir: String,
    /// The branch it works on; empty in place.
    pub branch: String,
    /// The branch its work goes to.
    pub base_branch: String,
    /// The commit it started from, or was last moved to.
    pub base_sha: Option<String>,
    /// Where it works.
    pub isolation: Isolation,
    /// How far it is.
    pub progress: LaneProgress,
    /// Its checkpoints, one for each stage it passed.
    pub records: Vec<StageRecord>,
    /// Its files as they were last seen.
    pub latest: Latest,
    /// What its tests ran on.
    pub tests: LaneTests,
    /// Times base moved under its merge.
    pub rounds: u32,
    /// How often its work went on although its steps had finished.
    pub reopened: Reopenings,
    /// Its pull request.
    pub pull_request: Option<String>,
    /// The retries that the tool it was taken over from allowed; for a plan that names none.
    pub retries: Option<u32>,
    /// Why it can't go on, and what to do.
    pub blocked: Option<Refusal>,
    /// The checkpoint it was rolled back to, until it goes on.
    pub rolled_back: Option<String>,
}

/// The files of a lane as they were last seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latest {
    /// Its last snapshot.
    pub snapshot: Option<String>,
    /// The tree of its files, also after a rebase that took no snapshot.
    pub tree: Option<String>,
    /// What its last snapshot does not hold.
    pub degraded: Vec<Missed>,
    /// Where its branch stood at its last snapshot.
    pub head: Option<String>,
}

/// What the tests of a lane ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneTests {
    /// Each test that passed, and the tree it last passed on.
    pub passed: Vec<(String, String)>,
    /// The files that its test step found when it last started, until other work begins.
    pub found: Option<SnapshotRef>,
    /// How often in a row they left other files than they ran on.
    pub changed_files: u32,
}

impl LaneTests {
    /// Whether each test passed on a tree.
    pub fn prove(&self, tests: &[String], tree: &str) -> bool {
        tests.iter().all(|test| self.passed.iter().any(|(t, on)| t == test && on == tree))
    }

    /// Notes that tests passed on a tree.
    pub(crate) fn pass(&mut self, tests: &[String], tree: &str) {
        for test in tests {
            self.passed.retain(|(t, _)| t != test);
            self.passed.push((test.clone(), tree.to_owned()));
        }
    }

    /// Notes that the files are others than those the test step found.
    pub(crate) fn outdate(&mut self) {
        *self = Self { passed: std::mem::take(&mut self.passed), ..Self::default() };
    }
}

/// How often a lane's work went on after its steps had finished, and why.
///
/// Kept beside the steps: a step that succeeds forgets its failures, and a lane whose tests fail
/// after each success would go on for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reopenings {
    /// How often.
    pub count: u32,
    /// How often it may.
    pub max: u32,
    /// What went wrong each time.
    pub failures: Vec<FailedAttempt>,
    /// The step that went on; its own retries and these are counted together.
    pub step: String,
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
    /// What it was about, in words; of an undo, what it was about that was done first.
    pub words: String,
    /// Whether it is an undo of an undo, which brings back what was done first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returns: bool,
    /// The steps as they were.
    pub steps: Vec<(StepPath, StepState)>,
    /// The lanes as they were.
    pub lanes: Vec<(LanePath, Option<Box<LaneWork>>)>,
    /// The work trees it changed.
    pub workspaces: Vec<RewindWorkspace>,
    /// The moves of base it made.
    pub reverts: Vec<Revert>,
    /// The gates whose decisions it took back, as they were.
    pub gates: Vec<(GateRef, Option<GateState>)>,
    /// The act that it undid, where it is an undo.
    pub undoes: Option<u64>,
    /// Whether it was undone.
    pub undone: bool,
    /// The plan before it, where it changed the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<PlanBefore>>,
}

/// The plan before an act that changed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanBefore {
    /// Its hash.
    pub hash: Sha,
    /// Its title.
    pub title: String,
    /// What it is made of.
    pub shape: Shape,
    /// The process of the replan, under whose number its files are kept.
    pub attempt: u32,
    /// The phase that was planned again.
    pub phase: String,
    /// Which replan of the phase that was.
    pub number: u32,
    /// What asked for it.
    pub trigger: Trigger,
    /// What was due then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

impl Undoable {
    /// An act that changed nothing yet.
    pub(crate) fn blank(id: u64, at: Timestamp, act: Act, words: String) -> Self {
        Self {
            id,
            at,
            act,
            words,
            returns: false,
            steps: Vec::new(),
            lanes: Vec::new(),
            workspaces: Vec::new(),
            reverts: Vec::new(),
            gates: Vec::new(),
            undoes: None,
            undone: false,
            plan: None,
        }
    }

    /// What it is called, however often it went back and forth.
    pub fn title(&self) -> String {
        match (self.act, self.returns) {
            (Act::Undo, false) => format!("undo of the {}", self.words),
            (Act::Undo, true) => format!("return of the {}", self.words),
            _ => self.words.clone(),
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
    /// A plan changed by a replan.
    Replan,
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
            Self::Replan => "replan",
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
    /// Changes how far it is; a change that cannot follow changes nothing.
    pub(crate) fn take(&mut self, change: Change) {
        if let Ok(progress) = next(&self.progress, change) {
            self.progress = progress;
        }
    }

    /// Notes what its files are.
    pub(crate) fn saw(&mut self, snapshot: Option<&SnapshotRef>) {
        let Some(snapshot) = snapshot.cloned() else { return };
        self.latest = Latest {
            snapshot: Some(snapshot.commit),
            tree: Some(snapshot.tree),
            degraded: snapshot.degraded,
            head: snapshot.head,
        };
    }

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

    /// Its work as a commit.
    pub fn committed(&self) -> Option<&Committed> {
        self.progress.committed()
    }

    /// How its work got to where it belongs.
    pub fn merged(&self) -> Option<&LaneMerged> {
        self.progress.merged()
    }

    /// The merge that is under way.
    pub fn merging(&self) -> Option<&MergeIntended> {
        match &self.progress {
            LaneProgress::Merging { intent, .. } => Some(intent),
            _ => None,
        }
    }

    /// The commit of base that it was rebased onto for the merge at hand.
    pub fn onto(&self) -> Option<&String> {
        match &self.progress {
            LaneProgress::Rebased { onto, .. } => Some(onto),
            LaneProgress::Merging { intent, .. } => Some(&intent.from),
            _ => None,
        }
    }

    /// The conflict that is to be put into its workspace.
    pub fn conflict(&self) -> Option<&Conflict> {
        match &self.progress {
            LaneProgress::Conflicted(conflict) => Some(conflict),
            _ => None,
        }
    }

    /// The conflict that its work is to resolve.
    pub fn resolving(&self) -> Option<&Conflict> {
        match &self.progress {
            LaneProgress::Conflicted(conflict)
            | LaneProgress::Working { conflict: Some(conflict) } => Some(conflict),
            _ => None,
        }
    }

    /// Whether the tasks that a step of it waits for may start.
    pub fn is_forked_at(&self, waiting: &str) -> bool {
        matches!(&self.progress, LaneProgress::Forked { step } if step == waiting)
    }

    /// Whether it starts over, and what it did so far goes first.
    pub fn is_dropped(&self) -> bool {
        self.progress == LaneProgress::Dropped
    }

    /// Whether the run has no use for its worktree: there is none, or it stays for a person.
    pub fn is_removed(&self) -> bool {
        let begins = matches!(self.progress, LaneProgress::Begun | LaneProgress::Dropped);
        !begins && !self.has_workspace()
    }

    /// Whether it was taken back to before anything was created, and begins with the base of now.
    pub fn begins_again(&self) -> bool {
        match self.progress {
            LaneProgress::BeginsAgain => true,
            LaneProgress::NotBegun => self.rolled_back.is_some(),
            _ => false,
        }
    }

    /// Whether its workspace is there to be worked in.
    pub fn has_workspace(&self) -> bool {
        self.progress.has_workspace()
    }

    /// What its test step ran on, if it passed and left other files.
    pub fn tested_before(&self) -> Option<&SnapshotRef> {
        let found = self.tests.found.as_ref().filter(|_| self.tests.changed_files > 0)?;
        (self.latest.tree.as_ref() != Some(&found.tree)).then_some(found)
    }

    /// What its test step ran on, if that was the commit to be merged and it left other files or other
    /// commits.
    pub fn retested(&self) -> Option<&SnapshotRef> {
        let (found, committed) = (self.tests.found.as_ref()?, self.committed()?);
        let at_commit = found.head.as_ref() == Some(&committed.commit);
        let strayed = at_commit && self.latest.head.is_some() && self.latest.head != found.head;
        let left = strayed || self.tested_before().is_some();
        (left && found.tree == committed.tree).then_some(found)
    }

    /// Whether a workspace is as an attempt of its tests left it, or is on the way from there back to
    /// what they found: nobody else changed it since.
    pub fn left_by_tests(&self, found: &SnapshotRef, present: &SnapshotRef) -> bool {
        let files = self.latest.tree.as_ref() == Some(&present.tree) || found.tree == present.tree;
        files && (self.latest.head == present.head || found.head == present.head)
    }

    /// The commit of base it began with.
    pub fn started_from(&self) -> Option<&str> {
        self.record(Stage::BeforeLaneStart)?.base_sha.as_deref()
    }

    /// Whether it had nothing to merge, and a commit is all that it did: base needs none of it, whether it
    /// contains that or not.
    pub fn committed_nothing(&self, head: &str) -> bool {
        let nothing = self.merged().is_some_and(|m| m.by == MergedBy::Nothing);
        nothing && self.committed().is_some_and(|c| !c.changed && c.commit == head)
    }

    /// Whether it has a worktree that work is done in.
    pub fn has_worktree(&self) -> bool {
        !self.isolation.is_in_place() && !self.branch.is_empty() && self.has_workspace()
    }

    /// Whether nothing more is to be done for it, once its steps are over.
    pub fn is_over(&self) -> bool {
        match &self.progress {
            LaneProgress::NotBegun
            | LaneProgress::Begun
            | LaneProgress::Restored(_)
            | LaneProgress::Removed(_)
            | LaneProgress::Kept(_) => true,
            // In place there is no worktree to be removed.
            LaneProgress::Merged(landed) => landed.stays() || self.isolation.is_in_place(),
            _ => false,
        }
    }
}

/// That base is not where a lane left it any more, in words; nothing where it is.
pub fn base_moved(base: &str, from: &str, to: &str) -> Option<String> {
    (from != to)
        .then(|| format!("{base} moved from {} to {} since it began", short(from), short(to)))
}
