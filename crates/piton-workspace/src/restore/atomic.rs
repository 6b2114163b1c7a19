//! Where a file lies until it is complete: nobody sees half of one, and a kill leaves none behind.
//!
//! It is written below the repository's own folder and renamed into place. Where that cannot be, on
//! another file system or in a folder that hands its group down, it is written beside its target,
//! under a name that no snapshot takes. What a process that was killed left goes with the next
//! restore; what a living one writes is its own.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{State, Step};
use crate::files::{os_path, parent};
use crate::repo::Project;
use crate::snapshot::temporary::{PREFIX, writer};

/// The folder below that of our state in a repository.
const FOLDER: &str = "restore";
/// A folder whose files get its group.
const SETGID: u32 = 0o2000;

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Puts files in place.
pub(super) struct AtomicWriter {
    /// Where they are written, if that can be.
    folder: Option<PathBuf>,
}

impl AtomicWriter {
    /// Makes ready to write files of a repository.
    pub(super) fn new(repository: &Path) -> Self {
        let project = Project::discover(repository).ok().filter(|p| p.common_dir.is_some());
        let folder = project.map(|p| p.state_dir.join(FOLDER));
        let folder = folder.filter(|folder| fs::create_dir_all(folder).is_ok());
        if let Some(folder) = &folder {
            clear(folder);
        }
        Self { folder }
    }

    /// Puts a file or link in place at once.
    pub(super) fn put(&self, path: &Path, to: State, data: &[u8]) -> io::Result<()> {
        let beside = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(beside)?;
        let hands_down = fs::metadata(beside)?.permissions().mode() & SETGID != 0;
        if let Some(apart) = self.folder.as_deref().filter(|_| !hands_down) {
            // Whatever the reason, beside its target it may work; if not, that says why.
            if write(apart, path, to, data).is_ok() {
                return Ok(());
            }
        }
        write(beside, path, to, data)
    }
}

fn write(folder: &Path, path: &Path, to: State, data: &[u8]) -> io::Result<()> {
    let (temporary, made) = loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
        match make(&temporary, to, data) {
            // Left by a process that had the same id.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => break (temporary, made),
        }
    };
    let made = made.and_then(|()| fs::rename(&temporary, path));
    if made.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    made
}

fn make(temporary: &Path, to: State, data: &[u8]) -> io::Result<()> {
    match to {
        State::Link { .. } => symlink(os_path(data), temporary),
        State::File { perm, .. } => {
            let mut file =
                fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
            file.write_all(data)?;
            file.set_permissions(Permissions::from_mode(perm))
        }
        _ => Ok(()),
    }
}

/// Removes what dead processes left in the folders that steps write to.
pub(super) fn clear_left_in(top: &Path, steps: &[Step]) {
    let writes = steps.iter().filter(|step| step.to.oid().is_some());
    let folders: BTreeSet<&[u8]> = writes.filter_map(|step| parent(&step.path)).collect();
    for folder in folders {
        clear(&top.join(os_path(folder)));
    }
}

/// Removes what dead processes left in a folder. Best effort: what stays is in no snapshot.
fn clear(folder: &Path) {
    let Ok(listed) = fs::read_dir(folder) else { return };
    for entry in listed.flatten() {
        let left = writer(entry.file_name().as_bytes()).is_some_and(|pid| !exists(pid));
        if left && entry.file_type().is_ok_and(|t| t.is_file() || t.is_symlink()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a process exists, visible or not.
fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
