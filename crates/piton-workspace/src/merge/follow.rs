//! The work tree that has base checked out goes to the new commit, just before base does.
//!
//! The order is what keeps a user's `git commit` from taking a merge back. Git reads HEAD, then the
//! index, takes the lock of the index, and in the end moves HEAD from what it read at first. So with
//! the lock held and the index replaced before base moves, whoever reads the new HEAD reads the new
//! index too, and whoever read the old HEAD can't commit once base moved.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::guard::{Guard, was_interrupted};
use super::{Result, diff, preview, undo};
use crate::checks::{self, Base};
use crate::files::sync;
use crate::refs;
use crate::repo::Repo;
use crate::worktree::{At as _, locks};

/// How long the index stays held once base is where the index is. That a commit takes a merge back is
/// out of the question by the order of things; but git reads base and index, looks at its files and
/// only then asks for the lock, which takes this and more for a large index. A commit that was there
/// before the merge is refused by then, and may still leave the old index behind; a `reset` would go
/// to where base was.
const GRACE: Duration = Duration::from_millis(20);

/// What is added for each byte of the index: two microseconds a file.
const GRACE_NANOS_PER_BYTE: u64 = 20;

/// The longest grace; an index has to be very large for that.
const GRACE_MAX: Duration = Duration::from_millis(500);

/// How following came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The work tree is at the new commit.
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
    step.guard.stays = true;
    if is_followed(&step.repo, &step.changes, new)? {
        step.cancel();
        return Ok(Followed::Done);
    }
    let paths = step.in_the_way()?;
    if !paths.is_empty() {
        step.cancel();
        return Ok(Followed::Blocked(paths));
    }
    step.carry_out()?;
    Ok(step.end())
}

/// Takes an interrupted step of whichever run back, or to its end; waits for one in progress.
pub(super) fn recover(repo: &Repo, base: &Base) -> Result<()> {
    locks::await_children(repo)?;
    let mut guard = Guard::take(&repo.git_dir, "", "")?;
    let Some((old, new)) = guard.interrupted.clone() else {
        guard.finish();
        return Ok(());
    };
    guard.stays = true;
    let tip = refs::value_after_transactions(repo, &base.reference())?;
    undo::take_back(repo, &guard, (&old, &new), tip.as_deref())?;
    let is_behind = tip.as_deref() == Some(new.as_str())
        && !is_followed(repo, &diff::commits(&repo.root, &old, &new)?, &new)?;
    // The run that moved base brings the work tree there, and only then the index is free.
    if !is_behind {
        guard.finish();
    }
    Ok(())
}

/// A step of the work tree in progress: its index is held, its files are where it began.
pub(super) struct Step {
    repo: Repo,
    guard: Guard,
    changes: Vec<diff::Change>,
    /// The step from here to there.
    commits: (String, String),
    /// The index aside.
    copy: PathBuf,
}

impl Step {
    /// Takes hold of the work tree that has base checked out, if there is one. What an earlier step
    /// left there, and base has not, goes back.
    pub fn begin(root: &Path, base: &Base, old: &str, new: &str) -> Result<Option<Self>> {
        let Some(repo) = repo_of_base(root, &base.branch)? else { return Ok(None) };
        locks::await_children(&repo)?;
        let mut guard = Guard::take(&repo.git_dir, old, new)?;
        if let Some((from, to)) = guard.interrupted.clone() {
            guard.stays = true;
            let tip = refs::value_after_transactions(&repo, &base.reference())?;
            undo::take_back(&repo, &guard, (&from, &to), tip.as_deref())?;
            guard.begin(old, new)?;
            guard.stays = false;
        }
        let changes = diff::commits(&repo.root, old, new)?;
        let copy = guard.copy()?;
        let commits = (old.to_owned(), new.to_owned());
        Ok(Some(Self { repo, guard, changes, commits, copy }))
    }

    /// The user's own changes that stand in its way; files that are as it would make them are not.
    pub fn in_the_way(&self) -> Result<Vec<String>> {
        let (old, new) = &self.commits;
        let (paths, alike) = preview::in_the_way(&self.repo, &self.copy, &self.changes, old, new)?;
        if !alike.is_empty() {
            self.guard.leave(&alike)?;
        }
        Ok(paths)
    }

    /// Changes files and index. From here on the index stays held should the step not come to its
    /// end.
    pub fn carry_out(&mut self) -> Result<()> {
        self.guard.stays = true;
        let (old, new) = &self.commits;
        let git = self.repo.git().durable().index(&self.copy);
        git.args(["read-tree", "-m", "-u", old, new]).run()?;
        // Git syncs the index, not the files: torn by a power cut once base has moved, they would
        // look like changes of the user's.
        let changed = self.changes.iter().map(|change| change.path.as_path());
        sync::files(&self.repo.root, changed).at(&self.repo.root)?;
        self.guard.install()
    }

    /// Takes back what [`Step::carry_out`] did, unless base has it; it can be carried out again.
    pub fn take_back(&mut self, tip: Option<&str>) -> Result<()> {
        let (old, new) = &self.commits;
        undo::take_back(&self.repo, &self.guard, (old, new), tip)?;
        self.guard.copy()?;
        self.guard.stays = false;
        Ok(())
    }

    /// Lets go of the work tree, which is where base is.
    pub fn end(self) -> Followed {
        // Commands of git's that looked at base or the index before either moved, and are about to
        // ask for the lock, are to find it held: see `GRACE`.
        thread::sleep(grace(&self.repo.git_dir.join("index")));
        self.guard.finish();
        Followed::Done
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
pub(super) fn is_followed(repo: &Repo, changes: &[diff::Change], new: &str) -> Result<bool> {
    let behind = diff::index(&repo.root, None, new)?;
    Ok(!changes.iter().any(|change| behind.contains(&change.path)))
}

/// The repository, seen from the work tree that has base checked out.
fn repo_of_base(root: &Path, branch: &str) -> Result<Option<Repo>> {
    let dir = checks::find_base(root, branch).and_then(|base| base.worktree);
    Ok(dir.map(|dir| Repo::find(&dir)).transpose()?)
}

/// Tells whether a step was interrupted in the work tree of base.
pub(super) fn is_interrupted(root: &Path, branch: &str) -> Result<bool> {
    Ok(repo_of_base(root, branch)?.is_some_and(|repo| was_interrupted(&repo.git_dir)))
}

/// Tells whether nothing of a step is left to do in the work tree of base.
pub(super) fn is_over(root: &Path, branch: &str, old: &str, new: &str) -> Result<bool> {
    let Some(repo) = repo_of_base(root, branch)? else { return Ok(true) };
    let changes = diff::commits(&repo.root, old, new)?;
    Ok(!was_interrupted(&repo.git_dir) && is_followed(&repo, &changes, new)?)
}
