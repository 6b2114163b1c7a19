//! Hashing that takes long, beside the driver's loop: lanes, limits and signals do not wait for it.
//!
//! What is little is left to whoever asks. What is found is good for one turn of the driver, in which
//! it is recorded, and as long as the file does not change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use piton_core::hash::Sha;
use piton_engine::world::Hashing;

use super::files;

/// Bytes that are hashed at once: they take a tenth of a second, and a short step has far fewer.
const AT_ONCE_MAX: u64 = 64 << 20;

/// The hash of a file, or why it could not be read.
type Found = (PathBuf, io::Result<Sha>);

/// Files being hashed.
struct Job {
    root: PathBuf,
    named: Vec<String>,
    of: u64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    done: AtomicU64,
    stop: AtomicBool,
    found: Mutex<Option<Vec<Found>>>,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// All that is being hashed, and what was found in this turn.
#[derive(Default)]
pub struct Hasher {
    jobs: Vec<Job>,
    /// What was asked about in this turn, and is ready.
    ready: Vec<(PathBuf, Vec<String>)>,
    pub known: files::Known,
}

impl Hasher {
    /// Forgets what was found in the turn before.
    pub fn next_turn(&mut self) {
        self.known.clear();
        self.ready.clear();
    }

    /// Has files hashed; nothing once they are, or where they are few and small. `named` stands for
    /// the paths, which are looked for when they are asked about first.
    pub fn ask(
        &mut self,
        root: &Path,
        named: &[String],
        paths: &dyn Fn() -> io::Result<Vec<String>>,
    ) -> Option<Hashing> {
        if self.ready.iter().any(|(at, what)| at == root && what == named) {
            return None;
        }
        let is_it = |job: &Job| job.root == root && job.named == named;
        let under_way = match self.jobs.iter().position(is_it) {
            Some(at) => self.look(at),
            None => self.begin(root, named, paths),
        };
        if under_way.is_none() {
            self.ready.push((root.to_owned(), named.to_vec()));
        }
        under_way
    }

    /// How far a job is; one that is over is taken.
    fn look(&mut self, at: usize) -> Option<Hashing> {
        let Job { shared, of, .. } = &self.jobs[at];
        // A thread that fell says nothing more: whoever asks hashes by himself.
        let fell = Arc::strong_count(shared) == 1;
        let found = shared.found.lock().ok().and_then(|mut found| found.take());
        if found.is_none() && !fell {
            let done = shared.done.load(Ordering::Relaxed);
            return Some(Hashing { done, of: done.max(*of) });
        }
        let found = found.unwrap_or_default().into_iter();
        self.known.extend(found.map(|(path, hash)| (path.clone(), (files::stamp(&path), hash))));
        self.jobs.swap_remove(at);
        None
    }

    fn begin(
        &mut self,
        root: &Path,
        named: &[String],
        paths: &dyn Fn() -> io::Result<Vec<String>>,
    ) -> Option<Hashing> {
        // What can't be read is reported when it is needed.
        let all = paths().ok()?.into_iter().map(|path| root.join(path));
        let unknown = all.filter(|path| !self.known.contains_key(path));
        let sized = unknown.filter_map(|path| Some((files::size(&path)?, path)));
        let (sizes, paths): (Vec<u64>, Vec<PathBuf>) = sized.unzip();
        let of = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        if of <= AT_ONCE_MAX {
            return None;
        }
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let hash = move || {
            let hash = |path: PathBuf| {
                let found = files::hash_slowly(&path, &ours.done, &ours.stop);
                (path, found)
            };
            let all = paths.into_iter().map(hash).collect();
            if let Ok(mut found) = ours.found.lock() {
                *found = Some(all);
            }
        };
        // Without a thread it is hashed by whoever asks, and others wait.
        thread::Builder::new().name("hashing".to_owned()).spawn(hash).ok()?;
        self.jobs.push(Job { root: root.to_owned(), named: named.to_vec(), of, shared });
        Some(Hashing { done: 0, of })
    }
}
