//! Snapshots and restores on real git: what would be lost if they were wrong is people's work.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod captured;
mod durable;
mod ignored;
mod left_out;
mod random;
mod restored;
mod siblings;
mod support;
mod traps;
