//! The errors of a ledger; every message ends with what to do next.
//!
//! Callers act on the variants. Raw SQLite errors become one of them if the meaning is known
//! ([`Error::in_file`]), and [`Error::Sqlite`] otherwise.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::Owner;
use crate::files::unwritable;

/// SQLite's own limit is 512, with the endings of the files beside the database.
const PATH_BYTES_MAX: usize = 500;

/// The result of ledger operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a ledger operation did not happen. Nothing is half done when one is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no ledger in the directory.
    #[error("no runs here yet (there is no ledger in {})", dir.display())]
    NoLedger {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// The ledger was written by a newer program. It was not changed.
    #[error(
        "the ledger has format {found}, but this Piton only knows formats up to {known}; use the \
         newer Piton that wrote it"
    )]
    Newer {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// The file is damaged or not a ledger. It was not changed.
    #[error(
        "{} is damaged or not a Piton ledger ({detail}); it was not changed", path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite or the format check said.
        detail: String,
    },
    /// The ledger is older than it was. It was not changed.
    #[error(
        "the ledger {} is older than it was: {detail}; its write-ahead log was damaged or deleted, \
         or an older copy replaced it; nothing was changed", path.display()
    )]
    Behind {
        /// The file.
        path: PathBuf,
        /// What is missing.
        detail: String,
    },
    /// The format must change, but a driver of the older program may still be running.
    #[error(
        "the ledger must be upgraded from format {found} to {known}, but {owner} is still driving a \
         run; wait until it ends, or stop it, then try again"
    )]
    InUse {
        /// The driver that prevents it.
        owner: Owner,
        /// The version found.
        found: u32,
        /// The version wanted.
        known: u32,
    },
    /// The run id is taken.
    #[error("run {run_id} already exists; choose another id, or resume it")]
    RunExists {
        /// The name asked for.
        run_id: String,
    },
    /// No such run, or it was deleted.
    #[error("the ledger does not have this run")]
    NoRun,
    /// Somebody else holds the lease.
    #[error("the run is driven by {owner}; wait for it, or take it over")]
    Held {
        /// Who holds it.
        owner: Owner,
    },
    /// Our epoch is stale: another process took over the run. Nothing more can be appended.
    #[error(
        "another process took over the run (our epoch is {ours}, the current one {current}); this \
         process must stop"
    )]
    Fenced {
        /// The epoch we came with.
        ours: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The lease was given up before; nobody else has it.
    #[error("this process gave up the lease of the run; acquire it again")]
    NotHeld,
    /// The history is longer or shorter than the caller expected.
    #[error("the run is at event {found}, not {expected}; load it again")]
    Conflict {
        /// The sequence number the caller believed to be the last.
        expected: u64,
        /// The one that is.
        found: u64,
    },
    /// An append answers a request that the run does not have.
    #[error("the run has no request {id}; read its inbox again")]
    UnknownRequest {
        /// The request named.
        id: i64,
    },
    /// A write through a ledger opened for reading.
    #[error("the ledger was opened read-only; open it for writing")]
    ReadOnly,
    /// The folder of the ledger, or one of its files, is not writable.
    #[error(
        "cannot write to {}: {source}; make it writable, or work in a copy of the project", path.display()
    )]
    Unwritable {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The name of the ledger's file is longer than SQLite takes.
    #[error(
        "the path {} has {} bytes, but a ledger's path may have at most {max}; move the project to \
         a shorter path", path.display(), path.as_os_str().len()
    )]
    TooLong {
        /// The database file.
        path: PathBuf,
        /// How many bytes it may have.
        max: usize,
    },
    /// The ledger may exist, but this user may not read it.
    #[error(
        "cannot read {}: {source}; work as the user who owns it, or make it readable", path.display()
    )]
    Unreadable {
        /// The database file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The ledger stayed locked for too long.
    #[error(
        "the ledger {} was busy for a minute; find out which process uses it (fuser or lsof), then \
         try again", path.display()
    )]
    Busy {
        /// The database file.
        path: PathBuf,
    },
    /// The process in the middle of a write is stopped (SIGSTOP, a debugger), so nobody can write.
    #[error(
        "process {pid} is stopped in the middle of a write to {}; continue it (kill -CONT {pid}) \
         or end it (kill -KILL {pid}), then try again", path.display()
    )]
    HolderStopped {
        /// The stopped process.
        pid: u32,
        /// The lock file it holds.
        path: PathBuf,
    },
    /// The disk is full; nothing was written.
    #[error("no space left on the disk of {}; free some space, then try again", path.display())]
    DiskFull {
        /// The database file.
        path: PathBuf,
    },
    /// The target of a copy exists.
    #[error("{} already exists; name a file that does not exist", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// A file or directory of the ledger could not be used.
    #[error("cannot {what} {}: {source}; check that it exists and belongs to you", path.display())]
    File {
        /// What was tried, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Any other error of SQLite.
    #[error("the ledger failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl Error {
    /// Makes a file error; for `map_err`.
    pub(crate) fn file<E: Into<std::io::Error>>(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source: source.into() }
    }

    /// Turns a raw SQLite error about the database at `path` into one that callers can act on.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        let Self::Sqlite(raw) = self else { return self };
        let path = path.to_owned();
        match raw.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, detail: raw.to_string() }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::FileLockingProtocolFailed) => {
                Self::Busy { path }
            }
            Some(ErrorCode::DiskFull) => Self::DiskFull { path },
            Some(ErrorCode::CannotOpen) if path.as_os_str().len() > PATH_BYTES_MAX => {
                Self::TooLong { path, max: PATH_BYTES_MAX }
            }
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                match path.parent().and_then(unwritable) {
                    Some((path, source)) => Self::Unwritable { path, source },
                    None => Self::Sqlite(raw),
                }
            }
            _ => Self::Sqlite(raw),
        }
    }
}
