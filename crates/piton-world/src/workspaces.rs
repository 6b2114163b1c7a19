//! Lanes in a git repository: worktrees, snapshots, the merge queue, rollback.
//!
//! Each call looks at the repository first and finishes what an earlier one began; the engine decides
//! when, `piton-workspace` knows how. Every ref moves in a transaction that verifies the epoch of this
//! driver.

mod base;
mod base_moves;
mod begin;
mod conflict;
mod degraded;
mod error;
mod in_place;
mod merge;
mod merged_command;
pub mod names;
mod readers;
mod recover;
mod restore;
mod rewind;
mod snapshots;
mod task_worktrees;
mod unmerged_work;
mod user_operations;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use piton_core::event::{
    LaneReady, MergeIntended, Revert, RewindIntended, RewindKind, RewindWorkspace,
};
use piton_core::lane::{LaneRules, SnapshotRef};
use piton_core::lane_state::LaneWork;
use piton_core::plan::Command;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Plan, RunState, Timestamp};
use piton_engine::Result;
use piton_engine::world::{
    Begin, Commit, MadeWorkspace, Merging, PullRequest, Rebase, Removed, Repaired, RewindTarget,
    Workspaces,
};
use piton_protocols::Protocol;
use piton_workspace::refs::{self, Fence};
use piton_workspace::restore::ChangeKind;
use piton_workspace::snapshot::{self, Rules, Taker, Workspace};
use piton_workspace::worktree::Spec;
use piton_workspace::{Project, checks};

use degraded::with_commit_tree;
pub use error::Error;
pub use rewind::Preview;
pub use snapshots::recorded;

use crate::files::Patterns;
use crate::notes;
use crate::run_lock::{Held, RunLock};

/// Threads that write the files of a new worktree: more help little even on fast disks.
pub const CHECKOUT_WORKERS: usize = 4;
/// The first epoch: no earlier driver can have raised a fence.
const FIRST_EPOCH: u64 = 1;

/// What a person or the settings say about lanes.
#[derive(Clone, Debug)]
pub struct LaneOptions {
    /// The branch that lanes start from and are merged into, as named on the command line.
    pub base: Option<String>,
    /// The branch that the settings expect to be checked out.
    pub usual_base: Option<String>,
    /// Whether lanes start from uncommitted changes instead of refusing them.
    pub seed_dirty: bool,
    /// The folder of worktrees, below the root.
    pub worktrees: String,
    /// The protocol of the run, which names branches and worktrees.
    pub protocol: &'static dyn Protocol,
    /// What protocols write, from the root: it is not the work of a lane in place.
    pub own: Vec<String>,
    /// The plan of the run, from the root: its changes keep no lane from starting.
    pub plan: Option<String>,
    /// The command that reports by its exit whether a pull request is merged.
    pub merged: Command,
}

/// The lanes of one run in a git repository.
pub struct GitWorkspaces {
    root: PathBuf,
    cache: PathBuf,
    /// Where files are moved that are in the way and that no snapshot has.
    aside: PathBuf,
    run_id: String,
    options: LaneOptions,
    rules: Rc<Rules>,
    /// Those of lanes' worktrees: no file there is Piton's, whatever its name.
    lane_rules: Rc<Rules>,
    epoch: u64,
    /// The number of the last durable event.
    seq: u64,
    run_lock: RunLock,
    fence: Option<Fence>,
    /// By the folder of a work tree.
    takers: HashMap<String, Taker>,
    /// Whether git is known to work here.
    usable: bool,
    /// Why no lane can have a worktree in this repository.
    refusal: Option<Refusal>,
    /// Moves of branches by runs of this repository.
    moves: base_moves::Moves,
    /// Whether it was reported that submodules are empty.
    submodules_reported: bool,
}

impl GitWorkspaces {
    /// Makes the lanes of a run. `cache` is the folder for stat caches, `run_lock` the file that its
    /// drivers lock while they act.
    pub fn new(
        root: &Path,
        cache: &Path,
        run_lock: &Path,
        run_id: &str,
        options: LaneOptions,
        mut rules: Rules,
    ) -> Self {
        rules.exclude.push(options.worktrees.clone());
        let lane_rules = Rc::new(rules.clone());
        rules.exclude.extend_from_slice(&options.own);
        Self {
            root: root.to_owned(),
            cache: cache.to_owned(),
            aside: run_lock.with_file_name(restore::ASIDE),
            run_id: run_id.to_owned(),
            options,
            rules: Rc::new(rules),
            lane_rules,
            epoch: FIRST_EPOCH,
            seq: 0,
            run_lock: RunLock::new(run_lock.to_owned(), FIRST_EPOCH),
            fence: None,
            takers: HashMap::new(),
            usable: false,
            refusal: None,
            moves: base_moves::Moves::new(cache),
            submodules_reported: false,
        }
    }

    /// Blocks every lane that needs a worktree.
    pub fn refuse(&mut self, refusal: Option<Refusal>) {
        self.refusal = refusal;
    }

    /// Whether all that is left to do is another snapshot of a small work tree.
    pub fn is_quick(&self) -> bool {
        self.takers.len() == 1 && self.takers.values().all(Taker::is_warm)
    }

    /// Lets a driver act, and no earlier one.
    pub fn take_over(&mut self, epoch: u64) -> Result<()> {
        if self.epoch != epoch {
            self.fence = None;
        }
        self.epoch = epoch;
        self.run_lock.take_over(epoch)
    }

    /// Waits for the run lock; an error for a driver whose run was taken over.
    pub fn turn(&mut self) -> Result<Held> {
        self.run_lock.hold()
    }

    fn fenced(&mut self) -> Result<Fence, Error> {
        if let Some(fence) = &self.fence {
            return Ok(fence.clone());
        }
        let raised = Fence::raise(&self.root, &self.run_id, self.epoch).map_err(|error| {
            let found = Fence::epoch(&self.root, &self.run_id).ok().flatten();
            let is_higher = found.is_some_and(|found| found > self.epoch);
            if is_higher { Error::TakenOver } else { error.into() }
        })?;
        Ok(self.fence.insert(raised).clone())
    }

    fn hold(&mut self) -> Result<Held, Error> {
        Ok(self.run_lock.hold()?)
    }

    fn workspace(&self, dir: &str) -> Workspace {
        let full = self.root.join(dir);
        let name = piton_core::hash::Sha::of(full.as_os_str().as_encoded_bytes());
        Workspace { dir: full, cache: self.cache.join(name.0) }
    }

    /// What is captured of a work tree.
    fn rules_of(&self, dir: &str) -> Rc<Rules> {
        let own = self.root.join(dir) != self.root;
        Rc::clone(if own { &self.lane_rules } else { &self.rules })
    }

    fn chain(&self, lane: Option<&LanePath>) -> String {
        let prefix = refs::run_prefix(&self.run_id);
        match lane {
            None => format!("{prefix}root"),
            Some(path) => {
                let (phase, lane) = (refs::component(&path.phase), refs::component(&path.lane));
                format!("{prefix}lanes/{phase}/{lane}")
            }
        }
    }
}

/// What goes wrong with one lane's worktree or branch blocks that lane, not the others.
fn refused_or<T>(done: Result<T, Error>, refused: impl FnOnce(Refusal) -> T) -> Result<T> {
    match done {
        Err(Error::Refused(refusal)) => Ok(refused(refusal)),
        other => Ok(other?),
    }
}

impl Workspaces for GitWorkspaces {
    fn fence(&mut self, epoch: u64) -> Result<()> {
        self.take_over(epoch)?;
        // Where nobody drove this run before, the fence is raised with the first ref.
        if epoch != FIRST_EPOCH {
            // A driver that is stopped while it raises the fence would keep its successor from removing
            // locks that an earlier one left.
            let _held = self.run_lock.hold()?;
            self.fenced()?;
        }
        Ok(())
    }

    fn recorded(&mut self, seq: u64) {
        self.seq = seq;
    }

    fn is_there(&self, dir: &str) -> bool {
        Path::new(dir).is_dir()
    }

    fn recover(
        &mut self,
        plan: &Plan,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<Repaired> {
        let _held = self.run_lock.hold()?;
        Ok(self.repair_worktrees(plan, state, busy, at)?)
    }

    fn torn(
        &mut self,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<(Vec<RewindTarget>, Vec<String>)> {
        let _held = self.run_lock.hold()?;
        Ok(self.find_torn(state, busy, at)?)
    }

    fn base_branch(&mut self, state: &RunState) -> Option<String> {
        let current =
            || Project::discover_cached(&self.root).ok().and_then(|project| project.branch());
        self.wanted_base(state).or_else(current)
    }

    fn tip(&mut self, branch: &str) -> Option<String> {
        branch_head(&self.root, branch)
    }

    fn begin(&mut self, lane: &LanePath, rules: &LaneRules, state: &RunState) -> Result<Begin> {
        let _held = self.run_lock.hold()?;
        Ok(self.begin_lane(lane, rules, state)?)
    }

    fn make_workspace(
        &mut self,
        lane: &LanePath,
        rules: &LaneRules,
        work: &LaneWork,
    ) -> Result<MadeWorkspace> {
        let _held = self.run_lock.hold()?;
        refused_or(self.make_worktree(lane, rules, work), MadeWorkspace::Refused)
    }

    fn lacks(&mut self, lane: &LanePath, dir: &str) -> Option<String> {
        if self.submodules_reported {
            return None;
        }
        let empty = checks::unfilled(Path::new(dir));
        let names = notes::named(empty.iter().map(String::as_bytes))?;
        self.submodules_reported = true;
        Some(notes::empty_submodules(lane, &names))
    }

    fn snapshot(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<SnapshotRef, Refusal> {
        let _held = self.hold()?;
        let taken = self.take(lane, dir, why, at)?;
        Ok(with_commit_tree(lane, dir, &taken))
    }

    fn changed_since(&mut self, dir: &str, at: i64) -> bool {
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        // What can't be read may have changed.
        snapshot::changed_since(&workspace, &rules, at).unwrap_or(true)
    }

    fn changed(&mut self, from: &str, to: &str, except: &[String]) -> Result<Vec<String>> {
        let except = Patterns::new(except).map_err(piton_engine::Error::world)?;
        let changes = piton_workspace::restore::diff(&self.root, from, to);
        let changes = changes.map_err(piton_engine::Error::world)?;
        let paths = changes.iter().map(|change| String::from_utf8_lossy(&change.path).into_owned());
        Ok(paths.filter(|path| !except.matches(path)).collect())
    }

    fn left(&mut self, from: &str, to: &str) -> Result<Vec<String>> {
        let changes = piton_workspace::restore::diff(&self.root, from, to);
        let changes = changes.map_err(piton_engine::Error::world)?;
        let there = changes.iter().filter(|change| change.kind != ChangeKind::Deleted);
        Ok(there.map(|change| String::from_utf8_lossy(&change.path).into_owned()).collect())
    }

    fn reset(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        stood: (Option<&str>, Option<&str>),
        at: Timestamp,
    ) -> Result<Option<String>, Refusal> {
        let _held = self.hold()?;
        Ok(self.reset_for_attempt(lane, dir, to, stood, at)?)
    }

    fn user_operation(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Option<Refusal>> {
        let _held = self.run_lock.hold()?;
        if work.isolation.is_in_place() {
            return Ok(checks::idle(&self.root).err());
        }
        let linked = self.restore_link(lane, work).map(|()| self.refuses_change(work));
        refused_or(linked, Some)
    }

    fn commit(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit> {
        let _held = self.run_lock.hold()?;
        refused_or(self.commit_work(lane, work, snapshot, message), Commit::Refused)
    }

    fn rebase(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Rebase> {
        let _held = self.run_lock.hold()?;
        refused_or(self.rebase_work(lane, work), Rebase::Refused)
    }

    fn sides(&mut self, onto: &str, head: &str) -> Vec<String> {
        self.conflict_sides(onto, head)
    }

    fn may_merge(&mut self, intent: &MergeIntended) -> Result<Option<Refusal>> {
        let _held = self.run_lock.hold()?;
        Ok(self.refuses_merge(intent))
    }

    fn merge(&mut self, intent: &MergeIntended) -> Result<Merging> {
        let _held = self.run_lock.hold()?;
        refused_or(self.move_base(intent), Merging::Refused)
    }

    fn pull_request(&mut self, _lane: &LanePath, work: &LaneWork) -> Result<PullRequest> {
        Ok(self.check_pull_request(work)?)
    }

    fn not_requested(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        at: Timestamp,
    ) -> Result<Option<String>> {
        let _held = self.run_lock.hold()?;
        Ok(self.work_not_requested(lane, work, at))
    }

    fn remove(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        artifacts: &[String],
        at: Timestamp,
    ) -> Result<Removed> {
        let _held = self.run_lock.hold()?;
        Ok(self.remove_worktree(lane, work, artifacts, at)?)
    }

    fn plan_rewind(
        &mut self,
        target: &RewindTarget,
        at: Timestamp,
    ) -> Result<RewindWorkspace, Refusal> {
        let _held = self.hold()?;
        Ok(self.plan_workspace(target, at)?)
    }

    fn plan_revert(&mut self, merge: &Revert, kind: RewindKind) -> Result<Revert, Refusal> {
        let _held = self.hold()?;
        Ok(self.plan_revert_of(merge, kind)?)
    }

    fn rewind(&mut self, intent: &RewindIntended) -> Result<(), Refusal> {
        let _held = self.hold()?;
        Ok(self.carry_out(intent)?)
    }
}

/// A lane's worktree as git is asked for it.
fn spec(run_id: &str, lane: &LanePath, work: &LaneWork, start: &str, copy: &[String]) -> Spec {
    Spec {
        run_id: run_id.to_owned(),
        lane: lane.to_string(),
        path: PathBuf::from(&work.dir),
        branch: work.branch.clone(),
        start: start.to_owned(),
        copy: copy.to_vec(),
        workers: CHECKOUT_WORKERS,
    }
}

/// The commit of a branch.
fn branch_head(root: &Path, branch: &str) -> Option<String> {
    refs::value(root, &format!("refs/heads/{branch}"))
}

fn ready(lane: &LanePath, dir: &Path, branch: &str, head: String) -> LaneReady {
    LaneReady {
        lane: lane.clone(),
        dir: dir.display().to_string(),
        branch: branch.to_owned(),
        head: Some(head),
        snapshot: None,
        note: String::new(),
    }
}
