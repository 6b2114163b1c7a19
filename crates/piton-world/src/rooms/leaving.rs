//! The worktree of a task goes with a rollback of its lane, and comes back when that is undone.
//!
//! What is in it stands in a snapshot before it goes, and where its branch stood below a ref of the
//! run. What git ignores is in neither, and is not brought back.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use piton_core::event::RewindRoom;
use piton_core::lane_state::LaneWork;
use piton_core::{LanePath, Timestamp};
use piton_engine::world::RoomTarget;
use piton_workspace::missed::large;
use piton_workspace::snapshot::{self, Snapshot};
use piton_workspace::worktree::{self, BranchEnd};
use piton_workspace::{Project, refs};

use super::begin::at;
use super::stays::keeps_artifacts;
use super::{GitRooms, branch_head, noted, recorded, spec};

impl GitRooms {
    /// Snapshots a worktree that shall go; refused where that would lose something.
    pub(super) fn plan_leaving(
        &mut self,
        lane: &LanePath,
        target: &RoomTarget,
        artifacts: &[String],
        at: Timestamp,
    ) -> Result<RewindRoom, String> {
        let present = if Path::new(&target.dir).is_dir() {
            let taken = self.take(Some(lane), &target.dir, "before it is taken back", at)?;
            let place = (target.dir.as_str(), target.branch.as_str());
            if let Some(why) = self.refuses_leave(lane, place, &taken, artifacts) {
                return Err(why);
            }
            noted(Some(lane), &target.dir, &taken)
        } else {
            recorded(&snapshot::load(&self.root, &target.target).map_err(|e| e.to_string())?)
        };
        let head_from = branch_head(&self.root, &target.branch).or_else(|| present.head.clone());
        Ok(RewindRoom {
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
            aside: None,
        })
    }

    /// Why a worktree can't go, as things are; `present` is a look at it.
    pub fn preview_leaving(&self, target: &RoomTarget, present: &str) -> Option<String> {
        let (lane, artifacts) = (target.lane.as_ref()?, target.goes.as_ref()?);
        match snapshot::load(&self.root, present) {
            Ok(taken) => self.refuses_leave(lane, (&target.dir, &target.branch), &taken, artifacts),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Why a worktree can't come back: something else has its place, or the name of its branch.
    pub fn preview_coming(&self, target: &RoomTarget) -> Option<String> {
        let lane = target.lane.as_ref()?.to_string();
        let own = refs::branch_of(&self.root, (&self.run_id, &lane)).map(|(name, _)| name);
        let is_taken = branch_head(&self.root, &target.branch).is_some();
        let what = if is_taken && own.as_ref() != Some(&target.branch) {
            format!("there is a branch {} that is not its own; rename that", target.branch)
        } else if fs::read_dir(&target.dir).is_ok_and(|mut held| held.next().is_some())
            && !worktree::is_complete(Path::new(&target.dir))
        {
            format!("something else is in {}; move that away", target.dir)
        } else {
            return None;
        };
        Some(format!("the worktree of {lane} can't come back: {what} first"))
    }

    fn refuses_leave(
        &self,
        lane: &LanePath,
        (folder, branch): (&str, &str),
        taken: &Snapshot,
        artifacts: &[String],
    ) -> Option<String> {
        let dir = Path::new(folder);
        let work = LaneWork { dir: folder.to_owned(), ..LaneWork::default() };
        let head = branch_head(&self.root, branch);
        let held = self.refuses_removal(&work, &recorded(taken), head.as_deref());
        if let Some(held) = held.or_else(|| keeps_artifacts(&work, taken, artifacts)) {
            return Some(format!(
                "the worktree of {lane} can't go: {}; move that out of {}, or delete it, first",
                held.why, folder
            ));
        }
        let refused = worktree::may_remove(&self.root, dir).map_err(|e| e.to_string());
        let elsewhere = || {
            let at = worktree::checked_out(&self.root, branch)?;
            (at != dir && at.canonicalize().ok() != dir.canonicalize().ok()).then(|| {
                let at = at.display();
                format!("branch {branch} is checked out in {at}; check out another one there")
            })
        };
        let why = refused.err().or_else(elsewhere)?;
        Some(format!("the worktree of {lane} can't go: {why}"))
    }

    /// Lets a worktree and its branch go.
    pub(super) fn leave(&mut self, room: &RewindRoom) -> Result<(), String> {
        let Some(lane) = &room.lane else { return Ok(()) };
        let dir = Path::new(&room.dir);
        if worktree::is_complete(dir) {
            // Somebody may have been there since the intent, if its driver was killed.
            let taken = self.take(Some(lane), &room.dir, "before the worktree goes", at())?;
            if let Some(why) = self.refuses_leave(lane, (&room.dir, &room.branch), &taken, &[]) {
                return Err(why);
            }
            // A step may have left it on another branch, or on none.
            let out = Project::discover_cached(dir).ok().and_then(|own| own.head());
            if let (Some(out), Some(head)) = (out, &room.head_from) {
                self.keep_commits(&out, head)?;
            }
        }
        let fence = self.fenced().map_err(|e| e.to_string())?;
        worktree::remove(&self.root, dir, &fence).map_err(|e| e.to_string())?;
        self.forget(&room.dir);
        let owner = (self.run_id.as_str(), &*lane.to_string());
        match worktree::drop_branch(&self.root, owner, &fence).map_err(|e| e.to_string())? {
            BranchEnd::InUse(at) => {
                Err(format!("branch {} is checked out in {}", room.branch, at.display()))
            }
            _ => Ok(()),
        }
    }

    /// Makes a worktree again where it was, with its branch at a commit; its files follow.
    pub(super) fn come_back(
        &mut self,
        lane: &LanePath,
        room: &RewindRoom,
        head: &str,
    ) -> Result<(), String> {
        let fence = self.fenced().map_err(|e| e.to_string())?;
        let (dir, branch) = (room.dir.clone(), room.branch.clone());
        let work = LaneWork { dir, branch, ..LaneWork::default() };
        let wanted = spec(&self.run_id, lane, &work, head, &room.copy);
        let added = worktree::add(&self.root, &wanted, &fence).map_err(|e| e.to_string())?;
        self.forget(&room.dir);
        let dir = Path::new(&room.dir);
        let is_there = added.path == dir || Some(&added.path) == dir.canonicalize().ok().as_ref();
        if is_there && added.branch == room.branch {
            return Ok(());
        }
        // Something else has its place or its name: what was made beside that is of no use.
        worktree::remove(&self.root, &added.path, &fence).map_err(|e| e.to_string())?;
        let owner = (self.run_id.as_str(), &*lane.to_string());
        worktree::drop_branch(&self.root, owner, &fence).map_err(|e| e.to_string())?;
        Err(format!(
            "{} or the branch {} is taken by something else; move that away first",
            room.dir, room.branch
        ))
    }

    /// Deletes large files that a worktree has from its branch alone: they were not in it before, and no
    /// snapshot would take them away.
    pub(super) fn drop_large(
        &mut self,
        lane: &LanePath,
        room: &RewindRoom,
        target: &str,
        head: &str,
    ) -> Result<(), String> {
        let said = |e: snapshot::Error| e.to_string();
        let held = snapshot::load(&self.root, target).map_err(said)?.degraded;
        let mut here = self.take(Some(lane), &room.dir, "as it comes back", at())?.degraded;
        here.retain(|m| large::is_large(m) && !held.iter().any(|other| other.path == m.path));
        if here.is_empty() {
            return Ok(());
        }
        let dir = Path::new(&room.dir);
        let other = large::compare(dir, head, &here, &[]).map_err(said)?.paths();
        for missed in here.iter().filter(|m| !other.contains(&m.path)) {
            let path = dir.join(OsStr::from_bytes(&missed.path));
            fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }

    /// What is known of a folder is known of files that are gone.
    fn forget(&mut self, dir: &str) {
        self.takers.remove(dir);
        self.wholes.remove(dir);
    }
}
