//! A lane's commit: exactly the files that its tests ran on.

use piton_core::decide::{BeforeCommit, before_commit};
use piton_core::event::{Event, LaneCommitted, LaneReady};
use piton_core::lane::{Role, SnapshotRef, Stage};
use piton_core::lane_state::LaneWork;
use piton_core::plan::Lane;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, StepPath};
use piton_formats::template::{self, Vars};

use super::Driver;
use crate::error::Result;
use crate::world::Commit;

/// The message of a lane's commit where the plan gives none.
pub(super) const MESSAGE: &str = "{{ lane.id }}: {{ title }}";

impl Driver<'_> {
    pub(super) fn commit_lane(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        self.commit_before_files()?;
        // Before tests run on what nobody means to leave so.
        let work = self.work(path);
        if let Some(refusal) = self.workspaces()?.user_operation(path, &work)? {
            return self.block(path, Stage::PrePr, refusal);
        }
        let mut snapshot = match self.snapshot(path, "before the lane's commit") {
            Ok(snapshot) => snapshot.unwrap_or_default(),
            Err(why) => return self.block_unsaved(path, Stage::PrePr, why),
        };
        for taken_out in [false, true] {
            let Some(state) = self.state.lane(path) else { return Ok(()) };
            match before_commit(path, state, &work, lane, &snapshot.tree, taken_out) {
                BeforeCommit::Nothing => break,
                BeforeCommit::TakeOut(found) => {
                    snapshot = match self.clear_traces(path, found, snapshot) {
                        Ok(snapshot) => snapshot,
                        Err(why) => return self.block_unsaved(path, Stage::PrePr, why),
                    };
                }
                BeforeCommit::Test(reason) => return self.test_again(path, snapshot, reason),
                BeforeCommit::Refuse(refusal) => return self.block(path, Stage::PrePr, refusal),
            }
        }
        let template = lane.rules.message.as_deref().unwrap_or(MESSAGE);
        let message = self.message(path, template);
        match self.workspaces()?.commit(path, &work, &snapshot, &message)? {
            Commit::Done { commit, tree, changed } => {
                let (lane, tests) = (path.clone(), lane.tests());
                let event = LaneCommitted { lane, commit, tree, changed, tests };
                self.acted();
                self.record(Event::LaneCommitted(event))
            }
            Commit::Unresolved(files) => self.reopen_unresolved(path, &files),
            Commit::Refused(refusal) => self.block(path, Stage::PrePr, refusal),
        }
    }

    pub(super) fn message(&self, path: &LanePath, text: &str) -> String {
        let step = StepPath::new(&path.phase, &path.lane, "");
        let vars = Vars::new(&self.plan, &self.state, &step, 1);
        let filled = template::render(text, &vars);
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
    ) -> Result<SnapshotRef, Refusal> {
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
    ) -> Result<bool, Refusal> {
        let work = self.work(path);
        let is_there = present.tree == found.tree && present.head == found.head;
        if is_there || !work.left_by_tests(found, present) {
            return Ok(false);
        }
        self.files.fresh.remove(&work.dir);
        let Some(workspaces) = self.world.workspaces() else { return Ok(false) };
        let whole = (!found.degraded.is_empty()).then_some(found.tree.as_str());
        let stood = (found.head.as_deref(), whole);
        if let Some(text) =
            workspaces.reset(path, &work.dir, &found.commit, stood, self.clock.at)?
        {
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
    ) -> Result<Result<(), Refusal>> {
        let Some(found) = work.retested().filter(|_| work.merging().is_none()) else {
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
            head: work.committed().map(|c| c.commit.clone()),
            dir: work.dir,
            branch: work.branch,
            snapshot: Some(snapshot),
            note: reason.to_owned(),
        })))?;
        self.run_tests_again(path, reason)
    }

    pub(super) fn run_tests_again(&mut self, path: &LanePath, reason: &str) -> Result<()> {
        let tests = self.state.lane(path).and_then(|lane| lane.step_for(Role::Tests));
        let step = tests.map(|step| StepPath::new(&path.phase, &path.lane, &step.id));
        step.map_or(Ok(()), |step| self.run_again(step, reason))
    }
}
