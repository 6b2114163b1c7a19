//! Taking snapshots of workspaces, and how they are recorded.

use std::path::Path;

use piton_core::lane::{Missed, SnapshotRef};
use piton_core::{LanePath, Timestamp};
use piton_workspace::snapshot::{self, Meta, Recorded, Snapshot, Taker};
use piton_workspace::{Project, restore};

use super::GitWorkspaces;
use super::error::Result;

impl GitWorkspaces {
    pub(super) fn take(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        why: &str,
        at: Timestamp,
    ) -> Result<Snapshot> {
        self.take_before(lane, dir, None, why, at)
    }

    /// Snapshots a workspace, perhaps one that is restored to another snapshot next.
    pub(super) fn take_before(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: Option<&str>,
        why: &str,
        at: Timestamp,
    ) -> Result<Snapshot> {
        let fence = self.fenced()?;
        let message = self.message(why);
        let meta = Meta { message: &message, at: at.0 };
        let (chain, rules) = (self.chain(lane), self.rules_of(dir));
        let taker = self.taker(dir);
        Ok(match to {
            None => taker.take(&rules, &chain, &fence, &meta)?,
            Some(to) => {
                restore::present(taker, &rules, &chain, &fence, &meta, (to, lane.is_some()))?
            }
        })
    }

    /// What a snapshot says about itself.
    fn message(&self, why: &str) -> String {
        format!("{}: {why}\n\n{}", self.run_id, Recorded { epoch: self.epoch, seq: self.seq })
    }

    fn taker(&mut self, dir: &str) -> &mut Taker {
        let new = Taker::new(self.workspace(dir)).like(self.takers.values().next());
        self.takers.entry(dir.to_owned()).or_insert(new)
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

/// A snapshot of a workspace as recorded, with the commit of its branch in a lane's worktree.
pub(super) fn with_head(lane: Option<&LanePath>, dir: &str, snapshot: &Snapshot) -> SnapshotRef {
    let own = lane.and_then(|_| Project::discover_cached(Path::new(dir)).ok());
    SnapshotRef { head: own.and_then(|project| project.branch_head()), ..recorded(snapshot) }
}
