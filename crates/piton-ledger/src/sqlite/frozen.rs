//! Reads a ledger in a folder that is not writable: a read-only mount, a backup, another user's.
//!
//! SQLite needs an index file to read a database in WAL mode, and fails if it cannot create one. A
//! ledger that nobody drives has an empty WAL, so its one file is complete and can be read alone.
//! If the WAL still has changes, ignoring them would show a wrong state: then SQLite can read the
//! ledger only if the index file exists, and otherwise it is refused.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::Error;
use crate::files::wal;

/// Whether an error can be caused by a folder without write access.
pub(super) fn is_suspect(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Opens a database that is complete without its WAL.
pub(super) fn open(dir: &Path, path: &Path) -> Result<Connection, Error> {
    if fs::metadata(wal(path)).is_ok_and(|found| found.len() > 0) {
        return Err(Error::Frozen { dir: dir.to_owned() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(uri(path), flags)?)
}

/// The URI of a file that does not change while it is read.
fn uri(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            address.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address + "?immutable=1"
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;
    use crate::files::beside;
    use crate::{Ledger as _, NewRun, Open, Owner, Sqlite};

    #[test]
    fn a_closed_ledger_is_read_as_it_lies_and_an_open_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("50 % of a?b#ü");
        let mut ledger = Sqlite::open(&dir, Open::ReadWrite).unwrap();
        ledger.put_blob("kept", b"body").unwrap();
        let new = NewRun { run_id: "run", plan: "p", title: "t", root: "/", at: 1 };
        let run = ledger.create_run(&new, &Owner::current()).unwrap().run;
        let path = ledger.path().to_owned();
        let refused = open(&dir, &path).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Frozen { .. }), "{refused}");
        ledger.release(run, 1, 2).unwrap();
        drop(ledger);
        for made in [wal(&path), beside(&path, "-shm")] {
            fs::remove_file(made).unwrap();
        }
        let frozen = open(&dir, &path).unwrap();
        let count = "SELECT count(*) FROM blobs";
        assert_eq!(frozen.query_row(count, (), |row| row.get::<_, i64>(0)).unwrap(), 1);
        let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing is made beside it: {names:?}");
    }
}
