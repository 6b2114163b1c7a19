//! What somebody is about to do in a lane's worktree, by git's own means: Piton's acts on its branch
//! and HEAD wait for that.
//!
//! Steps do not wait: one of them may be there to end it.

use std::path::Path;

use piton_core::lane_state::LaneWork;
use piton_engine::world::Refusal;
use piton_formats::template::quote_for_shell;
use piton_workspace::{checks, worktree};

use super::GitRooms;

impl GitRooms {
    /// Why a lane's branch and HEAD stay as they are for now.
    pub(super) fn refuses_touch(&self, work: &LaneWork) -> Option<Refusal> {
        let dir = Path::new(&work.dir);
        // Without its link git would tell of the project's own work tree.
        if !worktree::is_complete(dir) {
            return None;
        }
        // Of a merge all is in the files: they are committed, or markers in them are told.
        let found = checks::under_way(dir).into_iter().find(|found| !found.is_merge())?;
        let at = quote_for_shell(&work.dir);
        let ends: Vec<String> =
            found.ends.iter().map(|end| format!("`git -C {at} {end}`")).collect();
        Some(Refusal {
            why: format!("{} is under way in {}", found.what, work.dir),
            fix: format!("{}, then `piton resume {}`", ends.join(" or "), self.run_id),
        })
    }
}
