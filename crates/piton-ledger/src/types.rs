//! What goes into a ledger and what comes out of it: plain values without behaviour.
//!
//! Bodies are bytes here; only their writers know what they mean.

use crate::Owner;

/// Milliseconds since the Unix epoch, passed in by the caller: this crate reads no calendar clock.
pub type Millis = i64;

/// How long a lease lasts without a heartbeat.
///
/// It only matters if the owner cannot be seen (another machine). Thirty seconds allow for six
/// missed heartbeats, and are short enough for a person to wait.
pub const LEASE_MS: Millis = 30_000;

/// How often an idle owner should call [`Ledger::heartbeat`](crate::Ledger::heartbeat).
///
/// Every append is a heartbeat too; a sixth of [`LEASE_MS`] costs an idle driver one sync in five
/// seconds.
pub const HEARTBEAT_EVERY_MS: Millis = 5_000;

/// Names a run inside one ledger; never used again after the run was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(pub i64);

/// A run as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its key in this ledger.
    pub run: RunKey,
    /// Its stable public name.
    pub run_id: String,
    /// The plan it executes, as the engine names it.
    pub plan: String,
    /// The title a person reads.
    pub title: String,
    /// The directory it works in.
    pub root: String,
    /// The status given with the last append; a copy for listings, the events decide.
    pub status: String,
    /// The number that fences drivers: the highest one ever handed out.
    pub epoch: u64,
    /// The sequence number of the last event; 0 when there is none.
    pub seq: u64,
    /// When the run was created.
    pub created_at: Millis,
    /// When it was last appended to.
    pub updated_at: Millis,
    /// Who holds the lease, if anybody; not necessarily alive.
    pub owner: Option<Lease>,
}

/// The right to append to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it.
    pub owner: Owner,
    /// The epoch that comes with it.
    pub epoch: u64,
    /// The last heartbeat.
    pub heartbeat_at: Millis,
    /// The last heartbeat of the previous owner, if it did not give up the lease.
    pub former_heartbeat: Option<Millis>,
    /// When it lapses if the owner cannot be seen.
    pub expires_at: Millis,
}

/// How to ask for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquire {
    /// Only if nobody holds it, or the holder is dead or has lapsed.
    IfFree,
    /// From any holder, which is then fenced.
    Takeover,
}

/// A run to create.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// Its stable public name; must be new.
    pub run_id: &'a str,
    /// The plan it executes.
    pub plan: &'a str,
    /// The title a person reads.
    pub title: &'a str,
    /// The directory it works in.
    pub root: &'a str,
    /// Now.
    pub at: Millis,
}

/// An event to append.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    /// When it happened.
    pub at: Millis,
    /// Its frozen tag.
    pub tag: &'a str,
    /// The version of its body.
    pub version: u32,
    /// Its encoded body.
    pub body: &'a [u8],
}

/// An event as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place in the run: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// When it happened.
    pub at: Millis,
    /// Its frozen tag.
    pub tag: String,
    /// The version of its body.
    pub version: u32,
    /// Its encoded body.
    pub body: Vec<u8>,
}

/// A cached state: what the events up to `seq` add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event it contains.
    pub seq: u64,
    /// The version of `apply` that made it; another version must not trust it.
    pub apply_version: u32,
    /// The encoded state.
    pub body: Vec<u8>,
}

/// A request to put into a run's inbox.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest<'a> {
    /// The idempotency key, unique within the run: the same key is the same request.
    pub key: &'a str,
    /// Now.
    pub at: Millis,
    /// Who asks.
    pub from: &'a str,
    /// The frozen tag of what is asked.
    pub tag: &'a str,
    /// The version of the body.
    pub version: u32,
    /// The encoded body.
    pub body: &'a [u8],
}

/// A request in a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its number, growing in the order of arrival.
    pub id: i64,
    /// The idempotency key.
    pub key: String,
    /// When it was put there.
    pub at: Millis,
    /// Who asks.
    pub from: String,
    /// The frozen tag of what is asked.
    pub tag: String,
    /// The version of the body.
    pub version: u32,
    /// The encoded body.
    pub body: Vec<u8>,
    /// What the driver answered, once it did.
    pub answered: Option<String>,
}

/// Everything one commit adds to a run.
#[derive(Debug, Clone, Copy)]
pub struct Append<'a> {
    /// The run.
    pub run: RunKey,
    /// The epoch of our lease.
    pub epoch: u64,
    /// The expected last sequence number.
    pub expected_seq: u64,
    /// Now; also counts as a heartbeat.
    pub at: Millis,
    /// The events, in order; may be empty.
    pub events: &'a [NewEvent<'a>],
    /// The new status for listings, if it changed.
    pub status: Option<&'a str>,
    /// The state after these events (version of `apply`, encoded state), if it is time for one.
    pub snapshot: Option<(u32, &'a [u8])>,
    /// The requests these events answer, with the answers.
    pub answered: &'a [(i64, &'a str)],
    /// Whether to give up the lease in the same commit.
    pub release: bool,
}

impl<'a> Append<'a> {
    /// Starts an append of `events` with everything optional left out.
    pub fn new(
        run: RunKey,
        epoch: u64,
        expected_seq: u64,
        at: Millis,
        events: &'a [NewEvent<'a>],
    ) -> Self {
        Self {
            run,
            epoch,
            expected_seq,
            at,
            events,
            status: None,
            snapshot: None,
            answered: &[],
            release: false,
        }
    }
}
