//! How an attempt begins: its inputs and files are looked at, then its start is recorded.

use piton_core::LanePath;
use piton_core::decide::tested_onto;
use piton_core::event::{Class, Event, StepProven, StepStarted};
use piton_core::lane::{Role, SnapshotRef, Stage};
use piton_core::refusal::Refusal;
use piton_core::state::StepState;

use super::Driver;
use crate::error::{Error, Result};
use crate::world::Attempt;

impl Driver<'_> {
    /// Begins an attempt; whether something else was done for its lane, and is to be decided anew.
    pub(super) fn begin(&mut self, attempt: &Attempt) -> Result<bool> {
        let Some(step) = self.planned(&attempt.step) else {
            return Ok(false);
        };
        let (definition, patterns) = (step.definition(), step.inputs.clone());
        if self.hashes(&attempt.step, &patterns) {
            return Ok(false);
        }
        if self.completes(attempt)? {
            return Ok(true);
        }
        if self.state.role(&attempt.step) == Role::Tests && self.catches_up(&attempt.step.lane())? {
            return Ok(true);
        }
        self.say_lacks(attempt);
        let inputs = if patterns.is_empty() {
            Ok(Vec::new())
        } else {
            // Hashing may take long: outcomes at hand do not wait for it.
            self.commit()?;
            self.world.inputs(&self.dir_of(&attempt.step.lane()), &patterns)
        };
        // An input that can't be read is the step's trouble, not that of the run.
        let (inputs, unreadable) = match inputs {
            Ok(inputs) => (inputs, None),
            Err(Error::World(why)) => (Vec::new(), Some(why)),
            Err(error) => return Err(error),
        };
        let tests_only = self.is_test_first(attempt);
        let before = match self.found_by(attempt, tests_only) {
            Ok(before) => before,
            // No attempt is spent on a disk that is full.
            Err(why) => {
                self.block_unsaved(&attempt.step.lane(), Stage::AfterLaneStart, why)?;
                return Ok(true);
            }
        };
        let agent = if tests_only { None } else { self.begins(attempt) };
        self.tallies.begun.insert(attempt.step.clone());
        self.record(Event::StepStarted(StepStarted {
            step: attempt.step.clone(),
            attempt: attempt.number,
            definition,
            inputs,
            before,
            tests_only,
            secrets: self.options.redactor.names().iter().cloned().collect(),
            agent,
        }))?;
        match unreadable.map(|why| format!("an input can't be read: {why}")) {
            Some(why) => self.not_started(attempt, &why),
            None => self.place_order(attempt),
        }?;
        Ok(false)
    }

    /// Takes a step for done whose last attempt was cut short, if what it makes is complete. One that
    /// failed before, or shall do its work again, made that for something else.
    fn completes(&mut self, attempt: &Attempt) -> Result<bool> {
        let asked_again = |s: &StepState| {
            s.rerun.is_some() || !s.reviews.is_empty() || !s.failure_context.is_empty()
        };
        let cut_short = |s: &StepState| s.interrupted && !asked_again(s);
        let Some(step) = self.planned(&attempt.step).cloned() else { return Ok(false) };
        if !self.state.step(&attempt.step).is_some_and(cut_short)
            || !self.world.is_complete(&self.plan, &self.state, attempt)
        {
            return Ok(false);
        }
        self.commit()?;
        let dir = self.dir_of(&attempt.step.lane());
        let Ok(artifacts) = self.world.seal(&dir, &step.artifacts) else { return Ok(false) };
        let (path, definition) = (attempt.step.clone(), Some(step.definition()));
        self.record(Event::StepProven(StepProven {
            step: path,
            tree: String::new(),
            definition,
            artifacts,
        }))?;
        Ok(true)
    }

    /// Says what a worktree lacks although it was set up, before a lane's work begins in it.
    fn say_lacks(&mut self, attempt: &Attempt) {
        let path = attempt.step.lane();
        let Some(lane) = self.plan.lane(&path).filter(|_| attempt.number == 1) else { return };
        let first = lane.steps.iter().find(|step| step.role != Role::Setup);
        if first.is_none_or(|step| step.id != attempt.step.step) {
            return;
        }
        let work = self.work(&path);
        let Some(workspaces) = self.world.workspaces().filter(|_| !work.isolation.is_in_place())
        else {
            return;
        };
        if let Some(text) = workspaces.lacks(&path, &work.dir) {
            self.warn(text);
        }
    }

    /// Puts a lane on the base of now before its tests run again, where they ran on what is to be merged
    /// and base moved since: what they failed on may be put right there. Whether anything was done. Where
    /// somebody put it right in the worktree, the tests run on that.
    fn catches_up(&mut self, path: &LanePath) -> Result<bool> {
        let work = self.work(path);
        let Some(lane) = self.plan.lane(path).cloned() else { return Ok(false) };
        let (Some(onto), Some(committed)) = (tested_onto(&lane, &work), work.committed()) else {
            return Ok(false);
        };
        if self.files.edited.contains(path) {
            return Ok(false);
        }
        if self.workspaces()?.tip(&work.base_branch).is_none_or(|tip| tip == *onto) {
            return Ok(false);
        }
        self.commit()?;
        // What can't be checkpointed is reported when the tests begin.
        let Ok(Some(present)) = self.snapshot(path, "before it is put on base") else {
            return Ok(false);
        };
        let strayed = present.head.as_ref().is_some_and(|head| *head != committed.commit);
        if strayed || present.tree != committed.tree {
            let found = work.tests.found.as_ref().filter(|found| found.tree == committed.tree);
            let Some(found) = found else { return Ok(false) };
            // All that differs is what the tests left; it stays in the snapshot of their attempt.
            if !matches!(self.take_out(path, found, &present), Ok(true)) {
                return Ok(false);
            }
        }
        self.rebase(path, &lane)?;
        Ok(true)
    }

    /// Whether the test of a step runs on what is there before its work does again: it was the test that
    /// failed, a person asks for another attempt, and files are not as that left them any more. The work
    /// would overwrite what they put right.
    fn is_test_first(&mut self, attempt: &Attempt) -> bool {
        let path = &attempt.step;
        let planned = self.planned(path).filter(|step| step.test.is_some());
        let (Some(planned), Some(step)) = (planned, self.state.step(path)) else { return false };
        let last = step.failure_context.last();
        let failed = last.is_some_and(|f| f.attempt == step.attempts && f.class == Class::Test);
        // A retry of its own follows at once: nobody had the time to put anything right.
        if !failed
            || self.tallies.begun.contains(path)
            || !step.definition.as_ref().is_some_and(|d| planned.is_defined_by(d))
        {
            return false;
        }
        let left = self.work(&path.lane()).latest.tree;
        // What can't be checkpointed is reported when the attempt begins.
        let now = self.snapshot(&path.lane(), &format!("before {attempt}")).ok().flatten();
        left.zip(now).is_some_and(|(left, now)| left != now.tree)
    }

    /// The files an attempt finds: those it starts from are checkpointed first.
    fn found_by(
        &mut self,
        attempt: &Attempt,
        tests_only: bool,
    ) -> Result<Option<SnapshotRef>, Refusal> {
        if self.state.lane(&attempt.step.lane()).is_none_or(|l| l.work.is_none()) {
            return Ok(None);
        }
        if !tests_only {
            self.reset(&attempt.step)?;
        }
        self.snapshot(&attempt.step.lane(), &format!("before {attempt}"))
    }
}
