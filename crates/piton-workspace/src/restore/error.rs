//! What can go wrong with a restore, and what people can do about it.

use std::path::PathBuf;

use piton_core::refusal::Refusal;

use super::apply::Failed;
use crate::refusals::{HALF_DONE, check_objects};
use crate::{git, snapshot};

/// Why a restore did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bytes that it needs are not in the repository.
    #[error(
        "{missing} objects of the snapshots are missing, {first} is one of them; nothing was changed"
    )]
    Missing {
        /// How many.
        missing: usize,
        /// One of them.
        first: String,
    },
    /// A file changed after the plan was made.
    #[error("{} changed while the restore was prepared; nothing was changed", path.display())]
    Moved {
        /// The file.
        path: PathBuf,
    },
    /// It failed, and everything was put back.
    #[error("{why}; everything was put back as it was")]
    PutBack {
        /// What failed.
        why: Failed,
    },
    /// It failed, and putting back failed too.
    #[error(
        "{why}; putting the files back failed too: {and}; snapshot {present} has them as they were"
    )]
    Half {
        /// What failed.
        why: Box<Failed>,
        /// What failed then.
        and: Box<Failed>,
        /// The snapshot that has everything.
        present: String,
    },
    /// A snapshot could not be read.
    #[error(transparent)]
    Snapshot(#[from] snapshot::Error),
    /// Git failed before anything was changed.
    #[error(transparent)]
    Git(#[from] git::Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        use Error as E;
        let refusal = Self::new("not-restored", error.to_string());
        match error {
            E::Missing { .. } => refusal.or(check_objects()),
            E::Half { .. } => Self { code: HALF_DONE.into(), ..refusal },
            E::Snapshot(error) => error.into(),
            E::Git(error) => error.into(),
            E::Moved { .. } | E::PutBack { .. } => refusal,
        }
    }
}
