//! The keeper with real processes and real kills.
//!
//! The test program itself is re-executed as the keeper (`support::keeper_entry`), so nothing
//! has to be built or installed first. Tests wait for conditions, never for time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]
#![cfg(target_os = "linux")]

mod cgroups;
mod ends;
mod prepared;
mod steps;
mod support;
mod takeover;
