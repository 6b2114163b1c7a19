//! One process at a time has an agent's session: programs do not refuse a second one themselves.
//!
//! The driver holds the lock while it follows the attempt. A driver that falls lets go of it; the one
//! that comes next finds the attempt with the keeper, or ends what is left of it, before it begins
//! another. A person who continues a session by hand is not kept out.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::scratch::make_private;

/// Why a session cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Somebody else has it.
    #[error("another Piton process works in the agent session {0}; wait until it ends")]
    Taken(String),
    /// Its files cannot be written.
    #[error("agent session {session}: {source}")]
    Files {
        /// The session.
        session: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A session that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    #[expect(dead_code, reason = "the system holds the lock as long as the file is open")]
    file: File,
}

impl Lock {
    /// Takes a session; why it cannot be had, if it can't.
    pub(super) fn take(folder: &Path, session: &str) -> Result<Self, Error> {
        let failed = |source| Error::Files { session: session.to_owned(), source };
        make_private(folder).map_err(failed)?;
        // An id comes from a program: it names a file in this folder and no other.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name: String = session.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let file = File::options()
            .create(true)
            .append(true)
            .open(folder.join(format!("{name}.lock")))
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Error::Taken(session.to_owned()))?;
        Ok(Self { file })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    /// Lost: two processes write into one conversation, and each takes the other's work for its own.
    #[test]
    fn a_session_has_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path(), "s-1/../x").unwrap();
        let why = Lock::take(folder.path(), "s-1/../x").unwrap_err();
        assert!(matches!(why, Error::Taken(_)), "{why}");
        assert!(Lock::take(folder.path(), "s-2").is_ok());
        drop(first);
        assert!(Lock::take(folder.path(), "s-1/../x").is_ok());
    }
}
