//! Workflows with the real program: plans and task lists, their checkpoints, real git, real kills, a
//! scripted agent.
//!
//! Each section of the checkpoint pattern, seen from outside: exit codes, words, the checkpoint, the
//! plan, what the agent was asked for and how often.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "workflow/checkpoints.rs"]
mod checkpoints;
#[path = "workflow/foreign.rs"]
mod foreign;
#[path = "workflow/kills.rs"]
mod kills;
#[path = "workflow/phases.rs"]
mod phases;
#[path = "workflow/replans.rs"]
mod replans;
#[path = "workflow/resuming.rs"]
mod resuming;
#[path = "workflow/scene.rs"]
mod scene;
#[path = "workflow/task_lists.rs"]
mod task_lists;
#[path = "workflow/variations.rs"]
mod variations;
