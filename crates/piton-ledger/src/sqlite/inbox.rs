//! Statements about requests, which come from processes that do not hold the lease.

use rusqlite::{Connection, OptionalExtension, params};

use crate::{Error, NewRequest, Request, Result, RunKey};

/// Finds the request with a key.
pub(super) fn find(conn: &Connection, run: RunKey, key: &str) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM requests WHERE run = ?1 AND key = ?2")?
        .query_row(params![run.0, key], |row| row.get(0))
        .optional()
}

/// Adds a request; looks for the key again, because another process may have been faster.
pub(super) fn put(conn: &Connection, run: RunKey, new: &NewRequest<'_>) -> Result<i64> {
    if let Some(id) = find(conn, run, new.key)? {
        return Ok(id);
    }
    if !conn.prepare_cached("SELECT 1 FROM runs WHERE id = ?1")?.exists([run.0])? {
        return Err(Error::NoRun);
    }
    conn.prepare_cached(
        "INSERT INTO requests (run, key, at, sender, tag, version, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![run.0, new.key, new.at, new.from, new.tag, new.version, new.body])?;
    Ok(conn.last_insert_rowid())
}

pub(super) fn open(conn: &Connection, run: RunKey) -> rusqlite::Result<Vec<Request>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, key, at, sender, tag, version, body, answer FROM requests
         WHERE run = ?1 AND answer IS NULL ORDER BY id",
    )?;
    let rows = statement.query_map([run.0], |row| {
        Ok(Request {
            id: row.get(0)?,
            key: row.get(1)?,
            at: row.get(2)?,
            from: row.get(3)?,
            tag: row.get(4)?,
            version: row.get(5)?,
            body: row.get(6)?,
            answered: row.get(7)?,
        })
    })?;
    rows.collect()
}

/// Reads an answer; without such a request the query finds no row, which is an error.
pub(super) fn answer(conn: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached("SELECT answer FROM requests WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
}
