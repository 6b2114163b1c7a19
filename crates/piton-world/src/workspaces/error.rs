//! What can go wrong with the workspaces of a run.

use piton_core::refusal::Refusal;
use piton_workspace::{git, merge, objects, restore, snapshot, worktree};

/// A result with this module's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another driver has the run now: this one stops without touching anything.
    #[error("another driver took over this run")]
    TakenOver,
    /// Somebody has to act first.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<worktree::Error> for Error {
    fn from(error: worktree::Error) -> Self {
        match error {
            worktree::Error::Superseded => Self::TakenOver,
            other => Self::Refused(other.into()),
        }
    }
}

impl From<merge::Error> for Error {
    fn from(error: merge::Error) -> Self {
        match error {
            merge::Error::Superseded => Self::TakenOver,
            merge::Error::Worktree(error) => error.into(),
            other => Self::Refused(other.into()),
        }
    }
}

macro_rules! refused {
    ($($error:ty),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Refused(error.into())
            }
        }
    )*};
}

refused!(git::Error, objects::Error, restore::Error, snapshot::Error);

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(Refusal::new("world", error.to_string()))
    }
}

impl From<piton_engine::Error> for Error {
    fn from(error: piton_engine::Error) -> Self {
        match error {
            piton_engine::Error::World(refusal) => Self::Refused(refusal),
            _ => Self::TakenOver,
        }
    }
}

impl From<Error> for piton_engine::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::TakenOver => Self::TakenOver,
            Error::Refused(refusal) => Self::World(refusal),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::TakenOver => Self::new("run-taken-over", error.to_string()),
            Error::Refused(refusal) => refusal,
        }
    }
}
