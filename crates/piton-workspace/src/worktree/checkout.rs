//! The files of a fresh worktree.

use std::path::Path;

use super::{Place, Result};
use crate::git::Git;

/// From how many files on git's own checkout uses several processes; below, starting them costs
/// more than it gains.
const PARALLEL_FILES_MIN: u32 = 1000;

/// Writes the files and the index of a worktree that was registered without; returns its commit.
pub(super) fn fill(place: &Place, path: &Path, _admin: &Path, workers: usize) -> Result<String> {
    place
        .git_in(path)
        .config(&format!("checkout.workers={workers}"))
        .config(&format!("checkout.thresholdForParallelism={PARALLEL_FILES_MIN}"))
        .args(["reset", "--hard", "--quiet", "--no-recurse-submodules"])
        .run()?;
    Ok(Git::at(path).args(["rev-parse", "--verify", "-q", "HEAD"]).text()?)
}
