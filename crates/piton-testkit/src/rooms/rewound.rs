//! How a rewind changes the folders of the simulated machine.

use piton_core::event::RewindRoom;

use super::SimRooms;
use super::trouble::Trouble;
use crate::machine::SimMachine;
use crate::repo::{BASE, place};

impl SimRooms {
    /// Makes one folder what a rewind says.
    pub(super) fn rewind_room(&self, room: &RewindRoom) -> Result<(), Trouble> {
        let what = format!("rewind {}", room.dir);
        if room.goes {
            return self.leave_room(&what, room);
        }
        if room.target.is_empty() {
            let gone = |m: &mut SimMachine| {
                m.remove_all(&room.dir);
                m.repo.as_mut().map(|r| r.worktrees.remove(&room.dir));
            };
            self.act(&format!("{what}: files go"), gone)?;
            return self.drop_branch(&what, &room.branch, BASE).map(drop);
        }
        if let (Some(to), false) = (&room.head_to, room.branch.is_empty()) {
            self.set(&format!("{what}: branch"), &room.branch, Some(to.clone()))?;
        }
        let (present, target) = {
            let repo = self.repo();
            let tree = |id: &str| repo.snapshot(id).cloned().unwrap_or_default();
            (tree(&room.present.commit), tree(&room.target))
        };
        let mut wanted = if room.paths.is_empty() { target.clone() } else { present.clone() };
        for path in &room.paths {
            wanted.remove(path);
            wanted.extend(target.get(path).map(|text| (path.clone(), text.clone())));
        }
        let kept = room.keep.iter().filter_map(|p| Some((p.clone(), present.get(p)?.clone())));
        wanted.extend(kept);
        self.check_out(&what, &room.dir, &wanted)
    }

    /// Removes a worktree and its branch, in pieces.
    fn leave_room(&self, what: &str, room: &RewindRoom) -> Result<(), Trouble> {
        if self.repo().worktrees.contains_key(&room.dir) {
            self.act(&format!("{what}: half its files go"), |machine| {
                machine.repo.as_mut().map(|r| r.worktrees.insert(room.dir.clone(), false));
                let first = machine.tree(&room.dir).into_keys().next();
                if let Some(path) = first {
                    machine.remove(&place(&room.dir, &path));
                }
            })?;
            self.act(&format!("{what}: files go"), |machine| {
                machine.remove_all(&room.dir);
                machine.repo.as_mut().map(|r| r.worktrees.remove(&room.dir));
            })?;
        }
        self.set(&format!("{what}: branch goes"), &room.branch, None)
    }
}
