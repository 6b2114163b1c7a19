//! Git: where a project is and what it holds.
//!
//! The project and its checked-out commit are read from what git itself keeps in files, because a
//! cold `piton status` has no time to start a process; only the reftable format, which we do not
//! read, asks git. Worktrees, snapshots, restores and merges are git's own objects and refs. Nothing
//! here decides when any of that is done.
//!
//! The modules stand on each other in this order: `files` and `git`, `history`, `repo`, `objects`, `index`,
//! `refs`, `snapshot`, `restore`, `missed`, `worktree`, `checks`, `merge`.

pub mod checks;
pub mod files;
pub mod git;
pub mod history;
mod index;
pub mod merge;
pub mod missed;
pub mod objects;
pub mod refs;
pub mod refusals;
mod repo;
pub mod restore;
pub mod snapshot;
pub mod worktree;

pub use repo::{Error, Project};
