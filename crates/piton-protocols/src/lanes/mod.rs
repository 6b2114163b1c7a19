//! The lanes protocol: phase documents, `checkpoints.json`, run log and run report.
//!
//! Readers tolerate what is found in the wild and report what they do not understand; writers emit
//! every field of the contract. Nothing here opens a file or asks the time.

pub mod checkpoints;
pub mod fix;
pub mod naming;
pub mod phase;
pub mod report;
pub mod run_log;
pub mod time;

pub use piton_formats::template::quote_for_shell as shell_quote;

use crate::protocol::Protocol;

/// The lanes protocol.
pub struct Lanes;

impl Protocol for Lanes {
    fn id(&self) -> &'static str {
        "lanes"
    }
}
