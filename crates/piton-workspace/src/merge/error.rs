//! What can go wrong with a merge, and what people can do about it.

use std::path::PathBuf;

use piton_core::refusal::{Refusal, Remedy};

use crate::refusals::{HALF_DONE, index_locked};
use crate::{git, worktree};

/// Why merging could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A worktree or a file could not be used.
    #[error(transparent)]
    Worktree(#[from] worktree::Error),
    /// Another driver took the run over.
    #[error("another driver took over this run")]
    Superseded,
    /// Somebody else holds a lock of git's.
    #[error("{0} exists: another git command is running, or one was killed")]
    Locked(PathBuf),
    /// An operation of git is in progress that moves base too.
    #[error(transparent)]
    InProgress(#[from] Refusal),
    /// Files were on the way, and could not be put back.
    #[error("{why}; putting the files back failed too: {and}")]
    Half {
        /// What failed.
        why: String,
        /// What failed then.
        and: String,
    },
    /// Git answered something we do not understand.
    #[error("the answer of git {0} was not understood")]
    Strange(&'static str),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        use Error as E;
        let cause = error.to_string();
        match error {
            E::Git(error) => error.into(),
            E::Worktree(error) => error.into(),
            E::Locked(lock) => index_locked(&lock),
            E::InProgress(refusal) => refusal,
            E::Half { .. } => Self::new(HALF_DONE, cause),
            E::Strange(_) => Self::new("git", cause)
                .or(Remedy::from("report it with the output of ").command("git version")),
            E::Superseded => Self::new("run-taken-over", cause),
        }
    }
}
