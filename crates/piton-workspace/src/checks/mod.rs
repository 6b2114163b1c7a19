//! What must hold before lanes are made: a base branch, a clean work tree, a repository we can use.
//!
//! Nothing here changes anything. Each refusal names what is wrong and how to fix it; a remark says whether it
//! stops lanes.

mod exclude;
mod repository;
mod submodule;

use std::path::{Path, PathBuf};

pub use exclude::{is_tracked, keep_out};
pub use repository::{Remark, publishers, repository};
pub use submodule::unfilled;

use piton_core::refusal::Refusal;

use crate::git::{self, Git, NOT_RUN};
use crate::history;
use crate::refs;
use crate::refusals;
use crate::repo::Project;

/// Git's own words for a repository of another user.
const GIT_FOREIGN_OWNER: &str = "dubious ownership";

/// An operation of git that stops half way and is ended by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The file in a git folder that says that it is in progress.
    file: &'static str,
    /// What it is, with its article.
    pub what: &'static str,
    /// The git commands that end it, without `git`.
    ends: &'static [&'static str],
}

impl Operation {
    /// Whether it is a merge: all that it is about is in the work tree and the index.
    pub fn is_merge(&self) -> bool {
        *self == MERGE
    }

    /// Why nothing is done in a work tree while it is in progress.
    pub fn refusal(&self, dir: &Path) -> Refusal {
        refusals::operation_in_progress(self.what, dir, self.ends)
    }
}

const MERGE: Operation =
    Operation { file: "MERGE_HEAD", what: "a merge", ends: &["merge --continue", "merge --abort"] };
const REBASE: Operation = Operation {
    file: "rebase-merge",
    what: "a rebase",
    ends: &["rebase --continue", "rebase --abort"],
};

/// All of them; a rebase leaves files of the others too, and names itself.
const UNDER_WAY: [Operation; 6] = [
    REBASE,
    Operation { file: "rebase-apply", ..REBASE },
    MERGE,
    Operation {
        file: "CHERRY_PICK_HEAD",
        what: "a cherry-pick",
        ends: &["cherry-pick --continue", "cherry-pick --abort"],
    },
    Operation {
        file: "REVERT_HEAD",
        what: "a revert",
        ends: &["revert --continue", "revert --abort"],
    },
    Operation { file: "BISECT_LOG", what: "a bisection", ends: &["bisect reset"] },
];

/// The branch that lanes start from and are merged into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its short name.
    pub branch: String,
    /// The commit it is at.
    pub commit: String,
    /// Where it is checked out, if anywhere.
    pub worktree: Option<PathBuf>,
    /// Where it is being rebased, if anywhere: no HEAD leads to it then, but that rebase ends by moving
    /// it from where it was, and `--abort` puts it back there whatever came since.
    pub rebased_in: Option<PathBuf>,
}

impl Base {
    /// Its full name.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }
}

/// Finds the base: the branch that is checked out, or the one asked for.
pub fn base(root: &Path, wanted: Option<&str>) -> Result<Base, Refusal> {
    let branch = match wanted {
        Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
        None => current(root)?,
    };
    find_base(root, &branch).ok_or_else(|| no_such_branch(root, &branch))
}

/// Looks up where a branch stands now, and where it is checked out now.
pub fn find_base(root: &Path, branch: &str) -> Option<Base> {
    let commit = refs::value(root, &format!("refs/heads/{branch}^{{commit}}"))?;
    let worktree = crate::worktree::checked_out(root, branch);
    let worktree = worktree.filter(|path| path.join(".git").exists());
    let rebased = || crate::worktree::rebased(root, branch);
    let rebased_in = if worktree.is_none() { rebased() } else { None };
    Some(Base { branch: branch.to_owned(), commit, worktree, rebased_in })
}

/// Checks that base may move: no merge, rebase or the like of it is in progress.
pub fn may_move(base: &Base) -> Result<(), Refusal> {
    base.worktree.iter().chain(&base.rebased_in).try_for_each(|dir| idle(dir))
}

/// Asks git whether a folder is in a work tree, rather than in a bare repository; it fails where git
/// refuses the repository.
pub fn is_work_tree(root: &Path) -> Result<bool, git::Error> {
    Ok(git::git(root, &["rev-parse", "--is-inside-work-tree"])? == "true")
}

/// Checks that git can work in a folder.
pub fn usable(root: &Path) -> Result<(), Refusal> {
    match is_work_tree(root) {
        Ok(true) => Ok(()),
        Ok(false) => Err(refusals::bare_repository(root)),
        Err(error) => Err(unusable(root, &error.message)),
    }
}

/// Why git takes a folder for no work tree, from what it said.
fn unusable(root: &Path, said: &str) -> Refusal {
    if said.contains(GIT_FOREIGN_OWNER) {
        refusals::foreign_owner(root)
    } else if said.starts_with(NOT_RUN) {
        refusals::git_not_found(said)
    } else {
        refusals::no_repository(root, said)
    }
}

fn current(root: &Path) -> Result<String, Refusal> {
    let head = Project::discover_cached(root).ok().and_then(|project| project.branch());
    head.ok_or_else(refusals::detached_head)
}

fn no_such_branch(root: &Path, branch: &str) -> Refusal {
    let unborn = refs::value(root, "HEAD^{commit}").is_none();
    if unborn && current(root).is_ok_and(|name| name == branch) {
        return refusals::no_commits(branch);
    }
    let pattern = format!("refs/remotes/*/{branch}");
    let remote = Git::at(root)
        .args(["for-each-ref", "--count=1", "--format=%(refname:short)", &pattern])
        .text()
        .unwrap_or_default();
    refusals::no_base(branch, Some(remote.as_str()).filter(|name| !name.is_empty()))
}

/// Checks that a work tree holds nothing uncommitted, our own files and folders apart.
pub fn clean(dir: &Path, own: &[&str]) -> Result<(), Refusal> {
    idle(dir)?;
    let is_own = |path: &str| own.iter().any(|own| is_below(path, own));
    let uncommitted = history::uncommitted(dir);
    let uncommitted = uncommitted.map_err(|error| refusals::no_status(dir, error.to_string()))?;
    let dirty: Vec<String> = uncommitted
        .into_iter()
        .filter(|path| !is_own(path) && !submodule::lags(dir, path))
        .map(|path| named(dir, &path))
        .collect();
    if dirty.is_empty() { Ok(()) } else { Err(refusals::dirty(dir, &dirty)) }
}

/// Checks that no merge, rebase or the like is in progress in a work tree.
pub fn idle(dir: &Path) -> Result<(), Refusal> {
    under_way(dir).first().map_or(Ok(()), |found| Err(found.refusal(dir)))
}

/// The operations that are in progress in a work tree.
pub fn under_way(dir: &Path) -> Vec<Operation> {
    let git_dir = Project::discover_cached(dir).ok().and_then(|project| project.git_dir);
    let found = |operation: &Operation| {
        git_dir.as_ref().is_some_and(|git_dir| git_dir.join(operation.file).exists())
    };
    UNDER_WAY.into_iter().filter(found).collect()
}

fn is_below(path: &str, own: &str) -> bool {
    let own = own.trim_end_matches('/');
    path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path that is in the way; of a repository of its own it is said what can be done about it, for it
/// can be neither committed nor stashed.
pub(crate) fn named(dir: &Path, path: &str) -> String {
    let is_repository = dir.join(path).is_dir() && dir.join(path).join(".git").exists();
    if !is_repository {
        return path.to_owned();
    }
    match submodule::indexed(dir, path) {
        Some(_) => refusals::changed_submodule(path),
        None => refusals::nested_repository(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_done_follows_from_what_git_said() {
        for (said, code) in [
            ("git could not be run: No such file or directory (os error 2)", "git"),
            ("fatal: detected dubious ownership in repository at '/x'", "foreign-owner"),
            ("fatal: not a git repository", "no-repository"),
        ] {
            assert_eq!(unusable(Path::new("/x"), said).code, code);
        }
    }
}
