//! The work tree that has base checked out catches up with it.

use std::fs;
use std::path::Path;

use super::guard::Guard;
use super::{Error, Result, diff, torn, would};
use crate::checks::{self, Base};
use crate::worktree::{Place, locks};

/// How following came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The work tree stands at the new commit.
    Done,
    /// Base is not checked out anywhere.
    NotCheckedOut,
    /// The user's own changes are in the way; nothing was changed.
    Blocked(Vec<String>),
}

/// Lets the work tree of base go from one commit to another, after the ref did. May be called
/// again after a kill at any point.
pub fn follow(root: &Path, base: &Base, old: &str, new: &str) -> Result<Followed> {
    let Some(dir) = checks::standing(root, &base.branch).and_then(|base| base.worktree) else {
        return Ok(Followed::NotCheckedOut);
    };
    let place = Place::of(&dir)?;
    locks::await_children(&place)?;
    let mut guard = Guard::take(&place.git_dir, old, new)?;
    let changes = diff::commits(&dir, old, new)?;
    if is_followed(&place, &changes, new)? {
        guard.finish();
        return Ok(Followed::Done);
    }
    if let Some((from, to)) = guard.interrupted.clone() {
        torn::rewind(&place, &guard, (&from, &to))?;
        guard.begin(old, new)?;
    }
    let copy = guard.copy()?;
    let paths = would::in_the_way(&place, &copy, &changes, old, new)?;
    if !paths.is_empty() {
        let _ = fs::remove_file(copy);
        guard.finish();
        return Ok(Followed::Blocked(paths));
    }
    place.git().durable().index(&copy).args(["read-tree", "-m", "-u", old, new]).run()?;
    guard.replace()?;
    guard.finish();
    Ok(Followed::Done)
}

/// Tells whether the index has all that changed, as the new commit has it. The index is written
/// last, so the files are there too.
pub(super) fn is_followed(place: &Place, changes: &[diff::Change], new: &str) -> Result<bool> {
    let behind = diff::index(&place.root, None, new)?;
    Ok(!changes.iter().any(|change| behind.contains(&change.path)))
}

/// Tells whether nothing of a step is left to do in the work tree of base.
pub(super) fn is_over(root: &Path, branch: &str, old: &str, new: &str) -> Result<bool> {
    let Some(dir) = checks::standing(root, branch).and_then(|base| base.worktree) else {
        return Ok(true);
    };
    let place = Place::of(&dir).map_err(Error::Git)?;
    let interrupted = super::guard::was_interrupted(&place.git_dir);
    Ok(!interrupted && is_followed(&place, &diff::commits(&dir, old, new)?, new)?)
}
