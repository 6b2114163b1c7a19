//! Git: where a project is and what it holds.
//!
//! The project and its checked-out commit are read from what git itself keeps in files, because a
//! cold `piton status` has no time to start a process; only the reftable format, which we do not
//! read, asks git. Worktrees, snapshots, restores and merges are git's own objects and refs. Nothing
//! here decides when any of that is done.

mod ask;
pub mod beneath;
mod blob;
pub mod checks;
mod deflate;
pub mod git;
pub mod large;
pub mod merge;
mod packed;
pub mod partial;
mod project;
pub mod refs;
mod remembered;
pub mod restore;
pub mod snapshot;
mod stay;
pub mod synced;
pub mod whole;
pub mod worktree;

pub use git::{Git, git};
pub use project::{Error, Project};
pub use stay::hang_up;

/// What the message of a failure says that did not even leave everything as it was.
pub const PUT_BACK_FAILED: &str = "putting back failed too";
