//! Where a snapshot's new objects go: into its pack, each once.

use std::collections::HashSet;
use std::path::Path;

use super::Error;
use super::oid::{Kind, Oid};
use super::pack::{Pack, Packed, Written};
use crate::packed::Packs;

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
        let oid = Oid::of(kind, data);
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
