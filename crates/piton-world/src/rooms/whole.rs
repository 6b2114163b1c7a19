//! What snapshots of a lane's worktree miss: part of its commit nevertheless, or a reason to wait; and
//! a reason for its worktree to stay.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use piton_core::LanePath;
use piton_core::lane::SnapshotRef;
use piton_core::lane_state::LaneWork;
use piton_engine::world::Refusal;
use piton_workspace::missed;
use piton_workspace::snapshot::{self, Missed, Snapshot};

use super::{GitRooms, noted};
use piton_core::text::first_few;

/// Paths that a refusal names; the rest is counted.
const NAMED_MAX: usize = 5;

/// The tree of a snapshot with what it missed, and what that was when it was added.
pub(super) struct Known {
    tree: String,
    stamps: Vec<Option<Stamp>>,
    whole: String,
}

/// What tells a file that changed: device, number, size, and both times.
type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::symlink_metadata(path).ok()?;
    let (modified, changed) =
        ((about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec()));
    Some((about.dev(), about.ino(), about.size(), modified, changed))
}

impl GitRooms {
    /// A snapshot of a workspace as recorded. In a lane's worktree its tree is the one that a commit
    /// has, so that tests are known to have passed on exactly that.
    pub(super) fn noted_whole(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        taken: &Snapshot,
    ) -> SnapshotRef {
        let mut noted = noted(lane, dir, taken);
        if lane.is_some() && missed::is_incomplete(&taken.degraded) {
            // What can't be added now keeps the lane from being committed, and is told then.
            noted.tree = self.whole_tree(dir, taken).unwrap_or(noted.tree);
        }
        noted
    }

    /// The tree that a commit of a lane's worktree would have.
    pub(super) fn whole_of(&mut self, dir: &str, taken: &Snapshot) -> String {
        self.whole_tree(dir, taken).unwrap_or_else(|| taken.tree.clone())
    }

    fn whole_tree(&mut self, dir: &str, taken: &Snapshot) -> Option<String> {
        let at = Path::new(dir);
        let full = |m: &Missed| at.join(os_path(&m.path));
        let stamps: Vec<_> = taken.degraded.iter().map(|m| stamp(&full(m))).collect();
        if let Some(known) = self.wholes.get(dir)
            && known.tree == taken.tree
            && known.stamps == stamps
        {
            return Some(known.whole.clone());
        }
        let found = missed::complete(at, &taken.tree, &taken.degraded).ok()?;
        let known = Known { tree: taken.tree.clone(), stamps, whole: found.tree.clone() };
        self.wholes.insert(dir.to_owned(), known);
        Some(found.tree)
    }

    /// Why a lane's work can't be committed as it is.
    pub(super) fn refuses_commit(
        &self,
        lane: &LanePath,
        work: &LaneWork,
        snapshot: &SnapshotRef,
    ) -> Option<Refusal> {
        if snapshot.degraded.is_empty() {
            return None;
        }
        let (dir, run) = (Path::new(&work.dir), &self.run_id);
        let refused = |why: String| Refusal {
            why: format!("not all of its work can be committed: {why}"),
            fix: format!(
                "make it readable, put its filter right or rename it in {}, delete it or let git ignore it, \
                 then `piton resume {run}`",
                work.dir
            ),
        };
        let taken = match snapshot::load(&self.root, &snapshot.commit) {
            Ok(taken) if missed::is_incomplete(&taken.degraded) => taken,
            Ok(_) => return None,
            Err(error) => return Some(refused(error.to_string())),
        };
        match missed::complete(dir, &taken.tree, &taken.degraded) {
            Ok(found) if !found.left.is_empty() => Some(refused(named(&found.left))),
            Ok(found) if found.tree == snapshot.tree => None,
            Ok(_) => Some(Refusal {
                why: format!("files of {lane} changed while they were to be committed"),
                fix: format!("see what still writes in {}, then `piton resume {run}`", work.dir),
            }),
            Err(error) => Some(refused(error.to_string())),
        }
    }

    /// Why a lane's worktree can't go: it holds what is nowhere else.
    pub(super) fn refuses_removal(
        &self,
        work: &LaneWork,
        last: &SnapshotRef,
        head: Option<&str>,
    ) -> Option<Refusal> {
        let dir = Path::new(&work.dir);
        if last.degraded.is_empty() || !dir.is_dir() {
            return None;
        }
        let only = snapshot::load(&self.root, &last.commit)
            .and_then(|taken| missed::only_here(dir, head, &taken.degraded));
        let why = match only {
            Ok(only) if only.is_empty() => return None,
            Ok(only) => format!("it alone holds {}", named(&only)),
            Err(error) => error.to_string(),
        };
        Some(Refusal { why, fix: removed_by_hand(dir) })
    }
}

/// What to do with a worktree that holds what is nowhere else.
pub(super) fn removed_by_hand(dir: &Path) -> String {
    let dir = dir.display();
    format!("move that out of {dir}, push it or delete it, then `piton gc` removes the worktree")
}

/// Paths with the reasons why a snapshot missed them.
fn named(missed: &[Missed]) -> String {
    let words = |m: &Missed| format!("{} ({})", String::from_utf8_lossy(&m.path), m.why);
    first_few(missed.iter().map(words), NAMED_MAX).unwrap_or_default()
}

fn os_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(path))
}
