//! Makes a lane's worktree stand at a commit: branch, HEAD, index, and the files if wanted.
//!
//! Only in worktrees of ours. A note in the admin folder says where to, and whoever takes the
//! worktree up next finishes it. The branch moves last: files that are ahead of their branch look
//! like work that is done already, files that lag behind would look like work taken back.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::mark::{Mark, replace};
use super::{At as _, Error, Place, Result, branch, check, fenced, locks};
use crate::project::{ELSEWHERE, head_ref};
use crate::refs::{Fence, Transaction};
use crate::{snapshot, synced};

/// The note about a move under way.
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
    check(&Place::of(dir)?, fence)?;
    let (place, mark) = whole(dir)?;
    let kind = if files == Files::Follow { "follow" } else { "stay" };
    let from = place.value(&format!("refs/heads/{}", mark.branch)).unwrap_or_default();
    replace(&place.git_dir.join(MOVE), format!("{commit} {kind} {from}\n").as_bytes())?;
    carry_out(&place, &mark, commit, files, fence)
}

/// Lets a lane start over from another commit: its branch, its files, and what says where it began.
/// Changes to tracked files are lost.
pub fn start_from(dir: &Path, commit: &str, fence: &Fence) -> Result<()> {
    move_to(dir, commit, Files::Follow, fence)?;
    let (place, mark) = whole(dir)?;
    branch::start_from(&place, &mark, commit, fence)?;
    Mark { start: commit.to_owned(), ..mark }.write(&place.git_dir)
}

fn carry_out(place: &Place, mark: &Mark, commit: &str, files: Files, fence: &Fence) -> Result<()> {
    match files {
        Files::Follow => write_files(place, commit)?,
        Files::Stay => reset_index(place, commit)?,
    }
    let name = format!("refs/heads/{}", mark.branch);
    let found = place.value(&name);
    let transaction = match found.as_deref() {
        Some(found) if found == commit => Transaction::fenced(fence).verify(&name, found),
        old => Transaction::fenced(fence).update(&name, commit, old),
    };
    transaction
        .commit_in(place, "piton: move lane")
        .map_err(|error| fenced(place, fence, error))?;
    settle(place, mark)?;
    let note = place.git_dir.join(MOVE);
    fs::remove_file(&note).at(note)
}

/// Finishes a move that was interrupted.
pub(super) fn finish_move(place: &Place, mark: &Mark, fence: &Fence) -> Result<()> {
    let file = place.git_dir.join(MOVE);
    let Ok(note) = fs::read_to_string(&file) else { return Ok(()) };
    let mut words = note.split_whitespace();
    let (commit, kind) = (words.next().unwrap_or_default(), words.next());
    let (from, found) = (words.next(), branch::head(place, &mark.branch).ok());
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
                finish_files(place, from, commit)?;
            }
            Files::Stay
        }
    };
    carry_out(place, mark, commit, files, fence)
}

/// The worktree a folder belongs to, if it is ours, with an interrupted move finished.
pub(super) fn own(dir: &Path, fence: &Fence) -> Result<(Place, Mark)> {
    let (place, mark) = whole(dir)?;
    finish_move(&place, &mark, fence)?;
    Ok((place, mark))
}

/// Moves a lane's worktree and its branch to a commit, with the files of another tree: what differs
/// shows up as a change. Changes to tracked files are lost.
pub fn stand_on(dir: &Path, commit: &str, tree: &str, fence: &Fence) -> Result<()> {
    check(&Place::of(dir)?, fence)?;
    let (place, _) = own(dir, fence)?;
    // Before the index moves: files that the worktree has, and neither the commit nor the tree, go only
    // as long as the index knows them; after that they would look like new work of the lane's.
    write_files(&place, tree)?;
    move_to(dir, commit, Files::Stay, fence)
}

/// The paths that a merge of a step's own left undecided in a lane's worktree.
pub fn unmerged(dir: &Path) -> Result<Vec<Vec<u8>>> {
    let place = Place::of(dir)?;
    Ok(snapshot::index::unmerged(dir, &place.git_dir.join("index"))?)
}

/// The worktree a folder belongs to, if it is ours and complete; stale locks are gone then.
fn whole(dir: &Path) -> Result<(Place, Mark)> {
    let place = Place::of(dir)?;
    locks::await_children(&place)?;
    match Mark::of(&place.git_dir) {
        Some(mark) if place.git_dir != place.common => {
            locks::sweep_admin(&place, &place.git_dir, Some(&mark))?;
            Ok((place, mark))
        }
        _ => Err(Error::Foreign(place.root)),
    }
}

/// Puts HEAD back on the lane's branch and forgets a merge or rebase that a step left half-way.
pub(super) fn settle(place: &Place, mark: &Mark) -> Result<()> {
    let name = format!("refs/heads/{}", mark.branch);
    let mut head = head_ref(&place.git_dir);
    if head.as_deref() == Some(ELSEWHERE) {
        head = place.git().args(["symbolic-ref", "-q", "HEAD"]).text().ok();
    }
    if head.as_deref() != Some(name.as_str()) {
        place.git().args(["symbolic-ref", "-m", "piton: lane", "HEAD", &name]).run()?;
    }
    // As a rule there is none of them, which one look at the folder tells.
    let entries = fs::read_dir(&place.git_dir).at(&place.git_dir)?;
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
fn write_files(place: &Place, tree: &str) -> Result<()> {
    let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "HEAD", tree];
    // A HEAD that leads nowhere tells nothing.
    let changed = place.git().args(args).bytes().unwrap_or_default();
    read_tree(place, &["-u", tree])?;
    let paths = changed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    synced::files(&place.root, paths.map(|path| Path::new(OsStr::from_bytes(path)))).at(&place.root)
}

/// Writes the files that a move changes, and no others: somebody may have edited those since it was
/// interrupted.
fn finish_files(place: &Place, from: &str, commit: &str) -> Result<()> {
    let changed = |which: &str| {
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", which, from, commit];
        place.git().args(args).bytes()
    };
    let (gone, there) = (changed("--diff-filter=D")?, changed("--diff-filter=d")?);
    let paths = |list| {
        let paths = <[u8]>::split(list, |byte| *byte == 0).filter(|path| !path.is_empty());
        paths.map(|path| Path::new(OsStr::from_bytes(path)))
    };
    reset_index(place, commit)?;
    for path in paths(&gone) {
        match fs::remove_file(place.root.join(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).at(path),
            _ => {}
        }
    }
    let args = ["checkout-index", "--force", "-z", "--stdin"];
    place.git().args(args).input(there.clone()).run()?;
    synced::files(&place.root, paths(&gone).chain(paths(&there))).at(&place.root)
}

/// Makes the index that of a commit, keeping what it knows about files that did not change.
pub(super) fn reset_index(place: &Place, commit: &str) -> Result<()> {
    let tree = place.value(&format!("{commit}^{{tree}}"));
    let held = snapshot::tracked_tree(&place.git_dir.join("index")).map(|id| id.to_string());
    if held.is_some() && held == tree {
        return Ok(());
    }
    read_tree(place, &[commit])?;
    // Its exit says that files differ, which is no failure here.
    place.git().args(["update-index", "-q", "--refresh"]).output()?;
    Ok(())
}

/// Reads a tree into the index, whatever it holds. Git refuses that for entries which a step told it
/// not to look at, if their files changed: the marks of those go then. One that nobody can read is made
/// anew.
fn read_tree(place: &Place, args: &[&str]) -> Result<()> {
    let reset = || place.git().args(["read-tree", "--reset"]).args(args).run();
    let Err(error) = reset() else { return Ok(()) };
    match unmark(place) {
        Ok(0) => return Err(error.into()),
        Ok(_) => {}
        Err(_) => {
            let index = place.git_dir.join("index");
            fs::remove_file(&index).at(index)?;
        }
    }
    Ok(reset()?)
}

/// Takes the marks of files that are there and that git does not look at; how many there were. What a
/// sparse checkout leaves out is not there.
fn unmark(place: &Place) -> Result<usize> {
    let all = place.git().args(["ls-files", "-v", "-z"]).bytes()?;
    let lines =
        all.split(|byte| *byte == 0).filter_map(|line| Some((line.first()?, line.get(2..)?)));
    let there = |path: &[u8]| place.root.join(OsStr::from_bytes(path)).symlink_metadata().is_ok();
    let marked: Vec<(u8, &[u8])> = lines
        .map(|(tag, path)| (*tag, path))
        .filter(|(tag, path)| (tag.is_ascii_lowercase() || *tag == b'S') && there(path))
        .collect();
    let assumed = |tag: u8| tag.is_ascii_lowercase();
    let skipped = |tag: u8| tag.eq_ignore_ascii_case(&b'S');
    take_mark(place, "--no-assume-unchanged", &marked, assumed)?;
    take_mark(place, "--no-skip-worktree", &marked, skipped)?;
    Ok(marked.len())
}

fn take_mark(
    place: &Place,
    option: &str,
    marked: &[(u8, &[u8])],
    has_it: impl Fn(u8) -> bool,
) -> Result<()> {
    let with: Vec<&[u8]> = marked.iter().filter(|(tag, _)| has_it(*tag)).map(|(_, p)| *p).collect();
    if with.is_empty() {
        return Ok(());
    }
    let git = place.git().args(["update-index", option, "-z", "--stdin"]);
    Ok(git.input(with.join(&0)).run()?)
}

/// Makes the index anew if a power cut tore it.
pub(super) fn mend_index(place: &Place) -> Result<()> {
    let args = ["diff-index", "--cached", "--quiet", "HEAD"];
    let readable = place.git().args(args).output()?.status.code().is_some_and(|code| code < 2);
    if readable && place.git_dir.join("index").exists() {
        return Ok(());
    }
    let _ = fs::remove_file(place.git_dir.join("index"));
    reset_index(place, "HEAD")
}
