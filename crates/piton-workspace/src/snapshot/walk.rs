//! The walk over a work tree: what each folder holds now, compared with the cache.
//!
//! It reads names and stats, never contents: what it cannot vouch for comes back dirty. A folder
//! whose own stamp is unchanged has the same names, so only its files are looked at. Threads take
//! folders from one stack; small work trees are walked by the calling thread alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use super::cache::{Cache, Head};
use super::entry::{Entry, FolderKind, View};
use super::rules::Ignores;
use super::stat::Stat;
use super::{Error, Rules};
use crate::files::os_path;
use crate::index::Index;
use crate::repo::Repo;

/// Folders from which more than one thread pays.
const PAYING_MIN: usize = 64;
/// Threads at most: the walk is bound by the kernel's locks, not by the processors.
const THREADS_MAX: usize = 4;

/// A folder as the walk found it.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: Vec<u8>,
    pub(crate) stat: Stat,
    pub(crate) kind: FolderKind,
    pub(crate) tracked_only: bool,
    pub(crate) body: Body,
}

impl Folder {
    /// Its entries, from the cache where it is as that has it.
    pub(super) fn each(&self, cache: Option<&Cache>, mut take: impl FnMut(&View<'_>)) {
        match &self.body {
            Body::Same(at) => {
                let block = cache.map_or(&[][..], |c| c.block(*at));
                View::all(block).for_each(|view| take(&view));
            }
            Body::Listed(entries) => entries.iter().for_each(|entry| take(&entry.view())),
        }
    }
}

/// What a folder holds.
#[derive(Debug)]
pub(crate) enum Body {
    /// Exactly what the cache has, at this place.
    Same(usize),
    /// Sorted by name.
    Listed(Vec<Entry>),
}

/// Everything a walk looks at.
pub(crate) struct Walk<'a> {
    pub(crate) repo: &'a Repo,
    pub(crate) rules: &'a Rules,
    pub(crate) cache: Option<&'a Cache>,
    /// What holds now; settings, submodules and absent paths are already up to date.
    pub(crate) head: &'a Head,
    /// All names are judged again.
    pub(crate) reconsider: bool,
    /// Names that were ignored, or taken only because they are tracked, are judged again.
    pub(crate) index_changed: bool,
    /// The user's index, read when first needed.
    pub(crate) index: OnceLock<Result<Index, crate::git::Error>>,
    pub(crate) top: OwnedFd,
    pub(crate) files: AtomicUsize,
    /// A folder went away between being named and being looked into.
    pub(crate) vanished: AtomicBool,
}

/// A folder to be visited.
pub(super) struct Job {
    pub(super) path: Vec<u8>,
    pub(super) stat: Stat,
    pub(super) ignores: Option<Arc<Ignores>>,
    pub(super) reconsider: bool,
    pub(super) tracked_only: bool,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    busy: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
    stop: AtomicBool,
    /// Nobody else waits for folders.
    alone: bool,
}

impl Shared {
    fn new(jobs: Vec<Job>, alone: bool) -> Self {
        let queue = Mutex::new(Queue { jobs, busy: 0 });
        Self { queue, more: Condvar::new(), stop: AtomicBool::new(false), alone }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next folder; `None` when all are done.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, children: Vec<Job>) {
        let mut queue = self.queue();
        queue.busy -= 1;
        let wake = !self.alone && (children.len() > 1 || queue.busy == 0);
        queue.jobs.extend(children);
        drop(queue);
        if wake {
            self.more.notify_all();
        }
    }

    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // Taking the lock makes sure that nobody is between looking and waiting.
        drop(self.queue());
        self.more.notify_all();
    }
}

impl Walk<'_> {
    /// Walks the whole tree; folders come back sorted by path, the top first.
    pub(crate) fn run(&self) -> Result<Vec<Folder>, Error> {
        let stat = rustix::fs::fstat(&self.top).map_err(|e| Error::io(&self.repo.root, e))?;
        let first = Job {
            path: Vec::new(),
            stat: Stat::new(&stat),
            ignores: Ignores::everywhere(&self.head.settings.ignores),
            reconsider: self.reconsider,
            tracked_only: false,
        };
        let (alone_max, helpers) = match self.cache.map(|c| helpers(c.len() / PAYING_MIN)) {
            Some(0) => (usize::MAX, 0),
            Some(helpers) => (0, helpers),
            // Nobody knows how many there are: most work trees are walked before a thread is there.
            None => (PAYING_MIN, helpers(usize::MAX)),
        };
        let first = Shared::new(vec![first], true);
        let mut parts = vec![self.work(&first, alone_max)];
        let left = std::mem::take(&mut first.queue().jobs);
        if !left.is_empty() && parts.iter().all(Result::is_ok) {
            let shared = Shared::new(left, helpers == 0);
            std::thread::scope(|scope| {
                let help = || self.work(&shared, usize::MAX);
                // Where no threads can be started, this thread walks alone.
                let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, help).ok();
                let threads: Vec<_> = (0..helpers).filter_map(spawn).collect();
                parts.push(self.work(&shared, usize::MAX));
                let ended =
                    |t: std::thread::ScopedJoinHandle<'_, _>| t.join().unwrap_or(Ok(Vec::new()));
                parts.extend(threads.into_iter().map(ended));
            });
        }
        let mut folders = Vec::with_capacity(self.cache.map_or(0, Cache::len));
        for part in parts {
            folders.append(&mut part?);
        }
        folders.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(folders)
    }

    /// Visits folders until there are none, or that many.
    fn work(&self, shared: &Shared, max: usize) -> Result<Vec<Folder>, Error> {
        let mut found = Vec::new();
        for _ in 0..max {
            let Some(job) = shared.next() else { break };
            let mut children = Vec::new();
            let visited = self.visit(job, &mut children).and_then(|f| self.counted(f));
            match visited {
                Ok(Some(folder)) => found.push(folder),
                Ok(None) => self.vanished.store(true, Ordering::Relaxed),
                Err(error) => {
                    shared.end();
                    return Err(error);
                }
            }
            shared.done(children);
        }
        Ok(found)
    }

    /// Stops a walk that meets more files than are allowed.
    fn counted(&self, folder: Option<Folder>) -> Result<Option<Folder>, Error> {
        let files = match folder.as_ref().map(|f| &f.body) {
            Some(Body::Same(at)) => self.cache.map_or(0, |c| c.record(*at).files),
            Some(Body::Listed(entries)) => entries.iter().filter(|e| e.captured()).count(),
            None => 0,
        };
        let before = self.files.fetch_add(files, Ordering::Relaxed);
        if before + files > self.rules.files_max {
            return Err(Error::TooManyFiles { max: self.rules.files_max });
        }
        Ok(folder)
    }

    /// The user's index.
    pub(super) fn index(&self) -> Result<&Index, Error> {
        let read = || Index::read(&self.repo.root, &self.repo.index());
        self.index.get_or_init(read).as_ref().map_err(|e| Error::Git(e.clone()))
    }

    /// Opens a folder; `Ok(None)` if it is gone, or no folder any more.
    pub(super) fn open(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = if path.is_empty() { b".".as_slice() } else { path };
        rustix::fs::openat(&self.top, path, flags, Mode::empty())
    }

    /// Whether the caller wants a path left alone.
    pub(super) fn excluded(&self, path: &[u8]) -> bool {
        self.rules.excludes(path)
    }

    /// A full path, for messages.
    pub(super) fn full(&self, path: &[u8]) -> std::path::PathBuf {
        self.repo.root.join(os_path(path))
    }
}

/// Threads beside the calling one, of as many as would pay.
fn helpers(paying: usize) -> usize {
    if paying == 0 {
        return 0;
    }
    let cores = cores();
    paying.min(cores.min(THREADS_MAX) - 1)
}

/// How many threads can run at once; asked once, because the system answers from many files.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
