//! Snapshots for whoever does not drive: to compare with, or to show what a rollback would do.

use std::fs::File;
use std::path::Path;

use piton_core::lane::SnapshotRef;
use piton_core::{LanePath, Timestamp};
use piton_workspace::refs::{self, Fence};
use piton_workspace::restore;
use piton_workspace::snapshot::{Meta, Taker};

use super::{GitRooms, noted};

/// Held by whoever snapshots without driving, in the folder of stat caches.
const LOOK_LOCK: &str = "look.lock";

impl GitRooms {
    /// Snapshots a workspace for whoever does not drive, in a chain apart; `to` is what it shall
    /// become.
    pub fn look(
        &mut self,
        lane: Option<&LanePath>,
        dir: &str,
        to: Option<&str>,
        at: Timestamp,
    ) -> Result<SnapshotRef, String> {
        std::fs::create_dir_all(&self.cache).map_err(|e| e.to_string())?;
        let prefix = refs::run_prefix(&self.run_id);
        let chain = self.chain(lane).replacen(&prefix, &format!("{prefix}look/"), 1);
        let message = format!("{}: a look", self.run_id);
        let meta = Meta { message: &message, at: at.0 };
        let (workspace, rules) = (self.workspace(dir), self.rules_of(dir));
        // All who look append to one chain: one after the other.
        let _turn = turn(&self.cache.join(LOOK_LOCK)).map_err(|e| e.to_string())?;
        loop {
            let fence = Fence::current(&self.root, &self.run_id).map_err(|e| e.to_string())?;
            let mut taker = Taker::new(workspace.clone());
            let taken = match to {
                None => taker.take(&rules, &chain, &fence, &meta),
                Some(to) => {
                    let way = (to, lane.is_some());
                    restore::present(&mut taker, &rules, &chain, &fence, &meta, way)
                }
            };
            match taken {
                Ok(taken) => return Ok(noted(lane, dir, &taken)),
                // A driver attached meanwhile; each does so once.
                Err(_) if !fence.holds(&self.root) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Waits until nobody else holds a lock file; it is free again when the result is dropped.
fn turn(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    Ok(file)
}
