//! The work tree that has base checked out catches up with it.

use std::fs;
use std::path::{Path, PathBuf};

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
    let Some(mut step) = Step::begin(root, base, old, new)? else {
        return Ok(Followed::NotCheckedOut);
    };
    step.stays();
    if step.is_over {
        step.cancel();
        return Ok(Followed::Done);
    }
    let paths = step.in_the_way()?;
    if !paths.is_empty() {
        step.cancel();
        return Ok(Followed::Blocked(paths));
    }
    step.carry_out()
}

/// A step of the work tree under way: its index is held, its files are where it began.
pub(super) struct Step {
    place: Place,
    guard: Guard,
    changes: Vec<diff::Change>,
    /// The step from here to there.
    commits: (String, String),
    /// Nothing is left to do.
    is_over: bool,
    /// The index aside.
    copy: PathBuf,
}

impl Step {
    /// Takes hold of the work tree that has base checked out, if there is one.
    pub fn begin(root: &Path, base: &Base, old: &str, new: &str) -> Result<Option<Self>> {
        let Some(dir) = checks::standing(root, &base.branch).and_then(|base| base.worktree) else {
            return Ok(None);
        };
        let place = Place::of(&dir)?;
        locks::await_children(&place)?;
        let mut guard = Guard::take(&place.git_dir, old, new)?;
        let changes = diff::commits(&dir, old, new)?;
        let is_over = is_followed(&place, &changes, new)?;
        if let (Some((from, to)), false) = (guard.interrupted.clone(), is_over) {
            torn::rewind(&place, &guard, (&from, &to))?;
            guard.begin(old, new)?;
        }
        let copy = guard.copy()?;
        let commits = (old.to_owned(), new.to_owned());
        Ok(Some(Self { place, guard, changes, commits, is_over, copy }))
    }

    /// From here on base is ahead: should the step fail, the index stays held.
    pub fn stays(&mut self) {
        self.guard.stays = true;
    }

    /// The user's own changes that stand in its way; files that are as it would make them are not.
    pub fn in_the_way(&self) -> Result<Vec<String>> {
        let (old, new) = &self.commits;
        let (paths, alike) = would::in_the_way(&self.place, &self.copy, &self.changes, old, new)?;
        if !alike.is_empty() {
            self.guard.leave(&alike)?;
        }
        Ok(paths)
    }

    /// Changes files and index.
    pub fn carry_out(self) -> Result<Followed> {
        let (old, new) = &self.commits;
        let git = self.place.git().durable().index(&self.copy);
        git.args(["read-tree", "-m", "-u", old, new]).run()?;
        self.guard.replace()?;
        self.guard.finish();
        Ok(Followed::Done)
    }

    /// Lets go; no file was changed.
    pub fn cancel(self) {
        let _ = fs::remove_file(&self.copy);
        self.guard.finish();
    }
}

/// Tells whether the index has all that changed, as the new commit has it. The index is written
/// last, so the files are there too.
pub(super) fn is_followed(place: &Place, changes: &[diff::Change], new: &str) -> Result<bool> {
    let behind = diff::index(&place.root, None, new)?;
    Ok(!changes.iter().any(|change| behind.contains(&change.path)))
}

/// Tells whether a step was interrupted in the work tree of base.
pub(super) fn is_interrupted(root: &Path, branch: &str) -> Result<bool> {
    let Some(dir) = checks::standing(root, branch).and_then(|base| base.worktree) else {
        return Ok(false);
    };
    Ok(super::guard::was_interrupted(&Place::of(&dir)?.git_dir))
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
