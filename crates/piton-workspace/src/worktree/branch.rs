//! The branch of a lane: claimed together with a record of whose it is, deleted when base has it.
//!
//! One ref transaction writes the record and then the branch, so a branch without a record is never
//! ours.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::add::NUMBERS_MAX;
use super::mark::Mark;
use super::{Error, Result, Spec, commit_fenced};
use crate::git::{Git, is_ancestor};
use crate::objects::write_blob;
use crate::refs::record::{self, lane_name, names};
use crate::refs::{self, Fence, Transaction};
use crate::repo::Repo;

/// How often a branch is tried to be deleted while base moves; nobody commits that fast by hand.
const DELETE_ROUNDS_MAX: u32 = 40;

/// How long the user has the locks to themselves in between: a commit takes a few milliseconds.
const DELETE_PAUSE: Duration = Duration::from_millis(50);

/// How many names are tried while other runs claim theirs.
pub(super) const CLAIMS_MAX: u32 = 20;

/// How long another run may take to claim the name that it tries.
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

/// What git says about a lock that somebody else holds: the name of its file.
const GIT_LOCKED: &str = ".lock";

/// What became of a branch that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchEnd {
    /// It is gone, now or already.
    Deleted,
    /// Base does not contain its commit.
    NotContained,
    /// It is at another commit than expected.
    Moved(String),
    /// It is checked out.
    InUse(PathBuf),
    /// It was not made for a lane of this run.
    Foreign,
}

/// A branch that a lane claimed.
pub(super) struct Claim {
    /// Its short name.
    pub branch: String,
    /// The commit the lane starts from.
    pub start: String,
    /// It was made now, at that commit.
    pub is_new: bool,
}

/// Claims a branch for a lane, or finds the one it claimed.
pub(super) fn claim(repo: &Repo, spec: &Spec, fence: &Fence) -> Result<Claim> {
    let dir = &repo.root;
    let record_name = names(&spec.run_id, &spec.lane).0;
    if let Some((branch, start)) = record::read(repo, &record_name, &spec.lane) {
        let full = format!("refs/heads/{branch}");
        if repo.value(&full).is_none() {
            let again = Transaction::fenced(fence).update(&full, &start, None);
            commit_fenced(again, repo, fence, "piton: lane")?;
        }
        return Ok(Claim { branch, start, is_new: false });
    }
    let (mut branch, mut tries) = (spec.branch.clone(), 0);
    // All branches are looked at only if the name it should have is taken.
    while let Err(error) = claim_name(repo, spec, &branch, fence) {
        let free = free_name(dir, spec)?;
        tries += 1;
        if matches!(error, Error::Superseded) || tries == CLAIMS_MAX {
            return Err(error);
        }
        if free == branch {
            // Another run may be about to claim it: then it is taken in a moment.
            thread::sleep(CLAIM_PAUSE);
        }
        branch = free;
    }
    Ok(Claim { branch, start: spec.start.clone(), is_new: true })
}

/// Notes that a lane starts from another commit than its record says.
pub(super) fn start_from(repo: &Repo, mark: &Mark, start: &str, fence: &Fence) -> Result<()> {
    let (record_name, start_name) = names(&mark.owner.run_id, &mark.owner.lane);
    let blob = write_blob(&repo.root, &format!("{}\n{start}\n", mark.branch))?;
    let set = Transaction::fenced(fence).set(&record_name, &blob).set(&start_name, start);
    commit_fenced(set, repo, fence, "piton: lane starts over")
}

/// Claims a branch by its name, unless there is one already or something is in its way.
fn claim_name(repo: &Repo, spec: &Spec, branch: &str, fence: &Fence) -> Result<()> {
    let made = recorded(repo, spec, branch, fence)?;
    let made = made.update(&format!("refs/heads/{branch}"), &spec.start, None);
    commit_fenced(made, repo, fence, "piton: lane")
}

/// A transaction that records a branch as that of a lane, which has none yet.
fn recorded(repo: &Repo, spec: &Spec, branch: &str, fence: &Fence) -> Result<Transaction> {
    let (lane, record) = ((&*spec.run_id, &*spec.lane), (branch, &*spec.start));
    Ok(record::add(Transaction::fenced(fence), &repo.root, lane, record)?)
}

/// Notes that a branch that is there is a lane's from now on; one of another lane of ours is not.
pub(super) fn take(repo: &Repo, spec: &Spec, fence: &Fence) -> Result<()> {
    if record::read(repo, &names(&spec.run_id, &spec.lane).0, &spec.lane).is_some() {
        return Ok(());
    }
    let name = format!("refs/heads/{}", spec.branch);
    let head = repo.value(&name).ok_or_else(|| Error::NoBranch(spec.branch.clone()))?;
    let taken = recorded(repo, spec, &spec.branch, fence)?.verify(&name, &head);
    commit_fenced(taken, repo, fence, "piton: lane taken over")
}

/// The first name that is neither a branch nor stands in the way of one.
fn free_name(dir: &Path, spec: &Spec) -> Result<String> {
    let text = Git::at(dir).args(["for-each-ref", "--format=%(refname)", "refs/heads/"]).text()?;
    let taken: Vec<&str> = text.lines().filter_map(|n| n.strip_prefix("refs/heads/")).collect();
    let below = |name: &str, folder: &str| {
        name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let is_free = |name: &str| {
        !taken.iter().any(|other| *other == name || below(name, other) || below(other, name))
    };
    let unique = format!("{}-{}", spec.branch, refs::component(&spec.run_id.replace('/', "-")));
    let numbered = (2..=NUMBERS_MAX).map(|number| format!("{}-{number}", spec.branch));
    // Where a branch named like one of the folders is in the way, only another folder helps.
    let aside = [unique.clone(), format!("piton-{unique}")];
    let mut all = std::iter::once(spec.branch.clone()).chain(numbered).chain(aside);
    all.find(|name| is_free(name)).ok_or_else(|| Error::NoFreeName(spec.branch.clone()))
}

/// The commit a lane's branch is at.
pub(super) fn head(repo: &Repo, branch: &str) -> Result<String> {
    let head = repo.value(&format!("refs/heads/{branch}"));
    head.ok_or_else(|| Error::NoBranch(branch.to_owned()))
}

/// Makes the branch of a lane's worktree again: where HEAD last stood there, or else where the lane
/// started. Files stay, so what is not in that commit shows up as a change.
pub(super) fn make_again(own: &Repo, mark: &Mark, fence: &Fence) -> Result<String> {
    let log = std::fs::read_to_string(own.git_dir.join("logs/HEAD")).unwrap_or_default();
    let last = log.lines().rev().find_map(|line| line.split(' ').nth(1));
    let is_there = |id: &&str| has_commit(own, id);
    let commit = last.filter(is_there).unwrap_or(&mark.start).to_owned();
    let full = format!("refs/heads/{}", mark.branch);
    let again = Transaction::fenced(fence).update(&full, &commit, None);
    commit_fenced(again, own, fence, "piton: lane again")?;
    Ok(commit)
}

fn has_commit(repo: &Repo, id: &str) -> bool {
    repo.value(&format!("{id}^{{commit}}")).is_some()
}

/// Keeps a commit of a lane that starts over: it may be nowhere else.
pub fn keep_commit(
    root: &Path,
    (run_id, lane): (&str, &str),
    head: &str,
    fence: &Fence,
) -> Result<()> {
    let repo = Repo::find(root)?;
    let kept = dropped(run_id, lane, head);
    let keep = Transaction::fenced(fence).set(&kept, head);
    commit_fenced(keep, &repo, fence, "piton: lane starts over")
}

/// The ref below which a commit of a lane that starts over stays.
fn dropped(run_id: &str, lane: &str, head: &str) -> String {
    format!("{}dropped/{}/{head}", refs::run_prefix(run_id), lane_name(lane))
}

/// Deletes the branch of a lane, if it is still at `head` and `base` contains that.
///
/// `base` is the short name of a branch. In the same transaction base is required to stand where
/// it was looked at, so a commit cannot get lost in between.
pub fn delete_branch_if_contained(
    root: &Path,
    (run_id, lane): (&str, &str),
    head: &str,
    base: &str,
    fence: &Fence,
) -> Result<BranchEnd> {
    let repo = Repo::find(root)?;
    let base = format!("refs/heads/{base}");
    let mut rounds = 0;
    loop {
        let before = repo.value(&base);
        match delete_once(&repo, (run_id, lane), head, (&base, before.as_deref()), fence) {
            // The user commits to base in the meantime, or did: it is looked at again.
            Err(Error::Git(error))
                if rounds < DELETE_ROUNDS_MAX
                    && (error.message.contains(GIT_LOCKED) || repo.value(&base) != before) =>
            {
                thread::sleep(DELETE_PAUSE);
                rounds += 1;
            }
            ended => return ended,
        }
    }
}

fn delete_once(
    repo: &Repo,
    (run_id, lane): (&str, &str),
    head: &str,
    (base, tip): (&str, Option<&str>),
    fence: &Fence,
) -> Result<BranchEnd> {
    let root = &repo.root;
    let (record_name, start_name) = &names(run_id, lane);
    let Some((branch, _)) = record::read(repo, record_name, lane) else {
        return Ok(BranchEnd::Deleted);
    };
    let full = format!("refs/heads/{branch}");
    // Should it come back with a power cut, it is found as what a merged lane left, and goes again.
    let mut transaction = Transaction::fenced(fence).brief().without_sync();
    if let Some(found) = repo.value(&full) {
        if found != head {
            return Ok(BranchEnd::Moved(found));
        }
        if let Some(path) = super::list::checked_out_in(repo, &branch) {
            return Ok(BranchEnd::InUse(path));
        }
        let Some(tip) = tip else { return Ok(BranchEnd::NotContained) };
        if !is_ancestor(root, head, tip)? {
            return Ok(BranchEnd::NotContained);
        }
        transaction = transaction.verify(base, tip).delete(&full, head);
    }
    if let Some(start) = repo.value(start_name) {
        transaction = transaction.delete(start_name, &start);
    }
    // Last, for as long as the record is there the rest can be found and deleted again.
    if let Some(blob) = repo.value(record_name) {
        transaction = transaction.delete(record_name, &blob);
    }
    commit_fenced(transaction, repo, fence, "piton: lane merged")?;
    Ok(BranchEnd::Deleted)
}

/// Deletes the branch of a lane that starts over, whoever contains it; what it held stays below a ref
/// of the run. Nothing happens where the lane has none.
pub fn drop_branch(root: &Path, (run_id, lane): (&str, &str), fence: &Fence) -> Result<BranchEnd> {
    let repo = Repo::find(root)?;
    let (record_name, start_name) = names(run_id, lane);
    let Some((branch, _)) = record::read(&repo, &record_name, lane) else {
        return Ok(BranchEnd::Deleted);
    };
    let full = format!("refs/heads/{branch}");
    let mut transaction = Transaction::fenced(fence);
    if let Some(head) = repo.value(&full) {
        if let Some(path) = super::list::checked_out_in(&repo, &branch) {
            return Ok(BranchEnd::InUse(path));
        }
        transaction = transaction.set(&dropped(run_id, lane, &head), &head).delete(&full, &head);
    }
    for name in [start_name, record_name] {
        if let Some(value) = repo.value(&name) {
            transaction = transaction.delete(&name, &value);
        }
    }
    commit_fenced(transaction, &repo, fence, "piton: lane starts over")?;
    Ok(BranchEnd::Deleted)
}
