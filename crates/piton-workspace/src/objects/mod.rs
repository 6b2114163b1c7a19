//! Objects: their ids, those that are in packs, and new ones, which are durable before anything names
//! them.

mod blob;
mod deflate;
mod oid;
mod pack;
mod packs;
pub mod partial;
mod sync;

use piton_core::refusal::Refusal;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) use blob::{read_loose, write as write_blob};
pub(crate) use oid::{Kind, LEN, Oid};
use pack::Pack;
pub(crate) use pack::{Packed, Written, is_ours};
pub(crate) use packs::{Packs, Reader};
pub use sync::sync;

/// Why new objects could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They could not be made into a pack.
    #[error("the objects of the snapshot could not be written: {0}")]
    Pack(String),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::new("snapshot", error.to_string()).or(crate::refusals::check_objects())
    }
}

impl Error {
    fn file(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// The mode of a folder in a tree.
pub(crate) const TREE: u32 = 0o40_000;
/// The mode of a submodule.
pub(crate) const GITLINK: u32 = 0o160_000;
/// The modes of files.
pub(crate) const FILE: u32 = 0o100_644;
pub(crate) const EXEC: u32 = 0o100_755;
pub(crate) const LINK: u32 = 0o120_000;

/// Objects that are durable already, as far as it pays to know.
#[derive(Default)]
pub(crate) struct There {
    /// What lies in packs; only asked when there is much to write.
    pub(crate) packs: Option<Packs>,
    /// What a snapshot of ours names that a ref holds.
    pub(crate) held: HashSet<Oid>,
}

impl There {
    pub(crate) fn contains(&self, oid: Oid) -> bool {
        self.held.contains(&oid) || self.packs.as_ref().is_some_and(|p| p.contains(oid))
    }
}

/// New objects on their way into a pack.
pub(crate) struct Objects {
    pack: Pack,
    pub(crate) there: There,
    seen: HashSet<Oid>,
}

impl Objects {
    pub(crate) fn new(objects: &Path) -> Self {
        Self { pack: Pack::new(objects), there: There::default(), seen: HashSet::new() }
    }

    /// Whether an object has to be written.
    pub(crate) fn wants(&self, oid: Oid) -> bool {
        !self.seen.contains(&oid) && !self.there.contains(oid)
    }

    /// Adds an object and returns its id.
    pub(crate) fn put(&mut self, kind: Kind, data: &[u8]) -> Result<Oid, Error> {
        let oid = Oid::hash(kind, data);
        if self.wants(oid) {
            self.append(oid, &Packed::new(oid, kind, data)?)?;
        }
        Ok(oid)
    }

    /// Adds an object that was packed elsewhere.
    pub(crate) fn append(&mut self, oid: Oid, packed: &Packed) -> Result<(), Error> {
        if self.seen.insert(oid) {
            self.pack.append(packed)?;
        }
        Ok(())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Makes them durable.
    pub(crate) fn finish(self) -> Result<Option<Written>, Error> {
        self.pack.finish()
    }
}
