//! Rollback, restore and undo in a repository: what stays, what comes back, and the way back from
//! a failure.

use std::collections::BTreeSet;
use std::path::Path;

use piton_core::Timestamp;
use piton_core::event::{Revert, RewindIntended, RewindRoom};
use piton_core::lane_state::LaneWork;
use piton_engine::world::RoomTarget;
use piton_workspace::restore::{self, Scope};
use piton_workspace::worktree::{self, Identity};
use piton_workspace::{checks, merge, snapshot};

use super::begin::at;
use super::{GitRooms, STAY, recorded, spec};

impl GitRooms {
    pub(super) fn plan_room(
        &mut self,
        target: &RoomTarget,
        at: Timestamp,
    ) -> Result<RewindRoom, String> {
        let root = self.root.display().to_string();
        let lane = target.lane.as_ref();
        let there = self.root.join(&target.dir).is_dir();
        let present = if there {
            recorded(&self.take(lane, &target.dir, "before it is taken back", at)?)
        } else {
            // Its worktree is gone; it comes back as the target has it.
            recorded(&snapshot::load(&self.root, &target.target).map_err(|e| e.to_string())?)
        };
        let keep = match lane {
            None if !target.exact && target.paths.is_empty() => {
                self.foreign(target, &present.commit)?
            }
            _ => Vec::new(),
        };
        let dir = if target.dir.is_empty() { root } else { target.dir.clone() };
        let head =
            (!target.branch.is_empty()).then(|| super::branch_head(&self.root, &target.branch));
        Ok(RewindRoom {
            lane: target.lane.clone(),
            dir,
            present,
            target: target.target.clone(),
            paths: target.paths.clone(),
            keep,
            branch: target.branch.clone(),
            head_from: head.flatten(),
            head_to: target.head_to.clone(),
        })
    }

    /// Files that are new since the target and appeared while no attempt of the run was at work.
    fn foreign(&self, target: &RoomTarget, present: &str) -> Result<Vec<String>, String> {
        let added = |from: &str, to: &str| -> Result<BTreeSet<String>, String> {
            let changes = restore::diff(&self.root, from, to).map_err(|e| e.to_string())?;
            let new = changes.into_iter().filter(|c| c.kind == restore::ChangeKind::Added);
            Ok(new.map(|c| String::from_utf8_lossy(&c.path).into_owned()).collect())
        };
        let mut own = BTreeSet::new();
        for (before, after) in &target.windows {
            own.extend(added(before, after.as_deref().unwrap_or(present))?);
        }
        Ok(added(&target.target, present)?.difference(&own).cloned().collect())
    }

    pub(super) fn plan_taking_back(&mut self, merged: &Revert) -> Result<Revert, String> {
        let base = checks::standing(&self.root, &merged.base_branch)
            .ok_or_else(|| format!("branch {} is gone", merged.base_branch))?;
        let message = format!("Revert {}\n\nTaken back by piton.", merged.lane);
        let range = (merged.merged_from.as_str(), merged.merged_to.as_str());
        let seconds = at().0.div_euclid(1000);
        let made = merge::revert(
            &self.root,
            &base.commit,
            range,
            &message,
            &Identity::Configured,
            seconds,
        );
        let to = match made.map_err(|e| e.to_string())? {
            merge::Revert::Nothing => base.commit.clone(),
            merge::Revert::Clean { commit, .. } => commit,
            merge::Revert::Conflict { files, .. } => {
                return Err(format!(
                    "later commits changed the same files: {}; revert it by hand",
                    files.join(", ")
                ));
            }
        };
        merge::would_follow(&base, &base.commit, &to).map_err(|e| e.to_string())?;
        Ok(Revert { from: base.commit, to, ..merged.clone() })
    }

    /// Carries out an intent; what was changed before a failure is put back.
    pub(super) fn carry_out(&mut self, intent: &RewindIntended) -> Result<(), String> {
        for (index, room) in intent.rooms.iter().enumerate() {
            if let Err(why) = self.enter(room, &room.target, room.head_to.as_deref(), &room.keep) {
                for done in intent.rooms.iter().take(index + 1) {
                    let head = done.head_from.as_deref();
                    self.enter(done, &done.present.commit, head, &[]).map_err(|again| {
                        format!(
                            "{why}; putting {} back failed too: {again}; its files are in {}",
                            done.dir, done.present.commit
                        )
                    })?;
                }
                return Err(why);
            }
        }
        let fence = self.fenced().map_err(|e| e.to_string())?;
        for revert in intent.reverts.iter().filter(|r| r.from != r.to) {
            let base = checks::standing(&self.root, &revert.base_branch)
                .ok_or_else(|| format!("branch {} is gone", revert.base_branch))?;
            let moved = merge::advance(&self.root, &base, &revert.from, &revert.to, &fence);
            if let merge::Advanced::BaseMoved { .. } = moved.map_err(|e| e.to_string())? {
                return Err(format!("{} moved meanwhile; try again", revert.base_branch));
            }
        }
        Ok(())
    }

    /// Makes one work tree what a snapshot says, with its branch at a commit.
    fn enter(
        &mut self,
        room: &RewindRoom,
        target: &str,
        head: Option<&str>,
        keep: &[String],
    ) -> Result<(), String> {
        let dir = Path::new(&room.dir);
        let fence = self.fenced().map_err(|e| e.to_string())?;
        if let (Some(lane), Some(head)) = (&room.lane, head) {
            if !dir.is_dir() {
                let work = LaneWork {
                    dir: room.dir.clone(),
                    branch: room.branch.clone(),
                    ..LaneWork::default()
                };
                let wanted = spec(&self.run_id, lane, &work, head, &[]);
                worktree::add(&self.root, &wanted, &fence).map_err(|e| e.to_string())?;
            }
            worktree::move_to(dir, head, STAY, &fence).map_err(|e| e.to_string())?;
        }
        let scope = Scope {
            paths: room.paths.iter().map(std::path::PathBuf::from).collect(),
            keep: keep.iter().map(|k| k.clone().into_bytes()).collect(),
        };
        let dir = if room.lane.is_some() { room.dir.as_str() } else { "" };
        self.go_back(room.lane.as_ref(), dir, target, &scope, at())
    }
}
