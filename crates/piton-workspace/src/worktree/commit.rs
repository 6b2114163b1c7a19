//! What a lane did becomes a commit on its branch, without hooks and whoever the user is.
//!
//! The tree comes from a snapshot, so nothing has to be added. If a step committed by itself, only
//! the rest is committed; if it did so on another branch or on none, those commits count too, as
//! long as they grew from the lane's own.

use std::path::Path;

use super::reset::{attach_head, own, reset_index};
use super::{Result, commit_fenced};
use crate::git::{Git, is_ancestor};
use crate::objects;
use crate::refs::{Fence, Transaction};
use crate::repo::Repo;

/// Who commits where git knows nobody.
pub const FALLBACK_NAME: &str = "Piton";

/// Their address.
pub const FALLBACK_EMAIL: &str = "piton@localhost";

/// Who a commit is by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// As git is configured; without, [`FALLBACK_NAME`] and [`FALLBACK_EMAIL`].
    #[default]
    Configured,
    /// A fixed one.
    Fixed {
        /// The name.
        name: String,
        /// The address.
        email: String,
    },
}

/// The commit a lane is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The commit, new or the one that was there.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// Whether a commit was made.
    pub changed: bool,
}

/// Commits a tree on the branch of the worktree's lane.
pub fn commit(
    dir: &Path,
    tree: &str,
    message: &str,
    identity: &Identity,
    fence: &Fence,
) -> Result<Committed> {
    let (repo, mark) = own(dir, fence)?;
    let name = format!("refs/heads/{}", mark.branch);
    let branch = repo.value(&name);
    let parent = parent(&repo, branch.as_deref())?;
    if let Some(own) = parent.as_deref().filter(|parent| *parent != mark.start) {
        // Its own commits are about to be relied on, and git did not sync them.
        objects::sync(dir, own, &[&mark.start])?;
    }
    let unchanged = parent.as_deref().filter(|parent| {
        repo.value(&format!("{parent}^{{tree}}")).is_some_and(|found| found == tree)
    });
    let commit = match unchanged {
        Some(parent) => parent.to_owned(),
        None => write(dir, tree, parent.as_deref(), message, identity)?,
    };
    if branch.as_deref() != Some(commit.as_str()) {
        let update = Transaction::fenced(fence).update(&name, &commit, branch.as_deref());
        commit_fenced(update, &repo, fence, "piton: commit lane")?;
    }
    attach_head(&repo, &mark)?;
    reset_index(&repo, &commit)?;
    Ok(Committed { tree: tree.to_owned(), changed: unchanged.is_none(), commit })
}

/// What is checked out, if it grew from the lane's branch, or else the branch.
fn parent(repo: &Repo, branch: Option<&str>) -> Result<Option<String>> {
    let head = repo.value("HEAD^{commit}");
    match (head, branch) {
        (Some(head), Some(branch)) if head != branch => {
            let grew = is_ancestor(&repo.root, branch, &head)?;
            Ok(Some(if grew { head } else { branch.to_owned() }))
        }
        (head, branch) => Ok(branch.map(ToOwned::to_owned).or(head)),
    }
}

/// Writes a commit, and nothing else.
pub(crate) fn write(
    dir: &Path,
    tree: &str,
    parent: Option<&str>,
    message: &str,
    identity: &Identity,
) -> Result<String> {
    let mut git = signed(Git::at(dir), dir, identity).durable().args(["commit-tree", tree]);
    if let Some(parent) = parent {
        git = git.args(["-p", parent]);
    }
    Ok(git.input(ended(message)).text()?)
}

/// A message as git stores it: with a line break at its end.
pub(crate) fn ended(message: &str) -> String {
    format!("{}\n", message.trim_end())
}

/// Gives a command that commits somebody to commit as.
pub(crate) fn signed(git: Git, dir: &Path, identity: &Identity) -> Git {
    let (name, email) = match identity {
        Identity::Fixed { name, email } => (name.as_str(), email.as_str()),
        Identity::Configured if is_configured(dir) => return git,
        Identity::Configured => (FALLBACK_NAME, FALLBACK_EMAIL),
    };
    git.env("GIT_AUTHOR_NAME", name)
        .env("GIT_AUTHOR_EMAIL", email)
        .env("GIT_COMMITTER_NAME", name)
        .env("GIT_COMMITTER_EMAIL", email)
}

/// Tells whether git knows who commits, rather than guessing it from the machine.
fn is_configured(dir: &Path) -> bool {
    ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"].iter().all(|variable| {
        let git = Git::at(dir).config("user.useConfigOnly=true").args(["var", variable]);
        git.run().is_ok()
    })
}
