//! The durable store of runs: their events, state snapshots, leases and inboxes.
//!
//! A run has a history. One owner at a time may extend it, and all others leave requests. This
//! crate does not know what an event means: bodies are opaque bytes with a tag and a version, so
//! the store does not change when the model does. It reads no calendar clock and no environment;
//! times and directories are passed in.
//!
//! [`Ledger`] is the contract, [`Sqlite`] the embedded implementation; [`open`] opens
//! it where nobody needs to know that. [`check`] and [`backup`] help when a disk is in doubt.

mod doctor;
mod error;
mod files;
mod ledger;
mod os;
mod owner;
mod sqlite;
mod types;

pub use doctor::{Finding, Kind, backup, check};
pub use error::{Error, Result};
pub use files::{DATABASE_FILE, LOCK_FILE, unwritable};
pub use ledger::Ledger;
pub use owner::{Liveness, Owner, is_stopped, lock_holder, owner_liveness};
pub use sqlite::{Open, Sqlite, accept, open};
pub use types::{
    Acquire, Append, HEARTBEAT_EVERY_MS, LEASE_MS, Lease, Millis, NewEvent, NewRequest, NewRun,
    Request, RunKey, RunRow, Snapshot, StoredEvent,
};
