//! Moves a lane's worktree to a commit: branch, HEAD, index, and the files if wanted.
//!
//! Only in worktrees of ours. A note in the admin folder says where to, and whoever takes the
//! worktree up next finishes it. The branch moves last: files that are ahead of their branch look
//! like work that is done already, files that lag behind would look like work taken back.

use std::fs;
use std::path::Path;

use super::mark::Mark;
use super::{At as _, Error, Result, branch, check, commit_fenced, locks};
use crate::files::{self, os_path, sync};
use crate::refs::{Fence, Transaction};
use crate::repo::{REFTABLE_HEAD, Repo, head_ref};
use crate::{git, index};

/// The note about a move in progress.
const MOVE: &str = "piton-move";

/// What an interrupted operation of git leaves in an admin folder; after a move it means nothing.
const UNDER_WAY: [&str; 10] = [
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "BISECT_LOG",
    "BISECT_START",
];

/// What happens to the files of a worktree that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They become those of the commit: changes to tracked files are lost, the rest stays.
    Follow,
    /// They stay as they are; what differs from the commit shows up as a change.
    Stay,
}

/// Moves a lane's worktree and its branch to a commit.
pub fn move_to(dir: &Path, commit: &str, files: Files, fence: &Fence) -> Result<()> {
    check(&Repo::find(dir)?, fence)?;
    let (repo, mark) = complete(dir)?;
    let kind = if files == Files::Follow { "follow" } else { "stay" };
    let from = repo.value(&format!("refs/heads/{}", mark.branch)).unwrap_or_default();
    let note = repo.git_dir.join(MOVE);
    files::replace(&note, format!("{commit} {kind} {from}\n").as_bytes()).at(note)?;
    carry_out(&repo, &mark, commit, files, fence)
}

/// Lets a lane start over from another commit: its branch, its files, and what says where it began.
/// Changes to tracked files are lost.
pub fn start_from(dir: &Path, commit: &str, fence: &Fence) -> Result<()> {
    move_to(dir, commit, Files::Follow, fence)?;
    let (repo, mark) = complete(dir)?;
    branch::start_from(&repo, &mark, commit, fence)?;
    Mark { start: commit.to_owned(), ..mark }.write(&repo.git_dir)
}

fn carry_out(repo: &Repo, mark: &Mark, commit: &str, files: Files, fence: &Fence) -> Result<()> {
    match files {
        Files::Follow => write_files(repo, commit)?,
        Files::Stay => reset_index(repo, commit)?,
    }
    let name = format!("refs/heads/{}", mark.branch);
    let found = repo.value(&name);
    let transaction = match found.as_deref() {
        Some(found) if found == commit => Transaction::fenced(fence).verify(&name, found),
        old => Transaction::fenced(fence).update(&name, commit, old),
    };
    commit_fenced(transaction, repo, fence, "piton: move lane")?;
    attach_head(repo, mark)?;
    let note = repo.git_dir.join(MOVE);
    fs::remove_file(&note).at(note)
}

/// Finishes a move that was interrupted.
pub(super) fn finish_move(repo: &Repo, mark: &Mark, fence: &Fence) -> Result<()> {
    let file = repo.git_dir.join(MOVE);
    let Ok(note) = fs::read_to_string(&file) else { return Ok(()) };
    let mut words = note.split_whitespace();
    let (commit, kind) = (words.next().unwrap_or_default(), words.next());
    let (from, found) = (words.next(), branch::head(repo, &mark.branch).ok());
    if let (Some(from), Some(found)) = (from, &found)
        && found != from
        && found != commit
    {
        // Commits were made since. Nothing syncs the removal of the note when a move is over.
        return fs::remove_file(&file).at(file);
    }
    let files = match (kind, from) {
        (Some("stay"), _) => Files::Stay,
        (_, None) => Files::Follow,
        (_, Some(from)) => {
            // The branch moves when all files are written.
            if found.as_deref() != Some(commit) {
                finish_files(repo, from, commit)?;
            }
            Files::Stay
        }
    };
    carry_out(repo, mark, commit, files, fence)
}

/// The worktree a folder belongs to, if it is ours, with an interrupted move finished.
pub(super) fn own(dir: &Path, fence: &Fence) -> Result<(Repo, Mark)> {
    let (repo, mark) = complete(dir)?;
    finish_move(&repo, &mark, fence)?;
    Ok((repo, mark))
}

/// Moves a lane's worktree and its branch to a commit, with the files of another tree: what differs
/// shows up as a change. Changes to tracked files are lost.
pub fn move_with_files(dir: &Path, commit: &str, tree: &str, fence: &Fence) -> Result<()> {
    check(&Repo::find(dir)?, fence)?;
    let (repo, _) = own(dir, fence)?;
    // Before the index moves: files that the worktree has, and neither the commit nor the tree, go only
    // as long as the index knows them; after that they would look like new work of the lane's.
    write_files(&repo, tree)?;
    move_to(dir, commit, Files::Stay, fence)
}

/// The paths that a merge of a step's own left undecided in a lane's worktree.
pub fn unmerged(dir: &Path) -> Result<Vec<Vec<u8>>> {
    let repo = Repo::find(dir)?;
    Ok(index::unmerged(dir, &repo.git_dir.join("index"))?)
}

/// The worktree a folder belongs to, if it is ours and complete; stale locks are gone then.
fn complete(dir: &Path) -> Result<(Repo, Mark)> {
    let repo = Repo::find(dir)?;
    locks::await_children(&repo)?;
    match Mark::read(&repo.git_dir) {
        Some(mark) if !repo.is_main() => {
            locks::sweep_admin(&repo, &repo.git_dir, Some(&mark))?;
            Ok((repo, mark))
        }
        _ => Err(Error::Foreign(repo.root)),
    }
}

/// Puts HEAD back on the lane's branch and forgets a merge or rebase that a step left half-way.
pub(super) fn attach_head(repo: &Repo, mark: &Mark) -> Result<()> {
    let name = format!("refs/heads/{}", mark.branch);
    let mut head = head_ref(&repo.git_dir);
    if head.as_deref() == Some(REFTABLE_HEAD) {
        head = repo.git().args(["symbolic-ref", "-q", "HEAD"]).text().ok();
    }
    if head.as_deref() != Some(name.as_str()) {
        repo.git().args(["symbolic-ref", "-m", "piton: lane", "HEAD", &name]).run()?;
    }
    // As a rule there is none of them, which one look at the folder tells.
    let entries = fs::read_dir(&repo.git_dir).at(&repo.git_dir)?;
    let is_under_way = |entry: &fs::DirEntry| UNDER_WAY.iter().any(|n| entry.file_name() == **n);
    for left in entries.filter_map(std::result::Result::ok).filter(is_under_way) {
        let (file, is_dir) = (left.path(), left.file_type().is_ok_and(|kind| kind.is_dir()));
        // Whatever cannot be removed shows up in `git status`, and does no harm.
        let _ = if is_dir { fs::remove_dir_all(&file) } else { fs::remove_file(&file) };
    }
    Ok(())
}

/// Makes files and index those of a tree, and what was written durable: the branch moves after that,
/// and files that a power cut took back would look like the lane's work.
fn write_files(repo: &Repo, tree: &str) -> Result<()> {
    let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "HEAD", tree];
    // A HEAD that leads nowhere tells nothing.
    let changed = repo.git().args(args).bytes().unwrap_or_default();
    read_tree(repo, &["-u", tree])?;
    sync::files(&repo.root, git::words(&changed).map(os_path)).at(&repo.root)
}

/// Writes the files that a move changes, and no others: somebody may have edited those since it was
/// interrupted.
fn finish_files(repo: &Repo, from: &str, commit: &str) -> Result<()> {
    let changed = |which: &str| {
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", which, from, commit];
        repo.git().args(args).bytes()
    };
    let (gone, there) = (changed("--diff-filter=D")?, changed("--diff-filter=d")?);
    let paths = |list| git::words(list).map(os_path);
    reset_index(repo, commit)?;
    for path in paths(&gone) {
        files::remove(&repo.root.join(path)).at(path)?;
    }
    let args = ["checkout-index", "--force", "-z", "--stdin"];
    repo.git().args(args).input(there.clone()).run()?;
    sync::files(&repo.root, paths(&gone).chain(paths(&there))).at(&repo.root)
}

/// Makes the index that of a commit, keeping what it knows about files that did not change.
pub(super) fn reset_index(repo: &Repo, commit: &str) -> Result<()> {
    let tree = repo.value(&format!("{commit}^{{tree}}"));
    let held = index::tree(&repo.git_dir.join("index")).map(|id| id.to_string());
    if held.is_some() && held == tree {
        return Ok(());
    }
    read_tree(repo, &[commit])?;
    // Its exit says that files differ, which is not a failure here.
    repo.git().args(["update-index", "-q", "--refresh"]).output()?;
    Ok(())
}

/// Reads a tree into the index, whatever it holds. Git refuses that for entries which a step told it
/// not to look at, if their files changed: the marks go then. One that nobody can read is made again.
fn read_tree(repo: &Repo, args: &[&str]) -> Result<()> {
    let reset = || repo.git().args(["read-tree", "--reset"]).args(args).run();
    if reset().is_ok() {
        return Ok(());
    }
    if unmark(repo).is_err() {
        let index = repo.git_dir.join("index");
        files::remove(&index).at(index)?;
    }
    Ok(reset()?)
}

/// Takes the marks of all files; what a sparse checkout leaves out is marked again when a tree is read.
fn unmark(repo: &Repo) -> Result<()> {
    let all = repo.git().args(["ls-files", "-z"]).bytes()?;
    for option in ["--no-assume-unchanged", "--no-skip-worktree"] {
        repo.git().args(["update-index", option, "-z", "--stdin"]).input(all.clone()).run()?;
    }
    Ok(())
}

/// Makes the index again if a power cut tore it.
pub(super) fn repair_index(repo: &Repo) -> Result<()> {
    let args = ["diff-index", "--cached", "--quiet", "HEAD"];
    let readable = repo.git().args(args).output()?.status.code().is_some_and(|code| code < 2);
    if readable && repo.git_dir.join("index").exists() {
        return Ok(());
    }
    let _ = fs::remove_file(repo.git_dir.join("index"));
    reset_index(repo, "HEAD")
}
