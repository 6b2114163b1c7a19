//! Whether the work tree that has base checked out could follow, asked before base moves.
//!
//! Worked out on a copy of the index, so the user's own is not even locked, except to take back what
//! an interrupted step left. What the user changed and the merge does not touch stays; what both touch
//! is refused, ignored files included, although git itself would overwrite those. A file that is
//! already what the merge brings is not in its way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use piton_core::refusal::Refusal;

use super::diff::{self, Change};
use super::{Error, Result, filtered, follow, guard, undo};
use crate::checks::{self, Base};
use crate::git::Git;
use crate::refusals;
use crate::repo::Repo;
use crate::worktree::At as _;

/// The copy of the index in the git folder of a work tree.
const COPY: &str = "piton-check";

/// Checks that the work tree of base, if there is one, can go from one commit to another.
pub fn would_follow(base: &Base, old: &str, new: &str) -> std::result::Result<(), Refusal> {
    checks::may_move(base)?;
    let Some(dir) = &base.worktree else { return Ok(()) };
    match overlaps(base, dir, old, new) {
        Ok(Overlap { paths, .. }) if !paths.is_empty() => Err(refusals::in_the_way(dir, &paths)),
        Ok(Overlap { unfiltered: Some(said), .. }) => Err(refusals::filter_fails(&said)),
        Ok(_) => Ok(()),
        Err(Error::Locked(lock)) => Err(refusals::index_locked(&lock)),
        Err(error) => Err(refusals::cannot_follow(dir, error.to_string())),
    }
}

/// What stands in the way of a merge.
struct Overlap {
    /// Paths that the user changed.
    paths: Vec<String>,
    /// What git says of a filter that fails.
    unfiltered: Option<String>,
}

fn overlaps(base: &Base, dir: &Path, old: &str, new: &str) -> Result<Overlap> {
    let repo = Repo::find(dir)?;
    if let Some(lock) = guard::foreign_lock(&repo.git_dir) {
        return Err(Error::Locked(lock));
    }
    if guard::was_interrupted(&repo.git_dir) {
        follow::recover(&repo, base)?;
    }
    // Another run's step would look like changes of the user's.
    let aside = Aside::copy(&repo)?;
    let changes = diff::commits(dir, old, new)?;
    let (paths, _) = in_the_way(&repo, &aside.copy, &changes, old, new)?;
    let unfiltered = if paths.is_empty() { filtered::fails(dir, &changes, new)? } else { None };
    Ok(Overlap { paths, unfiltered })
}

/// The changed paths that the user has changed, staged or created, judged by a copy of the index;
/// and those where the file is already what the merge brings, which the copy then has as theirs.
pub(super) fn in_the_way(
    repo: &Repo,
    copy: &Path,
    changes: &[Change],
    old: &str,
    new: &str,
) -> Result<(Vec<String>, Vec<PathBuf>)> {
    let dir = &repo.root;
    let touched = diff::files(dir, copy)?;
    let staged = diff::index(dir, Some(copy), old)?;
    let is_in_the_way = |change: &&Change| {
        let untracked = !change.in_old && is_taken(dir, &change.path, changes, &touched);
        touched.contains(&change.path) || staged.contains(&change.path) || untracked
    };
    let found: Vec<&Change> = changes.iter().filter(is_in_the_way).collect();
    let alike =
        if found.is_empty() { Vec::new() } else { alike(repo, copy, &found, &staged, new)? };
    let named = found.iter().filter(|change| !alike.contains(&change.path));
    let paths: Vec<String> = named.map(|c| checks::named(dir, &c.path.to_string_lossy())).collect();
    if !paths.is_empty() {
        return Ok((paths, alike));
    }
    // Git's own judgement comes last: it knows of more than paths.
    let dry = Git::at(dir).index(copy).args(["read-tree", "-m", "-u", "-n", old, new]).output()?;
    if dry.status.success() {
        return Ok((Vec::new(), alike));
    }
    let said = String::from_utf8_lossy(&dry.stderr);
    Ok((vec![format!("git says: {}", said.trim_end().trim_start_matches("error: "))], alike))
}

/// Those of the paths in the way whose file, and whatever is staged of it, is already that of the new
/// commit. The copy of the index gets them, so that git leaves their files alone.
fn alike(
    repo: &Repo,
    copy: &Path,
    found: &[&Change],
    staged: &BTreeSet<PathBuf>,
    new: &str,
) -> Result<Vec<PathBuf>> {
    let dir = &repo.root;
    let other = undo::unlike_new(repo, found)?;
    let staged_other = diff::index(dir, Some(copy), new)?;
    let same = |change: &&&Change| {
        let path = &change.path;
        let there = fs::symlink_metadata(dir.join(path)).is_ok();
        let file = if change.new.is_some() { !other.contains(path) } else { !there };
        file && !(staged.contains(path) && staged_other.contains(path))
    };
    let found: Vec<&&Change> = found.iter().filter(same).collect();
    if !found.is_empty() {
        let lines = diff::index_info(found.iter().map(|change| **change), new.len());
        let args = ["update-index", "-z", "--add", "--index-info"];
        Git::at(dir).index(copy).args(args).input(lines).run()?;
        // Its exit says that files differ, which others may.
        Git::at(dir).index(copy).args(["update-index", "-q", "--refresh"]).output()?;
    }
    Ok(found.iter().map(|change| change.path.clone()).collect())
}

/// Tells whether something that git does not track stands where a new file should go.
fn is_taken(dir: &Path, path: &Path, changes: &[Change], touched: &BTreeSet<PathBuf>) -> bool {
    let there = fs::symlink_metadata(dir.join(path));
    if let Ok(found) = there {
        // A folder whose tracked files all go makes room by itself, if nothing else is in it.
        return !found.is_dir() || !vanishes(dir, path, changes);
    }
    let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.any(|above| {
        let found = fs::symlink_metadata(dir.join(above));
        let goes = changes.iter().any(|c| c.path == above && c.new.is_none());
        let goes = goes && !touched.contains(above);
        found.is_ok_and(|found| !found.is_dir()) && !goes
    })
}

/// Tells whether everything in a folder is deleted by the changes.
fn vanishes(dir: &Path, folder: &Path, changes: &[Change]) -> bool {
    let Ok(entries) = fs::read_dir(dir.join(folder)) else { return false };
    entries.filter_map(std::result::Result::ok).all(|entry| {
        let path = folder.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            return vanishes(dir, &path, changes);
        }
        changes.iter().any(|c| c.path == path && c.new.is_none())
    })
}

/// A copy of an index that goes with this value. There is one place for it, so that kills leave at most
/// one behind; whose turn it is has that place.
struct Aside {
    copy: PathBuf,
    _turn: guard::Turn,
}

impl Aside {
    fn copy(repo: &Repo) -> Result<Self> {
        let aside =
            Self { copy: repo.git_dir.join(COPY), _turn: guard::Turn::take(&repo.git_dir)? };
        aside.clear();
        let index = repo.git_dir.join("index");
        if index.exists() {
            fs::copy(&index, &aside.copy).at(&aside.copy)?;
        }
        Ok(aside)
    }

    fn clear(&self) {
        let _ = fs::remove_file(&self.copy);
        let _ = fs::remove_file(self.copy.with_extension("lock"));
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.clear();
    }
}
