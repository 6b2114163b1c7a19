//! What a snapshot of a lane's worktree does not hold: brought into the lane's commit all the same,
//! and looked for before the worktree goes.
//!
//! A snapshot leaves out what is too large to be kept with every attempt. A commit is the lane's
//! work, so git itself adds such a file to it, with an index of our own in the worktree's admin
//! folder: what did not change since it was checked out is not read again. What nobody can read is
//! named. Nothing here decides what happens to a lane then.

pub mod large;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::files::os_path;
use crate::git::{self, Git};
use crate::objects;
use crate::repo::Repo;
use crate::snapshot::{Error, Missed, Why};

/// Files that git is asked for by name; beyond that it lists all, for a command line has its limits.
const ASKED_MAX: usize = 200;

/// The index of our own, beside that of the worktree.
const INDEX: &str = "piton-large";

/// The tree that a commit of a work tree has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The tree.
    pub tree: String,
    /// What is not in it as it should be: nobody can read it, its filter fails, or git refuses its name.
    pub left: Vec<Missed>,
}

/// Whether a commit needs more than what a snapshot holds.
pub fn is_incomplete(missed: &[Missed]) -> bool {
    missed.iter().any(|m| is_large(m.why) || is_left(m.why))
}

/// Whether a snapshot lacks a file because of its size, or because it changed all the time: git can add it.
pub fn is_large(why: Why) -> bool {
    matches!(why, Why::TooLarge | Why::Unstable)
}

/// Whether no commit can have it, or only as git would not.
fn is_left(why: Why) -> bool {
    matches!(why, Why::Unreadable | Why::Filter | Why::Name | Why::Unknown)
}

/// The tree of a snapshot of a lane's worktree, with what it missed and git can hold.
pub fn complete(dir: &Path, tree: &str, missed: &[Missed]) -> Result<Completed, Error> {
    let mut left = Vec::new();
    for miss in missed.iter().filter(|m| is_left(m.why)) {
        if miss.why != Why::Filter || !is_as_committed(dir, tree, &miss.path) {
            left.push(miss.clone());
        }
    }
    let large: Vec<&[u8]> =
        missed.iter().filter(|m| is_large(m.why)).map(|m| m.path.as_slice()).collect();
    if large.is_empty() {
        return Ok(Completed { tree: tree.to_owned(), left });
    }
    let (index, held) = (own_index(dir)?, tree);
    let with = || Ok::<_, Error>(with(dir, &index, tree, &added(dir, &index, &large)?)?);
    let tree = match with() {
        // What was added once, and is in no commit yet, may have gone with a `git gc` of the user's.
        Err(Error::Git(_)) => {
            let _ = fs::remove_file(&index);
            with()?
        }
        tree => tree?,
    };
    // What a step added before has objects that nobody synced, and git does not write them again.
    objects::sync(dir, &tree, &[held])?;
    Ok(Completed { tree, left })
}

/// Whether a tree has a file just as the commit that is checked out: what nobody changed git does not
/// filter again.
fn is_as_committed(dir: &Path, tree: &str, path: &[u8]) -> bool {
    let listed = |of: &str| listed(dir, of, path).ok().filter(|found| !found.is_empty());
    listed(tree).is_some_and(|now| listed("HEAD") == Some(now))
}

/// What of that which a snapshot missed is nowhere else: it would go with the worktree. `head` is the
/// commit that stays.
pub fn only_here(dir: &Path, head: Option<&str>, missed: &[Missed]) -> Result<Vec<Missed>, Error> {
    let mut only = Vec::new();
    for miss in missed {
        let path = dir.join(os_path(&miss.path));
        let lost = match miss.why {
            // The last is in its snapshot.
            Why::Special | Why::Filter => false,
            Why::Nested | Why::Submodule => !is_elsewhere(&path),
            Why::TooLarge | Why::Unstable => {
                let own = added(dir, &own_index(dir)?, &[&miss.path])?;
                let held = head.map(|head| listed(dir, head, &miss.path)).transpose()?;
                held.unwrap_or_default() != own
            }
            Why::Unreadable | Why::Name | Why::Unknown => true,
        };
        if lost {
            only.push(miss.clone());
        }
    }
    Ok(only)
}

/// Which of these files are there and not part of a commit or tree, because git ignores them say.
pub fn not_in_tree(dir: &Path, tree: &str, paths: &[String]) -> Result<Vec<String>, git::Error> {
    let is_there = |path: &&String| fs::symlink_metadata(dir.join(path)).is_ok();
    let there: Vec<&String> = paths.iter().filter(is_there).collect();
    if there.is_empty() {
        return Ok(Vec::new());
    }
    let list = Git::at(dir).env("GIT_LITERAL_PATHSPECS", "1");
    let list = list.args(["ls-tree", "-r", "--full-tree", "--name-only", "-z", tree]);
    let asked = if there.len() > ASKED_MAX { &[] } else { &there[..] };
    let list = list.arg("--").args(asked).bytes()?;
    let held: BTreeSet<&[u8]> = list.split(|b| *b == 0).collect();
    Ok(there.into_iter().filter(|path| !held.contains(path.as_bytes())).cloned().collect())
}

/// The submodules of a work tree with something in them that is nowhere else.
pub fn submodules_only_here(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = Git::at(dir).args(["ls-files", "-s", "-z"]).bytes()?;
    let links = git::tabbed(&listed).filter(|(words, _)| words[0] == "160000");
    let paths = links.map(|(_, path)| os_path(path).to_owned());
    Ok(paths.filter(|path| !is_elsewhere(&dir.join(path))).collect())
}

/// Whether all that a repository within a work tree holds is known elsewhere: nothing changed, nothing
/// stashed, every commit of a branch is at a remote.
fn is_elsewhere(dir: &Path) -> bool {
    if fs::symlink_metadata(dir.join(".git")).is_err() {
        // A submodule that was never filled, unless somebody put a file there.
        return fs::read_dir(dir).map_or(true, |mut names| names.next().is_none());
    }
    let status = ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"];
    let own = ["rev-list", "-n", "1", "HEAD", "--branches", "--glob=refs/stash", "--not"];
    let says_nothing = |asked: Git| asked.text().is_ok_and(|text| text.is_empty());
    // A commit that is fetched by its name is on no branch of the remote.
    let fetched = Git::at(dir).args(["rev-parse", "-q", "--verify", "FETCH_HEAD"]).text().ok();
    says_nothing(Git::at(dir).args(status))
        && says_nothing(Git::at(dir).args(own).arg("--remotes").args(fetched))
        && submodules_only_here(dir).is_ok_and(|only| only.is_empty())
}

/// The index of our own for a lane's worktree; made from the worktree's, for what that knows.
pub(crate) fn own_index(dir: &Path) -> Result<PathBuf, Error> {
    let repo = Repo::find(dir)
        .map_err(|error| Error::NotAWorkTree { dir: dir.to_owned(), why: error.to_string() })?;
    let index = repo.git_dir.join(INDEX);
    // Whoever held its lock was killed: one driver acts at a time.
    let _ = fs::remove_file(index.with_extension("lock"));
    if !index.exists() {
        copy(&repo.git_dir.join("index"), &index).map_err(|e| Error::file(&index, e))?;
    }
    Ok(index)
}

/// Copies an index; its age says which of its entries can be believed, so that is copied too.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let about = match fs::metadata(from) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(about.modified()?)
}

/// Lets git add files; what an index says of them then, as `MODE OBJECT<tab>PATH`.
pub(crate) fn added(dir: &Path, index: &Path, paths: &[&[u8]]) -> Result<Vec<Vec<u8>>, git::Error> {
    let add = ["update-index", "--add", "--remove", "-z", "--stdin"];
    Git::at(dir).durable().index(index).args(add).input(git::ended(paths)).run()?;
    let names = paths.iter().map(|path| os_path(path));
    let list = Git::at(dir).index(index).env("GIT_LITERAL_PATHSPECS", "1");
    let list = list.args(["ls-files", "-s", "-z", "--"]).args(names).bytes()?;
    Ok(entries(&list, 1))
}

/// Lines of git's as `MODE OBJECT<tab>PATH`; `at` is where the object stands in them.
fn entries(list: &[u8], at: usize) -> Vec<Vec<u8>> {
    let entry = |(words, path): (Vec<&str>, &[u8])| {
        Some([format!("{} {}\t", words.first()?, words.get(at)?).as_bytes(), path].concat())
    };
    git::tabbed(list).filter_map(entry).collect()
}

/// What a commit has at a path, in the same form.
pub(crate) fn listed(dir: &Path, commit: &str, path: &[u8]) -> Result<Vec<Vec<u8>>, git::Error> {
    let list = Git::at(dir).env("GIT_LITERAL_PATHSPECS", "1");
    let list = list.args(["ls-tree", "--full-tree", "-z", commit, "--"]);
    let list = list.arg(os_path(path)).bytes()?;
    Ok(entries(&list, 2))
}

/// A tree with further entries.
fn with(dir: &Path, index: &Path, tree: &str, entries: &[Vec<u8>]) -> Result<String, git::Error> {
    let temporary = index.with_extension("tree");
    for file in [&temporary, &index.with_extension("tree.lock")] {
        let _ = fs::remove_file(file);
    }
    Git::at(dir).index(&temporary).args(["read-tree", tree]).run()?;
    let add = ["update-index", "-z", "--index-info"];
    Git::at(dir).index(&temporary).args(add).input(git::ended(entries)).run()?;
    let made = Git::at(dir).durable().index(&temporary).arg("write-tree").text();
    let _ = fs::remove_file(&temporary);
    made
}
