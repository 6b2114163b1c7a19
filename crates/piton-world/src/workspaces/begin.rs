//! Where lanes begin: preconditions and worktrees.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use piton_core::event::LaneBegun;
use piton_core::lane::{LaneRules, Missed, SnapshotRef, Stage, StageStatus, TaskOf};
use piton_core::lane_state::{Conflict, LaneWork};
use piton_core::refusal::Refusal;
use piton_core::{LanePath, RunState};
use piton_engine::world::{Begin, MadeWorkspace};
use piton_protocols::protocol::Names;
use piton_workspace::{Project, checks, history, merge, refs, restore, worktree};

use super::degraded::with_commit_tree;
use super::error::Result;
use super::snapshots::recorded;
use super::{GitWorkspaces, branch_head, ready, spec};
use crate::{notes, now, refusals};

impl GitWorkspaces {
    pub(super) fn begin_lane(
        &mut self,
        lane: &LanePath,
        rules: &LaneRules,
        state: &RunState,
    ) -> Result<Begin> {
        if rules.isolation.is_in_place() {
            return Ok(match self.off_base(lane, state) {
                Some(refusal) => Begin::Refused(refusal),
                None => self.begin_in_place(lane, self.unsaved(lane, state)),
            });
        }
        if let Some(refusal) = &self.refusal {
            return Ok(Begin::Refused(refusal.clone()));
        }
        if let Some(task) = &rules.task {
            return Ok(self.begin_task(lane, task, state));
        }
        if let Some(refusal) = self.not_at_base(state) {
            return Ok(Begin::Refused(refusal));
        }
        let wanted = self.wanted_base(state);
        let base = match self.usual_base(wanted.as_deref()) {
            Ok(base) => base,
            Err(found) => return Ok(Begin::Refused(found)),
        };
        let lacking = match self.lacking(lane, state, &base) {
            Ok(note) => note,
            Err(refusal) => return Ok(Begin::Refused(refusal)),
        };
        let before = state.lane(lane).and_then(|l| l.work.as_deref());
        let again = before.filter(|work| work.begins_again());
        if let (true, Some(refusal)) = (again.is_some(), self.refuses_other_branch(&base.branch)) {
            return Ok(Begin::Refused(refusal));
        }
        let seeded = again.is_some_and(|work| {
            // One that was refused has the snapshot that it was rolled back to.
            let start = work.record(Stage::BeforeLaneStart);
            start.is_some_and(|r| r.status != StageStatus::Blocked && r.snapshot.is_some())
        });
        let mut snapshot = None;
        if let Some(dir) = &base.worktree {
            match self.clean(dir) {
                Ok(()) => {}
                Err(found) if found.code == "dirty" && (self.options.seed_dirty || seeded) => {
                    snapshot = Some(self.take_seed(lane)?);
                }
                Err(found) => return Ok(Begin::Refused(found)),
            }
        }
        let (dir, branch) = self.place_of(lane);
        let unseen = snapshot.as_ref().and_then(|seed| not_seeded(&self.root, seed));
        let notes = [unseen, lacking];
        Ok(Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: rules.isolation,
            dir: dir.display().to_string(),
            branch,
            note: notes.into_iter().flatten().collect::<Vec<_>>().join("; "),
            base_branch: base.branch,
            base_sha: Some(base.commit),
            snapshot,
        })))
    }

    /// The uncommitted state of base, from which a lane begins. A plan that git does not know is what the
    /// run is made from, and would be committed as work of the lane.
    fn take_seed(&mut self, lane: &LanePath) -> Result<SnapshotRef> {
        let plan = self.options.plan.clone();
        let untracked = plan.filter(|plan| !checks::is_tracked(&self.root, plan));
        let usual = Rc::clone(&self.rules);
        Rc::make_mut(&mut self.rules).exclude.extend(untracked);
        let taken = self.take(None, "", &format!("seed of {lane}"), now());
        self.rules = usual;
        Ok(recorded(&taken?))
    }

    /// Why lanes of a run that has not begun could not have worktrees, or hand on what they do in place:
    /// all that can be known before the first of them begins.
    pub fn preflight(&mut self, state: &RunState) -> Vec<Refusal> {
        let mut refused: Vec<Refusal> = self.refusal.clone().into_iter().collect();
        let remarks = checks::repository(&self.root).into_iter().filter(|remark| remark.refuses);
        refused.extend(remarks.map(|remark| remark.about));
        refused.extend(self.not_at_base(state));
        let wanted = self.wanted_base(state);
        let base = match self.usual_base(wanted.as_deref()) {
            Ok(base) => base,
            Err(refusal) => {
                refused.push(refusal);
                return refused;
            }
        };
        let Some(dir) = &base.worktree else { return refused };
        let is_apart = state.lanes().any(|(_, lane)| !lane.isolation.is_in_place());
        match self.clean(dir) {
            Err(found) if found.code == "dirty" && (self.options.seed_dirty || !is_apart) => {}
            Err(found) => refused.push(found),
            Ok(()) => {}
        }
        refused
    }

    /// Where a lane's worktree is made, and what its branch is called.
    pub fn place_of(&self, lane: &LanePath) -> (PathBuf, String) {
        let Names { branch, folder } = self.options.protocol.names(lane, None);
        (self.root.join(&self.options.worktrees).join(folder), branch)
    }

    /// Checks that a work tree has no uncommitted changes except in the plan and in Piton's own files.
    pub(super) fn clean(&self, dir: &Path) -> Result<(), Refusal> {
        let own = self.rules.exclude.iter().chain(&self.options.plan);
        checks::clean(dir, &own.map(String::as_str).collect::<Vec<_>>())
    }

    /// The base that was named; otherwise the branch that is checked out, if it is the usual one.
    fn usual_base(&mut self, wanted: Option<&str>) -> Result<checks::Base, Refusal> {
        let base = self.base(wanted)?;
        match &self.options.usual_base {
            Some(usual) if wanted.is_none() && *usual != base.branch => {
                Err(refusals::other_base(&base.branch, usual))
            }
            _ => Ok(base),
        }
    }

    /// Why a lane does not begin again: another branch than its base is checked out, and nobody named
    /// the base.
    fn refuses_other_branch(&self, base: &str) -> Option<Refusal> {
        let found = Project::discover_cached(&self.root).ok()?.branch();
        if self.options.base.is_some() || found.as_deref() == Some(base) {
            return None;
        }
        Some(refusals::base_not_checked_out(base, found.as_deref()))
    }

    fn base(&mut self, wanted: Option<&str>) -> Result<checks::Base, Refusal> {
        if !self.usable {
            checks::usable(&self.root)?;
            self.usable = true;
        }
        checks::base(&self.root, wanted)
    }

    /// A task starts from the branch of its lane, and its worktree is within that of the lane.
    fn begin_task(&self, lane: &LanePath, task: &TaskOf, state: &RunState) -> Begin {
        let parent = LanePath { phase: lane.phase.clone(), lane: task.lane.clone() };
        let work = state.lane(&parent).and_then(|l| l.work.as_deref());
        let branch = work.map(|w| w.branch.clone()).unwrap_or_default();
        let (Some(work), Some(head)) = (work, branch_head(&self.root, &branch)) else {
            return Begin::Refused(refusals::branch_gone(&branch));
        };
        let names = self.options.protocol.names(lane, Some(task));
        let dir = Path::new(&work.dir).join(names.folder);
        Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: piton_core::lane::Isolation::Worktree,
            dir: dir.display().to_string(),
            branch: names.branch,
            base_branch: branch,
            base_sha: Some(head),
            snapshot: None,
            note: String::new(),
        }))
    }

    fn begin_in_place(&mut self, lane: &LanePath, note: Option<String>) -> Begin {
        let snapshot = match self.take(None, "", &format!("before {lane}"), now()) {
            Ok(taken) => recorded(&taken),
            Err(why) => return Begin::Refused(refusals::no_checkpoint(why.into())),
        };
        let project = Project::discover_cached(&self.root).ok();
        let branch = project.as_ref().and_then(Project::branch);
        let head = project.and_then(|p| p.head());
        Begin::Ready(Box::new(LaneBegun {
            lane: lane.clone(),
            isolation: piton_core::lane::Isolation::InPlace,
            dir: self.root.display().to_string(),
            branch: String::new(),
            base_branch: branch.unwrap_or_default(),
            base_sha: head,
            snapshot: Some(snapshot),
            note: note.unwrap_or_default(),
        }))
    }

    /// The base that was named; otherwise that of earlier lanes, whatever is checked out now.
    pub(super) fn wanted_base(&self, state: &RunState) -> Option<String> {
        let before = || {
            let lanes = state.lanes().filter(|(_, l)| l.task.is_none());
            let works = lanes.filter_map(|(_, l)| l.work.as_ref());
            let mut isolated = works.filter(|w| !w.isolation.is_in_place());
            isolated.find(|w| !w.base_branch.is_empty()).map(|w| w.base_branch.clone())
        };
        self.options.base.clone().or_else(before)
    }

    pub(super) fn make_worktree(
        &mut self,
        lane: &LanePath,
        rules: &LaneRules,
        work: &LaneWork,
    ) -> Result<MadeWorkspace> {
        if let Some(refusal) = self.refuses_change(work) {
            return Ok(MadeWorkspace::Refused(refusal));
        }
        let fence = self.fenced()?;
        if let Some(Conflict { onto, head }) = work.conflict() {
            return self.place_conflict(lane, work, onto, head);
        }
        let start = work.base_sha.clone().unwrap_or_default();
        let wanted = spec(&self.run_id, lane, work, &start, &rules.copy);
        let mut added = worktree::add(&self.root, &wanted, &fence)?;
        let dir = added.path.display().to_string();
        let restarted = self.restart(lane, &dir, &mut added, &start)?;
        if let Some(seed) = &work.latest.snapshot {
            // The user's own uncommitted state, as it was when the lane began.
            self.restore_files(Some(lane), &dir, seed, &restore::Scope::default(), now())?;
        }
        let mut made = ready(lane, &added.path, &added.branch, added.head.clone());
        let taken = self.take(Some(lane), &dir, &format!("{lane} is ready"), now())?;
        made.snapshot = Some(with_commit_tree(Some(lane), &dir, &taken));
        let why = (added.branch != work.branch).then(|| self.why_taken(&work.branch));
        let other = why.as_ref().map(|why| (why.as_str(), added.branch.as_str()));
        made.note = notes::created(other, added.reused, &restarted, &added.not_copied);
        Ok(MadeWorkspace::Ready(Box::new(made)))
    }

    /// Why a lane can't have the branch of its name.
    fn why_taken(&self, branch: &str) -> String {
        match refs::run_of_branch(&self.root, branch) {
            Some(run) => notes::branch_of_run(branch, &run),
            None => notes::foreign_branch(branch),
        }
    }

    /// Lets a lane whose worktree exists, as after a rollback, start from the current base, unless its
    /// branch has commits of its own; what a person should know. Where only its branch exists, a ref of
    /// the run keeps its commits.
    fn restart(
        &mut self,
        lane: &LanePath,
        dir: &str,
        added: &mut worktree::Added,
        start: &str,
    ) -> Result<String> {
        if !added.reused && added.head != start {
            let fence = self.fenced()?;
            let (old, owner) = (added.head.clone(), (&*self.run_id, &*lane.to_string()));
            worktree::keep_commit(&self.root, owner, &old, &fence)?;
            worktree::start_from(Path::new(dir), start, &fence)?;
            start.clone_into(&mut added.head);
            return Ok(notes::restarted_branch(&old, start));
        }
        if !added.reused || !added.base_moved {
            return Ok(String::new());
        }
        if !merge::is_ancestor(&self.root, &added.head, start)? {
            return Ok(notes::base_moved_since(&added.start, start, false));
        }
        let fence = self.fenced()?;
        self.take(Some(lane), dir, "before it starts over", now())?;
        worktree::start_from(Path::new(dir), start, &fence)?;
        start.clone_into(&mut added.head);
        Ok(notes::base_moved_since(&added.start, start, true))
    }

    /// Copies what did not exist when a lane's worktree was created, before its first step runs.
    pub(super) fn copy_missing(&self, lane: &LanePath, dir: &str) -> Result<Option<String>> {
        let copied = worktree::copy_missing(&self.root, Path::new(dir))?;
        Ok((!copied.is_empty()).then(|| notes::copied(lane, &copied)))
    }
}

/// What of the user's uncommitted files a lane begins without.
fn not_seeded(root: &Path, seed: &SnapshotRef) -> Option<String> {
    if seed.degraded.is_empty() {
        return None;
    }
    let changed = history::uncommitted(root).unwrap_or_default();
    let is_changed = |missed: &&Missed| {
        let is_it = |path: &String| path.trim_end_matches('/') == missed.path;
        changed.iter().any(|path| is_it(path) || Path::new(path).starts_with(&missed.path))
    };
    let unseen: Vec<Missed> = seed.degraded.iter().filter(is_changed).cloned().collect();
    let list = Missed::words(&unseen)?;
    Some(notes::not_seeded(&list))
}
