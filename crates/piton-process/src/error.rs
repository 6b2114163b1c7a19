//! The errors between a driver, its keeper and the files they share.

use std::io;
use std::path::PathBuf;

use crate::protocol::PROTOCOL;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system reported an error.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The keeper obeys a driver with a higher epoch, or another with the same one.
    #[error("another driver holds this run (epoch {highest})")]
    Refused {
        /// The highest epoch the keeper has seen.
        highest: u64,
    },
    /// The living keeper is another version of Piton: a takeover would not help.
    #[error(
        "the run's keeper (process {pid}) is Piton {program} (protocol {protocol}), but this is \
         Piton {own} (protocol {PROTOCOL}); continue with that version, or end its steps with \
         `kill {pid}` and resume",
        own = env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// The protocol it speaks.
        protocol: u32,
        /// The version of its program.
        program: String,
        /// Its process id.
        pid: u32,
    },
    /// The keeper's connection is lost.
    #[error("the keeper ended unexpectedly; resume the run to find out how its steps ended")]
    Gone,
    /// The keeper lives but does not answer.
    #[error("the keeper (process {pid}) does not answer; read {}, or end that process", log.display())]
    Silent {
        /// Its process id.
        pid: u32,
        /// Its log.
        log: PathBuf,
    },
    /// The caller stopped waiting.
    #[error("the keeper is still ending its steps; nothing was done; resume the run later")]
    GivenUp,
    /// A new keeper could not start.
    #[error("the keeper could not start: {reason}; read {}", log.display())]
    NoStart {
        /// What it said, if anything.
        reason: String,
        /// Its log.
        log: PathBuf,
    },
    /// The other side uses another protocol or sent invalid data.
    #[error("the keeper sent something unexpected ({0}); use the Piton that started the run")]
    Protocol(String),
    /// This system has no keeper yet.
    #[error("this system is not supported yet; use Linux")]
    Unsupported,
}

impl Error {
    /// Wraps an input/output error with what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
