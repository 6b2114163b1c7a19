//! Ref transactions in progress, so that the locks of a git that was killed in one can be distinguished from
//! the user's.
//!
//! Git locks a ref by a file beside it, which says nothing about who made it and stays behind when
//! git is killed. So what a transaction is to do is written down first, on a *page*: a file that git
//! has for its complaints, and holds a lock of the system's on while it lives, as does whoever started
//! it. A page that nobody holds, and that does not end with all being done, is of a transaction that was
//! interrupted, and it names the refs whose locks may go. Nothing is looked for until a transaction meets
//! a lock, or a driver comes after another one.
//!
//! What takes a lock where the user writes too is written down durably, so that it is known after a
//! power cut as well. Our own refs and branches are moved by nobody else: a lock of one that is there
//! while no transaction is in progress needs no note.
//!
//! A git that carries out many has one page for all of them, held by nobody in between. The next driver
//! removes it then, which is seen before it is written to again.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::{PREFIX, Transaction, run_of_branch};
use crate::repo::Repo;

/// How long transactions of others are waited for; a transaction takes milliseconds.
const QUIET_WAIT: Duration = Duration::from_secs(10);
/// How often it is checked whether they ended.
const QUIET_LOOK: Duration = Duration::from_millis(5);
/// A lock where the user writes too must have been made so soon after the transaction began: git
/// takes all locks of one at once.
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// No lock goes that changed within this time: a git of the user's that is at work goes on.
const UNCHANGED_FOR: Duration = Duration::from_millis(500);

/// What a page says after a transaction that was carried out. It grows by it, because a file that
/// shrinks and grows again costs several times as much.
const DONE: &str = "\ndone\n";
/// A page that is longer than this starts again: some hundred transactions.
const PAGE_BYTES_MAX: u64 = 64 * 1024;
/// What is read of a complaint; git's have a few lines.
const COMPLAINT_BYTES_MAX: usize = 64 * 1024;

/// The file that whoever has a transaction in progress holds, so that none begins during a sweep.
const HELD: &str = ".held";
/// Keeps names within this process apart.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn folder(repo: &Repo) -> PathBuf {
    repo.state.join("transactions")
}

fn held(folder: &Path) -> io::Result<File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    File::options().read(true).append(true).create(true).open(folder.join(HELD))
}

/// The file for the transactions of one git; it goes when this does, unless one of them was interrupted.
pub(super) struct Page {
    path: PathBuf,
    file: File,
    held: File,
    /// Where complaints about what is in progress begin.
    written: u64,
    cut_short: bool,
    /// Whether a power cut leaves the file where it is.
    named: bool,
}

impl Page {
    /// An empty one.
    pub(super) fn new(repo: &Repo) -> io::Result<Self> {
        let folder = folder(repo);
        let held = held(&folder)?;
        let mut options = File::options();
        options.read(true).append(true).create_new(true);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{count}", std::process::id()));
            match options.open(&path) {
                Ok(file) => {
                    let (written, cut_short, named) = (0, false, false);
                    return Ok(Self { path, file, held, written, cut_short, named });
                }
                // Somebody's who had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where git is to complain. The lock is on the file as opened here, so git holds it too.
    pub(super) fn complaints(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes down what is to be done, and holds it; not if the file is gone. `durably` for what takes
    /// a lock where the user writes too.
    pub(super) fn begin(&mut self, lines: &str, durably: bool) -> io::Result<bool> {
        self.held.lock_shared()?;
        self.file.lock_shared()?;
        let found = self.file.metadata()?;
        if found.nlink() == 0 {
            return Ok(false);
        }
        let mut before = found.len();
        if before > PAGE_BYTES_MAX {
            self.file.set_len(0)?;
            before = 0;
        }
        self.file.write_all(lines.as_bytes())?;
        if durably {
            self.file.sync_data()?;
            if let (false, Some(folder)) = (self.named, self.path.parent()) {
                File::open(folder)?.sync_all()?;
                self.named = true;
            }
        }
        self.written = before + lines.len() as u64;
        Ok(true)
    }

    /// Notes that it is done.
    pub(super) fn end(&mut self) {
        // What stays is taken for interrupted, and its locks are looked for in vain; what is held on to
        // keeps a sweep waiting. Neither breaks anything.
        if self.file.write_all(DONE.trim_start().as_bytes()).is_err() {
            let _ = self.file.set_len(0);
        }
        let _ = self.file.unlock();
        let _ = self.held.unlock();
    }

    /// What git complained about.
    pub(super) fn complaint(&self) -> String {
        let mut bytes = vec![0; COMPLAINT_BYTES_MAX];
        let found = self.file.read_at(&mut bytes, self.written).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..found]).trim_end().to_owned()
    }

    /// Lets the file lie for whoever meets the locks.
    pub(super) fn leave(&mut self) {
        self.cut_short = true;
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if !self.cut_short {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What of a file was not carried out yet.
fn open(text: &str) -> &str {
    text.rsplit_once(DONE).map_or(text, |(_, rest)| rest)
}

/// Tells whether a lock stands in the way of a transaction.
pub(super) fn is_locked(repo: &Repo, transaction: &Transaction) -> bool {
    locks(repo, &transaction.lines, false).iter().any(|lock| lock.path.exists())
}

/// Removes the locks that transactions left which were interrupted, and pages that nobody writes on; how
/// many locks those were. One that was interrupted after all its refs were deleted is never tried again,
/// and the user would meet its locks first.
pub(super) fn clear(repo: &Repo) -> io::Result<usize> {
    let mut own = Transaction::default();
    locked_below(repo, PREFIX.trim_end_matches('/'), &mut own.lines);
    let mut entries = fs::read_dir(folder(repo)).into_iter().flatten().flatten();
    let has_pages = entries.any(|entry| entry.file_name() != HELD);
    if has_pages || !own.lines.is_empty() { sweep(repo, &own) } else { Ok(0) }
}

/// Adds a line for each ref below a folder that is locked.
fn locked_below(repo: &Repo, folder: &str, lines: &mut String) {
    for entry in fs::read_dir(repo.common.join(folder)).into_iter().flatten().flatten() {
        let Some(name) = entry.file_name().to_str().map(|name| format!("{folder}/{name}")) else {
            continue;
        };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            locked_below(repo, &name, lines);
        } else if let Some(name) = name.strip_suffix(".lock") {
            lines.extend(["verify ", name, "\n"]);
        }
    }
}

/// Waits for the transactions in progress that name a ref; tells whether they ended. The git of a driver
/// that was killed goes on and may move it yet.
pub(super) fn await_naming(repo: &Repo, name: &str) -> io::Result<bool> {
    let entries = match fs::read_dir(folder(repo)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    let deadline = Instant::now() + QUIET_WAIT;
    for entry in entries.flatten() {
        let lines = fs::read_to_string(entry.path()).unwrap_or_default();
        if !lines.lines().any(|line| line.split(' ').nth(1) == Some(name)) {
            continue;
        }
        match File::open(entry.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => {
                if !quiet(&file?, deadline)? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Removes the locks of transactions that were interrupted, if they are in the way of this one or
/// written down; how many that were.
pub(super) fn sweep(repo: &Repo, transaction: &Transaction) -> io::Result<usize> {
    sweep_until(repo, transaction, Instant::now() + QUIET_WAIT)
}

/// The same, but transactions of others are waited for until a time.
pub(super) fn sweep_until(
    repo: &Repo,
    transaction: &Transaction,
    deadline: Instant,
) -> io::Result<usize> {
    let folder = folder(repo);
    let held = held(&folder)?;
    if !quiet(&held, deadline)? {
        return Ok(0);
    }
    let (mut removed, mut all_quiet) = (0, true);
    for entry in fs::read_dir(&folder)?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if name != HELD {
            let file = File::open(&path)?;
            if !quiet(&file, deadline)? {
                all_quiet = false;
                continue;
            }
            let begun = file.metadata()?.modified()?;
            let text = fs::read_to_string(&path)?;
            for lock in locks(repo, open(&text), false) {
                removed += usize::from(lock.remove_if_ours(begun)?);
            }
            fs::remove_file(&path)?;
        }
    }
    if all_quiet {
        // What the end of the machine left need not be written down: nobody of ours is at work.
        let met = locks(repo, &transaction.lines, transaction.of_lane);
        for lock in met.iter().filter(|lock| lock.own) {
            removed += usize::from(lock.remove_if_ours(SystemTime::now())?);
        }
    }
    Ok(removed)
}

/// Waits until nobody holds a file any more, and holds it.
fn quiet(file: &File, deadline: Instant) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() > deadline => return Ok(false),
            Err(TryLockError::WouldBlock) => std::thread::sleep(QUIET_LOOK),
        }
    }
}

/// A lock that a transaction takes.
struct Lock {
    path: PathBuf,
    /// Nobody but us writes there.
    own: bool,
    /// What git writes into it.
    value: String,
    /// What git leaves beside it.
    beside: Option<PathBuf>,
}

/// The refs in the lines of a transaction: what happens to each, its name, its new value.
fn refs_of(lines: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    lines.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (word, name) = (words.next()?, words.next()?);
        let new = words.next().filter(|_| word == "update").unwrap_or_default();
        ["verify", "update", "delete"].contains(&word).then_some((word, name, new))
    })
}

/// Whether a ref that is locked is ours: one of a lane is on record, or was about to be made.
fn is_own(repo: &Repo, name: &str, of_lane: bool) -> bool {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => {
            of_lane && (repo.value(name).is_none() || run_of_branch(&repo.root, branch).is_some())
        }
        None => name.starts_with(PREFIX),
    }
}

/// Whether git takes locks for a transaction where the user's does too.
pub(super) fn is_shared(transaction: &Transaction) -> bool {
    refs_of(&transaction.lines).any(|(word, name, _)| {
        word == "delete" || !(transaction.of_lane || name.starts_with(PREFIX))
    })
}

/// The locks that git takes for the lines of a transaction; `of_lane` if nobody else moves its branches.
fn locks(repo: &Repo, lines: &str, of_lane: bool) -> Vec<Lock> {
    let mut all = Vec::new();
    let lock =
        |path: PathBuf, own, value: &str| Lock { path, own, value: value.to_owned(), beside: None };
    let (mut heads, mut deletes) = (false, false);
    for (word, name, new) in refs_of(lines) {
        let path = repo.common.join(format!("{name}.lock"));
        let own = path.exists() && is_own(repo, name, of_lane);
        all.push(lock(path, own, new));
        heads |= name.starts_with("refs/heads/");
        deletes |= word == "delete";
    }
    if heads {
        // The log of a checked-out branch is that of HEAD too, in whichever work tree git ran.
        let dirs = repo.admin_dirs().into_iter().chain([repo.common.clone()]);
        all.extend(dirs.map(|dir| lock(dir.join("HEAD.lock"), false, "")));
    }
    if deletes {
        let packed = lock(repo.common.join("packed-refs.lock"), false, "");
        all.push(Lock { beside: Some(repo.common.join("packed-refs.new")), ..packed });
    }
    all
}

impl Lock {
    /// Removes it, if a transaction that began at a time made it and was interrupted.
    fn remove_if_ours(&self, begun: SystemTime) -> io::Result<bool> {
        let Some(found) = seen(&self.path) else { return Ok(false) };
        if !self.own {
            let text = String::from_utf8_lossy(&found.1);
            // A power cut may leave nothing but zeros.
            let text = text.trim_end_matches(['\0', '\n']);
            let fits = text.is_empty() || text == self.value;
            let soon = found.0.duration_since(begun).is_ok_and(|after| after < MADE_WITHIN);
            if !fits || !soon {
                return Ok(false);
            }
        }
        // One that is there since an earlier driver met it is not waited for again: drivers that
        // are killed again and again would never get beyond it.
        let age = found.0.elapsed().unwrap_or_default();
        std::thread::sleep(UNCHANGED_FOR.saturating_sub(age));
        if seen(&self.path).as_ref() != Some(&found) {
            return Ok(false);
        }
        if let Some(beside) = self.beside.as_ref().filter(|path| path.exists()) {
            fs::remove_file(beside)?;
        }
        fs::remove_file(&self.path)?;
        Ok(true)
    }
}

/// When a file was last written, and what it holds.
fn seen(path: &Path) -> Option<(SystemTime, Vec<u8>)> {
    let at = fs::metadata(path).ok()?.modified().ok()?;
    Some((at, fs::read(path).ok()?))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
