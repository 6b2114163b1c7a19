//! Conflicts of a lane with base: both sides in its worktree, and whether somebody settled them.
//!
//! Doing nothing settles nothing: a conflict is settled when its files hold no markers any more and
//! what was put beside them is gone.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use piton_core::LanePath;
use piton_core::lane_state::LaneWork;
use piton_engine::Result;
use piton_engine::world::Room;
use piton_workspace::merge::{self, Disputed};
use piton_workspace::{Git, worktree};

use super::begin::at;
use super::merge::of_merge;
use super::{GitRooms, failed, noted, of_worktree, ready};

impl GitRooms {
    /// Puts both sides of a conflict into the lane's workspace: base, with the lane's work merged
    /// over it. What was there stands in the lane's snapshots.
    pub(super) fn place_conflict(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        onto: &str,
        head: &str,
    ) -> Result<Room> {
        let dir = Path::new(&work.dir).to_owned();
        let fence = self.fenced()?;
        self.take(Some(lane), &work.dir, "before a conflict was put in", at()).map_err(failed)?;
        let sides = merge::sides(&self.root, onto, head).map_err(of_merge)?;
        let tree = sides.tree(&dir).map_err(of_merge)?;
        worktree::stand_on(&dir, onto, &tree, &fence).map_err(of_worktree)?;
        let mut made = ready(lane, &dir, &work.branch, onto.to_owned());
        let taken = self.take(Some(lane), &work.dir, "both sides of a conflict", at());
        made.snapshot = Some(noted(Some(lane), &work.dir, &taken.map_err(failed)?));
        made.note = placed(&sides.files);
        Ok(Room::Ready(Box::new(made)))
    }

    /// What both sides made of each file of a conflict.
    pub(super) fn told_sides(&self, onto: &str, head: &str) -> Vec<String> {
        let sides = merge::sides(&self.root, onto, head).unwrap_or_default();
        sides.files.iter().map(Disputed::words).collect()
    }

    /// Files of the last conflict that nobody settled, with what is left of it.
    pub(super) fn unresolved(&self, work: &LaneWork, tree: &str) -> Result<Vec<String>> {
        let Some((onto, head)) = &work.unsettled else { return Ok(Vec::new()) };
        let sides = merge::sides(&self.root, onto, head).map_err(of_merge)?;
        let mut left = Vec::new();
        for file in &sides.files {
            let name = file.path.display();
            if file.has_markers {
                let at = [tree.as_bytes(), b":", file.path.as_os_str().as_bytes()].concat();
                let at = std::ffi::OsStr::from_bytes(&at);
                let text = Git::at(&self.root).args(["cat-file", "blob"]).arg(at).bytes();
                if merge::has_markers(&text.unwrap_or_default()) {
                    left.push(format!("{name} (it holds markers)"));
                }
                continue;
            }
            // On the disk too: what git is told to ignore is in no snapshot.
            let dir = Path::new(&work.dir);
            let is_left =
                |at: &&Path| dir.join(at).symlink_metadata().is_ok() || self.has(tree, at);
            let beside: Vec<String> =
                file.beside().filter(is_left).map(|at| at.display().to_string()).collect();
            match beside.as_slice() {
                [] => {}
                [one] => left.push(format!("{name} ({one} is still there)")),
                many => left.push(format!("{name} ({} are still there)", many.join(" and "))),
            }
        }
        Ok(left)
    }

    /// Whether a tree has a file.
    fn has(&self, tree: &str, path: &Path) -> bool {
        let git = Git::at(&self.root).args(["ls-tree", "-z", "--name-only", tree, "--"]);
        git.arg(path).bytes().is_ok_and(|found| !found.is_empty())
    }
}

/// Where the sides of a conflict are.
fn placed(files: &[Disputed]) -> String {
    let beside = files.iter().flat_map(Disputed::beside).map(|at| at.display().to_string());
    let beside: Vec<String> = beside.collect();
    let markers = files.iter().any(|file| file.has_markers);
    let how = match (markers, beside.is_empty()) {
        (false, false) => format!(": see {}", beside.join(", ")),
        (true, false) => format!(", with markers and in {}", beside.join(", ")),
        (_, true) => ", with markers".to_owned(),
    };
    format!("both sides of the conflict are in its worktree{how}")
}
