//! The files of a ledger: their names, and which of them may not be written.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The name of the database file.
pub const DATABASE_FILE: &str = "ledger.db";

/// The name of the lock file.
pub const LOCK_FILE: &str = "ledger.lock";

/// Whether an error is one that a folder without write access leads to.
pub(crate) fn is_unwritable(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// What of a ledger this user may not write: its folder or one of its files, and why.
///
/// The files beside the database get its mode when they are made, and keep it: one look at a database
/// that was read-only for a while leaves an index that nobody can write.
pub fn unwritable(dir: &Path) -> Option<(PathBuf, std::io::Error)> {
    let database = dir.join(DATABASE_FILE);
    let files = [dir.to_owned(), dir.join(LOCK_FILE), wal(&database), beside(&database, "-shm")];
    files.into_iter().chain([database]).find_map(|path| {
        let refused = access(&path, Access::WRITE_OK).err().map(std::io::Error::from)?;
        is_unwritable(&refused).then_some((path, refused))
    })
}

/// The write-ahead log of a database.
pub(crate) fn wal(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// A file beside a database, by its ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
