//! Rollback, undo, restore and diff with the real program, on real repositories.
//!
//! What is compared is bytes: files, permissions, links and empty folders of the work tree, and the
//! user's HEAD, index, stash, configuration and hooks. How lanes get to base is not tested here.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "rollback/checkpoints.rs"]
mod checkpoints;
#[path = "rollback/failing.rs"]
mod failing;
#[path = "rollback/gone.rs"]
mod gone;
#[path = "rollback/in_place.rs"]
mod in_place;
#[path = "rollback/in_the_way.rs"]
mod in_the_way;
#[path = "rollback/killed.rs"]
mod killed;
#[path = "rollback/large.rs"]
mod large;
#[path = "rollback/names.rs"]
mod names;
#[path = "rollback/odd.rs"]
mod odd;
#[path = "rollback/random.rs"]
mod random;
#[path = "rollback/tasks.rs"]
mod tasks;
#[path = "rollback/told.rs"]
mod told;
#[path = "rollback/tree.rs"]
mod tree;
#[path = "rollback/undo.rs"]
mod undo;
#[path = "rollback/worktrees.rs"]
mod worktrees;
