//! The contract of a ledger, whatever stores the bytes.
//!
//! One test suite (`tests/contract.rs`) is written against this trait alone, so that every store
//! must pass the same tests. The trait is object safe: the engine holds a `Box<dyn Ledger>`.

use crate::{
    Acquire, Append, Lease, Liveness, Millis, NewRequest, NewRun, Owner, Request, Result, RunKey,
    RunRow, Snapshot, StoredEvent,
};

/// A durable store of runs. What returned `Ok` survives a power cut.
pub trait Ledger {
    /// Creates a run and takes its lease at epoch 1.
    ///
    /// Fails with [`Error::RunExists`](crate::Error::RunExists) if the run id is taken.
    fn create_run(&mut self, new: &NewRun<'_>, owner: &Owner) -> Result<RunRow>;

    /// Lists all runs, the newest first.
    fn runs(&mut self) -> Result<Vec<RunRow>>;

    /// Finds a run by its public name.
    fn run(&mut self, run_id: &str) -> Result<Option<RunRow>>;

    /// Takes the lease of a run with a new, higher epoch.
    ///
    /// With [`Acquire::IfFree`] it fails with [`Error::Held`](crate::Error::Held) while the holder
    /// lives according to `alive`, or cannot be seen and its lease has not lapsed at `at`, even if
    /// this process itself is the holder. A run that lacks one of its latest events is refused with
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    fn acquire(
        &mut self,
        run: RunKey,
        owner: &Owner,
        at: Millis,
        how: Acquire,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<Lease>;

    /// Raises the epoch of a held lease above one that was found elsewhere: a ledger that was
    /// restored from a copy may lack epochs.
    fn raise(&mut self, run: RunKey, epoch: u64, to: u64) -> Result<()>;

    /// Renews the lease; fails with [`Error::Fenced`](crate::Error::Fenced) if another process took
    /// it.
    fn heartbeat(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()>;

    /// Gives up the lease. The epoch stays: the next holder gets a higher one.
    fn release(&mut self, run: RunKey, epoch: u64, at: Millis) -> Result<()>;

    /// Appends events and what belongs to them in one commit; returns the new last sequence number.
    ///
    /// Nothing at all happens if the epoch is stale ([`Error::Fenced`](crate::Error::Fenced)), the
    /// lease was given up ([`Error::NotHeld`](crate::Error::NotHeld)) or the last sequence number
    /// is another one ([`Error::Conflict`](crate::Error::Conflict)).
    fn append(&mut self, append: &Append<'_>) -> Result<u64>;

    /// Reads up to `limit` events after `after_seq`, in order.
    fn events(&mut self, run: RunKey, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>>;

    /// Reads the cached state, if there is one.
    fn snapshot(&mut self, run: RunKey) -> Result<Option<Snapshot>>;

    /// Reads the cached state and all events after it, as of one moment.
    ///
    /// Fails with [`Error::Corrupt`](crate::Error::Corrupt) where an event after it is missing.
    fn load(&mut self, run: RunKey) -> Result<(Option<Snapshot>, Vec<StoredEvent>)>;

    /// Stores `body` under its hash; an existing entry is not changed.
    fn put_blob(&mut self, hash: &str, body: &[u8]) -> Result<()>;

    /// Reads what is stored under a hash.
    fn blob(&mut self, hash: &str) -> Result<Option<Vec<u8>>>;

    /// Deletes the blobs that `keep` does not name; returns how many.
    ///
    /// Only if all runs are still as they were `seen` (key and last sequence number, in any order),
    /// all have events, and nobody holds a lease by the rule of [`Ledger::acquire`]: a holder may
    /// have stored a blob that no event names yet. Otherwise nothing happens.
    fn sweep_blobs(
        &mut self,
        keep: &[&str],
        seen: &[(RunKey, u64)],
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<u64>;

    /// Puts a request into a run's inbox and returns its id; the same key gives the same id.
    fn request(&mut self, run: RunKey, new: &NewRequest<'_>) -> Result<i64>;

    /// Lists the unanswered requests of a run in the order of arrival.
    fn requests(&mut self, run: RunKey) -> Result<Vec<Request>>;

    /// Reads the answer to a request; `None` while it waits,
    /// [`Error::UnknownRequest`](crate::Error::UnknownRequest) if there is none (any more).
    fn answer_of(&mut self, request_id: i64) -> Result<Option<String>>;

    /// Whether another connection committed since the last call; cheap enough to poll.
    ///
    /// The first call returns true. Later calls may return true without a commit, but never miss
    /// one.
    fn changed(&mut self) -> Result<bool>;

    /// Deletes a run with everything it owns, except blobs, which runs share.
    ///
    /// Refused with [`Error::Held`](crate::Error::Held) under the rule of [`Ledger::acquire`].
    fn delete_run(
        &mut self,
        run: RunKey,
        at: Millis,
        alive: &dyn Fn(&Owner) -> Liveness,
    ) -> Result<()>;
}
