//! The tables, and how an older ledger becomes a newer one.
//!
//! The version lives in the file header (`user_version`) and changes in the same transaction as
//! the tables, so an interrupted creation or migration leaves either the old or the new format.
//! Migrations only ever go forward; a newer format is refused, not interpreted.

use rusqlite::Connection;

use super::leases;
use crate::{Error, Liveness, Owner, Result, RunKey};

/// Marks the file as ours in SQLite's header ("PITN").
pub(crate) const APPLICATION_ID: i32 = 0x5049_544e;

/// One step from a format to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// The version after this step.
    pub(crate) version: u32,
    /// What it does.
    pub(crate) sql: &'static str,
}

/// All steps, in order. Released entries are frozen: only append. Format 1 was never released.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration { version: FIRST, sql: VERSION_2 }];

/// The oldest format that there is.
const FIRST: u32 = 2;

/// The format this program writes.
pub(crate) const KNOWN: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// `runs` is rewritten by every append, so its rows are narrow and it has no further index; what
/// rarely changes about a run is in `run_info`, who holds it in `owners` (present means held, as
/// does `expires_at`). Keys that others may remember are AUTOINCREMENT: never used twice.
///
/// Events are under one number, made by [`event_id`] from run and sequence. SQLite appends to such a
/// table by writing only to its last page. With a key of two columns it redistributed several pages
/// each time, which was a third of all that a run wrote.
const VERSION_2: &str = "
CREATE TABLE runs (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    status       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    expires_at   INTEGER
) STRICT;
CREATE TABLE run_info (
    run    INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    plan   TEXT NOT NULL,
    title  TEXT NOT NULL,
    root   TEXT NOT NULL
) STRICT;
CREATE TABLE owners (
    run           INTEGER PRIMARY KEY,
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    process_start INTEGER NOT NULL,
    boot_id       TEXT NOT NULL,
    pid_namespace INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    tag     TEXT NOT NULL,
    version INTEGER NOT NULL,
    body    BLOB NOT NULL,
    run     INTEGER NOT NULL GENERATED ALWAYS AS (id >> 40) VIRTUAL,
    seq     INTEGER NOT NULL GENERATED ALWAYS AS (id & 1099511627775) VIRTUAL
) STRICT;
CREATE TABLE snapshots (
    run           INTEGER PRIMARY KEY,
    seq           INTEGER NOT NULL,
    apply_version INTEGER NOT NULL,
    body          BLOB NOT NULL
) STRICT;
CREATE TABLE requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    run     INTEGER NOT NULL,
    key     TEXT NOT NULL,
    at      INTEGER NOT NULL,
    sender  TEXT NOT NULL,
    tag     TEXT NOT NULL,
    version INTEGER NOT NULL,
    body    BLOB NOT NULL,
    answer  TEXT,
    UNIQUE (run, key)
) STRICT;
CREATE INDEX requests_open ON requests (run, id) WHERE answer IS NULL;
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
";

/// Bits of an event's number that are its sequence: a million events a second would fill them in
/// twelve days. The rest has room for eight million runs.
const SEQ_BITS: u32 = 40;

/// The number of an event. The numbers of a run's events follow each other; those of the next run
/// begin after all of them.
pub(super) fn event_id(run: RunKey, seq: u64) -> i64 {
    (run.0 << SEQ_BITS) | super::int(seq)
}

/// The bounds, both excluded, of the numbers of a run's events after one of them.
pub(super) fn events_after(run: RunKey, seq: u64) -> [i64; 2] {
    [event_id(run, seq), event_id(RunKey(run.0 + 1), 0)]
}

/// What kind of database a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Nothing in it yet: new, or its creation was interrupted.
    Empty,
    /// A ledger of this version.
    Version(u32),
    /// The database of another program.
    Foreign,
}

/// Reads what a database file is, without writing.
pub(crate) fn format(conn: &Connection) -> rusqlite::Result<Format> {
    let at_a_glance = read_format(conn)?;
    if matches!(at_a_glance, Format::Version(_)) || !conn.is_autocommit() {
        return Ok(at_a_glance);
    }
    // Another process may have created the ledger between our queries: ask as of one moment.
    let transaction = conn.unchecked_transaction()?;
    let format = read_format(&transaction)?;
    transaction.commit()?;
    Ok(format)
}

fn read_format(conn: &Connection) -> rusqlite::Result<Format> {
    let version: u32 = conn.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    let application: i32 = conn.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    if application == APPLICATION_ID && version >= FIRST {
        return Ok(Format::Version(version));
    }
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    let empty = application == 0 && version == 0 && tables == 0;
    Ok(if empty { Format::Empty } else { Format::Foreign })
}

/// Brings the tables to the newest of `migrations`, in one transaction.
///
/// The caller holds the write lock and has ruled out [`Format::Foreign`].
pub(crate) fn migrate(
    conn: &Connection,
    migrations: &[Migration],
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let done = steps(conn, migrations, alive)
        .and_then(|()| conn.execute_batch("COMMIT").map_err(Error::from));
    if done.is_err() && !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK")?;
    }
    done
}

/// Runs the missing steps inside the transaction of [`migrate`].
fn steps(
    conn: &Connection,
    migrations: &[Migration],
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<()> {
    let known = migrations.last().map_or(0, |last| last.version);
    let found = match format(conn)? {
        Format::Version(version) => version,
        Format::Empty | Format::Foreign => 0,
    };
    if found > known {
        return Err(Error::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    if found > 0 {
        refuse_under_live_lease(conn, alive, found, known)?;
    }
    for migration in migrations.iter().filter(|migration| migration.version > found) {
        conn.execute_batch(migration.sql)?;
    }
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", known)?;
    Ok(())
}

/// Refuses to change tables that a living driver of the older program still uses.
///
/// An owner that cannot be seen counts as living, even if its lease lapsed: waiting for a person is
/// better than breaking a driver.
fn refuse_under_live_lease(
    conn: &Connection,
    alive: &dyn Fn(&Owner) -> Liveness,
    found: u32,
    known: u32,
) -> Result<()> {
    for owner in leases::owners(conn)? {
        if alive(&owner) != Liveness::Dead {
            return Err(Error::InUse { owner, found, known });
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    const NEXT: &[Migration] =
        &[MIGRATIONS[0], Migration { version: 3, sql: "CREATE TABLE next (id INTEGER)" }];

    fn first() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, MIGRATIONS, &|_| Liveness::Alive).unwrap();
        conn
    }

    #[test]
    fn versions_grow_by_one() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(migration.version as usize, index + FIRST as usize);
        }
    }

    #[test]
    fn a_migration_waits_for_the_older_driver() {
        let conn = first();
        let sql = "INSERT INTO owners VALUES (1, 'host', 2, 3, 'boot', 4)";
        conn.execute_batch(sql).unwrap();
        for liveness in [Liveness::Alive, Liveness::Unknown] {
            let refused = migrate(&conn, NEXT, &|_| liveness).unwrap_err();
            assert!(matches!(refused, Error::InUse { found: 2, known: 3, .. }), "{refused}");
            assert_eq!(format(&conn).unwrap(), Format::Version(2));
            assert!(conn.is_autocommit());
        }
        migrate(&conn, NEXT, &|_| Liveness::Dead).unwrap();
        assert_eq!(format(&conn).unwrap(), Format::Version(3));
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let conn = first();
        let broken = [
            NEXT[0],
            Migration { version: 3, sql: "CREATE TABLE half (id INTEGER); CREATE TABLE half" },
        ];
        migrate(&conn, &broken, &|_| Liveness::Dead).unwrap_err();
        assert_eq!(format(&conn).unwrap(), Format::Version(2));
        migrate(&conn, NEXT, &|_| Liveness::Dead).unwrap();
    }

    #[test]
    fn an_older_program_refuses_a_newer_ledger() {
        let conn = first();
        migrate(&conn, NEXT, &|_| Liveness::Dead).unwrap();
        let refused = migrate(&conn, MIGRATIONS, &|_| Liveness::Dead).unwrap_err();
        assert!(matches!(refused, Error::Newer { found: 3, known: 2 }), "{refused}");
    }
}
