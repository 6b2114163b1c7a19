//! Merging a lane into base: rebased in the object store, one ref moved, the work tree follows.
//!
//! A rebase or a revert only makes objects; the same input gives the same commits, so it can be
//! computed again after a crash. [`advance`] takes the work tree that has base checked out to the next
//! commit and then moves base there, in a transaction that also verifies the run's epoch; the user's
//! index is held in the meantime. [`probe`] finds a kill in between, and the next driver repairs it:
//! what base does not have is put back, what it has is finished by [`follow`]. Nothing here decides which
//! lane comes next or whether tests passed.

mod advance;
mod conflict;
mod diff;
mod error;
mod filtered;
mod follow;
mod guard;
mod in_place;
mod preview;
mod rebase;
mod replay;
mod revert;
mod sides;
mod undo;

use std::path::Path;

pub use advance::{Advanced, Probe, advance, finish_interrupted, probe};
pub use error::Error;
pub use follow::{Followed, follow};
pub use in_place::commit_in_place;
pub use preview::would_follow;
pub use rebase::{Rebase, rebase};
pub use revert::{Revert, revert};
pub use sides::{Disputed, Sides, has_markers, sides};

use crate::git::Git;
pub use crate::git::is_ancestor;

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
