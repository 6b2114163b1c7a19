//! A toy repository: commits that are full trees, branches, snapshots, a fence.
//!
//! Trees are maps from paths to texts and are merged path by path. Files lie on the machine; here
//! is what git would keep. Nothing here falls: the points of falling are those of `workspaces.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use piton_core::hash::Sha;
use piton_core::{Millis, RunState};
use piton_engine::world::Attempt;

/// The branch that is checked out in the root.
pub const BASE: &str = "main";
/// The folder of the worktrees.
pub const WORKTREES: &str = ".worktrees/";
/// Files below this folder are ignored: no snapshot holds them, and nothing removes them.
const IGNORED: &str = "ignored/";
/// What a file with a conflict begins with.
pub const MARKER: &str = "<<<<<<<";
/// More looks at pull requests than any test has a use for.
pub(crate) const LOOKS_MAX: usize = 1_000;
/// Characters of an id: enough to tell a few hundred things apart.
const ID_CHARS: usize = 12;

/// Files and their texts.
pub type Tree = BTreeMap<String, String>;

/// Where a file of a folder lies.
pub(crate) fn place(dir: &str, path: &str) -> String {
    if dir.is_empty() { path.to_owned() } else { format!("{dir}/{path}") }
}

/// The folder in which a branch is checked out.
pub(crate) fn workspace_of(branch: &str) -> String {
    branch.strip_prefix("lane/").map(|lane| format!("{WORKTREES}{lane}")).unwrap_or_default()
}

/// Whether git would see a file.
pub(crate) fn is_seen(path: &str) -> bool {
    !path.starts_with(WORKTREES) && !path.starts_with(IGNORED)
}

#[derive(Clone, Debug)]
struct SimCommit {
    parent: Option<String>,
    tree: Tree,
    message: String,
}

/// A ref that moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Its name.
    pub name: String,
    /// Where it stood.
    pub from: Option<String>,
    /// Where it stands; nothing where it is gone.
    pub to: Option<String>,
    /// The epoch of the driver that moved it.
    pub epoch: u64,
    /// The newest epoch at that time.
    pub newest: u64,
}

/// What git keeps.
#[derive(Clone, Debug, Default)]
pub struct SimRepo {
    commits: BTreeMap<String, SimCommit>,
    snapshots: BTreeMap<String, Tree>,
    /// The newest snapshot of each folder.
    pub(crate) newest: BTreeMap<String, String>,
    pub(crate) refs: BTreeMap<String, String>,
    /// Worktrees that are there; whether their files are.
    pub(crate) worktrees: BTreeMap<String, bool>,
    /// The newest epoch.
    pub epoch: u64,
    /// Refs moved by drivers.
    pub moves: Vec<Move>,
    /// Attempts that succeeded, with the trees that each found and left.
    pub passed: Vec<(Attempt, String, String)>,
    /// What a person commits to base just before the next merges.
    pub meddling: VecDeque<(String, String)>,
    /// Whether that is the work of other runs.
    pub meddled_by_runs: bool,
    /// Branches whose pull request is reported merged.
    pub pulls_merged: BTreeSet<String>,
    /// How long a look at a pull request takes.
    pub look_takes: Millis,
    /// Looks at pull requests so far.
    pub looks: usize,
    /// The stage records as last written for others to read.
    pub view: Vec<String>,
}

impl SimRepo {
    /// The id of a tree.
    pub fn tree_id(tree: &Tree) -> String {
        format!("t{}", &Sha::of_json(tree).0[..ID_CHARS])
    }

    /// Where a branch stands.
    pub fn head(&self, branch: &str) -> Option<String> {
        self.refs.get(branch).cloned()
    }

    /// The branches beside base.
    pub fn branches(&self) -> Vec<String> {
        self.refs.keys().filter(|name| *name != BASE).cloned().collect()
    }

    /// The files of a commit.
    pub fn tree(&self, commit: &str) -> Tree {
        self.commits.get(commit).map(|c| c.tree.clone()).unwrap_or_default()
    }

    /// The files of a snapshot.
    pub fn snapshot(&self, id: &str) -> Option<&Tree> {
        self.snapshots.get(id)
    }

    pub(crate) fn keep(&mut self, dir: &str, tree: Tree) -> String {
        let id = format!("s{}", &Self::tree_id(&tree)[1..]);
        self.snapshots.insert(id.clone(), tree);
        self.newest.insert(dir.to_owned(), id.clone());
        id
    }

    pub(crate) fn commit(&mut self, parent: Option<String>, tree: Tree, message: &str) -> String {
        // Two commits of the same files are two commits: a clock would tell them apart.
        let count = self.commits.len();
        let id = format!("c{}", &Sha::of_json(&(count, message, &tree)).0[..ID_CHARS]);
        self.commits.insert(id.clone(), SimCommit { parent, tree, message: message.to_owned() });
        id
    }

    /// A commit and all before it, the newest first.
    pub fn history(&self, commit: &str) -> Vec<String> {
        let mut all = Vec::new();
        let mut next = Some(commit.to_owned());
        while let Some(id) = next {
            next = self.commits.get(&id).and_then(|c| c.parent.clone());
            all.push(id);
        }
        all
    }

    /// Whether a branch has a commit in its history.
    pub fn contains(&self, branch: &str, commit: &str) -> bool {
        self.head(branch).is_some_and(|head| self.history(&head).iter().any(|c| c == commit))
    }

    /// The messages of base, the oldest first.
    pub fn messages(&self) -> Vec<String> {
        let head = self.head(BASE).unwrap_or_default();
        let all = self.history(&head).into_iter().rev();
        all.filter_map(|id| Some(self.commits.get(&id)?.message.clone())).collect()
    }

    pub(crate) fn set(&mut self, name: &str, to: Option<String>, epoch: u64) {
        let from = self.head(name);
        if from == to {
            return;
        }
        match &to {
            Some(to) => _ = self.refs.insert(name.to_owned(), to.clone()),
            None => _ = self.refs.remove(name),
        }
        let (name, newest) = (name.to_owned(), self.epoch);
        self.moves.push(Move { name, from, to, epoch, newest });
    }

    /// Puts the commits of a head that another commit does not have on top of that; the paths that
    /// both changed where it can't be done.
    pub(crate) fn replay(&mut self, head: &str, onto: &str) -> Result<String, Vec<String>> {
        let known = self.history(onto);
        let own: Vec<String> =
            self.history(head).into_iter().take_while(|c| !known.contains(c)).collect();
        if own.last().is_some_and(|first| self.parent(first).as_deref() == Some(onto)) {
            return Ok(head.to_owned());
        }
        let mut tip = onto.to_owned();
        for commit in own.iter().rev() {
            let before = self.tree(&self.parent(commit).unwrap_or_default());
            let (merged, conflicts) = merge(&before, &self.tree(&tip), &self.tree(commit));
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
            if merged != self.tree(&tip) {
                let message = self.commits[commit].message.clone();
                tip = self.commit(Some(tip), merged, &message);
            }
        }
        Ok(tip)
    }

    /// The commit that a head and another commit have in common.
    pub(crate) fn fork(&self, head: &str, onto: &str) -> String {
        let known = self.history(onto);
        self.history(head).into_iter().find(|c| known.contains(c)).unwrap_or_default()
    }

    fn parent(&self, commit: &str) -> Option<String> {
        self.commits.get(commit)?.parent.clone()
    }
}

/// Merges two trees that come from one; the paths that both changed have both texts in them.
pub(crate) fn merge(before: &Tree, ours: &Tree, theirs: &Tree) -> (Tree, Vec<String>) {
    let paths: BTreeSet<&String> = before.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    let (mut merged, mut conflicts) = (Tree::new(), Vec::new());
    for path in paths {
        let (old, a, b) = (before.get(path), ours.get(path), theirs.get(path));
        let kept = if a == b || b == old {
            a.cloned()
        } else if a == old {
            b.cloned()
        } else {
            conflicts.push(path.clone());
            let text = |side: Option<&String>| side.cloned().unwrap_or_default();
            Some(format!("{MARKER} base\n{}\n=======\n{}\n>>>>>>> lane\n", text(a), text(b)))
        };
        merged.extend(kept.map(|text| (path.clone(), text)));
    }
    (merged, conflicts)
}

/// The paths in which two trees differ.
pub(crate) fn differing(a: &Tree, b: &Tree) -> Vec<String> {
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    paths.into_iter().filter(|path| a.get(*path) != b.get(*path)).cloned().collect()
}

/// What is shown to others of a run: every stage record.
pub(crate) fn view_of(state: &RunState) -> Vec<String> {
    state
        .lanes()
        .flat_map(|(path, lane)| {
            let records = lane.work.iter().flat_map(|w| w.records.clone()).collect::<Vec<_>>();
            records.into_iter().map(move |record| format!("{path} {record:?}"))
        })
        .collect()
}
