//! One process at a time has an agent's session: programs do not refuse a second one themselves.
//!
//! The driver holds the lock while it follows the attempt. A driver that falls lets go of it; the one
//! that comes next finds the attempt with the keeper, or ends what is left of it, before it begins
//! another. A person who continues a session by hand is not kept out.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::scratch::make_private;

/// A session that is ours until this is dropped.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes a session; why it cannot be had, if it can't.
    pub(super) fn take(folder: &Path, session: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("agent session {session}: {error}");
        make_private(folder).map_err(failed)?;
        // An id comes from a program: it names a file in this folder and no other.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name: String = session.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let file = File::options()
            .create(true)
            .append(true)
            .open(folder.join(format!("{name}.lock")))
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!(
                "another Piton process works in the agent session {session}; wait until it ends"
            )
        })?;
        Ok(Self { _file: file })
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
        let why = Lock::take(folder.path(), "s-1/../x").err().unwrap();
        assert!(why.contains("another Piton process"), "{why}");
        assert!(Lock::take(folder.path(), "s-2").is_ok());
        drop(first);
        assert!(Lock::take(folder.path(), "s-1/../x").is_ok());
    }
}
