//! What can go wrong between a driver, its keeper and the files they share.

use std::io;
use std::path::PathBuf;

use crate::protocol::PROTOCOL;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The keeper obeys a driver with a higher epoch, or another with the same one.
    #[error("another driver holds this run (epoch {highest}); attach to it, or take over from it")]
    Refused {
        /// The highest epoch the keeper has seen.
        highest: u64,
    },
    /// The keeper that lives is of another version: a takeover would not help.
    #[error(
        "the run's steps are held by a keeper of Piton {program} (process {pid}, protocol \
         {protocol}), and this is Piton {own} (protocol {PROTOCOL}); go on with that version, or \
         end its steps with `kill {pid}` and resume",
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
    #[error("the keeper is gone; its journal says what became of its steps: resume the run")]
    Gone,
    /// The keeper lives but does not answer.
    #[error("the keeper (process {pid}) does not answer; look at {} or end that process", log.display())]
    Silent {
        /// Its process id.
        pid: u32,
        /// Its log.
        log: PathBuf,
    },
    /// The caller did not want to wait any longer.
    #[error("the keeper was still ending its steps; nothing was done: resume the run later")]
    GivenUp,
    /// A new keeper could not start.
    #[error("the keeper could not start: {reason}; look at {}", log.display())]
    NoStart {
        /// What it said, if anything.
        reason: String,
        /// Its log.
        log: PathBuf,
    },
    /// The other side speaks another protocol or wrote nonsense.
    #[error(
        "driver and keeper do not understand each other ({0}); end the run with the version that started it"
    )]
    Protocol(String),
    /// This system has no keeper yet.
    #[error("steps cannot be held on this system yet; use Linux")]
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
