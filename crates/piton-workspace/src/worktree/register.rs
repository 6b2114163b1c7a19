//! A lane's folder that git does not know any more is registered again, with its files as they are.
//!
//! Somebody pruned or deleted its entry, perhaps while the folder was away. The caller knows that the
//! folder is the lane's and was made whole; the record of its branch says the rest. The mark is
//! written first: whoever finds it after a kill writes what is missing beside it. What was staged, and
//! a merge or rebase that was under way, went with the entry.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::admin::{self, Admin, Folder};
use super::mark::{self, Mark};
use super::{At as _, Error, Result, Spec, add, branch, check, links, list, locks, reset};
use crate::files;
use crate::refs::Fence;
use crate::repo::Repo;

/// Registers the folder of a spec again, if it has no entry in git; nothing happens where it has one, or
/// where something else is in its place.
pub fn register_again(root: &Path, spec: &Spec, fence: &Fence) -> Result<()> {
    let repo = Repo::find(root)?;
    check(&repo, fence)?;
    let path = repo.root.join(&spec.path);
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    add::real(&repo, &path)?;
    let named = admin::leads_to(&real);
    if !is_unlinked(&real, named.as_deref()) {
        return Ok(());
    }
    locks::await_children(&repo)?;
    let (folder, owner) = (Folder::at(&real), spec.owner());
    let is_known = |a: &Admin| a.is_at(&folder) || a.owner() == Some(&owner);
    if admin::scan(&repo).iter().any(is_known) || !branch::is_claimed(&repo, spec) {
        return Ok(());
    }
    let claim = branch::claim(&repo, spec, fence)?;
    if let Some(path) = list::checked_out_in(&repo, &claim.branch) {
        return Err(Error::BranchInUse { branch: claim.branch, path });
    }
    let text = mark::as_line(&real).filter(|_| links::is_usual(&repo));
    let dir = if text.is_some() { entry(&repo, &real, named)? } else { None };
    let Some(dir) = dir else { return Err(Error::Forgotten(real)) };
    let mark = Mark {
        owner,
        branch: claim.branch,
        start: claim.start,
        boot: String::new(),
        path: text,
        missing: Vec::new(),
    };
    mark.write_first(&dir)?;
    let locked = dir.join("locked");
    files::put(&locked, format!("{}\n", mark.owner.reason()).as_bytes()).at(&locked)?;
    links::repair(&dir, &mark).at(&dir)?;
    reset::reset_index(&repo.linked(&real, &dir), "HEAD")?;
    Mark { boot: mark::boot().to_owned(), ..mark }.write(&dir)
}

/// Whether a folder has no link, or one that leads nowhere.
fn is_unlinked(path: &Path, named: Option<&Path>) -> bool {
    match fs::symlink_metadata(path.join(".git")) {
        Err(error) => error.kind() == ErrorKind::NotFound,
        Ok(_) => named.is_some_and(|dir| !dir.join("HEAD").exists()),
    }
}

/// Makes the admin folder: that which the link names, or else one with the name of the worktree's.
fn entry(repo: &Repo, path: &Path, named: Option<PathBuf>) -> Result<Option<PathBuf>> {
    let all = repo.common.join("worktrees");
    match named {
        Some(dir) if dir.parent() == Some(&all) => {
            fs::create_dir_all(&dir).at(&dir)?;
            Ok(Some(dir))
        }
        // Of another repository, or of this one before it was moved.
        Some(_) => Ok(None),
        None => links::name(repo, path),
    }
}
