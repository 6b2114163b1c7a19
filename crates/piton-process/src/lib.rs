//! The keeper, which holds the children of a run, and how a driver talks to it.
//!
//! The keeper is our own program in another role (`keeper::main`): one process per run, one
//! thread, one poll loop. It starts, limits and ends every child for the driver with the highest
//! epoch. Children write straight to log files, so a dead driver loses nothing; exits are kept
//! until acknowledged and journaled in case the keeper dies as well. This crate knows nothing of
//! plans, ledgers or git, and it never reads its own environment.

pub mod activity;
pub mod cgroup;
pub mod client;
mod error;
mod fence;
mod frame;
pub mod journal;
pub mod keeper;
mod lock;
pub mod logs;
mod marks;
mod os;
mod processes;
pub mod protocol;
mod start;
pub mod strays;

pub use client::Keeper;
pub use error::{Error, Result};
pub use fence::highest_epoch;
pub use journal::{Fact, Journal, JournalFacts};
pub use lock::{had_keeper, keeper_alive, keeper_elsewhere, keeper_environment};
pub use os::Tether;
pub use protocol::{
    Cause, Dropped, Env, Event, Exit, Leftover, NewFile, NotStarted, Part, Range, Request, Spawn,
    Start, Started, State, Welcome,
};
