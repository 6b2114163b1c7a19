//! Taking snapshots of workspaces, and how they go on record.

use std::path::Path;

use piton_core::lane::{Missed, SnapshotRef};
use piton_core::{LanePath, Timestamp};
use piton_workspace::Project;
use piton_workspace::snapshot::{self, Meta, Recorded, Snapshot, Taker};

use super::GitRooms;

impl GitRooms {
    pub(super) fn take(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<Snapshot, String> {
        let fence = self.fenced().map_err(|e| e.to_string())?;
        let message = self.message(why);
        let meta = Meta { message: &message, at: at.0 };
        let (chain, rules) = (self.chain(lane), self.rules_of(dir));
        let taker = self.taker(dir)?;
        taker.take(&rules, &chain, &fence, &meta).map_err(|e| e.to_string())
    }

    /// What a snapshot says about itself.
    pub(super) fn message(&self, why: &str) -> String {
        format!("{}: {why}\n\n{}", self.run_id, Recorded { epoch: self.epoch, seq: self.seq })
    }

    pub(super) fn taker(&mut self, dir: &str) -> Result<&mut Taker, String> {
        if !self.takers.contains_key(dir) {
            let taker = Taker::new(self.workspace(dir)).like(self.takers.values().next());
            self.takers.insert(dir.to_owned(), taker);
        }
        self.takers.get_mut(dir).ok_or_else(|| "no work tree".to_owned())
    }
}

/// A snapshot as recorded.
pub fn recorded(snapshot: &Snapshot) -> SnapshotRef {
    let missed = |m: &snapshot::Missed| Missed {
        path: String::from_utf8_lossy(&m.path).into_owned(),
        why: m.why.to_string(),
    };
    SnapshotRef {
        commit: snapshot.commit.clone(),
        tree: snapshot.tree.clone(),
        degraded: snapshot.degraded.iter().map(missed).collect(),
        head: None,
    }
}

/// A snapshot of a workspace as recorded, with where the branch of a lane's worktree stands.
pub(super) fn noted(lane: Option<&LanePath>, dir: &str, snapshot: &Snapshot) -> SnapshotRef {
    let own = lane.and_then(|_| Project::discover_cached(Path::new(dir)).ok());
    SnapshotRef { head: own.and_then(|project| project.branch_head()), ..recorded(snapshot) }
}
