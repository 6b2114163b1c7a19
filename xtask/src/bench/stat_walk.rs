//! The floor under every snapshot: reading all folders and asking for the stat of each file, with
//! as many threads as there are cores, and nothing else.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

/// Folders to read, and how many are being read.
struct Queue {
    folders: Vec<PathBuf>,
    busy: usize,
}

/// Walks a work tree without its git folder; how many files it has.
pub(super) fn walk(top: &Path) -> Result<usize, String> {
    let queue = Mutex::new(Queue { folders: vec![top.to_owned()], busy: 0 });
    let (changed, files) = (Condvar::new(), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> rustix::io::Result<()> {
        loop {
            let mut guard = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = loop {
                if let Some(folder) = guard.folders.pop() {
                    guard.busy += 1;
                    break folder;
                }
                if guard.busy == 0 {
                    changed.notify_all();
                    return Ok(());
                }
                guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            };
            drop(guard);
            let read = read(&folder);
            let mut guard = queue.lock().unwrap_or_else(PoisonError::into_inner);
            guard.busy -= 1;
            if let Ok((found, below)) = &read {
                files.fetch_add(*found, Ordering::Relaxed);
                guard.folders.extend_from_slice(below);
            }
            drop(guard);
            changed.notify_all();
            read?;
        }
    };
    let ended: Vec<rustix::io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    ended.into_iter().collect::<Result<Vec<()>, _>>().map_err(|e| e.to_string())?;
    Ok(files.into_inner())
}

/// The number of files in a folder, and the folders in it.
fn read(folder: &Path) -> rustix::io::Result<(usize, Vec<PathBuf>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())?;
    let (mut files, mut below) = (0, Vec::new());
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b".." | b".git") {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            below.push(folder.join(OsStr::from_bytes(name.to_bytes())));
        } else {
            rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)?;
            files += 1;
        }
    }
    Ok((files, below))
}
