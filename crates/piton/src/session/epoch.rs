//! The epoch of a driver is above every trace that an earlier one left outside of the ledger.
//!
//! A ledger that was restored from a copy, or begun anew, counts from a lower number than the
//! repository and the folder of the run know. Whoever holds the lease may go above them: nobody else
//! does, and a driver of the other ledger is fenced off by it.

use piton_core::event::Event;
use piton_engine::Store;
use piton_ledger::{Lease, RunRow};
use piton_workspace::refs::{self, Fence};

use super::{HANDS_FILE, Session};
use crate::context::Context;
use crate::error::Result;
use crate::world::hands;

/// The lease with an epoch that nothing stands in the way of.
pub fn lift(context: &Context, store: &mut Store, row: &RunRow, lease: Lease) -> Result<Lease> {
    let highest = highest(context, &row.run_id);
    if highest < lease.epoch {
        return Ok(lease);
    }
    let epoch = highest + 1;
    store.ledger().raise(row.run, lease.epoch, epoch)?;
    Ok(Lease { epoch, ..lease })
}

/// The same for a session whose run is new: a run of its name may have been driven from another
/// ledger. Others were lifted when their lease was taken.
pub fn of_new(
    context: &Context,
    store: &mut Store,
    session: &mut Session,
    epoch: u64,
) -> Result<u64> {
    let (row, seq) = (&session.loaded.row, session.loaded.seq);
    let Some(lease) = row.owner.clone().filter(|lease| seq == 0 && lease.epoch == epoch) else {
        return Ok(epoch);
    };
    let lifted = lift(context, store, row, lease)?.epoch;
    for event in &mut session.opening {
        if let Event::DriverAttached(attached) = event {
            attached.epoch = lifted;
        }
    }
    Ok(lifted)
}

/// The highest epoch that the repository, its lock or the folder of a run know.
fn highest(context: &Context, run_id: &str) -> u64 {
    let dir = context.run_dir(run_id);
    let project = &context.project;
    let prefix = refs::run_prefix(run_id);
    // What can't be read is told by whoever needs it.
    let fence = project.common_dir.as_deref().filter(|common| refs::may_exist(common, &prefix));
    let fence = fence.and_then(|_| Fence::epoch(&project.root, run_id).ok().flatten());
    let keeper = piton_process::highest_epoch(&dir);
    let hands = hands::standing(&dir.join(HANDS_FILE));
    fence.into_iter().chain(keeper).chain(hands).max().unwrap_or(0)
}
