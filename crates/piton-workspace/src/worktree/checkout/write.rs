//! Objects become files: several threads, which read packs and single objects themselves.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};

use super::listing::{Listed, Listing};
use crate::files::{name, os_path};
use crate::index::{self, Stat};
use crate::objects::{EXEC, LINK, Packs, Reader, read_loose};

/// How many files a thread takes at once: mostly of one folder, and not so many that one thread is
/// left with the last of them.
const TAKEN_AT_ONCE: usize = 256;

/// Writes all files of a listing; returns what an index keeps of each, or `None` if anything is not as
/// expected.
pub(super) fn all(
    dir: &Path,
    objects: &Path,
    listing: &Listing,
    workers: usize,
) -> Option<Vec<Stat>> {
    for folder in &listing.folders {
        match fs::create_dir(dir.join(os_path(listing.path(folder)))) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
    }
    let packs = &Packs::open(objects);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let shared = Shared { dir, objects, packs, listing, next, failed };
    let parts = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, || shared.work()).ok();
        let threads: Vec<_> = (0..workers).filter_map(spawn).collect();
        if threads.is_empty() {
            return shared.work().map(|stats| vec![stats]);
        }
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Option<Vec<_>>>()
    })?;
    let mut stats = vec![Stat::default(); listing.files.len()];
    for (index, stat) in parts.into_iter().flatten() {
        *stats.get_mut(index)? = stat;
    }
    Some(stats)
}

struct Shared<'a> {
    dir: &'a Path,
    objects: &'a Path,
    packs: &'a Packs,
    listing: &'a Listing,
    /// The first file nobody has taken.
    next: AtomicUsize,
    failed: AtomicBool,
}

impl Shared<'_> {
    /// One thread's share.
    fn work(&self) -> Option<Vec<(usize, Stat)>> {
        let stats = Worker { shared: self, packs: Reader::new(self.packs), folder: None }.share();
        if stats.is_none() {
            self.failed.store(true, Ordering::Relaxed);
        }
        stats
    }
}

/// One thread.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    packs: Reader<'a>,
    /// The folder of the last file: the next one is mostly in it too.
    folder: Option<(&'a [u8], OwnedFd)>,
}

impl<'a> Worker<'a> {
    fn share(&mut self) -> Option<Vec<(usize, Stat)>> {
        let (shared, mut stats, mut content) = (self.shared, Vec::new(), Vec::new());
        let files = &shared.listing.files;
        loop {
            let start = shared.next.fetch_add(TAKEN_AT_ONCE, Ordering::Relaxed);
            let Some(taken) = files.get(start..) else { return Some(stats) };
            for (at, file) in taken.iter().take(TAKEN_AT_ONCE).enumerate() {
                match shared.packs.find(file.oid) {
                    Some(location) => self.packs.blob(location, &mut content)?,
                    None => read_loose(shared.objects, file.oid, &mut content)?,
                }
                stats.push((start + at, self.create(file, &content).ok()?));
            }
            if shared.failed.load(Ordering::Relaxed) {
                return None;
            }
        }
    }

    fn create(&mut self, file: &Listed, content: &[u8]) -> io::Result<Stat> {
        let path = self.shared.listing.path(file);
        let found = if file.mode == LINK {
            let path = self.shared.dir.join(os_path(path));
            symlink(os_path(content), &path)?;
            fs::symlink_metadata(&path)?
        } else {
            let mode = Mode::from_raw_mode(if file.mode == EXEC { 0o777 } else { 0o666 });
            let name = name(path);
            let folder = self.folder(&path[..path.len() - name.len()])?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mut new = File::from(rustix::fs::openat(folder, name, flags, mode)?);
            new.write_all(content)?;
            new.metadata()?
        };
        Ok(index::stat(&found, file.mode))
    }

    /// The folder that files are created in.
    fn folder(&mut self, path: &'a [u8]) -> io::Result<&OwnedFd> {
        if self.folder.as_ref().is_none_or(|(open, _)| *open != path) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = self.shared.dir.join(os_path(path));
            self.folder = Some((path, rustix::fs::open(dir, flags, Mode::empty())?));
        }
        let open = self.folder.as_ref().map(|(_, folder)| folder);
        open.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
