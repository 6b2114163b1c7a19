//! Merging a lane into base: rebased in the object store, one ref moved, the work tree follows.
//!
//! A rebase or a revert only makes objects; the same input gives the same commits, so it can be
//! computed again after a crash. [`advance`] takes the work tree that has base checked out to the next
//! commit and then moves base there, in a transaction that also verifies the run's epoch; the user's
//! index is held meanwhile. A kill in between is told by [`probe`], and put right by whoever comes
//! next: what base has not goes back, what it has is brought to its end by [`follow`]. Nothing here
//! decides which lane comes next or whether tests passed.

mod advance;
mod conflict;
mod diff;
mod filtered;
mod follow;
mod guard;
mod preview;
mod rebase;
mod replay;
mod revert;
mod sides;
mod undo;

use std::path::{Path, PathBuf};

pub use advance::{Advanced, Probe, advance, finish_interrupted, probe};
pub use follow::{Followed, follow};
pub use preview::would_follow;
pub use rebase::{Rebase, rebase};
pub use revert::{Revert, revert};
pub use sides::{Disputed, Sides, has_markers, sides};

pub use crate::git::is_ancestor;
use crate::git::{self, Git};
use crate::restore::PUT_BACK_FAILED;
use crate::{checks, worktree};

/// Why merging could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A worktree or a file could not be used.
    #[error(transparent)]
    Worktree(#[from] worktree::Error),
    /// Another driver took the run over.
    #[error("another driver took this run over; follow it with `piton status`")]
    Superseded,
    /// Somebody else holds a lock of git's.
    #[error(
        "{0} exists: another git command is at work there, or one was killed; wait for it, or delete the file if none runs"
    )]
    Locked(PathBuf),
    /// Something is under way that moves base too.
    #[error(transparent)]
    UnderWay(#[from] checks::Refusal),
    /// Files were on the way, and could not be put back.
    #[error("{why}; {PUT_BACK_FAILED} ({and}): the next command that drives the run tries again")]
    Half {
        /// What failed.
        why: String,
        /// What failed then.
        and: String,
    },
    /// Git answered something we do not understand.
    #[error("git {0} answered in a way this piton does not know; report it with `git version`")]
    Strange(&'static str),
}

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Tells whether a branch contains a commit; a branch that is gone contains nothing.
pub fn contains(root: &Path, branch: &str, commit: &str) -> Result<bool> {
    match crate::refs::value(root, &format!("refs/heads/{branch}")) {
        None => Ok(false),
        Some(tip) => Ok(is_ancestor(root, commit, &tip)?),
    }
}

/// The tree of a commit.
fn tree_of(dir: &Path, commit: &str) -> Result<String> {
    let name = format!("{commit}^{{tree}}");
    if let Some(tree) = crate::refs::value(dir, &name) {
        return Ok(tree);
    }
    // Fails, with git's own words.
    Ok(Git::at(dir).args(["rev-parse", "--verify", &name]).text()?)
}
