//! The published protocols, one folder each: what a protocol claims, reads, writes, checks and says.
//!
//! Pure like the core and the formats: nothing here opens a file, reads the environment or asks the
//! time. The program hands in texts and states, and carries out what comes back.

pub mod files;
pub mod format;
pub mod import;
pub mod inspect;
pub mod lanes;
pub mod pipeline;
pub mod plain;
pub mod protocol;
pub mod session;
pub mod shown;
pub mod table;
pub mod time;
pub mod workflow;

pub use protocol::{Blocker, Protocol};
pub use table::{TABLE, Table, blockers, find};
