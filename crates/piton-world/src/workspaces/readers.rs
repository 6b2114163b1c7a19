//! Snapshots for commands that do not drive the run: to compare with, or to preview a rollback.

use std::fs::File;
use std::path::Path;

use piton_core::lane::SnapshotRef;
use piton_core::{LanePath, Timestamp};
use piton_workspace::refs::{self, Fence};
use piton_workspace::restore;
use piton_workspace::snapshot::{Meta, Taker};

use super::GitWorkspaces;
use super::error::Result;
use super::snapshots::with_head;

/// Locked by a command that snapshots without driving, in the folder of stat caches.
const LOCK: &str = "readers.lock";

impl GitWorkspaces {
    /// Snapshots a workspace for a command that does not drive, in a chain of its own; `to` is the
    /// snapshot that it would be restored to.
    pub fn snapshot_for_reader(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: Option<&str>,
        at: Timestamp,
    ) -> Result<SnapshotRef> {
        std::fs::create_dir_all(&self.cache)?;
        let prefix = refs::run_prefix(&self.run_id);
        let chain = self.chain(lane).replacen(&prefix, &format!("{prefix}readers/"), 1);
        let message = format!("{}: read", self.run_id);
        let meta = Meta { message: &message, at: at.0 };
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        // All readers append to one chain, one after the other.
        let _turn = lock(&self.cache.join(LOCK))?;
        // The git of one that was killed lives on for a moment, and holds no lock of ours.
        refs::settle(&self.root, &chain)?;
        loop {
            let fence = Fence::current(&self.root, &self.run_id)?;
            let mut taker = Taker::new(workspace.clone());
            let taken = match to {
                None => taker.take(&rules, &chain, &fence, &meta),
                Some(to) => {
                    let way = (to, lane.is_some());
                    restore::present(&mut taker, &rules, &chain, &fence, &meta, way)
                }
            };
            match taken {
                Ok(taken) => return Ok(with_head(lane, dir, &taken)),
                // A driver attached in the meantime; each does so once.
                Err(_) if !fence.holds(&self.root) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits for a lock file; it is released when the result is dropped.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    Ok(file)
}
