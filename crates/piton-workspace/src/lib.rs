//! Git: where a project is and what it holds.
//!
//! For now it finds the project and the checked-out commit, by reading what git itself keeps in
//! files, because a cold `piton status` has no time to start a process. Only the reftable format,
//! which we do not read, asks git. Worktrees, snapshots and merges come with the lanes.

mod ask;
mod blob;
pub mod checks;
pub mod git;
pub mod merge;
mod project;
pub mod refs;
pub mod restore;
pub mod snapshot;
pub mod worktree;

pub use ask::hang_up;
pub use git::{Git, git};
pub use project::{Error, Project};
