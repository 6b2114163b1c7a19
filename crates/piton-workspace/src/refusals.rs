//! The refusals of this crate: what people read when git or a repository is not as lanes need it.
//!
//! Only sentences. When each applies is decided where it is called.

use std::path::Path;

use piton_core::refusal::{Refusal, Remedy};
use piton_core::shell;
use piton_core::text::first_few;

/// The code of an act that failed and could not be taken back either.
pub const HALF_DONE: &str = "half-done";

/// How many paths a refusal names: enough to recognise them, few enough to read.
const PATHS_NAMED_MAX: usize = 10;

fn named_few(paths: &[String]) -> String {
    first_few(paths.iter().cloned(), PATHS_NAMED_MAX).unwrap_or_default()
}

pub(crate) fn bare_repository(root: &Path) -> Refusal {
    let cause = format!("{} is a bare repository and has no work tree", root.display());
    Refusal::new("bare-repository", cause).or("run piton in a clone or a linked worktree of it")
}

pub(crate) fn foreign_owner(root: &Path) -> Refusal {
    let root = root.display().to_string();
    let trust = shell::git(None, &["config", "--global", "--add", "safe.directory", &root]);
    Refusal::new("foreign-owner", format!("the repository at {root} belongs to another user"))
        .or(Remedy::shell(trust))
}

pub(crate) fn git_not_found(said: &str) -> Refusal {
    Refusal::new("git", said).or("install git, or add it to the PATH")
}

pub(crate) fn no_repository(root: &Path, said: &str) -> Refusal {
    let cause = format!("{} is not a git work tree: {said}", root.display());
    Refusal::new("no-repository", cause)
        .or(Remedy::shell("git init").words(" and make a first commit"))
        .or("set `isolation = \"in-place\"` for the lanes")
}

pub(crate) fn detached_head() -> Refusal {
    Refusal::new("detached-head", "no branch is checked out (HEAD is detached)")
        .or("check out the branch to merge into")
        .or(Remedy::from("name it with ").option("--base BRANCH"))
}

pub(crate) fn no_commits(branch: &str) -> Refusal {
    let cause = format!("the branch {branch} has no commits, so no lane can start from it");
    Refusal::new("no-commits", cause).or(Remedy::from("make a first commit, for example with ")
        .command("git commit --allow-empty -m Start"))
}

pub(crate) fn no_base(branch: &str, remote: Option<&str>) -> Refusal {
    let refusal = Refusal::new("no-base", format!("there is no branch {branch}"));
    match remote {
        Some(remote) => refusal.or(Remedy::shell(shell::git(None, &["branch", branch, remote]))),
        None => {
            refusal.or(Remedy::from("name a branch that ").command("git branch").words(" lists"))
        }
    }
}

pub(crate) fn no_status(dir: &Path, said: String) -> Refusal {
    Refusal::new("git", said).or(git_status_works(dir))
}

pub(crate) fn dirty(dir: &Path, paths: &[String]) -> Refusal {
    let cause = format!("{} has uncommitted changes: {}", dir.display(), named_few(paths));
    Refusal::new("dirty", cause)
        .or("commit or stash them")
        .or(Remedy::from("start the lanes from them with ").option("--seed-dirty"))
}

/// An operation of git that stopped half way; `ends` are the git commands that end it.
pub(crate) fn operation_in_progress(what: &str, dir: &Path, ends: &[&str]) -> Refusal {
    let dir = dir.display().to_string();
    let refusal = Refusal::new("operation-in-progress", format!("{what} is in progress in {dir}"));
    let command = |end: &&str| shell::git(Some(&dir), &end.split(' ').collect::<Vec<_>>());
    ends.iter().map(command).fold(refusal, |refusal, end| refusal.or(Remedy::shell(end)))
}

pub(crate) fn filter_fails(said: &str) -> Refusal {
    let cause = format!("files of the merge can't be checked out: {said}");
    Refusal::new("base-in-the-way", cause).or("fix the filter and what it needs")
}

pub(crate) fn in_the_way(dir: &Path, paths: &[String]) -> Refusal {
    let (dir, paths) = (dir.display(), named_few(paths));
    let cause = format!("{dir} has uncommitted changes in files that the merge changes: {paths}");
    Refusal::new("base-in-the-way", cause).or("commit, stash or move them")
}

pub(crate) fn index_locked(lock: &Path) -> Refusal {
    let lock = lock.display();
    let cause = format!("{lock} exists: another git command is running, or one was killed");
    Refusal::new("index-locked", cause)
        .or("wait until no git command is running there")
        .or("delete the file if none is")
}

pub(crate) fn cannot_follow(dir: &Path, said: String) -> Refusal {
    Refusal::new("base-in-the-way", said).or(git_status_works(dir))
}

fn git_status_works(dir: &Path) -> Remedy {
    Remedy::from("make sure that ")
        .command("git status")
        .words(format!(" works in {}", dir.display()))
}

pub(crate) fn old_git(version: &str) -> Refusal {
    Refusal::new("unsupported-repository", format!("git {version} is too old to merge lanes"))
        .or("install git 2.40 or newer")
}

pub(crate) fn partial_clone() -> Refusal {
    let cause = "this is a partial clone: creating a worktree or merging may fetch from the remote";
    Refusal::new("repository-note", cause)
        .or("stay online")
        .or(Remedy::shell("git fetch --refetch"))
}

pub(crate) fn shallow_clone() -> Refusal {
    let cause = "this is a shallow clone: lanes can only be rebased within the history that it has";
    Refusal::new("repository-note", cause).or(Remedy::shell("git fetch --unshallow"))
}

pub(crate) fn sha256() -> Refusal {
    let cause = "the repository uses sha256 object ids, which snapshots do not support";
    Refusal::new("unsupported-repository", cause)
        .or("convert it to SHA-1")
        .or("set `isolation = \"in-place\"` for the lanes and `snapshots.enabled = false`")
}

pub(crate) fn publishes(remote: &str, remedy: impl Into<Remedy>) -> Refusal {
    let cause = format!("git push {remote} would publish refs/piton, with all snapshots");
    Refusal::new("repository-note", cause).or(remedy)
}

pub(crate) fn no_mirror() -> Remedy {
    "push branches to it by name, or unset its `mirror`".into()
}

/// A changed path that is a submodule: it can be neither committed nor stashed.
pub(crate) fn changed_submodule(path: &str) -> String {
    format!("{path} (a submodule: commit it, or run git submodule update)")
}

/// A path that is a repository of its own: it can be neither committed nor stashed.
pub(crate) fn nested_repository(path: &str) -> String {
    format!("{path} (a repository of its own: move it, ignore it, or make it a submodule)")
}

/// How to look into missing or damaged objects.
pub(crate) fn check_objects() -> Remedy {
    Remedy::shell("git fsck").words(" shows what is wrong")
}
