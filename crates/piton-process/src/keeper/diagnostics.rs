//! `keeper.log`: messages of the keeper for people who look for the cause of a problem.
//!
//! Never needed to recover. A failure to write it is ignored: there is nowhere else to report it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::keeper::attempt::wall_ms;
use crate::start::LOG;

/// A new keeper clears a log that is larger than this: some thousand lines are enough history.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// The open log.
pub(super) struct Diagnostics(File);

impl Diagnostics {
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(LOG);
        let what = || format!("could not open {}", path.display());
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io(what()))?;
        if file.metadata().is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
            file.set_len(0).map_err(Error::io(what()))?;
        }
        Ok(Self(file))
    }

    /// Writes one line.
    pub(super) fn say(&self, text: &str) {
        let line = format!("{} [{}] {text}\n", wall_ms(), std::process::id());
        let _ = (&self.0).write_all(line.as_bytes());
    }
}

impl AsFd for Diagnostics {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
