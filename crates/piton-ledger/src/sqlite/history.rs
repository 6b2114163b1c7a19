//! Statements about what happened: events, cached states and the blobs they refer to.
//!
//! [`append`] is the hot path: one fenced update of a narrow row, one insert per event, one sync.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::{event_id, events_after};
use super::{int, leases, natural};
use crate::{Append, Error, LEASE_MS, Result, RunKey, Snapshot, StoredEvent};

pub(super) fn append(conn: &Connection, append: &Append<'_>) -> Result<u64> {
    let seq = append.expected_seq + append.events.len() as u64;
    let fenced = conn
        .prepare_cached(
            "UPDATE runs SET seq = ?4, updated_at = ?5, heartbeat_at = ?5, expires_at = ?6,
                             status = coalesce(?7, status)
             WHERE id = ?1 AND epoch = ?2 AND seq = ?3 AND expires_at IS NOT NULL",
        )?
        .execute(params![
            append.run.0,
            int(append.epoch),
            int(append.expected_seq),
            int(seq),
            append.at,
            append.at.saturating_add(LEASE_MS),
            append.status
        ])?;
    if fenced != 1 {
        return Err(leases::why_not(conn, append.run, append.epoch, Some(append.expected_seq)));
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO events (id, at, tag, version, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (seq, event) in (append.expected_seq + 1..).zip(append.events) {
        insert.execute(params![
            event_id(append.run, seq),
            event.at,
            event.tag,
            event.version,
            event.body
        ])?;
    }
    if let Some((apply_version, body)) = append.snapshot {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO snapshots (run, seq, apply_version, body)
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![append.run.0, int(seq), apply_version, body])?;
    }
    for &(id, answer) in append.answered {
        answer_request(conn, append.run, id, answer)?;
    }
    if append.release {
        leases::release(conn, append.run, append.epoch, append.at)?;
    }
    Ok(seq)
}

/// Answers a request. The first answer stays; a request of another run is an error.
fn answer_request(conn: &Connection, run: RunKey, id: i64, answer: &str) -> Result<()> {
    let answered = conn
        .prepare_cached(
            "UPDATE requests SET answer = coalesce(answer, ?3) WHERE id = ?1 AND run = ?2",
        )?
        .execute(params![id, run.0, answer])?;
    if answered == 1 { Ok(()) } else { Err(Error::UnknownRequest { id }) }
}

pub(super) fn events(
    conn: &Connection,
    run: RunKey,
    after_seq: u64,
    limit: usize,
) -> rusqlite::Result<Vec<StoredEvent>> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, at, tag, version, body FROM events WHERE id > ?1 AND id < ?2
         ORDER BY id LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let [after, end] = events_after(run, after_seq);
    statement.query_map(params![after, end, limit], stored_event)?.collect()
}

fn stored_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    Ok(StoredEvent {
        seq: natural(row.get(0)?),
        at: row.get(1)?,
        tag: row.get(2)?,
        version: row.get(3)?,
        body: row.get(4)?,
    })
}

pub(super) fn snapshot(conn: &Connection, run: RunKey) -> rusqlite::Result<Option<Snapshot>> {
    conn.prepare_cached("SELECT seq, apply_version, body FROM snapshots WHERE run = ?1")?
        .query_row([run.0], |row| {
            Ok(Snapshot {
                seq: natural(row.get(0)?),
                apply_version: row.get(1)?,
                body: row.get(2)?,
            })
        })
        .optional()
}

/// The last sequence number of a run, its cached state, and the events after that.
pub(super) fn load(
    conn: &Connection,
    run: RunKey,
) -> rusqlite::Result<(Option<u64>, Option<Snapshot>, Vec<StoredEvent>)> {
    let head = conn
        .prepare_cached("SELECT seq FROM runs WHERE id = ?1")?
        .query_row([run.0], |row| row.get(0).map(natural))
        .optional()?;
    let snapshot = snapshot(conn, run)?;
    let after_seq = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
    Ok((head, snapshot, events(conn, run, after_seq, usize::MAX)?))
}

pub(super) fn has_blob(conn: &Connection, hash: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?.exists([hash])
}

pub(super) fn put_blob(conn: &Connection, hash: &str, body: &[u8]) -> Result<()> {
    conn.prepare_cached("INSERT OR IGNORE INTO blobs (hash, body) VALUES (?1, ?2)")?
        .execute(params![hash, body])?;
    Ok(())
}

pub(super) fn blob(conn: &Connection, hash: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT body FROM blobs WHERE hash = ?1")?
        .query_row([hash], |row| row.get(0))
        .optional()
}

/// Deletes all blobs but those named.
pub(super) fn sweep_blobs(conn: &Connection, keep: &[&str]) -> Result<u64> {
    let hashes: Vec<String> = conn
        .prepare("SELECT hash FROM blobs")?
        .query_map((), |row| row.get(0))?
        .collect::<Result<_, rusqlite::Error>>()?;
    let keep: HashSet<&str> = keep.iter().copied().collect();
    let mut count = 0;
    for hash in hashes.iter().filter(|hash| !keep.contains(hash.as_str())) {
        count += conn.prepare_cached("DELETE FROM blobs WHERE hash = ?1")?.execute([hash])?;
    }
    Ok(count as u64)
}
