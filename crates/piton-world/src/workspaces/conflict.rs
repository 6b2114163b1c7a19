//! Conflicts of a lane with base: both sides are put into its worktree, and whether they are resolved.
//!
//! A conflict is resolved when its files have no markers any more and what was put beside them is gone.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use piton_core::LanePath;
use piton_core::lane_state::{Conflict, LaneWork};
use piton_engine::world::MadeWorkspace;
use piton_workspace::merge::{self, Disputed};
use piton_workspace::{history, worktree};

use super::degraded::with_commit_tree;
use super::error::Result;
use super::{GitWorkspaces, ready};
use crate::{notes, now};

impl GitWorkspaces {
    /// Puts both sides of a conflict into the lane's workspace: base, with the lane's work merged
    /// over it. The lane's snapshots have what was there.
    pub(super) fn place_conflict(
        &mut self,
        lane: &LanePath,
        work: &LaneWork,
        onto: &str,
        head: &str,
    ) -> Result<MadeWorkspace> {
        let dir = Path::new(&work.dir).to_owned();
        let fence = self.fenced()?;
        self.take(Some(lane), &work.dir, "before a conflict was put in", now())?;
        let sides = merge::sides(&self.root, onto, head)?;
        let tree = sides.tree(&dir)?;
        worktree::move_with_files(&dir, onto, &tree, &fence)?;
        let mut made = ready(lane, &dir, &work.branch, onto.to_owned());
        let taken = self.take(Some(lane), &work.dir, "both sides of a conflict", now())?;
        made.snapshot = Some(with_commit_tree(Some(lane), &work.dir, &taken));
        made.note = placed(&sides.files);
        Ok(MadeWorkspace::Ready(Box::new(made)))
    }

    /// What both sides made of each file of a conflict.
    pub(super) fn conflict_sides(&self, onto: &str, head: &str) -> Vec<String> {
        let sides = merge::sides(&self.root, onto, head).unwrap_or_default();
        sides.files.iter().map(Disputed::words).collect()
    }

    /// Files of the last conflict that are not resolved, with what is left of it.
    pub(super) fn unresolved(&self, work: &LaneWork, tree: &str) -> Result<Vec<String>> {
        // A merge that a step started and did not finish.
        let own = worktree::unmerged(Path::new(&work.dir)).unwrap_or_default();
        let dir = Path::new(&work.dir);
        let sides_of = |path: &[u8]| -> Vec<Vec<u8>> {
            let stages = [&b":1:"[..], b":2:", b":3:"].into_iter();
            stages.filter_map(|stage| history::file(dir, &[stage, path].concat())).collect()
        };
        let own = own.iter().filter(|path| self.holds_markers(tree, path, &sides_of(path)));
        let mut left: Vec<String> =
            own.map(|path| notes::has_markers(&String::from_utf8_lossy(path))).collect();
        let Some(Conflict { onto, head }) = work.resolving() else { return Ok(left) };
        let sides = merge::sides(&self.root, onto, head)?;
        for file in &sides.files {
            let name = file.path.display();
            if file.has_markers {
                let words = notes::has_markers(&name.to_string());
                let before =
                    file.objects().filter_map(|id| history::file(dir, id.as_bytes())).collect();
                let before: Vec<Vec<u8>> = before;
                let path = file.path.as_os_str().as_bytes();
                if !left.contains(&words) && self.holds_markers(tree, path, &before) {
                    left.push(words);
                }
                continue;
            }
            // On the disk too: what git ignores is in no snapshot.
            let is_left = |at: &&Path| {
                dir.join(at).symlink_metadata().is_ok() || history::has_file(&self.root, tree, at)
            };
            let beside: Vec<String> =
                file.beside().filter(is_left).map(|at| at.display().to_string()).collect();
            left.extend(notes::left_beside(&name.to_string(), &beside));
        }
        Ok(left)
    }

    /// Whether a file of a tree holds the two sides of a conflict, beside what was there before.
    fn holds_markers(&self, tree: &str, path: &[u8], before: &[Vec<u8>]) -> bool {
        let text = history::file(&self.root, &[tree.as_bytes(), b":", path].concat());
        text.is_some_and(|text| merge::has_markers(&text, before))
    }
}

/// Where the sides of a conflict are.
fn placed(files: &[Disputed]) -> String {
    let beside = files.iter().flat_map(Disputed::beside).map(|at| at.display().to_string());
    let beside: Vec<String> = beside.collect();
    notes::conflict_placed(files.iter().any(|file| file.has_markers), &beside)
}
