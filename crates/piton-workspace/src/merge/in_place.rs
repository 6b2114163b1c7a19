//! The commit of what was done in a work tree of the user's, as objects alone.
//!
//! It holds the paths that changed between two snapshots, on top of base as it is now. What the user had
//! changed before stays uncommitted. Index, files and refs are not touched: base is moved there like to
//! the commit of any lane, which leaves files alone that are as it brings them.

use std::fs;
use std::path::Path;

use super::{Result, diff, tree_of};
use crate::git::Git;
use crate::repo::Repo;
use crate::worktree::{Committed, Identity, write};

/// The index that the tree is made in, in the git folder of the work tree.
const INDEX: &str = "piton-in-place";

/// Makes a commit on `onto` with what changed from one tree to the other, except in files that are not
/// work. Where that is nothing, it is `onto` itself.
pub fn commit_in_place(
    root: &Path,
    onto: &str,
    (before, after): (&str, &str),
    is_own: &dyn Fn(&[u8]) -> bool,
    message: &str,
    identity: &Identity,
) -> Result<Committed> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut changes = diff::commits(root, before, after)?;
    changes.retain(|change| !is_own(change.path.as_os_str().as_bytes()));
    let index = Repo::find(root)?.git_dir.join(INDEX);
    let clear = || {
        for left in [&index, &index.with_extension("lock")] {
            let _ = fs::remove_file(left);
        }
    };
    clear();
    let git = || Git::at(root).durable().index(&index);
    git().args(["read-tree", onto]).run()?;
    let lines = diff::index_info(changes.iter(), onto.len());
    git().args(["update-index", "-z", "--add", "--replace", "--index-info"]).input(lines).run()?;
    let tree = git().args(["write-tree"]).text()?;
    clear();
    let changed = tree_of(root, onto)? != tree;
    let commit =
        if changed { write(root, &tree, Some(onto), message, identity)? } else { onto.to_owned() };
    Ok(Committed { commit, tree, changed })
}
