//! Objects that are in packs: which there are, and what they hold.
//!
//! A first snapshot asks which: what is in a pack (git syncs those) is not written again. Loose
//! objects don't count, because git does not sync them. A large checkout reads them, for starting a
//! `git cat-file` and having everything copied through a pipe takes as long as creating the files.

mod entry;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) use entry::Reader;

use crate::objects::{LEN, Oid};

/// Longest chain of alternates; git allows five.
const ALTERNATES_DEPTH_MAX: usize = 5;
const FANOUT: usize = 8;
const IDS: usize = FANOUT + 256 * 4;
/// Set in an offset that stands in the table of large ones.
const LARGE: u32 = 1 << 31;

/// All packs of a repository.
pub(crate) struct Packs {
    packs: Vec<Pack>,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    pack: usize,
    offset: u64,
}

struct Pack {
    index: Vec<u8>,
    file: PathBuf,
    opened: OnceLock<Option<File>>,
}

impl Packs {
    /// Reads the indexes.
    pub(crate) fn open(objects: &Path) -> Self {
        let mut folders = vec![objects.to_owned()];
        let mut last = folders.clone();
        for _ in 0..ALTERNATES_DEPTH_MAX {
            last = last.iter().flat_map(|folder| alternates(folder)).collect();
            last.retain(|folder| !folders.contains(folder));
            folders.extend(last.clone());
        }
        let entries = folders.iter().filter_map(|f| std::fs::read_dir(f.join("pack")).ok());
        let files = entries.flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let indexes = files.filter(|f| f.extension().is_some_and(|e| e == "idx"));
        Self { packs: indexes.filter_map(|file| Pack::open(&file)).collect() }
    }

    /// Whether an object is in a pack.
    pub(crate) fn contains(&self, oid: Oid) -> bool {
        self.packs.iter().any(|pack| pack.position(oid).is_some())
    }

    /// Where an object is, in a pack that can be read.
    pub(crate) fn find(&self, oid: Oid) -> Option<Location> {
        self.packs.iter().enumerate().find_map(|(at, pack)| {
            let offset = pack.offset(pack.position(oid)?)?;
            pack.data().map(|_| Location { pack: at, offset })
        })
    }
}

impl Pack {
    fn open(index: &Path) -> Option<Self> {
        let (file, index) = (index.with_extension("pack"), std::fs::read(index).ok()?);
        let known = index.starts_with(b"\xfftOc\0\0\0\x02");
        known.then_some(Self { index, file, opened: OnceLock::new() })
    }

    /// Its objects. Once open they stay readable, though git may have deleted the file.
    fn data(&self) -> Option<&File> {
        self.opened.get_or_init(|| File::open(&self.file).ok()).as_ref()
    }

    fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.index.get(at..at + 4)?.try_into().ok()?))
    }

    /// How many objects have an id whose first byte is at most this one.
    fn up_to(&self, first: u8) -> Option<usize> {
        self.number(FANOUT + usize::from(first) * 4).map(|count| count as usize)
    }

    /// Which of its objects an id is.
    fn position(&self, oid: Oid) -> Option<usize> {
        let first = oid.0[0];
        let mut low = first.checked_sub(1).map_or(Some(0), |before| self.up_to(before))?;
        let mut high = self.up_to(first)?;
        while low < high {
            let middle = usize::midpoint(low, high);
            let at = IDS + middle * LEN;
            match self.index.get(at..at + LEN)?.cmp(oid.0.as_slice()) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Where one of its objects begins: the ids are followed by a checksum of four bytes for each,
    /// then by the offsets, then by the large ones.
    fn offset(&self, position: usize) -> Option<u64> {
        let count = self.up_to(u8::MAX)?;
        let offsets = IDS + count * (LEN + 4);
        let offset = self.number(offsets + position * 4)?;
        if offset & LARGE == 0 {
            return Some(offset.into());
        }
        let at = offsets + count * 4 + (offset ^ LARGE) as usize * 8;
        Some(u64::from_be_bytes(self.index.get(at..at + 8)?.try_into().ok()?))
    }
}

fn alternates(objects: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| objects.join(line)).collect()
}

#[cfg(test)]
mod tests;
