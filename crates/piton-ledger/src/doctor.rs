//! Finds out what is wrong with a ledger, and makes a safe copy of it.
//!
//! Nothing here repairs. A check reads and a backup copies; people decide what to do, because the
//! only copy of a history is not a place for guesses.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::sqlite::sync_directory;
use crate::{DATABASE_FILE, Error, Open, Result, Sqlite};

/// How many problems the integrity check of SQLite lists: the first few name the damage, the rest
/// only repeat it.
const PROBLEMS_MAX: u32 = 20;

/// Something a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// What kind of thing it is, which says what to do.
    pub kind: Kind,
}

/// What is wrong with a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is damaged.
    Damaged,
    /// A newer Piton wrote it.
    Newer,
    /// It is older than it was.
    Behind,
}

impl Finding {
    fn broken(what: String) -> Self {
        Self { what, kind: Kind::Damaged }
    }
}

/// Checks the ledger in `dir` without writing; empty means healthy.
///
/// A damaged or newer ledger is a finding; only a missing one, or one that cannot be read at all,
/// is an error.
pub fn check(dir: &Path) -> Result<Vec<Finding>> {
    let found = Sqlite::open(dir, Open::ReadOnly)
        // All queries see the same moment, or a running driver would look like a gap.
        .and_then(|ledger| ledger.read_at_once(findings));
    match found {
        Err(error @ Error::Newer { .. }) => {
            Ok(vec![Finding { kind: Kind::Newer, ..Finding::broken(error.to_string()) }])
        }
        Err(error @ Error::Behind { .. }) => {
            Ok(vec![Finding { kind: Kind::Behind, ..Finding::broken(error.to_string()) }])
        }
        Err(error @ Error::Corrupt { .. }) => Ok(vec![Finding::broken(error.to_string())]),
        other => other,
    }
}

/// What is wrong with a ledger, as far as its database tells.
fn findings(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut findings = integrity(conn)?;
    if findings.is_empty() {
        findings = sequences(conn)?;
        findings.extend(orphans(conn)?);
    }
    Ok(findings)
}

/// SQLite's own check of pages, indexes and constraints.
fn integrity(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({PROBLEMS_MAX})"))?;
    let problems: Vec<String> =
        statement.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let damaged = problems.into_iter().filter(|problem| problem != "ok");
    Ok(damaged
        .map(|problem| Finding::broken(format!("the database is damaged: {problem}")))
        .collect())
}

/// Every run must hold the events 1 to `seq`, and no cached state beyond them.
fn sequences(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut statement = conn.prepare(
        "SELECT coalesce(i.run_id, 'number ' || r.id), r.seq, coalesce(e.count, 0),
                coalesce(e.last, 0), coalesce(s.seq, 0)
         FROM runs r LEFT JOIN run_info i ON i.run = r.id LEFT JOIN snapshots s ON s.run = r.id
         LEFT JOIN (SELECT run, count(*) AS count, max(seq) AS last FROM events GROUP BY run) e
                ON e.run = r.id
         ORDER BY r.id",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let run: String = row.get(0)?;
        let (seq, count, last, cached): (i64, i64, i64, i64) =
            (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        if last > seq {
            findings.push(Finding::broken(format!(
                "run {run} should end at event {seq}, but has events up to {last}"
            )));
        } else if count != seq || last != seq {
            findings.push(Finding::broken(format!(
                "run {run} should have events 1 to {seq}, but has {count} (the last is {last})"
            )));
        }
        if cached > seq {
            findings.push(Finding::broken(format!(
                "run {run} has a cached state at event {cached}, beyond its last event {seq}"
            )));
        }
    }
    Ok(findings)
}

/// Events without a run, and runs without a name.
fn orphans(conn: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (sql, what) in [
        ("events WHERE run NOT IN (SELECT id FROM runs)", "events do not belong to a run"),
        ("runs WHERE id NOT IN (SELECT run FROM run_info)", "runs have no name"),
    ] {
        let count: i64 =
            conn.query_row(&format!("SELECT count(*) FROM {sql}"), (), |row| row.get(0))?;
        if count > 0 {
            findings.push(Finding::broken(format!("{count} {what}")));
        }
    }
    Ok(findings)
}

/// Copies a live ledger as of one moment to the new file `to`, synced.
///
/// The copy is itself a ledger: put into a directory under the name of [`DATABASE_FILE`], it
/// opens. An existing file is never overwritten, and a damaged ledger is not copied as if it were
/// sound.
pub fn backup(dir: &Path, to: &Path) -> Result<()> {
    let ledger = Sqlite::open(dir, Open::ReadOnly)?;
    // Claims the name, so that another backup to the same file is refused.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(to) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Error::Exists { path: to.to_owned() });
        }
        other => other.map_err(Error::file("create", to))?,
    };
    let part = part_name(to);
    let copied = copy(ledger.connection(), &part).map_err(|error| error.in_file(ledger.path()));
    let placed = copied.and_then(|()| fs::rename(&part, to).map_err(Error::file("create", to)));
    if placed.is_err() {
        // The error at hand matters more than leftovers that could not be removed.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_file(to);
    }
    placed?;
    sync_directory(match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    })
}

/// The file that a copy is written to until it is complete.
fn part_name(to: &Path) -> PathBuf {
    let mut name = to.file_name().map_or_else(|| OsString::from(DATABASE_FILE), OsString::from);
    name.push(".part");
    to.with_file_name(name)
}

/// Copies all pages in one step, hence as of one moment, and syncs the file.
fn copy(from: &Connection, part: &Path) -> Result<()> {
    match fs::remove_file(part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::file("replace", part)(error));
        }
        _ => {}
    }
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(part);
    drop(new.map_err(Error::file("create", part))?);
    let mut target = Connection::open(part)?;
    let step = Backup::new(from, &mut target)?.step(-1)?;
    if step != StepResult::Done {
        return Err(Error::Busy { path: part.to_owned() });
    }
    if let Some(found) = findings(&target)?.into_iter().next() {
        let path = from.path().map_or_else(|| part.to_owned(), PathBuf::from);
        return Err(Error::Corrupt { path, detail: found.what });
    }
    target.close().map_err(|(_, error)| error)?;
    File::open(part).and_then(|file| file.sync_all()).map_err(Error::file("sync", part))
}
