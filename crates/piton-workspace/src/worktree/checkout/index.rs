//! An index in git's format, version 2, with the table of trees that makes commits fast.
//!
//! The format is in git's documentation (`gitformat-index`) and does not change. Only what a fresh
//! checkout needs is written: no stages, no flags, no other extensions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha1::{Digest as _, Sha1};

use super::listing::{ID_BYTES, Listing};
use super::write::Stat;

/// Names this long or longer have no length in the flags.
const NAME_LENGTH_MAX: usize = 0xFFF;

/// What stands before the name of an entry.
const ENTRY_HEAD_BYTES: usize = 62;

/// Writes the index of a fresh worktree; `None` if it cannot be done.
pub(super) fn write(admin: &Path, listing: &Listing, stats: &[Stat]) -> Option<()> {
    let mut bytes = Vec::with_capacity(listing.files.len() * 128);
    bytes.extend_from_slice(b"DIRC\0\0\0\x02");
    bytes.extend_from_slice(&u32::try_from(listing.files.len()).ok()?.to_be_bytes());
    for (file, stat) in listing.files.iter().zip(stats) {
        let path = listing.path(file);
        let numbers = [
            stat.ctime.0,
            stat.ctime.1,
            stat.mtime.0,
            stat.mtime.1,
            stat.dev,
            stat.ino,
            file.kind.mode(),
            stat.uid,
            stat.gid,
            stat.size,
        ];
        for number in numbers {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&file.id);
        let length = u16::try_from(path.len().min(NAME_LENGTH_MAX)).ok()?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(path);
        // One to eight zeros, up to a multiple of eight.
        let padding = 8 - (ENTRY_HEAD_BYTES + path.len()) % 8;
        bytes.extend_from_slice(&[0; 8][..padding]);
    }
    let trees = trees(listing);
    bytes.extend_from_slice(b"TREE");
    bytes.extend_from_slice(&u32::try_from(trees.len()).ok()?.to_be_bytes());
    bytes.extend_from_slice(&trees);
    let hash = Sha1::digest(&bytes);
    bytes.extend_from_slice(&hash);
    let (aside, index) = (admin.join("index.piton"), admin.join("index"));
    fs::write(&aside, &bytes).ok()?;
    fs::rename(aside, index).ok()
}

/// A folder with how much is in it.
struct Tree<'a> {
    id: [u8; ID_BYTES],
    files: usize,
    children: Vec<&'a [u8]>,
}

/// The table of trees: name, number of files below, number of folders in it, id; each folder is
/// followed by those in it.
fn trees(listing: &Listing) -> Vec<u8> {
    let mut trees: BTreeMap<&[u8], Tree> = BTreeMap::new();
    for folder in &listing.folders {
        let path = listing.folder_path(folder);
        trees.insert(path, Tree { id: folder.id, files: 0, children: Vec::new() });
        if !path.is_empty()
            && let Some(above) = trees.get_mut(parent(path))
        {
            above.children.push(path);
        }
    }
    for file in &listing.files {
        let mut folder = listing.path(file);
        while !folder.is_empty() {
            folder = parent(folder);
            if let Some(tree) = trees.get_mut(folder) {
                tree.files += 1;
            }
        }
    }
    let mut bytes = Vec::new();
    let mut waiting: Vec<&[u8]> = vec![b""];
    while let Some(path) = waiting.pop() {
        let Some(tree) = trees.get(path) else { continue };
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(format!("\0{} {}\n", tree.files, tree.children.len()).as_bytes());
        bytes.extend_from_slice(&tree.id);
        waiting.extend(tree.children.iter().rev());
    }
    bytes
}

/// The folder that a path is in; empty for the top.
fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.map_or(b"", |slash| &path[..slash])
}
