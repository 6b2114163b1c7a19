//! What must hold before lanes are made: a base branch, a clean work tree, a repository we can use.
//!
//! Nothing here changes anything. Each refusal names what is wrong and how to put it right; whether
//! a remark stops a run is decided by its level, not here.

mod repository;
mod submodule;
mod unchanged;

use std::path::{Path, PathBuf};

pub use repository::{Level, Remark, publishers, repository};
pub use submodule::unfilled;

use piton_core::shell;
use piton_core::text::first_few;

use crate::git::{Git, NOT_RUN};
use crate::refs;
use crate::repo::Project;

/// How many paths a refusal names: enough to recognise them, few enough to read.
const PATHS_NAMED_MAX: usize = 10;

/// An operation of git that stops half way and is ended by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The file in a git folder that says that it is under way.
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

    /// The commands that end it in a work tree, for a person to choose from.
    pub fn ends_in(&self, dir: &str) -> String {
        let command = |end: &&str| shell::git(Some(dir), &end.split(' ').collect::<Vec<_>>());
        let all: Vec<String> = self.ends.iter().map(|end| format!("`{}`", command(end))).collect();
        all.join(" or ")
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

/// Why something is not begun, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct Refusal {
    /// A frozen word for it.
    pub code: &'static str,
    /// What is wrong.
    pub what: String,
    /// How to put it right.
    pub fix: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code, what: what.into(), fix: fix.into() }
    }
}

/// The branch that lanes start from and are merged into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its short name.
    pub branch: String,
    /// The commit it stands at.
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

/// Checks that base may move: no merge, rebase or the like of it is under way.
pub fn may_move(base: &Base) -> Result<(), Refusal> {
    base.worktree.iter().chain(&base.rebased_in).try_for_each(|dir| idle(dir))
}

/// Checks that git can work in a folder.
pub fn usable(root: &Path) -> Result<(), Refusal> {
    let inside = Git::at(root).args(["rev-parse", "--is-inside-work-tree"]).text();
    match inside.as_deref() {
        Ok("true") => Ok(()),
        Ok(_) => Err(Refusal::new(
            "bare-repository",
            format!("{} is a bare repository: it has no work tree", root.display()),
            "call piton in a clone or a linked worktree of it",
        )),
        Err(error) => Err(unusable(root, &error.message)),
    }
}

/// Why git takes a folder for no work tree, from what it said.
fn unusable(root: &Path, said: &str) -> Refusal {
    let root = root.display().to_string();
    if said.contains("dubious ownership") {
        let message = format!("the repository at {root} belongs to another user");
        let trust = shell::git(None, &["config", "--global", "--add", "safe.directory", &root]);
        let fix = format!("`{trust}`");
        return Refusal::new("foreign-owner", message, fix);
    }
    let fix = if said.starts_with(NOT_RUN) {
        "install git, or put it on the PATH"
    } else {
        "run `git init` and commit once, or use isolation = \"in-repo\""
    };
    let message = format!("{root} is not usable as a git work tree: {said}");
    Refusal::new("no-repository", message, fix)
}

fn current(root: &Path) -> Result<String, Refusal> {
    let head = Project::discover_cached(root).ok().and_then(|project| project.branch());
    head.ok_or_else(|| {
        Refusal::new(
            "detached-head",
            "no branch is checked out (HEAD is detached)",
            "check out the branch to merge into, or name it with --base",
        )
    })
}

fn no_such_branch(root: &Path, branch: &str) -> Refusal {
    let unborn = refs::value(root, "HEAD^{commit}").is_none();
    if unborn && current(root).is_ok_and(|name| name == branch) {
        return Refusal::new(
            "no-commits",
            format!("the branch {branch} has no commit yet, so no lane can start from it"),
            "make a first commit, for example `git commit --allow-empty -m Start`",
        );
    }
    let pattern = format!("refs/remotes/*/{branch}");
    let remote = Git::at(root)
        .args(["for-each-ref", "--count=1", "--format=%(refname:short)", &pattern])
        .text()
        .unwrap_or_default();
    let fix = if remote.is_empty() {
        "name one that `git branch` lists".to_owned()
    } else {
        format!("make it with `{}`", shell::git(None, &["branch", branch, &remote]))
    };
    Refusal::new("no-base", format!("there is no branch {branch}"), fix)
}

/// Checks that a work tree holds nothing uncommitted, our own files and folders apart.
pub fn clean(dir: &Path, own: &[&str]) -> Result<(), Refusal> {
    let git_dir = git_dir(dir);
    idle_in(dir, git_dir.as_deref())?;
    let is_own = |path: &str| own.iter().any(|own| is_below(path, own));
    if git_dir.is_some_and(|git_dir| unchanged::is_clean(dir, &git_dir, &is_own)) {
        return Ok(());
    }
    let status = Git::at(dir)
        .args(["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])
        .bytes()
        .map_err(|error| {
            Refusal::new("no-status", error.to_string(), "see that `git status` works here")
        })?;
    let dirty: Vec<String> = status
        .split(|byte| *byte == 0)
        .filter_map(|line| line.get(3..))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .filter(|path| !is_own(path) && !submodule::lags(dir, path))
        .map(|path| named(dir, &path))
        .collect();
    if dirty.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        "dirty",
        format!("{} holds uncommitted changes: {}", dir.display(), named_few(&dirty)),
        "commit or stash them, or start the lanes from them with --seed-dirty",
    ))
}

/// Checks that no merge, rebase or the like is under way in a work tree.
pub fn idle(dir: &Path) -> Result<(), Refusal> {
    idle_in(dir, git_dir(dir).as_deref())
}

/// The git folder of a work tree.
fn git_dir(dir: &Path) -> Option<PathBuf> {
    Project::discover_cached(dir).ok().and_then(|project| project.git_dir)
}

fn idle_in(dir: &Path, git_dir: Option<&Path>) -> Result<(), Refusal> {
    match git_dir.and_then(|git_dir| found_in(git_dir).next()) {
        None => Ok(()),
        Some(found) => {
            let ends = found.ends_in(&dir.display().to_string());
            Err(Refusal::new(
                "under-way",
                format!("{} is under way in {}", found.what, dir.display()),
                format!("end it first: {ends}"),
            ))
        }
    }
}

/// The operations that are under way in a work tree.
pub fn under_way(dir: &Path) -> Vec<Operation> {
    git_dir(dir).iter().flat_map(|git_dir| found_in(git_dir)).collect()
}

fn found_in(git_dir: &Path) -> impl Iterator<Item = Operation> {
    UNDER_WAY.into_iter().filter(|operation| git_dir.join(operation.file).exists())
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
    if submodule::indexed(dir, path).is_some() {
        return format!(
            "{path} (a submodule: commit where it is, or take it back with git submodule update)"
        );
    }
    format!(
        "{path} (a repository of its own: move it away, let git ignore it, or make it a submodule)"
    )
}

/// The first few of many paths, and how many more there are.
pub(crate) fn named_few(paths: &[String]) -> String {
    first_few(paths.iter().cloned(), PATHS_NAMED_MAX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_done_follows_from_what_git_said() {
        for (said, fix) in [
            ("git could not be run: No such file or directory (os error 2)", "install git"),
            ("fatal: detected dubious ownership in repository at '/x'", "safe.directory /x"),
            ("fatal: not a git repository", "git init"),
        ] {
            let refusal = unusable(Path::new("/x"), said);
            assert!(refusal.fix.contains(fix), "{}", refusal.fix);
        }
    }
}
