//! What a driver does for lanes beside their steps: begin, make a workspace, commit, rebase, merge, remove.

use piton_core::decide::{self, LaneAct, validation};
use piton_core::event::{
    Event, LaneBegun, LaneBlocked, LaneKept, LaneMerged, LaneRebased, MergeIntended, MergeMissed,
    MergedBy, StepProven,
};
use piton_core::lane::{LaneRules, Role, Stage};
use piton_core::lane_state::{Conflict, LaneWork, base_moved};
use piton_core::plan::{Lane, Step};
use piton_core::state::LaneState;
use piton_core::text::short;
use piton_core::unmet::{Unmet, unmet};
use piton_core::{LanePath, RunState, StepPath, refusals};

use super::tallies::exceeds;
use super::{Drive, Driver};
use crate::error::{Error, Result};
use crate::world::{Begin, MadeWorkspace, Merging, Rebase, Removed, Workspaces, World};
use piton_core::refusal::Refusal;

/// So many acts for a lane without a step in between come to nothing: few are ever due.
const ACTS_MAX: u32 = 1_000;

impl Driver<'_> {
    /// Carries out what was decided for a lane.
    pub(super) fn lane_act(&mut self, path: &LanePath, act: LaneAct) -> Result<()> {
        let Some(lane) = self.plan.lane(path).cloned() else { return Ok(()) };
        let is_inherited = act == LaneAct::Rebase && !self.tallies.acts.contains_key(path);
        let act = if is_inherited && self.was_edited(path)? { LaneAct::Commit } else { act };
        if act != LaneAct::CheckPullRequest && exceeds(&mut self.tallies.acts, path, ACTS_MAX) {
            let refusal = refusals::no_progress(ACTS_MAX, &format!("{act:?}"));
            return self.block(path, Stage::PrePr, refusal);
        }
        match act {
            LaneAct::Begin => self.begin_lane(path, &lane),
            LaneAct::MakeWorkspace => self.make_workspace(path, &lane),
            LaneAct::Prove => self.prove(path),
            LaneAct::Commit => self.commit_lane(path, &lane),
            LaneAct::Rebase => self.rebase(path, &lane),
            LaneAct::Merge => self.merge(path, &lane),
            LaneAct::CheckPullRequest => self.check_pull_request(path),
            LaneAct::Conclude(by) => {
                let untested = self.state.lane(path).is_some_and(LaneState::tests_are_skipped);
                let note = match by {
                    MergedBy::Nothing => "nothing to merge",
                    _ if untested => "its tests were skipped: stays on its branch",
                    _ => "stays on its branch",
                };
                self.merged(path, by, None, None, note)
            }
            LaneAct::Remove => self.remove(path),
            LaneAct::Fork => self.fork(path, &lane),
            LaneAct::Join => self.join(path),
        }
    }

    pub(super) fn workspaces(&mut self) -> Result<&mut dyn Workspaces> {
        workspaces_of(self.world)
    }

    /// The lane's work; lane acts are only decided for lanes that have some.
    pub(super) fn work(&self, path: &LanePath) -> LaneWork {
        let work = self.state.lane(path).and_then(|l| l.work.as_deref());
        work.cloned().unwrap_or_default()
    }

    pub(super) fn block(&mut self, path: &LanePath, stage: Stage, refusal: Refusal) -> Result<()> {
        let lane = path.clone();
        let begun = self.state.lane(path).and_then(|l| l.work.as_ref());
        let mut base_branch = String::new();
        if begun.is_none_or(|work| work.base_branch.is_empty()) {
            let named =
                self.world.workspaces().and_then(|workspaces| workspaces.base_branch(&self.state));
            base_branch = named.unwrap_or_default();
        }
        self.record(Event::LaneBlocked(LaneBlocked { lane, stage, refusal, base_branch }))
    }

    /// Says of lanes that were chosen without what they need what that is.
    pub(super) fn refuse_unmet(&mut self) -> Result<()> {
        for Unmet { lane, why, first } in unmet(&self.plan, &self.state, &self.options.limits) {
            let refusal = refusals::needs_unmet(self.run.id(), why, &first);
            self.block(&lane, Stage::BeforeLaneStart, refusal)?;
        }
        Ok(())
    }

    /// Why a lane does not begin, whatever its workspace says.
    fn refused_beginning(&self, path: &LanePath, lane: &Lane) -> Option<Refusal> {
        let none = Vec::new();
        let (open, doubted) = match &self.drive {
            Drive::Run(gates) => (gates.open.get(path), gates.doubted.get(path)),
            _ => (None, None),
        };
        let (open, doubted) = (open.unwrap_or(&none), doubted.unwrap_or(&none));
        decide::refused_beginning(self.run.id(), lane, open, doubted)
    }

    fn begin_lane(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        if let Some(refusal) = self.refused_beginning(path, lane) {
            return self.block(path, Stage::BeforeLaneStart, refusal);
        }
        // Git takes its time: outcomes at hand do not wait for it.
        self.commit()?;
        // Gates that lanes before it provide are ticked before it looks.
        let mut lanes = self.plan.phases.iter().flat_map(|phase| &phase.lanes);
        if lanes.any(|lane| !lane.rules.provides.is_empty()) {
            self.write_views();
        }
        let begin = match self.world.workspaces() {
            Some(workspaces) => workspaces.begin(path, &lane.rules, &self.state)?,
            None => without_repository(path, &lane.rules, &self.state),
        };
        match begin {
            Begin::Refused(refusal) => self.block(path, Stage::BeforeLaneStart, refusal),
            Begin::Ready(begun) => {
                if !begun.note.is_empty() {
                    self.warn(format!("{path}: {}", begun.note));
                }
                if let Some(snapshot) = &begun.snapshot {
                    self.files.fresh.insert(String::new(), snapshot.clone());
                }
                let isolated = !begun.isolation.is_in_place();
                self.acted();
                self.outdate_validation(path, &begun)?;
                self.record(Event::LaneBegun(begun))?;
                // The point before anything is created must be durable before it is.
                if isolated { self.commit() } else { Ok(()) }
            }
        }
    }

    fn make_workspace(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        self.commit()?;
        let work = self.work(path);
        match self.workspaces()?.make_workspace(path, &lane.rules, &work)? {
            MadeWorkspace::Refused(refusal) => self.block(path, Stage::AfterLaneStart, refusal),
            MadeWorkspace::Ready(ready) => {
                if !ready.note.is_empty() {
                    self.warn(format!("{path}: {}", ready.note));
                }
                if let Some(snapshot) = &ready.snapshot {
                    self.files.fresh.insert(ready.dir.clone(), snapshot.clone());
                }
                self.acted();
                self.record(Event::LaneReady(ready))
            }
        }
    }

    /// Takes a lane's current step for done.
    fn prove(&mut self, path: &LanePath) -> Result<()> {
        let Some(step) = self.current(path) else { return Ok(()) };
        let tests = self.state.role(&step) == Role::Tests;
        let tree = self.work(path).latest.tree.filter(|_| tests).unwrap_or_default();
        self.proven(step, tree)
    }

    fn proven(&mut self, step: StepPath, tree: String) -> Result<()> {
        let definition = self.planned(&step).map(Step::definition);
        self.record(Event::StepProven(StepProven { step, tree, definition, artifacts: Vec::new() }))
    }

    pub(super) fn rebase(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        self.commit_before_files()?;
        let work = self.work(path);
        if let Some(refusal) = self.outrun(path) {
            return self.block(path, Stage::PrePr, refusal);
        }
        match self.workspaces()?.rebase(path, &work)? {
            Rebase::Done { onto, commit, tree } => {
                let untested = decide::must_test(lane, &work, &tree);
                let reason = format!("it was rebased onto {}", short(&onto));
                let event = LaneRebased { lane: path.clone(), onto, commit, tree };
                self.acted();
                self.record(Event::LaneRebased(event))?;
                if untested { self.run_tests_again(path, &reason) } else { Ok(()) }
            }
            Rebase::Conflict { onto, head, files } => {
                self.reopen_conflict(path, files, Conflict { onto, head })
            }
            Rebase::Refused(refusal) => self.block(path, Stage::PrePr, refusal),
        }
    }

    fn merge(&mut self, path: &LanePath, lane: &Lane) -> Result<()> {
        let work = self.work(path);
        let Some(committed) = work.committed() else { return Ok(()) };
        if work.merging().is_none() && decide::must_test(lane, &work, &committed.tree) {
            let reason = "the tests have not passed on the tree to be merged";
            return self.run_tests_again(path, reason);
        }
        if let Err(why) = self.clear_retest(path, &work)? {
            return self.block_unsaved(path, Stage::PrePr, why);
        }
        let intent = match (work.merging(), work.onto()) {
            (Some(intent), _) => intent.clone(),
            (None, Some(onto)) => MergeIntended {
                lane: path.clone(),
                base_branch: work.base_branch.clone(),
                from: onto.clone(),
                to: committed.commit.clone(),
            },
            (None, None) => return Ok(()),
        };
        if work.merging().is_none() {
            if let Some(refusal) = self.workspaces()?.may_merge(&intent)? {
                return self.block(path, Stage::PrePr, refusal);
            }
            self.acted();
            self.record(Event::MergeIntended(intent.clone()))?;
        }
        self.commit()?;
        match self.workspaces()?.merge(&intent)? {
            Merging::Done(note) => {
                // Tasks go into their lane one after the other: that it moves is nothing to tell.
                let is_task = self.state.lane(path).is_some_and(|l| l.task.is_some());
                let moved = work.started_from().filter(|_| !is_task);
                let moved =
                    moved.and_then(|from| base_moved(&work.base_branch, from, &intent.from));
                let notes: Vec<String> =
                    moved.into_iter().chain([note]).filter(|n| !n.is_empty()).collect();
                let (from, to) = (Some(intent.from), Some(intent.to));
                self.merged(path, MergedBy::Queue, from, to, &notes.join("; "))
            }
            Merging::Moved { found, by_runs } => {
                let lane = path.clone();
                self.record(Event::MergeMissed(MergeMissed { lane, found, by_runs }))?;
                // Reported before what follows from it.
                self.commit()?;
                match self.outrun(path) {
                    Some(refusal) => self.block(path, Stage::PrePr, refusal),
                    None => Ok(()),
                }
            }
            Merging::Refused(refusal) => self.block(path, Stage::PrePr, refusal),
        }
    }

    /// Why a lane that base outran too often goes no further by itself.
    fn outrun(&self, path: &LanePath) -> Option<Refusal> {
        decide::over_rounds(&self.work(path), self.options.merge_rounds)
    }

    pub(super) fn merged(
        &mut self,
        path: &LanePath,
        by: MergedBy,
        from: Option<String>,
        to: Option<String>,
        note: &str,
    ) -> Result<()> {
        let (lane, note) = (path.clone(), note.to_owned());
        self.acted();
        self.record(Event::LaneMerged(LaneMerged { lane, by, from, to, note }))?;
        // A lane that had nothing to merge needs no pull request.
        let steps = self.state.lane(path).into_iter().flat_map(|l| &l.steps);
        let open = steps.filter(|s| !s.progress.is_over());
        let open: Vec<_> = open.map(|s| StepPath::new(&path.phase, &path.lane, &s.id)).collect();
        for step in open {
            self.proven(step, String::new())?;
        }
        let reason = format!("base changed with {path}");
        let stale = validation::outdated_by(&self.state, path);
        stale.into_iter().try_for_each(|step| self.run_again(step, &*reason))
    }

    pub(super) fn remove(&mut self, path: &LanePath) -> Result<()> {
        self.commit()?;
        let (work, at) = (self.work(path), self.clock.at);
        let artifacts = self.state.lane(path).map_or(Vec::new(), LaneState::artifacts);
        let removed = match self.workspaces()?.remove(path, &work, &artifacts, at) {
            Ok(removed) => removed,
            Err(Error::World(why)) if work.is_dropped() => {
                return self.block(path, Stage::AfterLaneStart, why);
            }
            Err(Error::World(why)) => {
                self.warn(format!("{path}: its worktree could not be removed: {why}"));
                return self.record(Event::LaneKept(LaneKept { lane: path.clone(), refusal: why }));
            }
            Err(error) => return Err(error),
        };
        let Removed { record, why_branch_stays: why } = removed;
        if record.branch_stays && record.snapshot.is_some() {
            let why = why.unwrap_or_else(|| format!("until {} contains it", work.base_branch));
            self.warn(format!("{path}: branch {} stays {why}", work.branch));
        }
        self.acted();
        self.record(Event::LaneRemoved(record))
    }
}

pub(super) fn workspaces_of(world: &mut dyn World) -> Result<&mut dyn Workspaces> {
    world.workspaces().ok_or_else(|| Error::World(refusals::no_repository()))
}

/// How a lane begins where nothing can be snapshotted: in place, and nothing can be taken back.
fn without_repository(lane: &LanePath, rules: &LaneRules, state: &RunState) -> Begin {
    if !rules.isolation.is_in_place() {
        return Begin::Refused(refusals::no_repository());
    }
    Begin::Ready(Box::new(LaneBegun {
        lane: lane.clone(),
        isolation: rules.isolation,
        dir: state.root.clone(),
        branch: String::new(),
        base_branch: String::new(),
        base_sha: None,
        snapshot: None,
        note: String::new(),
    }))
}
