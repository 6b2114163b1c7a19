//! The ledger contract on SQLite: each method wraps the statements of its module in a transaction.

use super::last::Last;
use super::{Sqlite, history, inbox, leases, sound};
use crate::{
    Acquire, Append, Error, Lease, Ledger, Liveness, Millis, NewRequest, NewRun, Owner, Request,
    Result, RunKey, RunRow, Snapshot, StoredEvent,
};

impl Ledger for Sqlite {
    fn create_run(&mut self, new: &NewRun<'_>, owner: &Owner) -> Result<RunRow> {
        let row = self.write_and(false, |conn| {
            let row = leases::create(conn, new, owner)?;
            let last = Last { run: row.run, epoch: row.epoch, seq: row.seq };
            Ok((row, Some(last)))
        })?;
        self.leased = true;
        Ok(row)
    }

    fn runs(&mut self) -> Result<Vec<RunRow>> {
        self.read(leases::list)
    }

    fn run(&mut self, run_id: &str) -> Result<Option<RunRow>> {
        self.read(|conn| leases::find(conn, run_id))
    }

    fn acquire(
        &mut self,
        run: RunKey,
        owner: &Owner,
        at: Millis,
        how: Acquire,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<Lease> {
        let path = self.path.clone();
        let lease = self.write_and(false, |conn| {
            let seq = sound::refuse_gap(conn, run, &path)?;
            let lease = leases::acquire(conn, run, owner, at, how, alive)?;
            let last = Last { run, epoch: lease.epoch, seq };
            Ok((lease, Some(last)))
        })?;
        self.leased = true;
        Ok(lease)
    }

    fn raise(&mut self, run: RunKey, epoch: u64, to: u64) -> Result<()> {
        self.write(|conn| leases::raise(conn, run, epoch, to))
    }

    fn heartbeat(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
        self.write(|conn| leases::heartbeat(conn, run, epoch, at))
    }

    fn release(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
        self.write_and(true, |conn| Ok((leases::release(conn, run, epoch, at)?, None)))
    }

    fn append(&mut self, append: &Append<'_>) -> Result<u64> {
        self.write_and(append.release, |conn| {
            let seq = history::append(conn, append)?;
            Ok((seq, Some(Last { run: append.run, epoch: append.epoch, seq })))
        })
    }

    fn events(&mut self, run: RunKey, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>> {
        self.read(|conn| history::events(conn, run, after_seq, limit))
    }

    fn snapshot(&mut self, run: RunKey) -> Result<Option<Snapshot>> {
        self.read(|conn| history::snapshot(conn, run))
    }

    fn load(&mut self, run: RunKey) -> Result<(Option<Snapshot>, Vec<StoredEvent>)> {
        let (head, snapshot, events) = self.read_at_once(|conn| history::load(conn, run))?;
        let cached = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        match head.and_then(|head| sound::gap(head, cached, &events)) {
            Some(detail) => Err(self.noted(sound::damaged(&self.path, detail))),
            None => Ok((snapshot, events)),
        }
    }

    fn put_blob(&mut self, hash: &str, body: &[u8]) -> Result<()> {
        // Checked first: most blobs exist already, and a read needs no sync.
        if self.lock.is_some() && self.read(|conn| history::has_blob(conn, hash))? {
            return Ok(());
        }
        self.write(|conn| history::put_blob(conn, hash, body))
    }

    fn blob(&mut self, hash: &str) -> Result<Option<Vec<u8>>> {
        self.read(|conn| history::blob(conn, hash))
    }

    fn sweep_blobs(
        &mut self,
        keep: &[&str],
        seen: &[(RunKey, u64)],
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<u64> {
        self.write(|conn| {
            let runs = leases::list(conn)?;
            if !leases::are_at_rest(&runs, seen, at, alive) {
                return Ok(0);
            }
            history::sweep_blobs(conn, keep)
        })
    }

    fn request(&mut self, run: RunKey, new: &NewRequest<'_>) -> Result<i64> {
        if self.lock.is_some()
            && let Some(id) = self.read(|conn| inbox::find(conn, run, new.key))?
        {
            return Ok(id);
        }
        self.write(|conn| inbox::put(conn, run, new))
    }

    fn requests(&mut self, run: RunKey) -> Result<Vec<Request>> {
        self.read(|conn| inbox::open(conn, run))
    }

    fn answer_of(&mut self, request_id: i64) -> Result<Option<String>> {
        match self.read(|conn| inbox::answer(conn, request_id)) {
            Err(Error::Sqlite(rusqlite::Error::QueryReturnedNoRows)) => {
                Err(Error::UnknownRequest { id: request_id })
            }
            other => other,
        }
    }

    fn changed(&mut self) -> Result<bool> {
        let version = self.read(|conn| {
            conn.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))
        })?;
        Ok(self.seen.replace(version) != Some(version))
    }

    fn delete_run(
        &mut self,
        run: RunKey,
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<()> {
        // The largest commit there is: look at the WAL right after it.
        self.commits = 0;
        self.write(|conn| leases::delete(conn, run, at, alive))
    }
}
