//! Where a file lies until it is complete: beside its target, under a name that no snapshot takes.
//!
//! So nobody sees half of one. What a process that was killed left goes with the next restore; what a
//! living one writes is its own.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{State, Step};
use crate::files::{os_path, parent};
use crate::snapshot::temporary::{PREFIX, writer};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Puts a file or link in place at once.
pub(super) fn put(path: &Path, to: State, data: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
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
    // Best effort: what stays is in no snapshot.
    let listed =
        folders.into_iter().filter_map(|folder| fs::read_dir(top.join(os_path(folder))).ok());
    for entry in listed.flatten().flatten() {
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
