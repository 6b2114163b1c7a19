//! Submodules that look changed: what can be done about them, and which only lag behind.
//!
//! A merge or a pull moves what base says about a submodule, and leaves the submodule's own files
//! where they are, as git does. Such a submodule is not a change that somebody made.

use std::path::Path;

use crate::git::{self, Git};
use crate::refs;

/// The mode of a submodule in an index.
const MODE: &str = "160000";

/// The commit at which the index has a submodule at a path, if it has one there.
pub(super) fn indexed(dir: &Path, path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    let git = Git::at(dir).env("GIT_LITERAL_PATHSPECS", "1");
    let listed = git.args(["ls-files", "-s", "-z", "--", path]).bytes().ok()?;
    let (words, _) = git::tabbed(&listed).next()?;
    words.get(1).filter(|_| words[0] == MODE).map(|id| (*id).to_owned())
}

/// The submodules of a work tree that nobody filled. One look at a file where it has none.
pub fn unfilled(dir: &Path) -> Vec<String> {
    if !dir.join(".gitmodules").exists() {
        return Vec::new();
    }
    let listed = Git::at(dir).args(["ls-files", "-s", "-z"]).bytes().unwrap_or_default();
    let links = git::tabbed(&listed).filter(|(words, _)| words[0] == MODE);
    let paths = links.map(|(_, path)| String::from_utf8_lossy(path).into_owned());
    paths.filter(|path| !dir.join(path).join(".git").exists()).collect()
}

/// Tells whether a submodule is as base had it once: nothing in it is changed, nothing about it is
/// staged, and it is at a commit that the branch had there before.
pub(super) fn lags(dir: &Path, path: &str) -> bool {
    if !dir.join(path).join(".git").exists() {
        return false;
    }
    let Some(indexed) = indexed(dir, path) else { return false };
    is_lagging(dir, path, &indexed).unwrap_or(false)
}

fn is_lagging(dir: &Path, path: &str, indexed: &str) -> Result<bool, git::Error> {
    let inside = dir.join(path);
    // A look-up among objects would not do: the commit is one of another repository.
    let committed = Git::at(dir).args(["rev-parse", "--verify", "-q"]).arg(format!("HEAD:{path}"));
    let committed = committed.text().ok();
    let Some(stands) = refs::value(&inside, "HEAD^{commit}") else { return Ok(false) };
    if committed.as_deref() != Some(indexed) || stands == indexed {
        return Ok(false);
    }
    let status = ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"];
    if !Git::at(&inside).args(status).bytes()?.is_empty() {
        return Ok(false);
    }
    let object = format!("--find-object={stands}");
    let had = ["log", "-1", "--format=%H", "--first-parent", "--ignore-submodules=none", &object];
    let git = Git::at(dir).env("GIT_LITERAL_PATHSPECS", "1");
    Ok(!git.args(had).args(["HEAD", "--", path]).bytes()?.is_empty())
}
