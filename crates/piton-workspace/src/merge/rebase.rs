//! The commits of a lane on top of what base is now, in the object store alone.
//!
//! Each commit is merged on its own, so history stays linear and readable. A lane that merged
//! something itself is flattened if that gives the same tree; and where single commits conflict but
//! the lane as a whole does not, it becomes one commit: what was tested counts, not how it came
//! about.

use std::path::Path;

use piton_core::text::short;

use super::conflict::{Merged, merge};
use super::replay::Commit;
use super::{Result, is_ancestor, tree_of};
use crate::git::Git;

/// A rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebase {
    /// Base has everything the lane did; `commit` is base.
    Nothing {
        /// Where base is.
        commit: String,
        /// Its tree.
        tree: String,
    },
    /// The lane stands on base already; `commit` is the lane.
    UpToDate {
        /// Where the lane is.
        commit: String,
        /// Its tree.
        tree: String,
    },
    /// The lane's commits were put on top of base.
    Clean {
        /// The last of them.
        commit: String,
        /// Its tree.
        tree: String,
        /// How many there are.
        commits: usize,
        /// They had to become one.
        squashed: bool,
    },
    /// Lane and base changed the same things.
    Conflict {
        /// The files, sorted.
        files: Vec<String>,
        /// Which commit, and what git says.
        detail: String,
    },
}

/// Puts the lane's commits, those since `start`, on top of `onto`.
pub fn rebase(root: &Path, head: &str, start: &str, onto: &str) -> Result<Rebase> {
    let commits = own_commits(root, head, start, onto)?;
    let picked: Vec<&Commit> = commits.iter().filter(|c| c.parents.len() <= 1).collect();
    let replayed = replay(root, &picked, onto)?;
    let is_conflict = matches!(replayed, Rebase::Conflict { .. });
    if is_conflict || picked.len() < commits.len() {
        let is_same =
            |whole: &str| matches!(&replayed, Rebase::Clean { tree, .. } if tree == whole);
        match merge_whole_lane(root, head, start, onto)? {
            Merged::Clean(whole) if is_same(&whole) => {}
            Merged::Clean(whole) => return one(root, &commits, onto, whole),
            Merged::Conflict { .. } if is_conflict => return Ok(replayed),
            Merged::Conflict { files, detail } => return Ok(Rebase::Conflict { files, detail }),
        }
    }
    Ok(match replayed {
        Rebase::Clean { commit, tree, commits: 0, .. } => Rebase::Nothing { commit, tree },
        Rebase::Clean { commit, tree, .. } if commit == head => Rebase::UpToDate { commit, tree },
        replayed => replayed,
    })
}

/// The lane's commits that base has not got, oldest first. Leaving out what is below the start
/// as well keeps commits away from base that the user took back there.
fn own_commits(root: &Path, head: &str, start: &str, onto: &str) -> Result<Vec<Commit>> {
    let list = Git::at(root)
        .args(["rev-list", "--reverse", "--topo-order", head, "--not", onto, start])
        .text()?;
    list.lines().map(|id| Commit::read(root, id)).collect()
}

/// Puts commits on top of another one by one: clean, with how many had something new, or in conflict.
fn replay(root: &Path, commits: &[&Commit], onto: &str) -> Result<Rebase> {
    let mut tip = onto.to_owned();
    let mut tree = tree_of(root, onto)?;
    let mut count = 0;
    for commit in commits {
        if commit.parents == [tip.as_str()] && commit.tree != tree {
            tip.clone_from(&commit.id);
            tree.clone_from(&commit.tree);
            count += 1;
            continue;
        }
        // A commit without a parent is what it adds to nothing.
        let from = match commit.parents.first() {
            Some(parent) => parent.clone(),
            None => empty_tree(root)?,
        };
        match merge(root, Some(&from), &tip, &commit.id)? {
            Merged::Conflict { files, detail } => {
                let (id, subject) = (short(&commit.id), commit.subject());
                let detail = format!("commit {id} ({subject}):\n{detail}");
                return Ok(Rebase::Conflict { files, detail });
            }
            Merged::Clean(merged) if merged == tree => {}
            Merged::Clean(merged) => {
                tip = commit.write(root, &merged, &tip)?;
                tree = merged;
                count += 1;
            }
        }
    }
    Ok(Rebase::Clean { commit: tip, tree, commits: count, squashed: false })
}

/// The lane merged as a whole.
fn merge_whole_lane(root: &Path, head: &str, start: &str, onto: &str) -> Result<Merged> {
    // If base was rewritten, where they parted is before what the user took back.
    let from = (!is_ancestor(root, start, onto)?).then_some(start);
    merge(root, from, onto, head)
}

/// One commit in the place of many, by the author of the last, naming all.
fn one(root: &Path, commits: &[Commit], onto: &str, tree: String) -> Result<Rebase> {
    let named: Vec<&Commit> = commits.iter().filter(|c| c.parents.len() <= 1).collect();
    let Some(last) = commits.last().filter(|_| tree_of(root, onto).is_ok_and(|t| t != tree)) else {
        return Ok(Rebase::Nothing { commit: onto.to_owned(), tree });
    };
    let message = match named.as_slice() {
        [] | [_] => last.clone(),
        many => {
            let subjects: Vec<String> = many.iter().map(|c| c.subject()).collect();
            let subject = subjects.last().cloned().unwrap_or_default();
            last.clone().with_message(format!("{subject}\n\n* {}\n", subjects.join("\n* ")))
        }
    };
    let commit = message.write(root, &tree, onto)?;
    Ok(Rebase::Clean { commit, tree, commits: 1, squashed: true })
}

/// The tree without anything in it.
fn empty_tree(root: &Path) -> Result<String> {
    let git = Git::at(root).durable().args(["hash-object", "-t", "tree", "-w", "--stdin"]);
    Ok(git.input(Vec::new()).text()?)
}
