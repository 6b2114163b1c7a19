//! The seat of a protocol: one trait, one table.
//!
//! A run records which protocol it follows, and which version of it, when it is created. After that
//! nothing is guessed from a file's name: whoever needs to know asks the table for the recorded one.
//! A new protocol is its folder and its line in [`TABLE`].

use crate::lanes::Lanes;
use crate::plain::Plain;

/// A published protocol: what it claims, reads, writes, checks and says.
pub trait Protocol: Sync {
    /// Its frozen name: what `run.created` records.
    fn id(&self) -> &'static str;

    /// The version of it that this program follows.
    fn version(&self) -> u32 {
        1
    }
}

/// A table of protocols; of two that are equally sure of a file the first reads it.
pub type Table = [&'static dyn Protocol];

/// The protocols of this program.
pub const TABLE: &Table = &[&Lanes, &Plain];

/// Finds the protocol that a run recorded.
pub fn find(table: &Table, id: &str) -> Option<&'static dyn Protocol> {
    table.iter().find(|protocol| protocol.id() == id).copied()
}
