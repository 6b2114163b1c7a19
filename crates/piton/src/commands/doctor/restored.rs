//! `piton doctor --restored`: goes on with a ledger that is older than it was.
//!
//! Only a person knows that this is what they want: a backup was restored, or what was lost is
//! beyond saving. Each run that others know more of gets an epoch above theirs, so that what they
//! know is of the past from then on.

use piton_ledger::{Acquire, Error, Open, owner_liveness};
use piton_view::answers::AcceptedLedger;

use crate::commands::request;
use crate::context::{Context, now};
use crate::drive::epoch;
use crate::error::Result;
use crate::ui;

/// Accepts the ledger as it is.
pub fn accept(context: &Context) -> Result<()> {
    request::refuse_any_step(context)?;
    let dir = &context.project.state_dir;
    let is_behind = matches!(piton_ledger::open(dir, Open::ReadOnly), Err(Error::Behind { .. }));
    if is_behind {
        piton_ledger::accept(dir)?;
    }
    let mut store = request::open(context)?;
    let mut runs = Vec::new();
    for (row, _) in epoch::behind(context, &mut store)? {
        let owner = Context::owner();
        let lease = store.acquire(&row, &owner, now(), Acquire::IfFree, &owner_liveness)?;
        let lease = epoch::lift(context, &mut store, &row, lease)?;
        store.ledger().release(row.run, lease.epoch, now().0)?;
        runs.push(row.run_id);
    }
    let accepted = is_behind || !runs.is_empty();
    ui::report(context.json, &AcceptedLedger { ledger: dir, accepted, runs });
    Ok(())
}
