//! What snapshots cost on disk.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use super::Error;
use crate::git::Git;
use crate::refs::{PREFIX, Ref};

/// What the snapshots below a prefix of refs take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Objects that only they hold.
    pub objects: u64,
    /// Bytes of those on disk, as they are packed now.
    pub bytes: u64,
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

/// What goes with each of these sets of refs when all of them go, in bytes on disk: objects that
/// neither the refs that stay nor anything else of the repository reaches.
///
/// What two of them share counts for one of them, so that the sum is what becomes free. All sets are
/// measured in one walk: asked for each alone, git would look at the refs of all others each time.
pub fn shares(dir: &Path, going: &[&[Ref]], staying: &[&Ref]) -> Result<Vec<u64>, Error> {
    let mut bytes = vec![0; going.len()];
    let mut owners: HashMap<String, usize> = HashMap::new();
    let mut input = String::new();
    for (index, set) in going.iter().enumerate() {
        for tip in *set {
            owners.entry(tip.value.clone()).or_insert(index);
            // Writing to a string has no way to fail.
            let _ = writeln!(input, "{}", tip.value);
        }
    }
    if input.is_empty() {
        return Ok(bytes);
    }
    for tip in staying {
        let _ = writeln!(input, "^{}", tip.value);
    }
    let others = format!("--exclude={PREFIX}*");
    let walk = ["rev-list", "--objects", "--parents", "--topo-order", "--in-commit-order"];
    let walk = Git::at(dir).args(walk).args(["--stdin", "--not", &others, "--all"]);
    // Each commit comes before its parents, and before what is first found in it.
    let (mut ids, mut of) = (String::new(), Vec::new());
    let mut owner = 0;
    for line in walk.input(input).text()?.lines() {
        let mut words = line.split(' ');
        let id = words.next().unwrap_or_default();
        let own = owners.get(id).copied();
        // With a commit stand its parents, with anything else its path.
        if words.clone().all(|word| word.len() == id.len()) {
            owner = own.unwrap_or(owner);
            for parent in words {
                owners.entry(parent.to_owned()).or_insert(owner);
            }
        }
        let _ = writeln!(ids, "{id}");
        of.push(own.unwrap_or(owner));
    }
    let sizes = Git::at(dir).args(["cat-file", "--batch-check=%(objectsize:disk)"]).input(ids);
    for (size, owner) in sizes.text()?.lines().zip(of) {
        bytes[owner] += size.trim().parse::<u64>().unwrap_or_default();
    }
    Ok(bytes)
}
