//! The write-ahead log: keeps it within bounds, and checkpoints it into the database.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::lock::PATIENCE;
use crate::files::wal;

/// The size from which the WAL is emptied by force: four times what the automatic checkpoint
/// (1,000 pages) leaves, because a cold open reads all of it at about 3 MB per millisecond.
pub(super) const WAL_BYTES_MAX: u64 = 16 << 20;

/// How long a forced checkpoint waits for readers, while other writers wait for it.
const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(1);

/// Empties the WAL if it is over its limit. Best effort: the commit before it is safe either way,
/// and if a reader prevents it, it is tried again when the WAL has doubled.
pub(super) fn bound(conn: &Connection, path: &Path, bytes_max: &mut u64) {
    let bytes = fs::metadata(wal(path)).map_or(0, |metadata| metadata.len());
    if bytes < *bytes_max {
        return;
    }
    let emptied = empty(conn, CHECKPOINT_PATIENCE);
    *bytes_max = if emptied { WAL_BYTES_MAX } else { bytes.saturating_mul(2) };
}

/// Checkpoints the WAL into the database and empties it; returns whether it is empty now. Waits for
/// readers up to a limit; what they still need stays in the WAL.
pub(super) fn empty(conn: &Connection, patience: Duration) -> bool {
    let emptied = conn.busy_timeout(patience).and_then(|()| {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))
    });
    // Setting a timeout cannot fail on an open connection.
    let _ = conn.busy_timeout(PATIENCE);
    matches!(emptied, Ok(0))
}
