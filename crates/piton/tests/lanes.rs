//! Lanes with the real program: phase documents and plans, worktrees, real git, a scripted agent.
//!
//! What the recovery contract promises, seen from outside: exit codes, words, `checkpoints.json`,
//! the branches and folders that are there and those that are not. Not here: rollback and undo in
//! all their forms.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "lanes/agents.rs"]
mod agents;
#[path = "lanes/by_hand.rs"]
mod by_hand;
#[path = "lanes/conflicts.rs"]
mod conflicts;
#[path = "lanes/contract.rs"]
mod contract;
#[path = "lanes/documents.rs"]
mod documents;
#[path = "lanes/kills.rs"]
mod kills;
#[path = "lanes/missed.rs"]
mod missed;
#[path = "lanes/moved.rs"]
mod moved;
#[path = "lanes/order.rs"]
mod order;
#[path = "lanes/preconditions.rs"]
mod preconditions;
#[path = "lanes/pull_requests.rs"]
mod pull_requests;
#[path = "lanes/queue.rs"]
mod queue;
#[path = "lanes/replanned.rs"]
mod replanned;
#[path = "lanes/restarts.rs"]
mod restarts;
#[path = "lanes/roadmaps.rs"]
mod roadmaps;
#[path = "lanes/scene.rs"]
mod scene;
#[path = "lanes/tasks.rs"]
mod tasks;
#[path = "lanes/told.rs"]
mod told;
#[path = "lanes/validation.rs"]
mod validation;
#[path = "lanes/views.rs"]
mod views;
#[path = "lanes/waiting.rs"]
mod waiting;
#[path = "lanes/workspaces.rs"]
mod workspaces;
