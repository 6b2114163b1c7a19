//! Whether the work tree that has base checked out could follow, asked before base moves.
//!
//! Worked out on a copy of the index, so the user's own is not even locked, except to take back what
//! an interrupted step left. What the user changed and the merge does not touch stays; what both touch
//! is refused, ignored files included, although git itself would overwrite those. A file that is
//! already what the merge brings is not in its way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::diff::{self, Change};
use super::{Error, Result, follow, guard, torn};
use crate::checks::{self, Base, Named, Refusal};
use crate::git::Git;
use crate::worktree::{At as _, Place};

/// Checks that the work tree of base, if there is one, can go from one commit to another.
pub fn would_follow(base: &Base, old: &str, new: &str) -> std::result::Result<(), Refusal> {
    let Some(dir) = &base.worktree else { return Ok(()) };
    checks::settled(dir)?;
    match overlaps(base, dir, old, new) {
        Ok(paths) if paths.is_empty() => Ok(()),
        Ok(paths) => Err(Refusal::new(
            "base-in-the-way",
            format!("{} holds changes to what the merge changes: {}", dir.display(), Named(&paths)),
            "commit, stash or move them away, then resume",
        )),
        Err(Error::Locked(lock)) => Err(Refusal::new(
            "index-locked",
            format!("{} exists: another git command is at work, or one was killed", lock.display()),
            "wait for it, or delete the file if no git command runs",
        )),
        Err(error) => Err(Refusal::new(
            "cannot-follow",
            error.to_string(),
            format!("see that `git status` works in {}", dir.display()),
        )),
    }
}

/// The paths that stand in the way.
fn overlaps(base: &Base, dir: &Path, old: &str, new: &str) -> Result<Vec<String>> {
    let place = Place::of(dir)?;
    if let Some(lock) = guard::foreign_lock(&place.git_dir) {
        return Err(Error::Locked(lock));
    }
    if guard::was_interrupted(&place.git_dir) {
        follow::recover(&place, base)?;
    }
    // Another run's step would look like changes of the user's.
    let _turn = guard::Turn::take(&place.git_dir)?;
    let aside = Aside::copy(&place)?;
    let changes = diff::commits(dir, old, new)?;
    Ok(in_the_way(&place, &aside.copy, &changes, old, new)?.0)
}

/// The changed paths that the user has changed, staged or created, judged by a copy of the index;
/// and those where the file is already what the merge brings, which the copy then has as theirs.
pub(super) fn in_the_way(
    place: &Place,
    copy: &Path,
    changes: &[Change],
    old: &str,
    new: &str,
) -> Result<(Vec<String>, Vec<PathBuf>)> {
    let dir = &place.root;
    let touched = diff::files(dir, copy)?;
    let staged = diff::index(dir, Some(copy), old)?;
    let is_in_the_way = |change: &&Change| {
        let untracked = !change.in_old && is_taken(dir, &change.path, changes, &touched);
        touched.contains(&change.path) || staged.contains(&change.path) || untracked
    };
    let found: Vec<&Change> = changes.iter().filter(is_in_the_way).collect();
    let alike =
        if found.is_empty() { Vec::new() } else { alike(place, copy, &found, &staged, new)? };
    let named = found.iter().filter(|change| !alike.contains(&change.path));
    let paths: Vec<String> = named.map(|c| c.path.to_string_lossy().into_owned()).collect();
    if !paths.is_empty() {
        return Ok((paths, alike));
    }
    // Git's own judgement comes last: it knows of more than paths.
    let dry = Git::at(dir).index(copy).args(["read-tree", "-m", "-u", "-n", old, new]).output()?;
    if dry.status.success() {
        return Ok((Vec::new(), alike));
    }
    Ok((vec![String::from_utf8_lossy(&dry.stderr).trim_end().to_owned()], alike))
}

/// Those of the paths in the way whose file, and whatever is staged of it, is already that of the new
/// commit. The copy of the index gets them, so that git leaves their files alone.
fn alike(
    place: &Place,
    copy: &Path,
    found: &[&Change],
    staged: &BTreeSet<PathBuf>,
    new: &str,
) -> Result<Vec<PathBuf>> {
    let dir = &place.root;
    let other = torn::unlike_new(place, found)?;
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

/// A copy of an index that goes with this value. There is one place for it, in our own folder, and
/// a lock on that, so that kills leave at most one behind.
struct Aside {
    copy: PathBuf,
    _held: fs::File,
}

impl Aside {
    fn copy(place: &Place) -> Result<Self> {
        place.prepare();
        let (guard, copy) = (place.state.join("check-guard"), place.state.join("check-index"));
        let open = || {
            let file = fs::File::options().append(true).create(true).open(&guard)?;
            file.lock().map(|()| file)
        };
        let held = open().at(&guard)?;
        let aside = Self { copy, _held: held };
        aside.clear();
        let index = place.git_dir.join("index");
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
