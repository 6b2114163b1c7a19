//! Repairs worktrees when a driver attaches: those that are half created, torn, or deleted.
//!
//! After a restart of the machine single files may be torn, and only those are restored: all else is
//! somebody's work. A worktree whose folder was deleted is created again from its branch, with the files
//! of the last snapshot if that was taken on the commit of the branch.

use std::fs;
use std::path::{Path, PathBuf};

use piton_core::lane::Merge;
use piton_core::lane_state::{LaneWork, base_moved};
use piton_core::{LanePath, Plan, RunState, Timestamp};
use piton_engine::world::{Repaired, RewindTarget};
use piton_workspace::refs::Fence;
use piton_workspace::worktree::{self, Files, Spec};
use piton_workspace::{Project, objects, refs, restore};

use super::error::{Error, Result};
use super::{GitWorkspaces, branch_head, names, spec};
use crate::{notes, refusals};

impl GitWorkspaces {
    /// Finishes what an earlier driver left half done in worktrees. The lane's snapshots have the files
    /// that were there.
    pub(super) fn repair_worktrees(
        &mut self,
        plan: &Plan,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<Repaired> {
        let mut repaired = Repaired::default();
        self.sweep(state)?;
        if state.lanes().all(|(_, lane)| lane.isolation.is_in_place()) {
            return Ok(repaired);
        }
        // Those of the user's refs too: nothing else of ours may ever remove them.
        refs::clear_locks(&self.root)?;
        // The trash is emptied while the run goes on.
        let root = self.root.clone();
        let empty = std::thread::Builder::new().name("trash".to_owned());
        let _ = empty.spawn(move || worktree::empty_trash(&root));
        for (lane, found) in state.lanes().filter(|(path, _)| !busy.contains(path)) {
            if let Some(intent) = found.work.as_deref().and_then(|work| work.merging()) {
                repaired.notes.extend(self.finish_merge(intent));
            }
            let Some(work) = found.work.as_deref().filter(|w| w.has_workspace()) else {
                continue;
            };
            // A lane that stays on its branch may have to work again.
            let at_work = work.merged().is_none() || found.current().is_some();
            if !work.isolation.is_in_place() && found.task.is_none() && at_work {
                let queues = plan.lane(&lane).is_some_and(|l| l.rules.merge == Merge::Queue);
                repaired.notes.extend(self.base_moved_note(&lane, work, queues));
            }
            if !work.isolation.is_in_place() && Path::new(&work.dir).is_dir() {
                repaired.notes.extend(self.relink(&lane, work)?);
                if found.steps.first().is_some_and(|step| !step.progress.is_over()) {
                    repaired.notes.extend(self.copy_missing(&lane, &work.dir)?);
                }
            }
        }
        self.recreate_missing(plan, state, busy, at, &mut repaired)?;
        Ok(repaired)
    }

    /// Removes what a driver that was killed left half made.
    fn sweep(&self, state: &RunState) -> Result<()> {
        if let Some(common) = Project::discover_cached(&self.root).ok().and_then(|p| p.common_dir) {
            objects::partial::sweep(&common);
        }
        let own = state.lanes().filter(|(_, lane)| !lane.isolation.is_in_place());
        let folders: Vec<PathBuf> = own.map(|(path, _)| self.place_of(&path).0).collect();
        if folders.is_empty() {
            return Ok(());
        }
        let folders = folders.iter().map(PathBuf::as_path);
        Ok(worktree::sweep_begun(&self.root, &self.run_id, folders)?)
    }

    /// Says that base moved since a lane started. What waits for a pull request, or stays on its branch,
    /// is not rebased.
    fn base_moved_note(&self, lane: &LanePath, work: &LaneWork, queues: bool) -> Option<String> {
        let (from, to) = (work.base_sha.as_ref()?, branch_head(&self.root, &work.base_branch)?);
        let moved = base_moved(&work.base_branch, from, &to)?;
        Some(notes::base_moved(lane, &moved, queues))
    }

    /// Makes sure that git knows a worktree whose folder exists, and that its branch does.
    fn relink(&mut self, lane: &LanePath, work: &LaneWork) -> Result<Option<String>> {
        let fence = self.fenced()?;
        let lost = branch_head(&self.root, &work.branch).is_none();
        let added = self.find_worktree(lane, work)?;
        if lost {
            let at = work.committed().map_or(&added.head, |c| &c.commit);
            worktree::move_to(Path::new(&work.dir), at, Files::Stay, &fence)?;
            return Ok(Some(notes::branch_recreated(lane, &work.branch, at)));
        }
        Ok(None)
    }

    /// Files that a restart of the machine tore in worktrees of lanes, and what restores them.
    pub(super) fn find_torn(
        &mut self,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
    ) -> Result<(Vec<RewindTarget>, Vec<String>)> {
        let (mut targets, mut told) = (Vec::new(), Vec::new());
        for (lane, found) in state.lanes().filter(|(path, _)| !busy.contains(path)) {
            let Some(work) = found.work.as_deref() else { continue };
            if work.is_removed() || work.isolation.is_in_place() {
                continue;
            }
            let dir = Path::new(&work.dir);
            if !worktree::restarted(&self.root, dir)? {
                continue;
            }
            let Some(target) = self.torn_in(&lane, work, at)? else {
                worktree::note_complete(dir)?;
                continue;
            };
            let paths: Vec<Vec<u8>> = target.paths.iter().map(|path| names::bytes(path)).collect();
            let named = notes::named(paths.iter().map(Vec::as_slice)).unwrap_or_default();
            told.push(notes::torn_files(&lane, &named, &self.run_id));
            targets.push(target);
        }
        Ok((targets, told))
    }

    /// The files of a lane that are torn. They belong to the commit that is checked out: its own, and
    /// those of the last snapshot if that was taken on it.
    fn torn_in(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        at: Timestamp,
    ) -> Result<Option<RewindTarget>> {
        let dir = Path::new(&work.dir);
        let head = Project::discover_cached(dir).ok().and_then(|own| own.head());
        let snapshot = work.latest.snapshot.clone().filter(|_| head == work.latest.head);
        let Some(source) = snapshot.or(head) else { return Ok(None) };
        // The stat cache may no longer be true of a file's bytes.
        self.takers.remove(&work.dir);
        let _ = fs::remove_file(self.workspace(&work.dir).cache);
        let present = self.take(Some(lane), &work.dir, "after the machine restarted", at)?;
        let torn = restore::torn_writes(dir, &present.commit, &source)?;
        Ok((!torn.is_empty()).then(|| RewindTarget {
            lane: Some(lane.clone()),
            dir: work.dir.clone(),
            target: source,
            paths: torn.iter().map(|path| names::text(path)).collect(),
            exact: true,
            ..RewindTarget::default()
        }))
    }

    /// Creates the link of a worktree again that a step deleted or overwrote: without it git would take
    /// the folder for a part of the project's own work tree.
    pub(super) fn restore_link(&mut self, lane: &LanePath, work: &LaneWork) -> Result<()> {
        let dir = Path::new(&work.dir);
        if !dir.is_dir() || worktree::is_complete(dir) {
            return Ok(());
        }
        self.find_worktree(lane, work).map(drop)
    }

    /// Finds a worktree whose folder exists, also where git forgot it.
    fn find_worktree(&mut self, lane: &LanePath, work: &LaneWork) -> Result<worktree::Added> {
        let fence = self.fenced()?;
        let start = work.base_sha.clone().unwrap_or_default();
        let wanted = spec(&self.run_id, lane, work, &start, &[]);
        worktree::refuse_forgotten(&self.root, &wanted)?;
        self.add_there(&wanted, &fence)
    }

    /// Finds or creates a worktree in its place, and nowhere else.
    pub(super) fn add_there(&self, wanted: &Spec, fence: &Fence) -> Result<worktree::Added> {
        let added = worktree::add(&self.root, wanted, fence)?;
        let dir = &wanted.path;
        if added.path == dir.canonicalize().unwrap_or_else(|_| dir.clone())
            && added.branch == wanted.branch
        {
            return Ok(added);
        }
        if !added.reused {
            worktree::remove(&self.root, &added.path, fence)?;
            if added.branch != wanted.branch {
                worktree::drop_branch(&self.root, (&wanted.run_id, &wanted.lane), fence)?;
            }
        }
        Err(refusals::place_is_taken(dir, &wanted.branch).into())
    }

    /// Creates worktrees again whose folders were deleted. One whose lane is in base, or stays on its
    /// branch, is not needed any more.
    fn recreate_missing(
        &mut self,
        plan: &Plan,
        state: &RunState,
        busy: &[LanePath],
        at: Timestamp,
        repaired: &mut Repaired,
    ) -> Result<()> {
        let gone = |work: &LaneWork| {
            let wanted = work.has_workspace() && !work.is_dropped() && work.merged().is_none();
            wanted && !work.isolation.is_in_place() && !Path::new(&work.dir).is_dir()
        };
        // What an interrupted rollback removed must not come back.
        let leaves = |path: &LanePath| {
            let workspaces = state.rewinding.iter().flat_map(|intent| &intent.workspaces);
            workspaces.into_iter().any(|workspace| workspace.is_taken_from(path))
        };
        let mut missing: Vec<(LanePath, &LaneWork)> = state
            .lanes()
            .filter(|(path, _)| !busy.contains(path) && !leaves(path))
            .filter_map(|(path, lane)| Some((path, lane.work.as_deref().filter(|w| gone(w))?)))
            .collect();
        // A task's worktree is within that of its lane, which comes first.
        missing.sort_by(|(_, a), (_, b)| a.dir.cmp(&b.dir));
        for (lane, work) in missing {
            let copy = plan.lane(&lane).map(|l| l.rules.copy.clone()).unwrap_or_default();
            match self.recreate(&lane, work, &copy, at) {
                Ok(with_checkpoint) => {
                    repaired.notes.push(notes::worktree_recreated(&lane, with_checkpoint));
                    repaired.recreated.push(lane);
                }
                Err(Error::Refused(why)) => {
                    repaired.notes.push(notes::worktree_not_recreated(&lane, &why.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Creates a worktree again; whether a checkpoint gave it its files.
    fn recreate(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        copy: &[String],
        at: Timestamp,
    ) -> Result<bool> {
        let fence = self.fenced()?;
        // Where the branch is gone too, it starts from the last commit that is known.
        let lost = branch_head(&self.root, &work.branch).is_none();
        let start = work.base_sha.clone().unwrap_or_default();
        let wanted = spec(&self.run_id, lane, work, &start, copy);
        let added = self.add_there(&wanted, &fence)?;
        let dir = Path::new(&work.dir);
        let committed = work.committed().filter(|_| lost).map(|c| &c.commit);
        if let Some(commit) = committed {
            worktree::move_to(dir, commit, Files::Follow, &fence)?;
        }
        // The stat cache is about files that are gone.
        self.takers.remove(&work.dir);
        // Files of another commit would revert what its branch gained since. One that is created where
        // the lane started gained nothing.
        let head = committed.unwrap_or(&added.head);
        let is_of_head = work.latest.head.as_ref() == Some(head) || (lost && committed.is_none());
        let Some(checkpoint) = work.latest.snapshot.as_ref().filter(|_| is_of_head) else {
            return Ok(false);
        };
        self.restore_files(Some(lane), &work.dir, checkpoint, &restore::Scope::default(), at)?;
        Ok(true)
    }
}
