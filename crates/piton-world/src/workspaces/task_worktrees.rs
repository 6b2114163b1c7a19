//! The worktree of a task is removed by a rollback of its lane, and created again when that is undone.
//!
//! It is snapshotted first, and a ref of the run keeps the commits of its branch. What git ignores is in
//! neither, and is not restored.

use std::fs;
use std::path::Path;

use piton_core::event::RewindWorkspace;
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::RewindTarget;
use piton_workspace::snapshot::{self, Snapshot};
use piton_workspace::worktree::{self, BranchEnd};
use piton_workspace::{Project, refs};

use super::error::Result;
use super::snapshots::{recorded, with_head};
use super::unmerged_work::refuses_artifacts;
use super::{GitWorkspaces, branch_head, spec};
use crate::{now, refusals};

impl GitWorkspaces {
    /// Snapshots a worktree that is to be removed; refused where that would lose something.
    pub(super) fn plan_removal(
        &mut self,
        lane: &LanePath,
        target: &RewindTarget,
        artifacts: &[String],
        at: Timestamp,
    ) -> Result<RewindWorkspace> {
        let present = if Path::new(&target.dir).is_dir() {
            let taken = self.take(Some(lane), &target.dir, "before it is taken back", at)?;
            let place = (target.dir.as_str(), target.branch.as_str());
            if let Some(why) = self.refuses_task_removal(lane, place, &taken, artifacts) {
                return Err(why.into());
            }
            with_head(Some(lane), &target.dir, &taken)
        } else {
            recorded(&snapshot::load(&self.root, &target.target)?)
        };
        let head_from = branch_head(&self.root, &target.branch).or_else(|| present.head.clone());
        Ok(RewindWorkspace {
            lane: Some(lane.clone()),
            dir: target.dir.clone(),
            target: present.commit.clone(),
            present,
            beside: None,
            paths: Vec::new(),
            keep: Vec::new(),
            branch: target.branch.clone(),
            head_from,
            head_to: None,
            large: None,
            goes: true,
            copy: target.copy.clone(),
        })
    }

    /// Why a worktree can't be removed now; `present` is a snapshot of it.
    pub fn preview_removal(&self, target: &RewindTarget, present: &str) -> Option<Refusal> {
        let (lane, artifacts) = (target.lane.as_ref()?, target.goes.as_ref()?);
        match snapshot::load(&self.root, present) {
            Ok(taken) => {
                let place = (target.dir.as_str(), target.branch.as_str());
                self.refuses_task_removal(lane, place, &taken, artifacts)
            }
            Err(error) => Some(error.into()),
        }
    }

    /// Why a worktree can't be created again: something else has its place, or the name of its branch.
    pub fn preview_recreation(&self, target: &RewindTarget) -> Option<Refusal> {
        let lane = target.lane.as_ref()?.to_string();
        let own = refs::branch_of(&self.root, (&self.run_id, &lane)).map(|(name, _)| name);
        let is_taken = branch_head(&self.root, &target.branch).is_some();
        if is_taken && own.as_ref() != Some(&target.branch) {
            return Some(refusals::branch_place_taken(&lane, &target.branch));
        }
        let is_used = fs::read_dir(&target.dir).is_ok_and(|mut held| held.next().is_some())
            && !worktree::is_complete(Path::new(&target.dir));
        is_used.then(|| refusals::folder_place_taken(&lane, &target.dir))
    }

    fn refuses_task_removal(
        &self,
        lane: &LanePath,
        (folder, branch): (&str, &str),
        taken: &Snapshot,
        artifacts: &[String],
    ) -> Option<Refusal> {
        let dir = Path::new(folder);
        let work = LaneWork { dir: folder.to_owned(), ..LaneWork::default() };
        let head = branch_head(&self.root, branch);
        let kept = self.refuses_removal(&work, &recorded(taken), head.as_deref());
        if let Some(kept) = kept.or_else(|| refuses_artifacts(&work, taken, artifacts)) {
            return Some(refusals::worktree_must_stay(lane, folder, &kept));
        }
        let refused = worktree::may_remove(&self.root, dir).err().map(Refusal::from);
        let elsewhere = || {
            let at = worktree::checked_out(&self.root, branch)?;
            (at != dir && at.canonicalize().ok() != dir.canonicalize().ok())
                .then(|| refusals::branch_in_use(branch, &at))
        };
        let why = refused.or_else(elsewhere)?;
        Some(refusals::worktree_not_removable(lane, why))
    }

    /// Removes a worktree and its branch.
    pub(super) fn remove_task(&mut self, workspace: &RewindWorkspace) -> Result<()> {
        let Some(lane) = &workspace.lane else { return Ok(()) };
        let dir = Path::new(&workspace.dir);
        if worktree::is_complete(dir) {
            // Somebody may have worked there since the intent, if its driver was killed.
            let taken = self.take(Some(lane), &workspace.dir, "before the worktree goes", now())?;
            let place = (workspace.dir.as_str(), workspace.branch.as_str());
            if let Some(why) = self.refuses_task_removal(lane, place, &taken, &[]) {
                return Err(why.into());
            }
            // A step may have left it on another branch, or on none.
            let out = Project::discover_cached(dir).ok().and_then(|own| own.head());
            if let (Some(out), Some(head)) = (out, &workspace.head_from) {
                self.keep_commits(&out, head)?;
            }
        }
        let fence = self.fenced()?;
        worktree::remove(&self.root, dir, &fence)?;
        self.takers.remove(&workspace.dir);
        let owner = (self.run_id.as_str(), &*lane.to_string());
        match worktree::drop_branch(&self.root, owner, &fence)? {
            BranchEnd::InUse(at) => Err(refusals::branch_in_use(&workspace.branch, &at).into()),
            _ => Ok(()),
        }
    }

    /// Creates a worktree again where it was, with its branch at a commit; its files follow.
    pub(super) fn recreate_task(
        &mut self,
        lane: &LanePath,
        workspace: &RewindWorkspace,
        head: &str,
    ) -> Result<()> {
        let fence = self.fenced()?;
        let (dir, branch) = (workspace.dir.clone(), workspace.branch.clone());
        let work = LaneWork { dir, branch, ..LaneWork::default() };
        let wanted = spec(&self.run_id, lane, &work, head, &workspace.copy);
        let added = self.add_there(&wanted, &fence);
        self.takers.remove(&workspace.dir);
        added.map(drop)
    }
}
