//! What the world outside of the ledger knows of a run: the epoch of its last driver, and how far its
//! record was when a snapshot was taken.
//!
//! All of it was in the ledger before. A ledger that knows less is older than it was, and is refused. A
//! new run may have the name of one in another ledger: it begins above what that one left.

use std::collections::BTreeMap;

use piton_engine::Store;
use piton_ledger::{Lease, RunRow};
use piton_workspace::refs::{self, Fence};
use piton_workspace::snapshot::{self, Recorded};

use super::RUN_LOCK_FILE;
use crate::context::Context;
use crate::error::{CommandError, Result};
use piton_world::run_lock;

/// The furthest that the snapshots of runs are, by the name that a run has in refs.
type Snapshots = BTreeMap<String, Recorded>;

/// The lease with an epoch above all that others know.
pub fn lift(context: &Context, store: &mut Store, row: &RunRow, lease: Lease) -> Result<Lease> {
    let snapshots = snapshots(context, &refs::run_prefix(&row.run_id));
    let highest = known(context, &row.run_id, &snapshots).epoch;
    if highest < lease.epoch {
        return Ok(lease);
    }
    let epoch = highest + 1;
    store.ledger().raise(row.run, lease.epoch, epoch)?;
    Ok(Lease { epoch, ..lease })
}

/// Refuses a run that others know more of than the ledger.
pub fn refuse_behind(context: &Context, store: &mut Store, run_id: &str) -> Result<()> {
    let snapshots = snapshots(context, &refs::run_prefix(run_id));
    refuse(context, store, run_id, &snapshots)
}

/// All runs that others know more of, with what is to be said of each.
pub fn behind(context: &Context, store: &mut Store) -> Result<Vec<(RunRow, CommandError)>> {
    let snapshots = snapshots(context, refs::PREFIX);
    let mut behind = Vec::new();
    for row in store.runs()? {
        if let Err(error) = refuse(context, store, &row.run_id, &snapshots) {
            behind.push((row, error));
        }
    }
    Ok(behind)
}

fn refuse(context: &Context, store: &mut Store, run_id: &str, snapshots: &Snapshots) -> Result<()> {
    // Before the ledger, which another driver may add to at any time.
    let known = known(context, run_id, snapshots);
    // What has no events has nothing to lose: a new run may have the name of one in another ledger.
    let Some(row) = store.ledger().run(run_id)?.filter(|row| row.seq > 0) else { return Ok(()) };
    if known <= (Recorded { epoch: row.epoch, seq: row.seq }) {
        return Ok(());
    }
    let what = match known.seq {
        0 => format!("there are traces of its driver {}", known.epoch),
        seq => format!("a snapshot was taken after event {seq} of driver {}", known.epoch),
    };
    Err(CommandError::behind(format!(
        "the ledger is older than it was: run {run_id} is at event {} of its driver {}, but {what}; \
         nothing was changed",
        row.seq, row.epoch
    )))
}

/// What the repository, its lock and the folder of a run know.
fn known(context: &Context, run_id: &str, snapshots: &Snapshots) -> Recorded {
    let dir = context.run_dir(run_id);
    let project = &context.project;
    // What can't be read is told by whoever needs it.
    let fence = has_refs(context, &refs::run_prefix(run_id))
        .then(|| Fence::epoch(&project.root, run_id).ok().flatten());
    let keeper = piton_process::highest_epoch(&dir);
    let run_lock = run_lock::standing(&dir.join(RUN_LOCK_FILE));
    let epochs = fence.flatten().into_iter().chain(keeper).chain(run_lock);
    let snapshot = snapshots.get(&refs::component(run_id)).copied();
    epochs.map(|epoch| Recorded { epoch, seq: 0 }).chain(snapshot).max().unwrap_or_default()
}

fn snapshots(context: &Context, prefix: &str) -> Snapshots {
    let read = || snapshot::recorded(&context.project.root, prefix).unwrap_or_default();
    if has_refs(context, prefix) { read() } else { Snapshots::new() }
}

fn has_refs(context: &Context, prefix: &str) -> bool {
    context.project.common_dir.as_deref().is_some_and(|common| refs::may_exist(common, prefix))
}
