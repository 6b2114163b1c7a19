//! A branch, and a worktree of it, that another tool made become those of a lane of ours.
//!
//! Only marks are written: no file, no commit, no ref of the user's changes. From then on they are
//! found and used like ones we made. What belongs to another lane of ours is refused.

use std::path::Path;

use super::admin::{self, Admin, Folder};
use super::mark::{self, Mark};
use super::{Error, Result, Spec, branch, check, locks};
use crate::refs::Fence;
use crate::repo::Repo;

/// Takes over the branch of a spec, and the worktree at its path if that has the branch checked out;
/// says whether there is such a worktree.
pub fn adopt(root: &Path, spec: &Spec, fence: &Fence) -> Result<bool> {
    let repo = Repo::find(root)?;
    check(&repo, fence)?;
    locks::await_children(&repo)?;
    let path = repo.root.join(&spec.path);
    let admins = admin::scan(&repo);
    let folder = Folder::at(&path);
    let found = admins.iter().find(|a| a.is_at(&folder)).filter(|a| a.is_linked());
    if found.and_then(Admin::owner).is_some_and(|owner| *owner != spec.owner()) {
        return Err(Error::Foreign(path));
    }
    let entry = super::list(root)?.into_iter().find(|e| admin::same(&e.path, &path));
    let is_on_branch = entry.is_some_and(|e| e.branch.as_deref() == Some(&spec.branch));
    branch::take(&repo, spec, fence)?;
    let Some(admin) = found.filter(|_| is_on_branch) else { return Ok(false) };
    let mark = Mark {
        owner: spec.owner(),
        branch: spec.branch.clone(),
        start: spec.start.clone(),
        boot: mark::boot().to_owned(),
        path: None,
        missing: Vec::new(),
    };
    mark.write(&admin.dir)?;
    Ok(true)
}
