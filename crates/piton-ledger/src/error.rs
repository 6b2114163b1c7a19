//! What can go wrong with a ledger; every message ends with what to do next.
//!
//! The variants are those a caller acts upon. Raw SQLite errors are sorted into them where the
//! meaning is known ([`Error::in_file`]) and stay [`Error::Sqlite`] where it is not.

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
    #[error("there is no ledger in {}; start a run here first", dir.display())]
    NoLedger {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// The ledger was written by a newer program. It was not touched.
    #[error(
        "the ledger has format {found}, this program knows up to {known}; use the newer program \
         that wrote it"
    )]
    Newer {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// The file is damaged or no ledger. It was not touched.
    #[error(
        "{} is damaged or not a Piton ledger ({detail}); it was left as it is: copy its directory \
         away, then restore a backup or begin a new one", path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite or the format check said.
        detail: String,
    },
    /// The ledger is older than it was. It was not touched.
    #[error(
        "the ledger {} went back: {detail}; its write-ahead log was damaged or deleted, or an older \
         copy took its place; nothing was changed", path.display()
    )]
    Behind {
        /// The file.
        path: PathBuf,
        /// What is missing.
        detail: String,
    },
    /// The format must change, but a driver of the older program may still be at work.
    #[error(
        "the ledger has format {found} and must become {known}, but {owner} still drives a run \
         with it; let that end (or stop it), then try again"
    )]
    InUse {
        /// The driver in the way.
        owner: Owner,
        /// The version found.
        found: u32,
        /// The version wanted.
        known: u32,
    },
    /// The run id is taken.
    #[error("a run named {run_id} exists already; choose another name or resume it")]
    RunExists {
        /// The name asked for.
        run_id: String,
    },
    /// No such run, or it was deleted.
    #[error("the run is not in this ledger (any more); list the runs to see what is")]
    NoRun,
    /// Somebody else holds the lease.
    #[error("the run is driven by {owner}; wait for it, or take it over")]
    Held {
        /// Who holds it.
        owner: Owner,
    },
    /// Our epoch is stale: somebody took the run over. Stop; nothing more can be appended.
    #[error(
        "the run was taken over (our epoch {ours}, now {current}); stop here and look at the run \
         again"
    )]
    Fenced {
        /// The epoch we came with.
        ours: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The lease was given up before; nobody else has it.
    #[error("the lease of the run was given up before; acquire it again")]
    NotHeld,
    /// The history is longer or shorter than the caller believed.
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
    #[error("the ledger was opened for reading only; open it for writing")]
    ReadOnly,
    /// The folder of the ledger, or one of its files, can't be written.
    #[error(
        "cannot write to {}: {source}; make it writable for you, or work in a copy of the project: \
         looking at runs needs no writing", path.display()
    )]
    Unwritable {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The name of the ledger's file is longer than SQLite takes.
    #[error(
        "the path {} has {} bytes, and that of a ledger may have {max}; move the project to a place \
         with a shorter path", path.display(), path.as_os_str().len()
    )]
    TooLong {
        /// The database file.
        path: PathBuf,
        /// How many bytes it may have.
        max: usize,
    },
    /// The ledger may be there, but this user may not look at it.
    #[error(
        "cannot read {}: {source}; work as the user it belongs to, or have it made readable for \
         you", path.display()
    )]
    Unreadable {
        /// The database file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The folder can't be written, and the ledger can't be read without.
    #[error(
        "the ledger in {} was not closed, and its folder can't be written, which reading its last \
         changes needs; copy the folder to a place where you may write and look there, or make it \
         writable", dir.display()
    )]
    Frozen {
        /// The folder.
        dir: PathBuf,
    },
    /// The ledger stayed locked for the whole of our patience.
    #[error(
        "the ledger {} stayed busy for a minute; see which process uses it (fuser or lsof) and try \
         again", path.display()
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
    #[error("no space left for {}; free some and try again", path.display())]
    DiskFull {
        /// The database file.
        path: PathBuf,
    },
    /// The target of a copy exists.
    #[error("{} exists already; name a file that does not", path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// A file or directory of the ledger could not be used.
    #[error("cannot {what} {}: {source}; check that it exists and is yours", path.display())]
    File {
        /// What was tried, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Anything else SQLite says.
    #[error("the ledger failed: {0}; `piton doctor` says what is wrong")]
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

    /// Sorts a raw SQLite error about the database at `path` into what the caller can act upon.
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
