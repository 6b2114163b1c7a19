//! Checks a ledger for damage before anything is written to it.
//!
//! Writing to a damaged ledger may lose the new data, and data that could still be saved. Checking
//! everything would slow down every start in a large project, so the check is limited: all of a
//! small database, all of a medium one that was not closed, and the part of a run that it continues
//! from. `piton doctor` checks everything.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::schema::events_after;
use super::{natural, patiently};
use crate::files::wal;
use crate::{Error, Result, RunKey, StoredEvent};

/// The largest database that is checked whenever it is opened for writing. SQLite's quick check
/// takes about two milliseconds for it; a ledger of a few dozen runs is a tenth of that size.
const BYTES_LOOKED_AT: u64 = 1 << 20;

/// The same if the last writer did not close it, as after a power cut: the forty milliseconds are
/// worth it then.
const BYTES_LOOKED_AT_AFTER_FALL: u64 = 16 << 20;

/// Events whose numbers are counted before a run gets a new driver: about a millisecond.
const EVENTS_COUNTED: u64 = 4096;

/// Refuses a file that ends in the middle of a page: SQLite would read zeros for the rest of it.
pub(super) fn refuse_cut(conn: &Connection, path: &Path) -> Result<()> {
    let page: i64 = patiently(|| conn.query_row("PRAGMA page_size", (), |row| row.get(0)))?;
    let bytes = bytes(path);
    match bytes.checked_rem(natural(page)) {
        None | Some(0) => Ok(()),
        Some(_) => Err(damaged(path, format!("it was cut off at {bytes} bytes, within a page"))),
    }
}

fn bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Refuses a database that is found damaged.
pub(super) fn look(conn: &Connection, path: &Path) -> Result<()> {
    refuse_cut(conn, path)?;
    let fell = bytes(&wal(path)) > 0;
    let limit = if fell { BYTES_LOOKED_AT_AFTER_FALL } else { BYTES_LOOKED_AT };
    if bytes(path) > limit {
        return Ok(());
    }
    let said: rusqlite::Result<String> =
        patiently(|| conn.query_row("PRAGMA quick_check(1)", (), |row| row.get(0)));
    match said {
        Ok(word) if word == "ok" => Ok(()),
        Ok(detail) => Err(damaged(path, detail)),
        Err(error) => Err(Error::from(error).in_file(path)),
    }
}

/// The error for a damaged database; SQLite's own message may have several lines.
pub(super) fn damaged(path: &Path, detail: impl Into<String>) -> Error {
    let detail = detail.into().lines().collect::<Vec<_>>().join(" ");
    Error::Corrupt { path: path.to_owned(), detail }
}

/// What is wrong with the loaded part of a run: its events must be consecutive up to its head.
pub(super) fn gap(head: u64, cached: u64, events: &[StoredEvent]) -> Option<String> {
    let mut last = cached;
    for event in events {
        if event.seq != last + 1 {
            return Some(format!("event {} of a run is missing", last + 1));
        }
        last = event.seq;
    }
    (last != head).then(|| format!("a run should end at event {head}, but ends at {last}"))
}

/// Refuses a run that lacks some of its last events; returns the number of its last one.
pub(super) fn refuse_gap(conn: &Connection, run: RunKey, path: &Path) -> Result<u64> {
    let head: Option<i64> = conn
        .prepare_cached("SELECT seq FROM runs WHERE id = ?1")?
        .query_row([run.0], |row| row.get(0))
        .optional()?;
    let Some(head) = head.map(natural) else {
        return Err(Error::NoRun);
    };
    let from = head.saturating_sub(EVENTS_COUNTED);
    let (count, last): (i64, i64) = conn
        .prepare_cached(
            "SELECT count(*), coalesce(max(seq), 0) FROM events WHERE id > ?1 AND id < ?2",
        )?
        .query_row(events_after(run, from), |row| Ok((row.get(0)?, row.get(1)?)))?;
    if natural(count) == head - from && natural(last) == head {
        return Ok(head);
    }
    let detail =
        format!("a run should have events {} to {head}, but only {count} of them exist", from + 1);
    Err(damaged(path, detail))
}
