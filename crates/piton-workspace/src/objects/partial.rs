//! Files of the object store that are not complete yet, and those that a kill left so.
//!
//! Each has a name that git clears away too, some day, and is locked for as long as somebody writes
//! it. So one that nobody holds was left, and the next driver removes it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Part of every name.
const OURS: &str = "_piton_";
/// What protects a pack for longer than this was left by a crash: a snapshot takes seconds.
const KEEP_AGE_MAX: Duration = Duration::from_secs(3600);
/// How a pack begins.
const PACK: &[u8] = b"PACK";

/// Keeps names within this process apart.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Makes one in a folder, held as long as the file is open.
pub(crate) fn create(folder: &Path, what: &str) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o444);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("tmp_{what}{OURS}{}_{number}", std::process::id()));
        let file = match options.open(&path) {
            // Of a process that had our number and was killed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.exists() => {
                fs::create_dir_all(folder)?;
                continue;
            }
            file => file?,
        };
        // Where files can't be locked, none is ever found free.
        let _ = file.lock();
        // A sweep may have come in between.
        if file.metadata()?.nlink() > 0 {
            return Ok((path, file));
        }
    }
}

/// Removes those that nobody writes any more; what can't be removed stays for the next one.
pub fn sweep(common: &Path) {
    let objects = common.join("objects");
    for folder in [objects.join("pack"), objects] {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with("tmp_") && name.contains(OURS) {
                // Held until it is gone: whoever is about to write it waits, and then sees that.
                if let Some(_held) = hold_if_free(&path) {
                    let _ = fs::remove_file(&path);
                }
            } else if name.ends_with(".keep") {
                let is_finished = path.with_extension("idx").exists();
                if is_finished { release_left(&path) } else { sweep_keep(&path) }
            }
        }
    }
}

/// Lets git repack a pack whose snapshot was interrupted.
fn release_left(keep: &Path) {
    let modified = fs::metadata(keep).and_then(|about| about.modified());
    let age = modified.ok().and_then(|at| at.elapsed().ok());
    if age > Some(KEEP_AGE_MAX) && super::is_ours(keep, &keep.with_extension("pack")) {
        let _ = fs::remove_file(keep);
    }
}

/// Removes what protects a pack that was never finished, and the pack. Nobody else's is a second name of
/// a pack.
fn sweep_keep(keep: &Path) {
    let mut start = [0; PACK.len()];
    let read = File::open(keep).and_then(|mut file| file.read_exact(&mut start));
    if read.is_err() || start != PACK {
        return;
    }
    if let Some(_held) = hold_if_free(keep) {
        let pack = keep.with_extension("pack");
        if super::is_ours(keep, &pack) {
            let _ = fs::remove_file(pack);
        }
        let _ = fs::remove_file(keep);
    }
}

/// Locks a file that nobody writes: the lock is on what it holds, whichever name it goes by.
fn hold_if_free(path: &Path) -> Option<File> {
    File::open(path).ok().filter(|file| file.try_lock().is_ok())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Lost: a snapshot that another driver is about to take.
    #[test]
    fn what_somebody_writes_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("objects/pack");
        let (path, file) = create(&folder, "pack").unwrap();
        let keep = folder.join("pack-1.keep");
        fs::hard_link(&path, &keep).unwrap();
        fs::write(&keep, "PACK").unwrap();
        sweep(home.path());
        assert!(path.exists() && keep.exists());
        drop(file);
        sweep(home.path());
        assert!(!path.exists() && !keep.exists());
    }

    /// Lost: a snapshot, and with it a lane that is blocked, because another driver began just then.
    #[test]
    fn a_sweep_takes_nothing_from_one_who_begins() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("objects/pack");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sweep(home.path());
                }
            });
            let kept = (0..4000).all(|_| {
                let (path, _file) = create(&folder, "pack").unwrap();
                fs::rename(path, folder.join("pack-1.pack")).is_ok()
            });
            done.store(true, Ordering::Relaxed);
            assert!(kept);
        });
    }
}
