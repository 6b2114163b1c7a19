//! Any ledger, with a driver that falls before or after an append.

use piton_ledger::{
    Acquire, Append, Error, Lease, Ledger, Liveness, Millis, NewRequest, NewRun, Owner, Request,
    Result, RunKey, RunRow, Snapshot, StoredEvent,
};

use crate::crash::{CrashPoint, Fallen};

/// A ledger whose user falls at a [`CrashPoint`]; appends and creations count.
pub struct CrashingLedger {
    inner: Box<dyn Ledger>,
    crash: CrashPoint,
}

impl CrashingLedger {
    /// Puts a point of falling around a ledger.
    pub fn new(inner: Box<dyn Ledger>, crash: &CrashPoint) -> Self {
        Self { inner, crash: crash.clone() }
    }

    fn inner(&mut self) -> Result<&mut dyn Ledger> {
        self.crash.check().map_err(fell)?;
        Ok(self.inner.as_mut())
    }
}

fn fell(_: Fallen) -> Error {
    let source = std::io::Error::other("crash");
    Error::File { what: "reach", path: "the ledger".into(), source }
}

impl Ledger for CrashingLedger {
    fn create_run(&mut self, new: &NewRun<'_>, owner: &Owner) -> Result<RunRow> {
        let inner = &mut self.inner;
        self.crash.around("create", || inner.create_run(new, owner)).map_err(fell)?
    }

    fn append(&mut self, append: &Append<'_>) -> Result<u64> {
        let tags: Vec<&str> = append.events.iter().map(|e| e.tag).collect();
        let name = format!("append {}", tags.join(" "));
        let inner = &mut self.inner;
        self.crash.around(&name, || inner.append(append)).map_err(fell)?
    }

    fn runs(&mut self) -> Result<Vec<RunRow>> {
        self.inner()?.runs()
    }

    fn run(&mut self, run_id: &str) -> Result<Option<RunRow>> {
        self.inner()?.run(run_id)
    }

    fn acquire(
        &mut self,
        run: RunKey,
        owner: &Owner,
        at: Millis,
        how: Acquire,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<Lease> {
        self.inner()?.acquire(run, owner, at, how, alive)
    }

    fn raise(&mut self, run: RunKey, epoch: u64, to: u64) -> Result<()> {
        self.inner()?.raise(run, epoch, to)
    }

    fn heartbeat(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
        self.inner()?.heartbeat(run, epoch, at)
    }

    fn release(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
        self.inner()?.release(run, epoch, at)
    }

    fn events(&mut self, run: RunKey, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>> {
        self.inner()?.events(run, after_seq, limit)
    }

    fn snapshot(&mut self, run: RunKey) -> Result<Option<Snapshot>> {
        self.inner()?.snapshot(run)
    }

    fn load(&mut self, run: RunKey) -> Result<(Option<Snapshot>, Vec<StoredEvent>)> {
        self.inner()?.load(run)
    }

    fn put_blob(&mut self, hash: &str, body: &[u8]) -> Result<()> {
        self.inner()?.put_blob(hash, body)
    }

    fn blob(&mut self, hash: &str) -> Result<Option<Vec<u8>>> {
        self.inner()?.blob(hash)
    }

    fn sweep_blobs(
        &mut self,
        keep: &[&str],
        seen: &[(RunKey, u64)],
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<u64> {
        self.inner()?.sweep_blobs(keep, seen, at, alive)
    }

    fn request(&mut self, run: RunKey, new: &NewRequest<'_>) -> Result<i64> {
        self.inner()?.request(run, new)
    }

    fn requests(&mut self, run: RunKey) -> Result<Vec<Request>> {
        self.inner()?.requests(run)
    }

    fn answer_of(&mut self, request_id: i64) -> Result<Option<String>> {
        self.inner()?.answer_of(request_id)
    }

    fn changed(&mut self) -> Result<bool> {
        self.inner()?.changed()
    }

    fn delete_run(
        &mut self,
        run: RunKey,
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<()> {
        self.inner()?.delete_run(run, at, alive)
    }
}
