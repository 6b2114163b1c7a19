//! The ledger, with a driver that falls before or after an append, and with faults that it must not
//! have.

use std::fs;
use std::path::{Path, PathBuf};

use piton_core::event::{CheckpointRecorded, Event};
use piton_formats::codec;
use piton_ledger::{
    Acquire, Append, Error, Lease, Ledger, Liveness, Millis, NewRequest, NewRun, Open, Owner,
    Request, Result, RunKey, RunRow, Snapshot, Sqlite, StoredEvent,
};

use crate::crash::{CrashPoint, Fallen};

/// The files of a ledger; its index is made again.
const FILES: [&str; 3] = ["ledger.db", "ledger.db-wal", "ledger.lock"];

/// Mechanisms of the ledger that a test can switch off.
#[derive(Clone, Copy, Debug, Default)]
pub struct LedgerFaults {
    /// Appends of stale drivers are taken.
    pub no_fence: bool,
    /// The last append is not durable: a power cut takes it away.
    pub not_durable: bool,
    /// Events of this tag are not remembered.
    pub forgets: Option<&'static str>,
    /// Cached states look as if another version of `apply` had made them.
    pub ages_snapshots: bool,
}

/// A ledger whose user falls at a [`CrashPoint`]; appends and creations count.
pub struct CrashingLedger {
    inner: Sqlite,
    dir: PathBuf,
    crash: CrashPoint,
    faults: LedgerFaults,
}

impl CrashingLedger {
    /// Opens the ledger in a folder, for somebody who falls at a point.
    pub fn open(dir: &Path, crash: &CrashPoint, faults: LedgerFaults) -> Result<Self> {
        let inner = Sqlite::open(dir, Open::ReadWrite)?;
        Ok(Self { inner, dir: dir.to_owned(), crash: crash.clone(), faults })
    }

    fn append_with_faults(&mut self, append: &Append<'_>) -> Result<u64> {
        if self.faults.not_durable {
            copy(&self.dir, &before_last(&self.dir));
        }
        if !self.faults.no_fence {
            return self.inner.append(append);
        }
        let row = self.inner.runs()?.into_iter().find(|row| row.run == append.run);
        let row = row.ok_or(Error::NoRun)?;
        self.inner.append(&Append { epoch: row.epoch, expected_seq: row.seq, ..*append })
    }
}

/// The machine loses power: a ledger that is not durable loses its last append.
pub fn power_cut(dir: &Path, faults: LedgerFaults) {
    if faults.not_durable && before_last(dir).exists() {
        copy(&before_last(dir), dir);
    }
}

fn before_last(dir: &Path) -> PathBuf {
    dir.join("before-last")
}

/// Puts the files of a ledger in the place of others.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder for the ledger");
    let _ = fs::remove_file(to.join("ledger.db-shm"));
    for file in FILES {
        let _ = fs::remove_file(to.join(file));
        let _ = fs::copy(from.join(file), to.join(file));
    }
}

/// Something harmless in the place of a forgotten event.
fn blank(event: &StoredEvent) -> StoredEvent {
    let blank = codec::encode(&Event::CheckpointRecorded(CheckpointRecorded {
        name: "forgotten".to_owned(),
        message: String::new(),
        by: String::new(),
        head: None,
        snapshots: Vec::new(),
    }));
    StoredEvent {
        tag: blank.tag.to_owned(),
        version: blank.version,
        body: blank.body,
        ..event.clone()
    }
}

fn fell(_: Fallen) -> Error {
    let source = std::io::Error::other("crash");
    Error::File { what: "reach", path: "the ledger".into(), source }
}

/// Methods that only pass on what they are given, unless the driver fell before.
macro_rules! passed_on {
    ($($name:ident($($given:ident: $kind:ty),*) -> $made:ty;)+) => {
        $(fn $name(&mut self, $($given: $kind),*) -> Result<$made> {
            self.crash.check().map_err(fell)?;
            self.inner.$name($($given),*)
        })+
    };
}

impl Ledger for CrashingLedger {
    fn create_run(&mut self, new: &NewRun<'_>, owner: &Owner) -> Result<RunRow> {
        let inner = &mut self.inner;
        self.crash.around("create", || inner.create_run(new, owner)).map_err(fell)?
    }

    fn append(&mut self, append: &Append<'_>) -> Result<u64> {
        let tags: Vec<&str> = append.events.iter().map(|e| e.tag).collect();
        let name = format!("append {}", tags.join(" "));
        let crash = self.crash.clone();
        crash.around(&name, || self.append_with_faults(append)).map_err(fell)?
    }

    fn heartbeat(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()> {
        self.crash.check().map_err(fell)?;
        if self.faults.no_fence { Ok(()) } else { self.inner.heartbeat(run, epoch, at) }
    }

    fn events(&mut self, run: RunKey, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>> {
        self.crash.check().map_err(fell)?;
        let forgotten = |event: &StoredEvent| self.faults.forgets == Some(event.tag.as_str());
        let recall = |event| if forgotten(&event) { blank(&event) } else { event };
        Ok(self.inner.events(run, after_seq, limit)?.into_iter().map(recall).collect())
    }

    fn snapshot(&mut self, run: RunKey) -> Result<Option<Snapshot>> {
        self.crash.check().map_err(fell)?;
        let mut snapshot = self.inner.snapshot(run)?.filter(|_| self.faults.forgets.is_none());
        if let Some(snapshot) = &mut snapshot {
            snapshot.apply_version += u32::from(self.faults.ages_snapshots);
        }
        Ok(snapshot)
    }

    fn load(&mut self, run: RunKey) -> Result<(Option<Snapshot>, Vec<StoredEvent>)> {
        let snapshot = self.snapshot(run)?;
        let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        Ok((snapshot, self.events(run, after, usize::MAX)?))
    }

    passed_on! {
        runs() -> Vec<RunRow>;
        run(run_id: &str) -> Option<RunRow>;
        acquire(
            run: RunKey, owner: &Owner, at: Millis, how: Acquire, alive: &dyn Fn(&Owner) -> Liveness
        ) -> Lease;
        raise(run: RunKey, epoch: u64, to: u64) -> ();
        release(run: RunKey, epoch: u64, at: Millis) -> ();
        put_blob(hash: &str, body: &[u8]) -> ();
        blob(hash: &str) -> Option<Vec<u8>>;
        sweep_blobs(
            keep: &[&str], seen: &[(RunKey, u64)], at: Millis, alive: &dyn Fn(&Owner) -> Liveness
        ) -> u64;
        request(run: RunKey, new: &NewRequest<'_>) -> i64;
        requests(run: RunKey) -> Vec<Request>;
        answer_of(request_id: i64) -> Option<String>;
        changed() -> bool;
        delete_run(run: RunKey, at: Millis, alive: &dyn Fn(&Owner) -> Liveness) -> ();
    }
}
