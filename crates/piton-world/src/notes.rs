//! What people read about lanes while a run goes on: notes and warnings, without decisions.

use std::path::Path;

use piton_core::LanePath;
use piton_core::text::{first_few, short};

/// Files that are named; the rest is counted.
const NAMED_MAX: usize = 5;

/// The first few of some files, the rest counted.
pub(crate) fn named<'a>(all: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<String> {
    first_few(all.map(|name| String::from_utf8_lossy(name).into_owned()), NAMED_MAX)
}

pub(crate) fn empty_submodules(lane: &LanePath, names: &str) -> String {
    format!(
        "{lane}: submodules of its worktree are empty ({names}); fill them with setup = \"git \
         submodule update --init\""
    )
}

pub(crate) fn validates_uncommitted(cause: &str) -> String {
    format!("{cause}; the validation runs on these files: commit them if it is to count")
}

pub(crate) fn base_lacks(base: &str, lane: &LanePath) -> String {
    format!(
        "{base} does not contain the commit of {lane}, which was merged elsewhere: make sure that \
         {base} is up to date"
    )
}

pub(crate) fn not_seeded(list: &str) -> String {
    format!("it starts without these of your uncommitted files, or as they are committed: {list}")
}

pub(crate) fn branch_of_run(branch: &str, run: &str) -> String {
    format!("{branch} is a branch of run {run}")
}

pub(crate) fn foreign_branch(branch: &str) -> String {
    format!("the branch {branch}, or one above it, was not created by piton")
}

/// How the worktree of a lane was created: why its branch has another name, whether it existed, where
/// it starts from, and what was not there to be copied.
pub(crate) fn created(
    other_branch: Option<(&str, &str)>,
    existed: bool,
    start: &str,
    not_copied: &[String],
) -> String {
    let mut notes = Vec::new();
    notes.extend(other_branch.map(|(why, branch)| format!("{why}, so it works on {branch}")));
    notes.extend(existed.then(|| "its worktree existed and is used".to_owned()));
    notes.extend(Some(start.to_owned()).filter(|start| !start.is_empty()));
    let missing = || format!("does not exist and was not copied: {}", not_copied.join(", "));
    notes.extend((!not_copied.is_empty()).then(missing));
    notes.join("; ")
}

pub(crate) fn restarted_branch(old: &str, start: &str) -> String {
    format!("its branch existed at {}: it starts from {} now", short(old), short(start))
}

pub(crate) fn base_moved_since(from: &str, to: &str, restarts: bool) -> String {
    let (from, to) = (short(from), short(to));
    let then = if restarts { ": it starts from there now" } else { " since it started" };
    format!("base moved from {from} to {to}{then}")
}

pub(crate) fn copied(lane: &LanePath, paths: &[String]) -> String {
    format!("{lane}: copied into its worktree now: {}", paths.join(", "))
}

pub(crate) fn base_moved(lane: &LanePath, moved: &str, queues: bool) -> String {
    let then = if queues { ": the lane is rebased before it is merged" } else { "" };
    format!("{lane}: {moved}{then}")
}

pub(crate) fn branch_recreated(lane: &LanePath, branch: &str, at: &str) -> String {
    let at = short(at);
    format!(
        "{lane}: its branch {branch} was deleted; it was created again at {at}, and its files were \
         not changed"
    )
}

pub(crate) fn torn_files(lane: &LanePath, files: &str, run: &str) -> String {
    format!(
        "{lane}: the machine restarted and left these files empty or cut short: {files}; they are \
         restored (`piton undo {run}` undoes that)"
    )
}

pub(crate) fn worktree_recreated(lane: &LanePath, with_checkpoint: bool) -> String {
    let from = if with_checkpoint { "its branch and its last checkpoint" } else { "its branch" };
    format!(
        "{lane}: its worktree was deleted; it was created again from {from}, without the files that \
         git ignores"
    )
}

pub(crate) fn worktree_not_recreated(lane: &LanePath, why: &str) -> String {
    format!("{lane}: its worktree was deleted and could not be created again: {why}")
}

pub(crate) fn merge_not_finished(lane: &LanePath, why: &str) -> String {
    format!("{lane}: the last merge is not finished yet: {why}")
}

pub(crate) fn not_checked_out(base: &str) -> String {
    format!("{base} is not checked out anywhere")
}

pub(crate) fn work_tree_stays_behind(base: &str, paths: &[String]) -> String {
    let paths = paths.join(", ");
    format!("the work tree of {base} was not updated: your changes to {paths} are in the way")
}

pub(crate) fn contained(base: &str) -> String {
    format!("{base} contains it")
}

pub(crate) const REPORTED_AS_MERGED: &str = "reported as merged";

pub(crate) fn command_not_started(program: &str, error: &std::io::Error) -> String {
    format!(
        "`{program}` could not be started: {error}; correct `merged` of [pull_request] in piton.toml"
    )
}

pub(crate) fn command_timed_out(seconds: u64) -> String {
    format!("the `merged` command did not end within {seconds} s")
}

pub(crate) const BRANCH_HAS_COMMITS: &str = "because it has other commits now";
pub(crate) const BRANCH_IS_FOREIGN: &str = "because it was not created for this lane";

pub(crate) fn branch_is_checked_out(dir: &Path) -> String {
    format!("because it is checked out in {}", dir.display())
}

pub(crate) fn branch_not_deleted(why: &str) -> String {
    format!("because it could not be deleted: {why}; fix this, then `piton gc` deletes it")
}

pub(crate) fn not_in_pull_request(lane: &LanePath, dir: &str, what: &str) -> String {
    format!(
        "{lane}: {dir} has work that is not in its pull request: {what}; commit and push it, or move \
         it: the worktree is kept until then"
    )
}

pub(crate) fn uncommitted(files: Option<String>) -> String {
    format!("{}, which nobody committed", files.unwrap_or_else(|| "files".to_owned()))
}

pub(crate) fn later_commits(from: &str, to: &str) -> String {
    format!("commits made after {}, up to {}", short(from), short(to))
}

/// Artifacts that only a worktree has; nothing where there are none.
pub fn ignored_artifacts(artifacts: &[String]) -> Option<String> {
    let names = named(artifacts.iter().map(String::as_bytes))?;
    let which = if artifacts.len() == 1 { "an artifact" } else { "artifacts" };
    Some(format!("{names}, {which} that git ignores"))
}

pub(crate) fn set_aside(lane: &LanePath, folder: &Path, paths: &[String]) -> String {
    let (folder, paths) = (folder.display(), paths.join(", "));
    format!("{lane}: files that are too large for a snapshot were moved to {folder}: {paths}")
}

pub(crate) fn has_markers(name: &str) -> String {
    format!("{name} (it has conflict markers)")
}

/// What is left beside a file of a conflict; nothing where nothing is.
pub(crate) fn left_beside(name: &str, beside: &[String]) -> Option<String> {
    match beside {
        [] => None,
        [one] => Some(format!("{name} ({one} still exists)")),
        many => Some(format!("{name} ({} still exist)", many.join(" and "))),
    }
}

/// Where the sides of a conflict are.
pub(crate) fn conflict_placed(has_markers: bool, beside: &[String]) -> String {
    let how = match (has_markers, beside.is_empty()) {
        (false, false) => format!(": see {}", beside.join(", ")),
        (true, false) => format!(", with markers and in {}", beside.join(", ")),
        (_, true) => ", with markers".to_owned(),
    };
    format!("both sides of the conflict are in its worktree{how}")
}
