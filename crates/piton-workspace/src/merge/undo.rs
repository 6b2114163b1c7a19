//! Files and index of a step that did not come to its end, put back to where it began.
//!
//! Git writes files one by one and the index last. So after a kill, of the paths the step changes,
//! some are new, some old, one perhaps half-written. Those go back to the old state, from which the
//! step can begin again. A file that is neither, nor the beginning of the new one, is the user's:
//! it is left, and will be found in the way.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::Result;
use super::diff::{self, Change};
use super::guard::Guard;
use crate::files::sync;
use crate::git::{self, Git};
use crate::repo::Repo;
use crate::worktree::At as _;

/// Brings a work tree to where the next step can begin: what base has not, goes back.
pub(super) fn take_back(
    repo: &Repo,
    guard: &Guard,
    (old, new): (&str, &str),
    tip: Option<&str>,
) -> Result<()> {
    if !guard.is_placed() {
        rewind(repo, guard, (old, new))?;
        guard.forget();
        return Ok(());
    }
    // The index is written after the files, so all of them are new.
    let is_in_base = |tip| -> Result<bool> {
        let changes = diff::commits(&repo.root, old, new)?;
        let other = diff::commits(&repo.root, tip, new)?;
        Ok(!other.iter().any(|other| changes.iter().any(|change| change.path == other.path)))
    };
    // Base need not be at the new commit for that: a user's commit that began before the step, and
    // has a hook, reads the index once more, and may get to base first with what the merge brings.
    if tip.map_or(Ok(false), is_in_base)? {
        guard.forget();
        return Ok(());
    }
    rewind(repo, guard, (old, new))?;
    guard.put_back()
}

/// Puts the files of an interrupted step back.
fn rewind(repo: &Repo, guard: &Guard, (old, new): (&str, &str)) -> Result<()> {
    let dir = &repo.root;
    let changes = diff::commits(dir, old, new)?;
    let copy = guard.copy()?;
    let at_old = diff::index(dir, Some(&copy), old)?;
    let touched = diff::files(dir, &copy)?;
    let other = unlike_new(repo, &changes.iter().collect::<Vec<_>>())?;
    let theirs = guard.theirs();
    let (mut restored, mut put_back) = (Vec::new(), Vec::new());
    let stepped_on = |c: &&Change| !at_old.contains(&c.path) && !theirs.contains(&c.path);
    for change in changes.iter().filter(stepped_on) {
        let file = dir.join(&change.path);
        let there = fs::symlink_metadata(&file).ok();
        let is_dir = there.as_ref().is_some_and(fs::Metadata::is_dir);
        let stepped = || !other.contains(&change.path) || is_beginning(dir, change, &file);
        if !change.in_old {
            if there.is_some() && !is_dir && stepped() {
                let _ = fs::remove_file(&file);
                remove_empty(dir, &file);
                put_back.push(change.path.as_path());
            }
        } else if touched.contains(&change.path) && !is_dir && (there.is_none() || stepped()) {
            restored.push(change.path.as_os_str().as_bytes());
            put_back.push(change.path.as_path());
        }
    }
    if !restored.is_empty() {
        let args = ["checkout-index", "--force", "-z", "--stdin"];
        Git::at(dir).index(&copy).args(args).input(git::ended(restored)).run()?;
    }
    // The note of the step goes next: files that a power cut emptied after that would be the user's.
    sync::files(dir, put_back.into_iter()).at(dir)?;
    let _ = fs::remove_file(copy);
    Ok(())
}

/// The changed paths whose file is not that of the new commit.
pub(super) fn unlike_new(repo: &Repo, changes: &[&Change]) -> Result<BTreeSet<PathBuf>> {
    let index = repo.git_dir.join("piton-unlike");
    for left in [&index, &repo.git_dir.join("piton-unlike.lock")] {
        let _ = fs::remove_file(left);
    }
    let there = changes.iter().copied().filter(|change| change.new.is_some());
    let lines = diff::index_info(there, 0);
    let args = ["update-index", "-z", "--index-info"];
    Git::at(&repo.root).index(&index).args(args).input(lines).run()?;
    let unlike = diff::files(&repo.root, &index);
    let _ = fs::remove_file(&index);
    let mut unlike = unlike?;
    // What is not in the new commit is unlike it if it is there.
    let gone = changes.iter().filter(|change| change.new.is_none());
    unlike.extend(gone.map(|change| change.path.clone()));
    Ok(unlike)
}

/// Tells whether a file holds the first part of what the new commit would write.
fn is_beginning(dir: &Path, change: &Change, file: &Path) -> bool {
    let Some((_, id)) = &change.new else { return false };
    let mut path = OsString::from("--path=");
    path.push(&change.path);
    let whole = Git::at(dir).args(["cat-file", "--filters"]).arg(path).arg(id).bytes();
    let Ok(part) = fs::read(file) else { return false };
    whole.is_ok_and(|whole| whole.starts_with(&part))
}

fn remove_empty(dir: &Path, file: &Path) {
    for above in file.ancestors().skip(1).take_while(|above| *above != dir) {
        if fs::remove_dir(above).is_err() {
            return;
        }
    }
}
