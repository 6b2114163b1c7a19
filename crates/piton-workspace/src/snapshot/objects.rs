//! Where a snapshot's new objects go: into its pack, each once.

use std::collections::HashSet;
use std::path::Path;

use super::Error;
use super::oid::{Kind, Oid};
use super::pack::{Deflater, Pack, Packed, Written};
use super::store::Store;

/// New objects on their way into a pack.
pub(crate) struct Objects {
    pack: Pack,
    /// What is there already; only asked when there is much to write.
    pub(crate) store: Option<Store>,
    seen: HashSet<Oid>,
    deflater: Option<Deflater>,
}

impl Objects {
    pub(crate) fn new(objects: &Path) -> Self {
        Self { pack: Pack::new(objects), store: None, seen: HashSet::new(), deflater: None }
    }

    /// Whether an object has to be written.
    pub(crate) fn wants(&self, oid: Oid) -> bool {
        !self.seen.contains(&oid) && !self.store.as_ref().is_some_and(|s| s.contains(oid))
    }

    /// Adds an object and returns its id.
    pub(crate) fn put(&mut self, kind: Kind, data: &[u8]) -> Result<Oid, Error> {
        let oid = Oid::of(kind, data);
        if self.wants(oid) {
            let packed = self.deflater.get_or_insert_with(Deflater::new).pack(oid, kind, data)?;
            self.append(oid, &packed)?;
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

    /// Makes them durable.
    pub(crate) fn finish(self) -> Result<Option<Written>, Error> {
        self.pack.finish()
    }
}
