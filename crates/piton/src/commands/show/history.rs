//! Walks the events of a run, page by page, for the commands that tell its history.

use piton_core::Timestamp;
use piton_core::event::Event;
use piton_engine::Store;
use piton_ledger::RunRow;

use crate::error::Result;

/// Calls `each` with every event of a run, in order; returns the last sequence number.
pub fn each(
    store: &mut Store,
    row: &RunRow,
    each: impl FnMut(u64, Timestamp, &Event),
) -> Result<u64> {
    after(store, row, 0, each)
}

/// Calls `each` with every event after a sequence number; returns the last one seen.
pub fn after(
    store: &mut Store,
    row: &RunRow,
    mut seq: u64,
    mut each: impl FnMut(u64, Timestamp, &Event),
) -> Result<u64> {
    loop {
        let page = store.events(row, seq)?;
        let Some((last, _, _)) = page.last() else {
            return Ok(seq);
        };
        seq = *last;
        for (seq, at, event) in &page {
            each(*seq, *at, event);
        }
    }
}
