//! The files of a fresh worktree, written by several threads at once.
//!
//! Git's own checkout spends most of its time creating files one after the other. Here each thread
//! reads objects and creates files, and the index is written at the end from what the system said
//! about them. That is right only where a file is the bytes of
//! its object: filters, line ends, submodules, sparse selections and whatever else needs git's
//! judgement are left to git, and so is everything that goes wrong here.

mod listing;
mod plain;
mod write;

use std::fs;
use std::path::Path;

use super::Result;
use crate::index;
use crate::repo::Repo;

/// From how many files on the threads are worth it; below, git is done before they are.
const THREADED_FILES_MIN: usize = 500;

/// From how many files on git's own checkout uses several processes, for the same reason.
const PARALLEL_FILES_MIN: u32 = 1000;

/// The most threads: beyond, they wait for each other in the file system.
const WORKERS_MAX: usize = 16;

/// Writes the files and the index of a worktree that was registered without.
pub(super) fn fill(
    repo: &Repo,
    path: &Path,
    admin: &Path,
    head: &str,
    workers: usize,
) -> Result<()> {
    if !threaded(repo, path, admin, head, workers.clamp(1, WORKERS_MAX)) {
        repo.git_in(path)
            .config(&format!("checkout.workers={workers}"))
            .config(&format!("checkout.thresholdForParallelism={PARALLEL_FILES_MIN}"))
            // Not `reset`: that also locks the packed refs, and killed it would leave a lock that
            // nobody can tell from the user's.
            .args(["read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"])
            .run()?;
    }
    Ok(())
}

/// Tries to do it with threads. What was written when it does not work out does no harm: git
/// overwrites it.
fn threaded(repo: &Repo, path: &Path, admin: &Path, head: &str, workers: usize) -> bool {
    // What is checked out where the lane starts from is about as large.
    let tracked = index::count(&repo.git_dir.join("index"));
    let is_small = tracked.is_some_and(|count| count < THREADED_FILES_MIN / 2);
    if is_small || !plain::settings(path) {
        return false;
    }
    let Some(listing) = listing::read(path, head) else { return false };
    if listing.files.len() < THREADED_FILES_MIN || !plain::attributes(path, &listing) {
        return false;
    }
    let objects = repo.common.join("objects");
    let Some(stats) = write::all(path, &objects, &listing, workers) else { return false };
    let entries = listing.files.iter().zip(stats);
    let files: Vec<_> = entries.map(|(file, stat)| (listing.path(file), file.oid, stat)).collect();
    let (aside, index) = (admin.join("index.piton"), admin.join("index"));
    let write = |bytes| fs::write(&aside, bytes).and_then(|()| fs::rename(&aside, index));
    index::encode(&files).is_some_and(|bytes| write(bytes).is_ok())
}
