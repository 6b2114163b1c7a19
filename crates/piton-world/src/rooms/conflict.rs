//! Conflicts of a lane with base: both sides in its worktree, and whether somebody settled them.
//!
//! Doing nothing settles nothing: a conflict is settled when its files hold no markers any more and
//! what was put beside them is gone.

use std::ffi::OsStr;
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
use super::{GitRooms, failed, of_worktree, ready};

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
        worktree::move_with_files(&dir, onto, &tree, &fence).map_err(of_worktree)?;
        let mut made = ready(lane, &dir, &work.branch, onto.to_owned());
        let taken = self.take(Some(lane), &work.dir, "both sides of a conflict", at());
        made.snapshot = Some(self.noted_whole(Some(lane), &work.dir, &taken.map_err(failed)?));
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
        // A merge of a step's own that it did not finish.
        let own = worktree::unmerged(Path::new(&work.dir)).unwrap_or_default();
        let dir = Path::new(&work.dir);
        let sides_of = |path: &[u8]| -> Vec<Vec<u8>> {
            let stages = [&b":1:"[..], b":2:", b":3:"].into_iter();
            stages.filter_map(|stage| text_of(dir, &[stage, path].concat())).collect()
        };
        let own = own.iter().filter(|path| self.holds_markers(tree, path, &sides_of(path)));
        let mut left: Vec<String> =
            own.map(|path| marked(&String::from_utf8_lossy(path))).collect();
        let Some((onto, head)) = &work.unsettled else { return Ok(left) };
        let sides = merge::sides(&self.root, onto, head).map_err(of_merge)?;
        for file in &sides.files {
            let name = file.path.display();
            if file.has_markers {
                let words = marked(&name.to_string());
                let before = file.objects().filter_map(|id| text_of(dir, id.as_bytes())).collect();
                let before: Vec<Vec<u8>> = before;
                let path = file.path.as_os_str().as_bytes();
                if !left.contains(&words) && self.holds_markers(tree, path, &before) {
                    left.push(words);
                }
                continue;
            }
            // On the disk too: what git is told to ignore is in no snapshot.
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

    /// Whether a file of a tree holds the two sides of a conflict, beside what was there before.
    fn holds_markers(&self, tree: &str, path: &[u8], before: &[Vec<u8>]) -> bool {
        let text = text_of(&self.root, &[tree.as_bytes(), b":", path].concat());
        text.is_some_and(|text| merge::has_markers(&text, before))
    }

    /// Whether a tree has a file.
    fn has(&self, tree: &str, path: &Path) -> bool {
        let git = Git::at(&self.root).args(["ls-tree", "-z", "--name-only", tree, "--"]);
        git.arg(path).bytes().is_ok_and(|found| !found.is_empty())
    }
}

/// What an object holds, by its name.
fn text_of(dir: &Path, name: &[u8]) -> Option<Vec<u8>> {
    Git::at(dir).args(["cat-file", "blob"]).arg(OsStr::from_bytes(name)).bytes().ok()
}

fn marked(name: &str) -> String {
    format!("{name} (it holds markers)")
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
