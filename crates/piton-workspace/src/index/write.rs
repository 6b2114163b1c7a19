//! An index in git's format, version 2, with the table of trees that makes commits fast.
//!
//! The format is in git's documentation (`gitformat-index`) and does not change. Only what a fresh
//! checkout needs is written: no stages, no flags, no other extensions.

use std::collections::BTreeMap;

use sha1::{Digest as _, Sha1};

use super::{FIXED, SIGNATURE, Stat};
use crate::files::{name, parent};
use crate::objects::Oid;

/// Names this long or longer have no length in the flags.
const NAME_LENGTH_MAX: usize = 0xFFF;

/// A path, as a tree or an index has it, and its object.
type Named<'a> = (&'a [u8], Oid);

/// The bytes of an index of files, in the order of an index, and of the folders they are in, the top
/// first; `None` if there are too many.
pub(crate) fn encode(files: &[(Named<'_>, Stat)], folders: &[Named<'_>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(files.len() * 128);
    bytes.extend_from_slice(SIGNATURE);
    bytes.extend_from_slice(&2_u32.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(files.len()).ok()?.to_be_bytes());
    for ((path, oid), stat) in files {
        bytes.extend(stat.iter().flat_map(|number| number.to_be_bytes()));
        bytes.extend_from_slice(&oid.0);
        let length = u16::try_from(path.len().min(NAME_LENGTH_MAX)).ok()?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(path);
        // One to eight zeros, up to a multiple of eight.
        let padding = 8 - (FIXED + path.len()) % 8;
        bytes.extend_from_slice(&[0; 8][..padding]);
    }
    let trees = trees(files, folders);
    bytes.extend_from_slice(b"TREE");
    bytes.extend_from_slice(&u32::try_from(trees.len()).ok()?.to_be_bytes());
    bytes.extend_from_slice(&trees);
    let hash = Sha1::digest(&bytes);
    bytes.extend_from_slice(&hash);
    Some(bytes)
}

/// A folder with how much is in it.
struct Tree<'a> {
    oid: Oid,
    files: usize,
    children: Vec<&'a [u8]>,
}

/// The table of trees: name, number of files below, number of folders in it, id; each folder is
/// followed by those in it.
fn trees(files: &[(Named<'_>, Stat)], folders: &[Named<'_>]) -> Vec<u8> {
    let mut trees: BTreeMap<&[u8], Tree> = BTreeMap::new();
    for (path, oid) in folders {
        trees.insert(path, Tree { oid: *oid, files: 0, children: Vec::new() });
        if let Some(above) = parent(path).and_then(|above| trees.get_mut(above)) {
            above.children.push(path);
        }
    }
    for ((path, _), _) in files {
        let mut folder = parent(path);
        while let Some(path) = folder {
            if let Some(tree) = trees.get_mut(path) {
                tree.files += 1;
            }
            folder = parent(path);
        }
    }
    let mut bytes = Vec::new();
    let mut waiting: Vec<&[u8]> = vec![b""];
    while let Some(path) = waiting.pop() {
        let Some(tree) = trees.get(path) else { continue };
        bytes.extend_from_slice(name(path));
        bytes.extend_from_slice(format!("\0{} {}\n", tree.files, tree.children.len()).as_bytes());
        bytes.extend_from_slice(&tree.oid.0);
        waiting.extend(tree.children.iter().rev());
    }
    bytes
}
