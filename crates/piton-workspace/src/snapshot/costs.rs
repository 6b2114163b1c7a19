//! What snapshots cost on disk.

use std::path::Path;

use super::Error;
use crate::git::Git;

/// What the snapshots below a prefix of refs take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Objects that only they hold.
    pub objects: u64,
    /// Bytes of those on disk, as they are packed now.
    pub bytes: u64,
}

/// What the packs take that snapshots wrote, of all runs: read from file sizes, without asking git.
/// What the user's own repacking took over is not in it. `cache` is the folder of stat caches,
/// `common` the git folder that all work trees share.
pub fn packed(cache: &Path, common: &Path) -> u64 {
    let names = std::fs::read_to_string(cache.join(super::packs::LIST)).unwrap_or_default();
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    names.dedup();
    let folder = common.join("objects/pack");
    let size =
        |name: &&str| std::fs::metadata(folder.join(format!("{name}.pack"))).map(|m| m.len());
    names.iter().filter_map(|name| size(name).ok()).sum()
}

/// Measures what the snapshots of all refs below a prefix (`refs/piton/RUN/`) cost beyond
/// everything else: objects that no other ref and no checked-out HEAD reaches.
///
/// An approximation: what two runs share is counted for neither, objects that deltas are based on
/// count where they lie, and the user's index is not asked.
pub fn costs(dir: &Path, prefix: &str) -> Result<Costs, Error> {
    let ours = format!("--glob={}/*", prefix.trim_end_matches('/'));
    let not_ours = format!("--exclude={}/*", prefix.trim_end_matches('/'));
    let walk = |how: &str| {
        Git::at(dir).args(["rev-list", "--objects", how, &ours, "--not", &not_ours, "--all"]).text()
    };
    let bytes = walk("--disk-usage")?.trim().parse().unwrap_or_default();
    let objects = walk("--no-object-names")?.lines().count() as u64;
    Ok(Costs { objects, bytes })
}
