//! The refusals of this crate: what people read when the world is not as a run needs it.
//!
//! Only sentences. When each applies is decided where it is called. What is shown about a lane that
//! is blocked ends with the command that continues its run; that is added where it is shown.

use std::path::Path;

use piton_core::LanePath;
use piton_core::refusal::{Refusal, Remedy};
use piton_core::shell::{git, quoted};
use piton_core::text::short;

pub(crate) fn other_base(found: &str, usual: &str) -> Refusal {
    let cause = format!("{found} is checked out, but `lanes.base` in piton.toml is {usual}");
    Refusal::new("base-not-checked-out", cause)
        .or(Remedy::shell(git(None, &["switch", usual])))
        .or(Remedy::from("name the base with ").option(format!("--base {}", quoted(found))))
}

/// A lane that starts again while another branch than its base is checked out.
pub(crate) fn base_not_checked_out(base: &str, found: Option<&str>) -> Refusal {
    let found = found.unwrap_or("no branch");
    let cause = format!("its base is {base}, but {found} is checked out");
    Refusal::new("base-not-checked-out", cause)
        .or(Remedy::shell(git(None, &["switch", base])))
        .or(Remedy::from("name the base with ").option(format!("--base {}", quoted(base))))
}

/// Work in place that needs a branch checked out; `elsewhere` is the worktree that has it.
pub(crate) fn base_needed_here(
    why: &str,
    base: &str,
    found: Option<&str>,
    elsewhere: Option<&Path>,
) -> Refusal {
    let found = found.unwrap_or("no branch");
    let switch = git(None, &["switch", base]);
    let remedy = match elsewhere.map(|dir| dir.display().to_string()) {
        Some(dir) => Remedy::shell(git(Some(&dir), &["switch", "--detach"])).then_shell(switch),
        None => Remedy::shell(switch),
    };
    Refusal::new("base-not-checked-out", format!("{why}, but {found} is checked out")).or(remedy)
}

pub(crate) fn validation_needs(base: &str) -> String {
    format!("the validation runs on {base}")
}

pub(crate) fn work_is_in(lane: &LanePath, base: &str) -> String {
    format!("the work of {lane} is in {base}")
}

pub(crate) fn lanes_in_place_need(base: &str) -> String {
    format!("the lanes of this run are merged into {base} and some of them work in place")
}

pub(crate) fn base_is_behind(base: &str, lane: &LanePath) -> Refusal {
    let cause = format!("{base} does not contain {lane}, which was merged elsewhere");
    let pull = Remedy::from(format!("update {base}, for example with "));
    Refusal::new("base-is-behind", cause).or(pull.command("git pull"))
}

pub(crate) fn branch_gone(branch: &str) -> Refusal {
    Refusal::new("branch-gone", format!("there is no branch {branch}")).or("create it again")
}

/// A lane in place whose files can't be checkpointed.
pub(crate) fn no_checkpoint(why: Refusal) -> Refusal {
    why.or("set `snapshots.enabled = false` in piton.toml to run without checkpoints")
}

pub(crate) fn place_is_taken(dir: &Path, branch: &str) -> Refusal {
    let dir = dir.display();
    let cause = format!("{dir} or the branch {branch} is in use by something else");
    Refusal::new("worktree", cause).or("move the folder or rename the branch")
}

pub(crate) fn branch_place_taken(lane: &str, branch: &str) -> Refusal {
    let cause = format!(
        "the worktree of {lane} can't be created again: the branch {branch} is not the one of the lane"
    );
    Refusal::new("worktree", cause).or("rename that branch")
}

pub(crate) fn folder_place_taken(lane: &str, dir: &str) -> Refusal {
    let cause =
        format!("the worktree of {lane} can't be created again: something else is in {dir}");
    Refusal::new("worktree", cause).or("move it to another place")
}

pub(crate) fn not_on_branch(
    (branch, commit): (&str, &str),
    (found, head): (Option<&str>, &str),
    dir: &str,
) -> Refusal {
    let (commit, head, found) = (short(commit), short(head), found.unwrap_or("no branch"));
    let cause = format!(
        "its commit {commit} is on {branch}, but {found} is checked out in its worktree, at {head}"
    );
    Refusal::new("worktree-left-branch", cause)
        .or(Remedy::shell(git(Some(dir), &["switch", branch])))
}

pub(crate) fn not_committable(dir: &str, why: &str) -> Refusal {
    let cause = format!("some of its files can't be committed: {why}");
    Refusal::new("not-committable", cause)
        .or(format!("make them readable, fix their filter or rename them in {dir}"))
        .or("delete them, or let git ignore them")
}

pub(crate) fn changed_during_commit(lane: &LanePath, dir: &str) -> Refusal {
    let cause = format!("files of {lane} changed while they were being committed");
    Refusal::new("not-committable", cause).or(format!("end what still writes to {dir}"))
}

/// A worktree that stays because of what it holds.
pub(crate) fn only_copy(dir: &Path, what: &str) -> Refusal {
    Refusal::new("only-copy", format!("its worktree has the only copy of {what}"))
        .or(remove_by_hand(dir))
}

/// A worktree that stays because it is not known what it has.
pub(crate) fn unknown_contents(dir: &Path, why: Refusal) -> Refusal {
    why.or(remove_by_hand(dir))
}

fn remove_by_hand(dir: &Path) -> Remedy {
    let dir = dir.display();
    let words = format!("move that out of {dir}, push it or delete it");
    Remedy::from(words).then_piton("gc")
}

pub(crate) fn worktree_must_stay(lane: &LanePath, dir: &str, why: &Refusal) -> Refusal {
    let cause = format!("the worktree of {lane} can't be removed: {}", why.cause);
    Refusal::new("only-copy", cause).or(format!("move that out of {dir}, or delete it, first"))
}

pub(crate) fn worktree_not_removable(lane: &LanePath, why: Refusal) -> Refusal {
    why.because(format!("the worktree of {lane} can't be removed"))
}

pub(crate) fn branch_in_use(branch: &str, dir: &Path) -> Refusal {
    let cause = format!("the branch {branch} is checked out in {}", dir.display());
    Refusal::new("worktree", cause).or("check out another branch there")
}

pub(crate) fn uncaptured_in_the_way(dir: &str, paths: &[String]) -> Refusal {
    let cause = format!(
        "{dir} has something else in the place of {}, and no snapshot has that",
        paths.join(", ")
    );
    Refusal::new("uncaptured-in-the-way", cause).or("move it out of there first")
}

pub(crate) fn large_in_the_way(dir: &str, paths: &[String]) -> Refusal {
    let cause = format!(
        "{dir} has files that are too large for a snapshot and would be replaced: {}",
        paths.join(", ")
    );
    Refusal::new("uncaptured-in-the-way", cause).or("move them out of there, or delete them, first")
}

pub(crate) fn not_moved(from: &Path, to: &Path, error: &std::io::Error) -> Refusal {
    let (from, to) = (from.display(), to.display());
    Refusal::new("uncaptured-in-the-way", format!("{from} can't be moved to {to}: {error}"))
        .or("move it to another place first")
}

/// A file that was set aside and could not be moved back after a failure.
pub(crate) fn still_aside(why: Refusal, path: &Path, at: &Path, error: &std::io::Error) -> Refusal {
    let (path, at) = (path.display(), at.display());
    Refusal { cause: format!("{}; {path} is {at} now: {error}", why.cause), ..why }
}

pub(crate) fn revert_conflict(files: &[String]) -> Refusal {
    let cause = format!("later commits changed the same files: {}", files.join(", "));
    Refusal::new("revert-conflict", cause)
        .or(Remedy::from("revert it with ").command("git revert COMMIT"))
}

pub(crate) fn base_moved(branch: &str) -> Refusal {
    Refusal::new("base-moved", format!("{branch} moved in the meantime"))
        .or("run the command again")
}

pub(crate) fn changes_in_the_way(paths: &[String]) -> Refusal {
    let cause = format!("your uncommitted changes are in the way: {}", paths.join(", "));
    Refusal::new("base-in-the-way", cause).or("commit, stash or move them")
}

/// A rewind that failed and could not be taken back either; `kept` is where what was there is.
pub(crate) fn half_rewound(why: &Refusal, what: &str, again: &Refusal, kept: &str) -> Refusal {
    let cause = format!("{why}; putting {what} back failed too: {again}; it was {kept}");
    Refusal::new(piton_workspace::refusals::HALF_DONE, cause)
}

pub(crate) fn lock_failed(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::new("run-lock", format!("{}: {error}", path.display()))
        .or("make sure that the folder is writable")
}

pub(crate) fn lock_busy(who: &str, seconds: u64) -> Refusal {
    Refusal::new("run-lock", format!("{who} has been changing files of the run for {seconds} s"))
        .or("wait until it is done")
        .or("end it")
}

pub(crate) fn keepers_die() -> Refusal {
    Refusal::new("keeper", "keepers died one after the other").or(see_doctor())
}

pub(crate) fn keeper_silent() -> Refusal {
    Refusal::new("keeper", "the keeper does not answer").or(see_doctor())
}

fn see_doctor() -> Remedy {
    Remedy::piton("doctor").words(" shows more")
}

pub(crate) fn processes_left(names: &str) -> Refusal {
    Refusal::new("keeper", format!("these processes of the run can't be ended: {names}"))
        .or("end them")
}

pub(crate) fn keeper_stopped(pid: u32) -> Refusal {
    let cause =
        format!("the keeper (process {pid}) is stopped, so it neither limits nor ends its steps");
    Refusal::new("keeper", cause)
        .or(Remedy::from("continue it with ").command(format!("kill -CONT {pid}")))
        .or(Remedy::from("end it with ").command(format!("kill -KILL {pid}")))
}
