//! A merged lane is taken back by a commit that undoes it, wherever base stands by now.

use std::path::Path;

use super::conflict::{Merged, merge};
use super::{Result, tree_of};
use crate::git::Git;
use crate::worktree::{Identity, ended, signed};

/// A revert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revert {
    /// Nothing of it is left in base.
    Nothing,
    /// A commit on top of base that undoes it.
    Clean {
        /// The commit.
        commit: String,
        /// Its tree.
        tree: String,
    },
    /// What came later changed the same things.
    Conflict {
        /// The files, sorted.
        files: Vec<String>,
        /// What git says.
        detail: String,
    },
}

/// Makes a commit on `tip` that undoes what happened from `from` to `to`. `at` is its date in
/// seconds: the same input gives the same commit.
pub fn revert(
    root: &Path,
    tip: &str,
    (from, to): (&str, &str),
    message: &str,
    identity: &Identity,
    at: i64,
) -> Result<Revert> {
    let tree = match merge(root, Some(to), tip, from)? {
        Merged::Conflict { files, detail } => return Ok(Revert::Conflict { files, detail }),
        Merged::Clean(tree) => tree,
    };
    if tree_of(root, tip)? == tree {
        return Ok(Revert::Nothing);
    }
    let date = format!("@{at} +0000");
    let commit = signed(Git::at(root), root, identity)
        .durable()
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .args(["commit-tree", &tree, "-p", tip])
        .input(ended(message))
        .text()?;
    Ok(Revert::Clean { commit, tree })
}
