//! Lanes in a git repository: worktrees, snapshots, the merge queue, rollback, views.
//!
//! Each call looks at the repository first and finishes what a former one began; the engine decides
//! when, `piton-workspace` knows how. Every ref moves in a transaction that verifies this driver's
//! epoch.

mod asked;
mod back;
mod base;
mod begin;
mod conflict;
mod exchange;
mod in_hand;
mod leaving;
mod look;
mod mend;
mod merge;
mod moves;
pub mod names;
mod rewind;
mod stays;
mod taken;
mod whole;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use piton_core::event::{LaneReady, MergeIntended, Revert, RewindIntended, RewindKind, RewindRoom};
use piton_core::lane::{LaneRules, SnapshotRef};
use piton_core::lane_state::LaneWork;
use piton_core::plan::Command;
use piton_core::{LanePath, Plan, RunState, Timestamp};
use piton_engine::world::{
    Begin, Commit, Mended, Merging, Rebase, Refusal, Removed, Room, RoomTarget, Rooms,
};
use piton_engine::{Error, Result};
use piton_workspace::refs::{self, Fence};
use piton_workspace::snapshot::{self, Rules, Taker, Workspace};
use piton_workspace::worktree::{self, Files, Spec};
use piton_workspace::{Project, checks};

pub use rewind::Preview;
pub use stays::held_alone;
use taken::noted;
pub use taken::recorded;

use super::hands::{Hands, Held};

/// Threads that write the files of a fresh worktree: more help little even on fast disks.
pub const CHECKOUT_WORKERS: usize = 4;
/// The first epoch: no driver before it could hold a fence.
const FIRST_EPOCH: u64 = 1;

/// What a person or the settings say about lanes.
#[derive(Clone, Debug)]
pub struct LaneOptions {
    /// The branch that lanes start from and go to, as asked for on the command line.
    pub base: Option<String>,
    /// The branch that the settings expect to be checked out.
    pub usual_base: Option<String>,
    /// Whether lanes start from uncommitted changes instead of refusing them.
    pub seed_dirty: bool,
    /// The folder of worktrees, below the root.
    pub worktrees: String,
    /// What protocols write, from the root: that is the work of no lane in place.
    pub own: Vec<String>,
    /// Says whether a pull request is merged, by its exit.
    pub merged: Command,
}

/// The lanes of one run in a git repository.
pub struct GitRooms {
    root: PathBuf,
    cache: PathBuf,
    /// Where files go that are in the way and that no snapshot holds.
    aside: PathBuf,
    run_id: String,
    options: LaneOptions,
    rules: Rc<Rules>,
    /// Those of lanes' worktrees: no file there is one of ours, whatever its name.
    lane_rules: Rc<Rules>,
    epoch: u64,
    /// The last event that is durable.
    seq: u64,
    hands: Hands,
    fence: Option<Fence>,
    /// By the folder of a work tree.
    takers: HashMap<String, Taker>,
    /// Whether git was seen to work here.
    usable: bool,
    /// Why no lane can have a worktree in this repository.
    refusal: Option<Refusal>,
    /// What the last look at a pull request that is not merged had to say.
    unmerged: Option<String>,
    /// Trees with what their snapshots missed, by the folder of a work tree.
    wholes: HashMap<String, whole::Known>,
    /// Moves of branches by runs of this repository.
    moves: moves::Moves,
    /// Whether it was said what worktrees lack.
    lacking: bool,
}

impl GitRooms {
    /// Makes the lanes of a run. `cache` is the folder for stat caches, `hands` the file that its
    /// drivers lock while they act.
    pub fn new(
        root: &Path,
        cache: &Path,
        hands: &Path,
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
            aside: hands.with_file_name(back::ASIDE),
            run_id: run_id.to_owned(),
            options,
            rules: Rc::new(rules),
            lane_rules,
            epoch: FIRST_EPOCH,
            seq: 0,
            hands: Hands::new(hands.to_owned(), FIRST_EPOCH),
            fence: None,
            takers: HashMap::new(),
            usable: false,
            refusal: None,
            unmerged: None,
            wholes: HashMap::new(),
            moves: moves::Moves::new(cache),
            lacking: false,
        }
    }

    /// Holds up every lane that needs a worktree.
    pub fn refuse(&mut self, refusal: Option<Refusal>) {
        self.refusal = refusal;
    }

    /// Whether all there is to do is to look at a small work tree again.
    pub fn is_quick(&self) -> bool {
        self.takers.len() == 1 && self.takers.values().all(Taker::is_warm)
    }

    /// Lets a driver act, and none that came before it.
    pub fn take_over(&mut self, epoch: u64) -> Result<()> {
        if self.epoch != epoch {
            self.fence = None;
        }
        self.epoch = epoch;
        self.hands.take_over(epoch)
    }

    /// Waits for the turn to act on files; an error for a driver whose run was taken over.
    pub fn turn(&mut self) -> Result<Held> {
        self.hands.hold()
    }

    fn fenced(&mut self) -> Result<Fence> {
        if self.fence.is_none() {
            let raised = Fence::raise(&self.root, &self.run_id, self.epoch);
            self.fence = Some(raised.map_err(|error| {
                let stands = Fence::epoch(&self.root, &self.run_id).ok().flatten();
                let is_higher = stands.is_some_and(|stands| stands > self.epoch);
                if is_higher { Error::TakenOver } else { failed(error) }
            })?);
        }
        self.fence.clone().ok_or_else(|| Error::World("no fence".to_owned()))
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

fn failed(error: impl std::fmt::Display) -> Error {
    Error::World(error.to_string())
}

/// What goes wrong with one lane's worktree or branch holds up that lane, not those beside it.
fn refused_or<T>(done: Result<T>, refused: impl FnOnce(Refusal) -> T) -> Result<T> {
    match done {
        Err(Error::World(why)) => {
            let fix = "put that right, then `piton resume`".to_owned();
            Ok(refused(Refusal { why, fix }))
        }
        other => other,
    }
}

fn refusal(refusal: checks::Refusal) -> Refusal {
    Refusal { why: refusal.what, fix: refusal.fix }
}

impl Rooms for GitRooms {
    fn fence(&mut self, epoch: u64) -> Result<()> {
        if self.epoch != epoch {
            self.fence = None;
        }
        self.epoch = epoch;
        self.hands.take_over(epoch)?;
        // Where nobody drove this run before, the fence is raised with the first ref.
        if epoch != FIRST_EPOCH {
            // One that is stopped in the middle of it would keep its successor from clearing the locks
            // that one before both of them left.
            let _held = self.hands.hold()?;
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
    ) -> Result<Mended> {
        let _held = self.hands.hold()?;
        self.mend(plan, state, busy, at)
    }

    fn torn(
        &mut self,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<(Vec<RoomTarget>, Vec<String>)> {
        let _held = self.hands.hold()?;
        self.find_torn(state, busy, at)
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
        let _held = self.hands.hold()?;
        self.begin_lane(lane, rules, state)
    }

    fn make_room(&mut self, lane: &LanePath, rules: &LaneRules, work: &LaneWork) -> Result<Room> {
        let _held = self.hands.hold()?;
        refused_or(self.make_worktree(lane, rules, work), Room::Refused)
    }

    fn lacks(&mut self, lane: &LanePath, dir: &str) -> Option<String> {
        let unfilled = if self.lacking { Vec::new() } else { checks::unfilled(Path::new(dir)) };
        self.lacking |= !unfilled.is_empty();
        stays::named(unfilled.iter().map(String::as_bytes)).map(|names| {
            let fill = "fill them with setup = \"git submodule update --init\"";
            format!("{lane}: submodules of its worktree are empty ({names}); {fill}")
        })
    }

    fn snapshot(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<SnapshotRef, String> {
        let _held = self.hands.hold().map_err(|e| e.to_string())?;
        let taken = self.take(lane, dir, why, at)?;
        Ok(self.noted_whole(lane, dir, &taken))
    }

    fn changed_since(&mut self, dir: &str, at: i64) -> bool {
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        // What can't be looked at may have changed.
        snapshot::changed_since(&workspace, &rules, at).unwrap_or(true)
    }

    fn reset(
        &mut self,
        lane: &LanePath,
        dir: &str,
        to: &str,
        stood: (Option<&str>, Option<&str>),
        at: Timestamp,
    ) -> Result<Option<String>, String> {
        let _held = self.hands.hold().map_err(|e| e.to_string())?;
        self.start_afresh(lane, dir, to, stood, at)
    }

    fn in_hand(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Option<Refusal>> {
        let _held = self.hands.hold()?;
        let linked = self.linked_again(lane, work).map(|()| self.refuses_touch(work));
        refused_or(linked, Some)
    }

    fn commit(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
        message: &str,
    ) -> Result<Commit> {
        let _held = self.hands.hold()?;
        refused_or(self.commit_work(lane, work, snapshot, message), Commit::Refused)
    }

    fn rebase(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Rebase> {
        let _held = self.hands.hold()?;
        refused_or(self.rebase_work(lane, work), Rebase::Refused)
    }

    fn sides(&mut self, onto: &str, head: &str) -> Vec<String> {
        self.told_sides(onto, head)
    }

    fn may_merge(&mut self, intent: &MergeIntended) -> Result<Option<Refusal>> {
        let _held = self.hands.hold()?;
        Ok(self.refuses_merge(intent))
    }

    fn merge(&mut self, intent: &MergeIntended) -> Result<Merging> {
        let _held = self.hands.hold()?;
        refused_or(self.move_base(intent), Merging::Refused)
    }

    fn is_merged(&mut self, _lane: &LanePath, work: &LaneWork) -> Result<Option<String>> {
        self.pull_request_merged(work)
    }

    fn not_requested(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        at: Timestamp,
    ) -> Result<Option<String>> {
        let _held = self.hands.hold()?;
        Ok(self.waiting_work(lane, work, at))
    }

    fn why_unmerged(&mut self) -> Option<String> {
        self.unmerged.take()
    }

    fn remove(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        artifacts: &[String],
        at: Timestamp,
    ) -> Result<Removed> {
        let _held = self.hands.hold()?;
        self.remove_worktree(lane, work, artifacts, at)
    }

    fn plan_rewind(&mut self, target: &RoomTarget, at: Timestamp) -> Result<RewindRoom, String> {
        let _held = self.hands.hold().map_err(|e| e.to_string())?;
        self.plan_room(target, at)
    }

    fn plan_revert(&mut self, merge: &Revert, kind: RewindKind) -> Result<Revert, String> {
        let _held = self.hands.hold().map_err(|e| e.to_string())?;
        self.plan_taking_back(merge, kind)
    }

    fn rewind(&mut self, intent: &RewindIntended) -> Result<(), String> {
        let _held = self.hands.hold().map_err(|e| e.to_string())?;
        self.carry_out(intent)
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

/// Where a lane's branch stands.
fn branch_head(root: &Path, branch: &str) -> Option<String> {
    refs::value(root, &format!("refs/heads/{branch}"))
}

/// The files of a worktree stay as they are while its branch moves.
const STAY: Files = Files::Stay;

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

fn taken_over(error: &worktree::Error) -> bool {
    matches!(error, worktree::Error::Superseded)
}

fn of_worktree(error: worktree::Error) -> Error {
    if taken_over(&error) { Error::TakenOver } else { failed(error) }
}
