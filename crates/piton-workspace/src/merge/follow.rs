//! The work tree that has base checked out catches up with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::guard::Guard;
use super::{Error, Result, diff, torn, would};
use crate::checks::{self, Base};
use crate::worktree::{Place, locks};

/// How long the index stays held once it is the new one: git reads the old one, looks at its files
/// and then asks for the lock, which takes this and more for a large one.
const GRACE: Duration = Duration::from_millis(20);

/// What is added for each byte of the index: two microseconds a file.
const GRACE_NANOS_PER_BYTE: u64 = 20;

/// The longest grace; an index has to be very large for that.
const GRACE_MAX: Duration = Duration::from_millis(500);

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
        // A commit of the user's that saw the ref moved but read the index before may be about to
        // ask for its lock, and would take back what the merge brought: it is to find it held.
        thread::sleep(grace(&self.place.git_dir.join("index")));
        self.guard.finish();
        Ok(Followed::Done)
    }

    /// Lets go; no file was changed.
    pub fn cancel(self) {
        let _ = fs::remove_file(&self.copy);
        self.guard.finish();
    }
}

fn grace(index: &Path) -> Duration {
    let bytes = fs::metadata(index).map_or(0, |found| found.len());
    (GRACE + Duration::from_nanos(bytes.saturating_mul(GRACE_NANOS_PER_BYTE))).min(GRACE_MAX)
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
