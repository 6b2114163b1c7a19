//! A lane's folder that git does not know any more: a person has to move it.
//!
//! Piton locks its worktrees, so git does not prune them; somebody deleted the entry. What was staged,
//! and a merge or rebase in progress, went with it.

use std::path::Path;

use super::add::Spec;
use super::admin::{self, Admin, Folder};
use super::{Error, Result, locks};
use crate::repo::Repo;

/// Refuses a folder of a lane that has no entry in git.
pub fn refuse_forgotten(root: &Path, spec: &Spec) -> Result<()> {
    let repo = Repo::find(root)?;
    let path = repo.root.join(&spec.path);
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    locks::await_children(&repo)?;
    let (folder, owner) = (Folder::at(&real), spec.owner());
    let is_known = |a: &Admin| a.is_at(&folder) || a.owner() == Some(&owner);
    if admin::scan(&repo).iter().any(is_known) { Ok(()) } else { Err(Error::Forgotten(real)) }
}
