//! The driver: recover, schedule, act, record.
//!
//! It knows the ledger and one trait, [`World`]; it runs no process, reads no file and prints
//! nothing. What must not happen twice is committed as an intent first, then done, then its outcome
//! is committed; where the next intent is known it shares that commit.

mod attempt;
mod drive;
mod driver;
pub mod error;
pub mod observer;
pub mod order;
pub mod prompt;
pub mod resume;
pub mod store;
pub mod world;

pub use drive::{Drive, Ending, Gates, Leased, Options};
pub use driver::Driver;
pub use error::{Error, Result};
pub use observer::{Note, Observer};
pub use store::{Answer, Loaded, Store};
pub use world::World;
