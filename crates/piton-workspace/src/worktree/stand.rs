//! Makes a lane's worktree stand at a commit: branch, HEAD, index, and the files if wanted.
//!
//! Only in worktrees of ours. The branch moves first, in a fenced transaction; index and files
//! follow and can follow again, so a kill in between is mended by the same call.

use std::fs;
use std::path::Path;

use super::admin::{Admin, Mark};
use super::{Error, Place, Result, fenced, locks};
use crate::refs::{self, Fence, Transaction};

/// What an interrupted operation of git leaves in an admin folder; after a move it means nothing.
const UNDER_WAY: [&str; 8] = [
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// What happens to the files of a worktree that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They become those of the commit: changes to tracked files are lost, the rest stays.
    Follow,
    /// They stay as they are; what differs from the commit shows up as a change.
    Stay,
}

/// Moves a lane's worktree and its branch to a commit.
pub fn move_to(dir: &Path, commit: &str, files: Files, fence: &Fence) -> Result<()> {
    let (place, mark) = own(dir)?;
    let name = format!("refs/heads/{}", mark.branch);
    let found = refs::value(dir, &name);
    let transaction = match found.as_deref() {
        Some(found) if found == commit => Transaction::fenced(fence).verify(&name, found),
        old => Transaction::fenced(fence).update(&name, commit, old),
    };
    transaction.commit(dir, "piton: move lane").map_err(|error| fenced(dir, fence, error))?;
    settle(&place, &mark)?;
    match files {
        Files::Follow => place.git().args(["read-tree", "--reset", "-u", commit]).run()?,
        Files::Stay => reset_index(&place, commit)?,
    }
    Ok(())
}

/// Moves a lane's worktree and its branch to a commit, with the files of another tree: what differs
/// shows up as a change. Changes to tracked files are lost.
pub fn stand_on(dir: &Path, commit: &str, tree: &str, fence: &Fence) -> Result<()> {
    move_to(dir, commit, Files::Stay, fence)?;
    let (place, _) = own(dir)?;
    place.git().args(["read-tree", "--reset", "-u", tree]).run()?;
    reset_index(&place, commit)
}

/// The worktree a folder belongs to, if it is ours and complete; stale locks are gone then.
pub(super) fn own(dir: &Path) -> Result<(Place, Mark)> {
    let place = Place::of(dir)?;
    locks::await_children(&place)?;
    let admin = Admin::read(&place.git_dir);
    match &admin.mark {
        Some(mark) if place.git_dir != place.common => {
            locks::sweep_admin(&place, &admin)?;
            Ok((place, mark.clone()))
        }
        _ => Err(Error::Foreign(place.root)),
    }
}

/// Puts HEAD back on the lane's branch and forgets a merge or rebase that a step left half-way.
pub(super) fn settle(place: &Place, mark: &Mark) -> Result<()> {
    let name = format!("refs/heads/{}", mark.branch);
    let head = place.git().args(["symbolic-ref", "-q", "HEAD"]).text().unwrap_or_default();
    if head != name {
        place.git().args(["symbolic-ref", "-m", "piton: lane", "HEAD", &name]).run()?;
    }
    for file in UNDER_WAY.map(|name| place.git_dir.join(name)) {
        // Whatever cannot be removed shows up in `git status`, and does no harm.
        let _ = if file.is_dir() { fs::remove_dir_all(&file) } else { fs::remove_file(&file) };
    }
    Ok(())
}

/// Makes the index that of a commit, keeping what it knows about files that did not change.
pub(super) fn reset_index(place: &Place, commit: &str) -> Result<()> {
    place.git().args(["read-tree", "--reset", commit]).run()?;
    // Its exit says that files differ, which is no failure here.
    place.git().args(["update-index", "-q", "--refresh"]).output()?;
    Ok(())
}
