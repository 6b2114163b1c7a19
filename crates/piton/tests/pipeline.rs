//! Pipelines with the real program: one feature through its stages, real git, real kills, a scripted
//! agent.
//!
//! What the recovery contract promises, seen from outside: exit codes, words, the state file, what the
//! agent was asked for and how often.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "pipeline/asking.rs"]
mod asking;
#[path = "pipeline/checks.rs"]
mod checks;
#[path = "pipeline/deciding.rs"]
mod deciding;
#[path = "pipeline/kills.rs"]
mod kills;
#[path = "pipeline/prohibitions.rs"]
mod prohibitions;
#[path = "pipeline/resuming.rs"]
mod resuming;
#[path = "pipeline/scene.rs"]
mod scene;
#[path = "pipeline/statuses.rs"]
mod statuses;
#[path = "pipeline/variations.rs"]
mod variations;
#[path = "pipeline/waiting.rs"]
mod waiting;
#[path = "pipeline/whole_way.rs"]
mod whole_way;
