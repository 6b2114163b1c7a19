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
        let inner = &mut self.inner;
        self.crash.around(&name, || inner.append(append)).map_err(fell)?
    }

    passed_on! {
        runs() -> Vec<RunRow>;
        run(run_id: &str) -> Option<RunRow>;
        acquire(
            run: RunKey, owner: &Owner, at: Millis, how: Acquire, alive: &dyn Fn(&Owner) -> Liveness
        ) -> Lease;
        raise(run: RunKey, epoch: u64, to: u64) -> ();
        heartbeat(run: RunKey, epoch: u64, at: Millis) -> ();
        release(run: RunKey, epoch: u64, at: Millis) -> ();
        events(run: RunKey, after_seq: u64, limit: usize) -> Vec<StoredEvent>;
        snapshot(run: RunKey) -> Option<Snapshot>;
        load(run: RunKey) -> (Option<Snapshot>, Vec<StoredEvent>);
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
