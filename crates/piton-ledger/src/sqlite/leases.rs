//! Statements about runs and who may extend them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::events_after;
use super::{int, natural};
use crate::{
    Acquire, Error, LEASE_MS, Lease, Liveness, Millis, NewRun, Owner, Result, RunKey, RunRow,
};

/// The status of a run that nothing has been appended to.
const STATUS_NEW: &str = "pending";

/// All columns of a listed run; the owner's are null while nobody holds the lease.
const SELECT_RUNS: &str = "
SELECT r.id, i.run_id, i.plan, i.title, i.root, r.status, r.epoch, r.seq, r.created_at,
       r.updated_at, r.heartbeat_at, r.expires_at,
       o.host, o.pid, o.process_start, o.boot_id, o.pid_namespace
FROM runs r JOIN run_info i ON i.run = r.id LEFT JOIN owners o ON o.run = r.id";

pub(super) fn create(conn: &Connection, new: &NewRun<'_>, owner: &Owner) -> Result<RunRow> {
    if find(conn, new.run_id)?.is_some() {
        return Err(Error::RunExists { run_id: new.run_id.to_owned() });
    }
    conn.prepare_cached(
        "INSERT INTO runs (epoch, seq, status, created_at, updated_at, heartbeat_at, expires_at)
         VALUES (1, 0, ?1, ?2, ?2, ?2, ?3)",
    )?
    .execute(params![STATUS_NEW, new.at, new.at.saturating_add(LEASE_MS)])?;
    let run = RunKey(conn.last_insert_rowid());
    conn.prepare_cached(
        "INSERT INTO run_info (run, run_id, plan, title, root) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![run.0, new.run_id, new.plan, new.title, new.root])?;
    put_owner(conn, run, owner)?;
    find(conn, new.run_id)?.ok_or(Error::NoRun)
}

pub(super) fn list(conn: &Connection) -> rusqlite::Result<Vec<RunRow>> {
    let mut statement = conn.prepare_cached(&format!("{SELECT_RUNS} ORDER BY r.id DESC"))?;
    statement.query_map((), run_row)?.collect()
}

pub(super) fn find(conn: &Connection, run_id: &str) -> rusqlite::Result<Option<RunRow>> {
    let mut statement = conn.prepare_cached(&format!("{SELECT_RUNS} WHERE i.run_id = ?1"))?;
    statement.query_row([run_id], run_row).optional()
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let epoch = natural(row.get(6)?);
    let owner = match (row.get::<_, Option<Millis>>(11)?, row.get::<_, Option<String>>(12)?) {
        (Some(expires_at), Some(_)) => {
            let (owner, heartbeat_at) = (owner_at(row, 12)?, row.get(10)?);
            Some(Lease { owner, epoch, heartbeat_at, former_heartbeat: None, expires_at })
        }
        _ => None,
    };
    Ok(RunRow {
        run: RunKey(row.get(0)?),
        run_id: row.get(1)?,
        plan: row.get(2)?,
        title: row.get(3)?,
        root: row.get(4)?,
        status: row.get(5)?,
        epoch,
        seq: natural(row.get(7)?),
        created_at: row.get(8)?,
        updated_at: row.get(9)?,
        owner,
    })
}

/// Reads an owner from five columns starting at `first`.
fn owner_at(row: &Row<'_>, first: usize) -> rusqlite::Result<Owner> {
    Ok(Owner {
        host: row.get(first)?,
        pid: row.get(first + 1)?,
        process_start: natural(row.get(first + 2)?),
        boot_id: row.get(first + 3)?,
        pid_namespace: natural(row.get(first + 4)?),
    })
}

/// Lists everybody who holds a lease.
pub(crate) fn owners(conn: &Connection) -> rusqlite::Result<Vec<Owner>> {
    let mut statement = conn.prepare(
        "SELECT host, pid, process_start, boot_id, pid_namespace FROM owners ORDER BY run",
    )?;
    statement.query_map((), |row| owner_at(row, 0))?.collect()
}

fn put_owner(conn: &Connection, run: RunKey, owner: &Owner) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO owners (run, host, pid, process_start, boot_id, pid_namespace)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        run.0,
        owner.host,
        owner.pid,
        int(owner.process_start),
        owner.boot_id,
        int(owner.pid_namespace)
    ])?;
    Ok(())
}

/// Fails if somebody holds the lease who lives, or might.
fn refuse_if_held(
    conn: &Connection,
    run: RunKey,
    at: Millis,
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<()> {
    let held = conn
        .prepare_cached(
            "SELECT o.host, o.pid, o.process_start, o.boot_id, o.pid_namespace, r.expires_at
             FROM owners o JOIN runs r ON r.id = o.run
             WHERE o.run = ?1 AND r.expires_at IS NOT NULL",
        )?
        .query_row([run.0], |row| Ok((owner_at(row, 0)?, row.get::<_, Millis>(5)?)))
        .optional()?;
    let Some((owner, expires_at)) = held else {
        return Ok(());
    };
    match alive(&owner) {
        Liveness::Dead => Ok(()),
        Liveness::Unknown if expires_at <= at => Ok(()),
        Liveness::Unknown | Liveness::Alive => Err(Error::Held { owner }),
    }
}

/// Whether all runs are as they were seen, have begun, and are held by nobody.
pub(super) fn are_at_rest(
    runs: &[RunRow],
    seen: &[(RunKey, u64)],
    at: Millis,
    alive: &dyn Fn(&Owner) -> Liveness,
) -> bool {
    let is_held = |lease: &Lease| match alive(&lease.owner) {
        Liveness::Alive => true,
        Liveness::Dead => false,
        Liveness::Unknown => lease.expires_at > at,
    };
    let is_at_rest = |row: &RunRow| {
        row.seq > 0
            && seen.contains(&(row.run, row.seq))
            && !row.owner.as_ref().is_some_and(is_held)
    };
    runs.len() == seen.len() && runs.iter().all(is_at_rest)
}

pub(super) fn acquire(
    conn: &Connection,
    run: RunKey,
    owner: &Owner,
    at: Millis,
    how: Acquire,
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<Lease> {
    if how == Acquire::IfFree {
        refuse_if_held(conn, run, at, alive)?;
    }
    let expires_at = at.saturating_add(LEASE_MS);
    let former_heartbeat = conn
        .prepare_cached("SELECT heartbeat_at FROM runs WHERE id = ?1 AND expires_at IS NOT NULL")?
        .query_row([run.0], |row| row.get(0))
        .optional()?;
    let epoch = conn
        .prepare_cached(
            "UPDATE runs SET epoch = epoch + 1, heartbeat_at = ?2, expires_at = ?3
             WHERE id = ?1 RETURNING epoch",
        )?
        .query_row(params![run.0, at, expires_at], |row| row.get(0))
        .optional()?
        .map(natural)
        .ok_or(Error::NoRun)?;
    put_owner(conn, run, owner)?;
    Ok(Lease { owner: owner.clone(), epoch, heartbeat_at: at, former_heartbeat, expires_at })
}

/// Raises the epoch of a lease that is held.
pub(super) fn raise(conn: &Connection, run: RunKey, epoch: u64, to: u64) -> Result<()> {
    let changed = conn
        .prepare_cached(
            "UPDATE runs SET epoch = ?3
             WHERE id = ?1 AND epoch = ?2 AND ?3 > epoch AND expires_at IS NOT NULL",
        )?
        .execute(params![run.0, int(epoch), int(to)])?;
    if changed == 1 { Ok(()) } else { Err(why_not(conn, run, epoch, None)) }
}

pub(super) fn heartbeat(conn: &Connection, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
    let changed = conn
        .prepare_cached(
            "UPDATE runs SET heartbeat_at = ?3, expires_at = ?4
             WHERE id = ?1 AND epoch = ?2 AND expires_at IS NOT NULL",
        )?
        .execute(params![run.0, int(epoch), at, at.saturating_add(LEASE_MS)])?;
    if changed == 1 { Ok(()) } else { Err(why_not(conn, run, epoch, None)) }
}

pub(super) fn release(conn: &Connection, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
    let changed = conn
        .prepare_cached(
            "UPDATE runs SET heartbeat_at = ?3, expires_at = NULL
             WHERE id = ?1 AND epoch = ?2 AND expires_at IS NOT NULL",
        )?
        .execute(params![run.0, int(epoch), at])?;
    if changed != 1 {
        return Err(why_not(conn, run, epoch, None));
    }
    conn.prepare_cached("DELETE FROM owners WHERE run = ?1")?.execute([run.0])?;
    Ok(())
}

/// Finds out why a fenced statement found no row.
pub(super) fn why_not(conn: &Connection, run: RunKey, ours: u64, expected: Option<u64>) -> Error {
    let row = conn
        .query_row("SELECT epoch, seq, expires_at FROM runs WHERE id = ?1", [run.0], |row| {
            Ok((natural(row.get(0)?), natural(row.get(1)?), row.get::<_, Option<Millis>>(2)?))
        })
        .optional();
    match row {
        Err(error) => error.into(),
        Ok(None) => Error::NoRun,
        Ok(Some((current, _, _))) if current != ours => Error::Fenced { ours, current },
        Ok(Some((_, _, None))) => Error::NotHeld,
        Ok(Some((_, found, Some(_)))) => {
            Error::Conflict { expected: expected.unwrap_or(found), found }
        }
    }
}

pub(super) fn delete(
    conn: &Connection,
    run: RunKey,
    at: Millis,
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<()> {
    refuse_if_held(conn, run, at, alive)?;
    if conn.execute("DELETE FROM runs WHERE id = ?1", [run.0])? == 0 {
        return Err(Error::NoRun);
    }
    for table in ["run_info", "owners", "snapshots", "requests"] {
        conn.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run.0])?;
    }
    conn.execute("DELETE FROM events WHERE id > ?1 AND id < ?2", events_after(run, 0))?;
    Ok(())
}
