//! What a driver that comes finds of the worktrees: half done, torn, or gone.
//!
//! After a restart of the machine single files may be torn, and only those are put back: all else is
//! somebody's work. A worktree whose folder somebody deleted is made again from its branch, with the
//! files of the last snapshot if that was taken on the commit where the branch stands.

use std::fs;
use std::path::{Path, PathBuf};

use piton_core::lane::Merge;
use piton_core::lane_state::{LaneWork, base_moved};
use piton_core::{LanePath, Plan, RunState, Timestamp};
use piton_engine::world::{Mended, RoomTarget};
use piton_engine::{Error, Result};
use piton_workspace::refs::Fence;
use piton_workspace::worktree::{self, Files, Spec};
use piton_workspace::{Project, objects, refs, restore};

use piton_core::text::short;

use super::{GitRooms, STAY, branch_head, failed, names, of_worktree, spec, stays};

impl GitRooms {
    /// Finishes what a former driver left half done in worktrees. Files that were found stand in the
    /// lane's snapshots.
    pub(super) fn mend(
        &mut self,
        plan: &Plan,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<Mended> {
        let mut mended = Mended::default();
        self.sweep(state)?;
        if state.lanes().all(|(_, lane)| lane.isolation.is_in_place()) {
            return Ok(mended);
        }
        // Those of the user's refs too, which nothing of ours may ever come across again.
        refs::clear_locks(&self.root).map_err(failed)?;
        // What is left in the trash goes while the run goes on.
        let root = self.root.clone();
        let empty = std::thread::Builder::new().name("trash".to_owned());
        let _ = empty.spawn(move || worktree::empty_trash(&root));
        for (lane, found) in state.lanes().filter(|(path, _)| !busy.contains(path)) {
            if let Some(intent) = found.work.as_deref().and_then(|work| work.merging.as_ref()) {
                mended.notes.extend(self.settle_base(intent));
            }
            let Some(work) = found.work.as_deref().filter(|w| w.ready && !w.removed) else {
                continue;
            };
            // One that stays on its branch may have been asked to work again.
            let at_work = work.merged.is_none() || found.current().is_some();
            if !work.isolation.is_in_place() && found.task.is_none() && at_work {
                let queues = plan.lane(&lane).is_some_and(|l| l.rules.merge == Merge::Queue);
                mended.notes.extend(self.says_moved(&lane, work, queues));
            }
            if !work.isolation.is_in_place() && Path::new(&work.dir).is_dir() {
                mended.notes.extend(self.take_up(&lane, work)?);
                if found.steps.first().is_some_and(|step| !step.progress.is_over()) {
                    mended.notes.extend(self.copy_missing(&lane, &work.dir)?);
                }
            }
        }
        self.make_missing(plan, state, busy, at, &mut mended)?;
        Ok(mended)
    }

    /// Removes what a driver that was killed left half made.
    fn sweep(&self, state: &RunState) -> Result<()> {
        if let Some(common) = Project::discover_cached(&self.root).ok().and_then(|p| p.common_dir) {
            objects::partial::sweep(&common);
        }
        let own = state.lanes().filter(|(_, lane)| !lane.isolation.is_in_place());
        let folders: Vec<PathBuf> = own.map(|(path, _)| self.worktree_of(&path)).collect();
        if folders.is_empty() {
            return Ok(());
        }
        worktree::sweep_begun(&self.root, &self.run_id, folders.iter().map(PathBuf::as_path))
            .map_err(of_worktree)
    }

    /// Says that base is not what a lane works on any more. What waits for a pull request, or stays on
    /// its branch, is put on nothing.
    fn says_moved(&self, lane: &LanePath, work: &LaneWork, queues: bool) -> Option<String> {
        let (from, to) = (work.base_sha.as_ref()?, branch_head(&self.root, &work.base_branch)?);
        let moved = base_moved(&work.base_branch, from, &to)?;
        let then = if queues { ": its work is put on that before it is merged" } else { "" };
        Some(format!("{lane}: {moved}{then}"))
    }

    /// Takes up a worktree that is there.
    fn take_up(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Option<String>> {
        let fence = self.fenced()?;
        let lost = branch_head(&self.root, &work.branch).is_none();
        let added = self.find_again(lane, work)?;
        if lost {
            let at = work.committed.as_ref().map_or(&added.head, |c| &c.commit);
            worktree::move_to(Path::new(&work.dir), at, STAY, &fence).map_err(of_worktree)?;
            let (branch, at) = (&work.branch, short(at));
            return Ok(Some(format!(
                "{lane}: its branch {branch} was gone; it is made again at {at}, its files are as \
                 they were"
            )));
        }
        Ok(None)
    }

    /// What a restart of the machine tore in worktrees of lanes, and where it comes from again.
    pub(super) fn find_torn(
        &mut self,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<(Vec<RoomTarget>, Vec<String>)> {
        let (mut targets, mut notes) = (Vec::new(), Vec::new());
        for (lane, found) in state.lanes().filter(|(path, _)| !busy.contains(path)) {
            let Some(work) = found.work.as_deref() else { continue };
            if work.removed || work.isolation.is_in_place() {
                continue;
            }
            let dir = Path::new(&work.dir);
            if !worktree::restarted(&self.root, dir).map_err(of_worktree)? {
                continue;
            }
            let Some(target) = self.torn_in(&lane, work, at).map_err(failed)? else {
                worktree::note_complete(dir).map_err(of_worktree)?;
                continue;
            };
            let paths: Vec<Vec<u8>> = target.paths.iter().map(|path| names::bytes(path)).collect();
            let named = stays::named(paths.iter().map(Vec::as_slice)).unwrap_or_default();
            notes.push(format!(
                "{lane}: the machine restarted and left these files empty or in part: {named}; they \
                 are put back, `piton undo {}` takes that back",
                self.run_id
            ));
            targets.push(target);
        }
        Ok((targets, notes))
    }

    /// The files of a lane that are torn. They belong to the commit that is checked out: its own, and
    /// those of the last snapshot if that was taken on it.
    fn torn_in(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        at: Timestamp,
    ) -> Result<Option<RoomTarget>, String> {
        let dir = Path::new(&work.dir);
        let head = Project::discover_cached(dir).ok().and_then(|own| own.head());
        let snapshot = work.snapshot.clone().filter(|_| head == work.head);
        let Some(whole) = snapshot.or(head) else { return Ok(None) };
        // What the stat cache says of a file is not known to be true of its bytes any more.
        self.takers.remove(&work.dir);
        let _ = fs::remove_file(self.workspace(&work.dir).cache);
        let present = self.take(Some(lane), &work.dir, "after the machine restarted", at)?;
        let torn = restore::torn_writes(dir, &present.commit, &whole).map_err(|e| e.to_string())?;
        Ok((!torn.is_empty()).then(|| RoomTarget {
            lane: Some(lane.clone()),
            dir: work.dir.clone(),
            target: whole,
            paths: torn.iter().map(|path| names::text(path)).collect(),
            exact: true,
            ..RoomTarget::default()
        }))
    }

    /// Makes the link of a worktree again that a step deleted or wrote over: without it git would take
    /// the folder for a part of the project's own work tree.
    pub(super) fn linked_again(&mut self, lane: &LanePath, work: &LaneWork) -> Result<()> {
        let dir = Path::new(&work.dir);
        if !dir.is_dir() || worktree::is_complete(dir) {
            return Ok(());
        }
        self.find_again(lane, work).map(drop)
    }

    /// Finds a worktree whose folder is there, also where git forgot it.
    fn find_again(&mut self, lane: &LanePath, work: &LaneWork) -> Result<worktree::Added> {
        let fence = self.fenced()?;
        let start = work.base_sha.clone().unwrap_or_default();
        let wanted = spec(&self.run_id, lane, work, &start, &[]);
        worktree::register_again(&self.root, &wanted, &fence).map_err(of_worktree)?;
        self.add_there(&wanted, &fence)
    }

    /// Finds or makes a worktree in its place, and nowhere else.
    fn add_there(&self, wanted: &Spec, fence: &Fence) -> Result<worktree::Added> {
        let added = worktree::add(&self.root, wanted, fence).map_err(of_worktree)?;
        let dir = &wanted.path;
        if added.path == dir.canonicalize().unwrap_or_else(|_| dir.clone())
            && added.branch == wanted.branch
        {
            return Ok(added);
        }
        if !added.reused {
            worktree::remove(&self.root, &added.path, fence).map_err(of_worktree)?;
        }
        Err(Error::World(format!(
            "something else is in {}, or is called {}; move it away first",
            dir.display(),
            wanted.branch
        )))
    }

    /// Makes worktrees again whose folders somebody deleted. One whose lane is in base, or stays on
    /// its branch, is nobody's need any more.
    fn make_missing(
        &mut self,
        plan: &Plan,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
        mended: &mut Mended,
    ) -> Result<()> {
        let gone = |work: &LaneWork| {
            let wanted = work.ready && !work.removed && !work.dropped && work.merged.is_none();
            wanted && !work.isolation.is_in_place() && !Path::new(&work.dir).is_dir()
        };
        // What a rollback that was cut short removed shall be gone.
        let leaves = |path: &LanePath| {
            let rooms = state.rewinding.iter().flat_map(|intent| &intent.rooms);
            rooms.into_iter().any(|room| room.is_taken_from(path))
        };
        let mut missing: Vec<(LanePath, &LaneWork)> = state
            .lanes()
            .filter(|(path, _)| !busy.contains(path) && !leaves(path))
            .filter_map(|(path, lane)| Some((path, lane.work.as_deref().filter(|w| gone(w))?)))
            .collect();
        // A task's worktree lies within that of its lane, which comes first.
        missing.sort_by(|(_, a), (_, b)| a.dir.cmp(&b.dir));
        for (lane, work) in missing {
            let copy = plan.lane(&lane).map(|l| l.rules.copy.clone()).unwrap_or_default();
            match self.make_again(&lane, work, &copy, at) {
                Ok(from) => {
                    mended.notes.push(format!(
                        "{lane}: its worktree was gone; it is made again from {from}, without the \
                         files that git ignores"
                    ));
                    mended.remade.push(lane);
                }
                Err(Error::World(why)) => mended.notes.push(format!(
                    "{lane}: its worktree is gone and could not be made again: {why}; put that \
                     right, then `piton resume`"
                )),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn make_again(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        copy: &[String],
        at: Timestamp,
    ) -> Result<&'static str> {
        let fence = self.fenced()?;
        // Where the branch is gone too, it starts over where it is known to have been.
        let lost = branch_head(&self.root, &work.branch).is_none();
        let start = work.base_sha.clone().unwrap_or_default();
        let wanted = spec(&self.run_id, lane, work, &start, copy);
        let added = self.add_there(&wanted, &fence)?;
        let dir = Path::new(&work.dir);
        let committed = work.committed.as_ref().filter(|_| lost).map(|c| &c.commit);
        if let Some(commit) = committed {
            worktree::move_to(dir, commit, Files::Follow, &fence).map_err(of_worktree)?;
        }
        // The stat cache is that of files that are gone.
        self.takers.remove(&work.dir);
        // Files of another commit would take back what its branch gained since. One that is made where
        // the lane began gained nothing.
        let head = committed.unwrap_or(&added.head);
        let is_of_head = work.head.as_ref() == Some(head) || (lost && committed.is_none());
        let Some(whole) = work.snapshot.as_ref().filter(|_| is_of_head) else {
            return Ok("its branch");
        };
        let scope = restore::Scope::default();
        self.go_back(Some(lane), &work.dir, whole, &scope, at).map_err(failed)?;
        Ok("its branch and its last checkpoint")
    }
}
