//! A lane's commit: exactly the files that its tests ran on.

use piton_core::event::{Event, LaneCommitted, LaneReady};
use piton_core::lane::{Role, SnapshotRef, Stage, TESTS_STEP};
use piton_core::lane_state::LaneWork;
use piton_core::plan::Lane;
use piton_core::state::LaneState;
use piton_core::{LanePath, StepPath};

use super::Driver;
use crate::error::Result;
use crate::world::{Commit, Refusal};

/// Runs of a lane's tests in a row that leave other files than they ran on, before what they ran on is
/// taken instead: the first may write what belongs to the work, such as a lock file.
const STIRRED_TWICE: u32 = 2;
/// The same before a lane waits for a person: something else changes its files all the time.
const STIRRED_MAX: u32 = 5;

/// The message of a lane's commit where the plan gives none.
pub(super) const MESSAGE: &str = "{{ lane.id }}: {{ title }}";

impl Driver<'_> {
    pub(super) fn commit_lane(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        self.commit_before_files()?;
        // Before tests run on what nobody means to leave so.
        let work = self.work(path);
        if let Some(refusal) = self.rooms()?.in_hand(path, &work)? {
            return self.block(path, Stage::PrePr, refusal);
        }
        let mut snapshot = match self.snapshot(path, "before the lane's commit") {
            Ok(snapshot) => snapshot.unwrap_or_default(),
            Err(why) => return self.block_unsaved(path, Stage::PrePr, &why),
        };
        let skipped = self.state.lane(path).is_some_and(LaneState::tests_are_skipped);
        let is_due =
            |tree: &str| !skipped && has_tests_step(lane) && !work.proven(&lane.tests(), tree);
        let found = work.tested_before().filter(|_| work.stirred >= STIRRED_TWICE);
        if let Some(found) = found.filter(|_| is_due(&snapshot.tree)) {
            snapshot = match self.clear_traces(path, found, snapshot) {
                Ok(snapshot) => snapshot,
                Err(why) => return self.block_unsaved(path, Stage::PrePr, &why),
            };
        }
        if is_due(&snapshot.tree) {
            if work.stirred >= STIRRED_MAX {
                return self.block(path, Stage::PrePr, restless(path, self.run.id()));
            }
            let reason = if work.stirred > 0 {
                "its tests changed files"
            } else {
                "files changed after the tests had run"
            };
            return self.test_again(path, snapshot, reason);
        }
        let template = lane.rules.message.as_deref().unwrap_or(MESSAGE);
        let message = self.message(path, template);
        match self.rooms()?.commit(path, &work, &snapshot, &message)? {
            Commit::Done { commit, tree, changed } => {
                let (lane, tests) = (path.clone(), lane.tests());
                let event = LaneCommitted { lane, commit, tree, changed, tests };
                self.record(Event::LaneCommitted(event))
            }
            Commit::Unresolved(files) => self.reopen_unsettled(path, lane, &files),
            Commit::Refused(refusal) => self.block(path, Stage::PrePr, refusal),
        }
    }

    pub(super) fn message(&self, path: &LanePath, template: &str) -> String {
        let vars = piton_formats::template::Vars {
            run_id: self.run.id().to_owned(),
            phase: path.phase.clone(),
            lane: path.lane.clone(),
            step: String::new(),
            attempt: 1,
            spec: self.plan.spec.clone(),
            title: self.plan.title.clone(),
            root: self.state.root.clone(),
            failure_context: String::new(),
        };
        let filled = piton_formats::template::render(template, &vars);
        filled.unwrap_or_else(|_| format!("{}: {}", path.lane, self.plan.title))
    }

    /// Takes out of a lane's worktree what its tests changed, if that is all that changed since: what is
    /// there then is what they ran on. It stays in the snapshot of their attempt, and commits that they
    /// made stay with it.
    fn clear_traces(
        &mut self,
        path: &LanePath,
        found: &SnapshotRef,
        present: SnapshotRef,
    ) -> Result<SnapshotRef, String> {
        if !self.take_out(path, found, &present)? {
            return Ok(present);
        }
        let (tree, now) = (&found.tree, self.snapshot(path, "without what its tests wrote")?);
        let now = now.unwrap_or(present);
        // What no snapshot holds can't be brought back, and keeps the lane from being committed so.
        if now.tree == *tree {
            self.warn(format!(
                "{path}: files changed or commits were made while its tests ran: what they ran on goes \
                 to base, what they left is in the snapshot of their attempt, commits are below \
                 refs/piton/{}/rewound",
                self.run.id()
            ));
        }
        Ok(now)
    }

    /// Takes a lane's files and its branch back to what its tests found; whether there was something to
    /// take back, and nothing but theirs.
    pub(super) fn take_out(
        &mut self,
        path: &LanePath,
        found: &SnapshotRef,
        present: &SnapshotRef,
    ) -> Result<bool, String> {
        let work = self.work(path);
        let is_there = present.tree == found.tree && present.head == found.head;
        if is_there || !work.left_by_tests(found, present) {
            return Ok(false);
        }
        self.files.fresh.remove(&work.dir);
        let Some(rooms) = self.world.rooms() else { return Ok(false) };
        let whole = (!found.degraded.is_empty()).then_some(found.tree.as_str());
        let stood = (found.head.as_deref(), whole);
        if let Some(text) = rooms.reset(path, &work.dir, &found.commit, stood, self.clock.at)? {
            self.warn(text);
        }
        Ok(true)
    }

    /// Takes out what the tests left when they ran again on what is to be merged: it would keep the
    /// worktree from being removed, and get in the way of the next round.
    pub(super) fn clear_retest(
        &mut self,
        path: &LanePath,
        work: &LaneWork,
    ) -> Result<Result<(), String>> {
        let Some(found) = work.retested().filter(|_| work.merging.is_none()) else {
            return Ok(Ok(()));
        };
        self.commit_before_files()?;
        Ok(match self.snapshot(path, "before the lane's merge") {
            Ok(Some(present)) => self.clear_traces(path, found, present).map(drop),
            Ok(None) => Ok(()),
            Err(why) => Err(why),
        })
    }

    /// Lets the lane's tests run once more on the files as they are now.
    fn test_again(&mut self, path: &LanePath, snapshot: SnapshotRef, reason: &str) -> Result<()> {
        let work = self.work(path);
        self.record(Event::LaneReady(Box::new(LaneReady {
            lane: path.clone(),
            dir: work.dir,
            branch: work.branch,
            head: work.committed.map(|c| c.commit),
            snapshot: Some(snapshot),
            note: reason.to_owned(),
        })))?;
        self.run_tests_again(path, reason)
    }

    pub(super) fn run_tests_again(&mut self, path: &LanePath, reason: &str) -> Result<()> {
        self.run_again(StepPath::new(&path.phase, &path.lane, TESTS_STEP), reason)
    }
}

/// Why a lane whose files never come to rest goes no further by itself.
fn restless(path: &LanePath, run: &str) -> Refusal {
    Refusal {
        why: format!("its files changed {STIRRED_MAX} times while its tests ran"),
        fix: format!(
            "see what changes them (`piton diff` between two snapshots of {path}/{TESTS_STEP}; a file \
             too large for one is named by `piton status`), end it or let git ignore what it writes, \
             then `piton resume {run}`"
        ),
    }
}

pub(super) fn has_tests_step(lane: &Lane) -> bool {
    lane.steps.iter().any(|s| s.role == Role::Tests)
}
