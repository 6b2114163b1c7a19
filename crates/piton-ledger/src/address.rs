//! Where a ledger is, and which implementation opens it.
//!
//! An address is the path of a folder, for SQLite. One with a scheme, such as `postgres://…`, names
//! a kind of ledger that this program does not have.

use std::path::Path;

use crate::{Error, Ledger, Open, Result, Sqlite};

/// Opens the ledger at an address.
pub fn open(address: &Path, mode: Open) -> Result<Box<dyn Ledger>> {
    if let Some((scheme, _)) = address.to_str().and_then(|text| text.split_once("://"))
        && !scheme.contains('/')
    {
        return Err(Error::UnknownKind { scheme: scheme.to_owned() });
    }
    Ok(Box::new(Sqlite::open(address, mode)?))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Lost: a folder of that name is made, and the runs go into it.
    #[test]
    fn a_kind_of_ledger_that_is_not_known_is_refused() {
        let refused = open(Path::new("postgres://host/piton"), Open::ReadWrite).map(drop);
        assert!(matches!(refused, Err(Error::UnknownKind { scheme }) if scheme == "postgres"));
        let home = tempfile::tempdir().unwrap();
        let odd = home.path().join("a://b");
        assert!(open(&odd, Open::ReadWrite).is_ok() && odd.is_dir());
    }
}
