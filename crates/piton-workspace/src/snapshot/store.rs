//! Which objects a repository already has in packs.
//!
//! Only asked when there is much to write, as for a first snapshot: then what lies in a pack (git
//! syncs those) is not written again. Loose objects don't count, because git does not sync them.

use std::path::{Path, PathBuf};

use super::oid::{LEN, Oid};

/// Longest chain of alternates; git allows five.
const ALTERNATES_DEPTH_MAX: usize = 5;
const FANOUT: usize = 8;
const IDS: usize = FANOUT + 256 * 4;

/// The indexes of all packs.
pub(crate) struct Store {
    indexes: Vec<Vec<u8>>,
}

impl Store {
    /// Reads the indexes.
    pub(crate) fn open(objects: &Path) -> Self {
        let mut folders = vec![objects.to_owned()];
        let mut last = folders.clone();
        for _ in 0..ALTERNATES_DEPTH_MAX {
            last = last.iter().flat_map(|folder| alternates(folder)).collect();
            last.retain(|folder| !folders.contains(folder));
            folders.extend(last.clone());
        }
        let packs = folders.iter().filter_map(|f| std::fs::read_dir(f.join("pack")).ok());
        let files = packs.flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let indexes = files.filter(|f| f.extension().is_some_and(|e| e == "idx"));
        Self {
            indexes: indexes.filter_map(|f| std::fs::read(f).ok()).filter(|d| known(d)).collect(),
        }
    }

    /// Whether an object lies in a pack.
    pub(crate) fn contains(&self, oid: Oid) -> bool {
        self.indexes.iter().any(|data| find(data, oid).unwrap_or(false))
    }
}

fn known(data: &[u8]) -> bool {
    data.starts_with(b"\xfftOc\0\0\0\x02")
}

fn number(data: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn find(data: &[u8], oid: Oid) -> Option<bool> {
    let first = usize::from(oid.0[0]);
    let mut low = if first == 0 { 0 } else { number(data, FANOUT + (first - 1) * 4)? };
    let mut high = number(data, FANOUT + first * 4)?;
    while low < high {
        let middle = usize::midpoint(low, high);
        let at = IDS + middle * LEN;
        match data.get(at..at + LEN)?.cmp(oid.0.as_slice()) {
            std::cmp::Ordering::Equal => return Some(true),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Some(false)
}

fn alternates(objects: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| objects.join(line)).collect()
}
