//! Before the first step, and between phases: what is checked at once, and what is handed on.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "before/check.rs"]
mod check;
#[path = "before/in_place.rs"]
mod in_place;
#[path = "before/left_out.rs"]
mod left_out;
#[path = "before/spec.rs"]
mod spec;
