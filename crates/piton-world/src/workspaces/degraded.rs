//! What snapshots of a lane's worktree miss: it is part of the lane's commit nevertheless, or it blocks
//! the lane, and it keeps the worktree from being removed.

use std::path::Path;

use piton_core::LanePath;
use piton_core::lane::SnapshotRef;
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Refusal;
use piton_core::text::first_few;

use piton_workspace::missed;
use piton_workspace::snapshot::{self, Missed, Snapshot};

use super::GitWorkspaces;
use super::snapshots::with_head;
use crate::refusals;

/// Paths that a refusal names; the rest is counted.
const NAMED_MAX: usize = 5;

/// A snapshot of a workspace as recorded. In a lane's worktree its tree is the one that a commit has, so
/// that tests are known to have passed on exactly that.
pub(super) fn with_commit_tree(
    lane: Option<&LanePath>,
    dir: &str,
    taken: &Snapshot,
) -> SnapshotRef {
    let mut recorded = with_head(lane, dir, taken);
    if lane.is_some() {
        recorded.tree = commit_tree(dir, taken);
    }
    recorded
}

/// The tree that a commit of a lane's worktree would have. What can't be added now keeps the lane from
/// being committed, and is reported then.
pub(super) fn commit_tree(dir: &str, taken: &Snapshot) -> String {
    let complete = || missed::complete(Path::new(dir), &taken.tree, &taken.degraded).ok();
    let found = missed::is_incomplete(&taken.degraded).then(complete).flatten();
    found.map_or_else(|| taken.tree.clone(), |found| found.tree)
}

impl GitWorkspaces {
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
        let dir = Path::new(&work.dir);
        let refused = |why: &str| refusals::not_committable(&work.dir, why);
        let taken = match snapshot::load(&self.root, &snapshot.commit) {
            Ok(taken) if missed::is_incomplete(&taken.degraded) => taken,
            Ok(_) => return None,
            Err(error) => return Some(refused(&error.to_string())),
        };
        match missed::complete(dir, &taken.tree, &taken.degraded) {
            Ok(found) if !found.left.is_empty() => Some(refused(&named(&found.left))),
            Ok(found) if found.tree == snapshot.tree => None,
            Ok(_) => Some(refusals::changed_during_commit(lane, &work.dir)),
            Err(error) => Some(refused(&error.to_string())),
        }
    }

    /// Why a lane's worktree can't be removed: it has the only copy of something.
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
        match only {
            Ok(only) if only.is_empty() => None,
            Ok(only) => Some(refusals::only_copy(dir, &named(&only))),
            Err(error) => Some(refusals::unknown_contents(dir, error.into())),
        }
    }
}

/// Paths with the reasons why a snapshot missed them.
fn named(missed: &[Missed]) -> String {
    let words = |m: &Missed| format!("{} ({})", String::from_utf8_lossy(&m.path), m.why);
    first_few(missed.iter().map(words), NAMED_MAX).unwrap_or_default()
}
