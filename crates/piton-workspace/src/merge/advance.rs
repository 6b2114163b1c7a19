//! Base goes from one commit to the next, if it still is where it was and so is the epoch.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::follow::{Followed, Step, follow, is_interrupted, is_over};
use super::{Error, Result, is_ancestor};
use crate::checks::{self, Base};
use crate::refs::{self, Fence, Transaction};
use crate::repo::Repo;

/// How long it is looked for a user on the way to base that moved: between the first look at base and
/// the lock of the index, and between that and the end, a switch takes milliseconds, more on a busy
/// machine.
const ARRIVING: Duration = Duration::from_millis(100);

/// The same while somebody holds the index: perhaps a switch that writes files, perhaps a commit that
/// waits for an editor.
const ARRIVING_MAX: Duration = Duration::from_secs(1);

/// How often it is looked.
const ARRIVING_LOOK: Duration = Duration::from_millis(2);

/// How advancing came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// Base moved, and this is how its work tree followed.
    Done(Followed),
    /// Base is elsewhere (or gone); nothing was changed.
    BaseMoved {
        /// Where it is.
        found: Option<String>,
    },
    /// The user's own changes are in the way of its work tree; nothing was changed.
    InTheWay(Vec<String>),
}

/// What a look at base says about a step from one commit to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Base is at the old commit.
    NotDone,
    /// Base moved, but its work tree has not followed: call [`follow`].
    RefMoved,
    /// Base contains the new commit, and its work tree followed.
    Done,
    /// Base is elsewhere, without the new commit.
    BaseMoved {
        /// Where it is.
        found: Option<String>,
    },
}

/// Moves base with the work tree that has it checked out. Ask [`super::would_follow`] first.
///
/// The user's index is held all the while. Files and index go first, so that nobody who sees base
/// moved reads the old index: a commit from that would take the lane's work back. If base can't be
/// moved, they go back.
pub fn advance(root: &Path, base: &Base, old: &str, new: &str, fence: &Fence) -> Result<Advanced> {
    let name = base.reference();
    let found = refs::value(root, &name);
    if found.as_deref() == Some(new) {
        if !fence.holds(root) {
            return Err(Error::Superseded);
        }
        return follow(root, base, old, new).map(Advanced::Done);
    }
    if found.as_deref() != Some(old) {
        return Ok(Advanced::BaseMoved { found });
    }
    // Asked before the intent, and the user had all the time since, if its driver was killed.
    checks::may_move(base)?;
    let Some(mut step) = Step::begin(root, base, old, new)? else {
        return match move_ref(root, base, old, new, fence)? {
            Some(moved) => Ok(moved),
            None => arriving(root, base, old, new).map(Advanced::Done),
        };
    };
    let paths = step.in_the_way()?;
    if !paths.is_empty() {
        step.cancel();
        return Ok(Advanced::InTheWay(paths));
    }
    // The move verifies that too, but no file is to change for a driver that was taken over.
    if !fence.holds(root) {
        step.cancel();
        return Err(Error::Superseded);
    }
    let moved = match step.carry_out() {
        Ok(()) => move_ref(root, base, old, new, fence),
        Err(error) => return not_carried_out(root, &name, step, error),
    };
    if let Ok(None) = moved {
        return Ok(Advanced::Done(step.end()));
    }
    step.take_back(refs::value(root, &name).as_deref())?;
    step.cancel();
    moved.map(|moved| moved.unwrap_or(Advanced::BaseMoved { found }))
}

/// Looks whether the user was on the way to base when it moved. `git switch` reads where base stands
/// first and says last that it is checked out: its files and index are the old ones then, and the next
/// commit would take the lane's work back.
fn arriving(root: &Path, base: &Base, old: &str, new: &str) -> Result<Followed> {
    let (repo, began) = (Repo::find(root)?, Instant::now());
    loop {
        let stands = checks::find_base(root, &base.branch).filter(|found| found.commit == new);
        let Some(stands) = stands else { return Ok(Followed::NotCheckedOut) };
        if stands.worktree.is_some() {
            return follow(root, base, old, new);
        }
        let busy = repo.git_dir.join("index.lock").exists();
        if began.elapsed() > if busy { ARRIVING_MAX } else { ARRIVING } {
            return Ok(Followed::NotCheckedOut);
        }
        thread::sleep(ARRIVING_LOOK);
    }
}

/// The files could not be changed: perhaps because of what the user did since they were looked at.
fn not_carried_out(root: &Path, name: &str, mut step: Step, error: Error) -> Result<Advanced> {
    if let Err(and) = step.take_back(refs::value(root, name).as_deref()) {
        return Err(Error::Half { why: error.to_string(), and: and.to_string() });
    }
    let paths = step.in_the_way()?;
    step.cancel();
    if paths.is_empty() { Err(error) } else { Ok(Advanced::InTheWay(paths)) }
}

/// Moves base; nothing when it is where it should be, else how it came out.
fn move_ref(
    root: &Path,
    base: &Base,
    old: &str,
    new: &str,
    fence: &Fence,
) -> Result<Option<Advanced>> {
    let name = base.reference();
    let moved = Transaction::fenced(fence).update(&name, new, Some(old));
    // In the work tree itself, so that the log of its HEAD tells of the merge.
    let dir = base.worktree.as_deref().filter(|dir| dir.is_dir()).unwrap_or(root);
    let Err(error) = moved.commit(dir, "piton: merge lane") else { return Ok(None) };
    if !fence.holds(root) {
        return Err(Error::Superseded);
    }
    let found = refs::value(root, &name);
    match found.as_deref() {
        Some(found) if found == new => Ok(None),
        Some(found) if found == old => Err(not_moved(dir, &name, error)),
        _ => Ok(Some(Advanced::BaseMoved { found })),
    }
}

/// Why a ref that is where it should be did not move: somebody's lock, or something else.
fn not_moved(dir: &Path, name: &str, error: crate::git::Error) -> Error {
    let locks = |repo: Repo| -> Option<PathBuf> {
        let names = [format!("{name}.lock"), "packed-refs.lock".to_owned()];
        let shared = names.iter().map(|name| repo.common.join(name));
        // Git locks the HEAD that leads to base too, for its log.
        shared.chain([repo.git_dir.join("HEAD.lock")]).find(|lock| lock.exists())
    };
    match Repo::find(dir).ok().and_then(locks) {
        Some(lock) => Error::Locked(lock),
        None => Error::Git(error),
    }
}

/// Finishes or takes back what a step of base that was interrupted left in its work tree, so that the
/// user's index is free again, whatever becomes of the lane.
pub fn finish_interrupted(root: &Path, base: &Base, old: &str, new: &str) -> Result<()> {
    if probe(root, base, old, new)? == Probe::RefMoved {
        return follow(root, base, old, new).map(drop);
    }
    if !is_interrupted(root, &base.branch)? {
        return Ok(());
    }
    if let Some(step) = Step::begin(root, base, old, new)? {
        step.cancel();
    }
    Ok(())
}

/// Looks how far a step of base from one commit to another got.
pub fn probe(root: &Path, base: &Base, old: &str, new: &str) -> Result<Probe> {
    let found = refs::value(root, &base.reference());
    match found.as_deref() {
        Some(found) if found == old => Ok(Probe::NotDone),
        Some(found) if found == new => {
            let over = is_over(root, &base.branch, old, new)?;
            Ok(if over { Probe::Done } else { Probe::RefMoved })
        }
        // The user went on from there: their commit shows that their work tree was in order.
        Some(tip) if is_ancestor(root, new, tip)? && !goes_on(root, old, new, tip)? => {
            Ok(Probe::Done)
        }
        _ => Ok(Probe::BaseMoved { found }),
    }
}

/// Tells whether base went on from the old commit where the step goes back to an earlier one.
fn goes_on(root: &Path, old: &str, new: &str, tip: &str) -> Result<bool> {
    Ok(is_ancestor(root, new, old)? && is_ancestor(root, old, tip)?)
}
