//! Ref transactions under way, so that the locks of a git that was killed in one can be told from
//! the user's.
//!
//! Git locks a ref by a file beside it, which says nothing about who made it and stays behind when
//! git is killed. So what a transaction is to do lies in a file of its own, which git reads as its
//! input and holds a lock of the system's on while it lives, as does whoever started it. A file
//! that nobody holds is a transaction that was cut short, and it names the refs whose locks may go.
//! Nothing is looked for until a transaction meets a lock, or a driver comes after another one.
//!
//! A git that carries out many has one file for all of them, a page: empty and held by nobody in
//! between. It may be removed then, which is seen before it is written to again.

use std::fs::{self, File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::worktree::Place;

/// How long transactions of others are waited for; a transaction takes milliseconds.
const QUIET_WAIT: Duration = Duration::from_secs(10);
/// How often it is looked whether they ended.
const QUIET_LOOK: Duration = Duration::from_millis(5);
/// A lock where the user writes too must have been made so soon after the transaction began: git
/// takes all locks of one at once.
const MADE_WITHIN: Duration = Duration::from_secs(10);
/// And it must not change for so long: a git of the user's that is at work goes on.
const UNCHANGED_FOR: Duration = Duration::from_millis(500);

/// So many files may lie there before those that nobody uses are looked for: a driver that ended
/// leaves one.
const FILES_MAX: usize = 16;
/// What is read of a complaint; git's have a few lines.
const COMPLAINT_BYTES_MAX: usize = 64 * 1024;

/// How files that are not complete yet begin.
const NEW: &str = ".new-";
/// The file that whoever has a transaction under way holds, so that none begins during a sweep.
const HELD: &str = ".held";
/// Keeps names within this process apart.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn folder(place: &Place) -> PathBuf {
    place.state.join("transactions")
}

fn held(folder: &Path) -> io::Result<File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    File::options().read(true).append(true).create(true).open(folder.join(HELD))
}

/// A transaction under way; its file goes when this does.
pub(super) struct Underway {
    path: PathBuf,
    file: File,
    _held: File,
}

impl Underway {
    /// Writes down what is to be done.
    pub(super) fn begin(place: &Place, lines: &str) -> io::Result<Self> {
        let folder = folder(place);
        let held = held(&folder)?;
        held.lock_shared()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{count}", std::process::id());
        let new = folder.join(format!("{NEW}{name}"));
        let mut options = File::options();
        let mut file = options.read(true).write(true).create(true).truncate(true).open(&new)?;
        file.write_all(lines.as_bytes())?;
        file.rewind()?;
        // Held before it has its name: what has a name and is not held was cut short.
        file.lock_shared()?;
        let path = folder.join(name);
        fs::rename(&new, &path)?;
        Ok(Self { path, file, _held: held })
    }

    /// What git reads. The lock is on the file as opened here, so git holds it too.
    pub(super) fn input(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        // One that stays is taken for cut short, and its locks are looked for in vain.
        let _ = fs::remove_file(&self.path);
    }
}

/// The file for the transactions of a git that stays; it goes when this does, unless one of them was
/// cut short.
pub(super) struct Page {
    path: PathBuf,
    file: File,
    held: File,
    written: usize,
    cut_short: bool,
}

impl Page {
    /// An empty one.
    pub(super) fn new(place: &Place) -> io::Result<Self> {
        let folder = folder(place);
        let held = held(&folder)?;
        tidy(&folder, &held)?;
        let mut options = File::options();
        options.read(true).append(true).create_new(true);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{}-{count}", std::process::id()));
            match options.open(&path) {
                Ok(file) => return Ok(Self { path, file, held, written: 0, cut_short: false }),
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

    /// Writes down what is to be done, and holds it; not if the file is gone.
    pub(super) fn begin(&mut self, lines: &str) -> io::Result<bool> {
        self.held.lock_shared()?;
        self.file.lock_shared()?;
        if self.file.metadata()?.nlink() == 0 {
            return Ok(false);
        }
        self.file.write_all(lines.as_bytes())?;
        self.written = lines.len();
        Ok(true)
    }

    /// Notes that it is done.
    pub(super) fn end(&mut self) {
        // What stays is taken for cut short, and its locks are looked for in vain; what is held on to
        // keeps a sweep waiting. Neither breaks anything.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
        let _ = self.held.unlock();
    }

    /// What git complained about.
    pub(super) fn complaint(&self) -> String {
        let mut bytes = vec![0; COMPLAINT_BYTES_MAX];
        let found = self.file.read_at(&mut bytes, self.written as u64).unwrap_or(0);
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

/// Removes the pages that nobody writes on, if there are many files.
fn tidy(folder: &Path, held: &File) -> io::Result<()> {
    if fs::read_dir(folder)?.count() <= FILES_MAX || held.try_lock().is_err() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)?.flatten().filter(|entry| entry.file_name() != HELD) {
        let file = File::open(entry.path())?;
        if file.metadata()?.len() == 0 && file.try_lock().is_ok() {
            fs::remove_file(entry.path())?;
        }
    }
    held.unlock()
}

/// Tells whether a lock stands in the way of these lines.
pub(super) fn is_locked(place: &Place, lines: &str) -> bool {
    locks(place, lines).iter().any(|lock| lock.path.exists())
}

/// Removes the locks that transactions left which were cut short, if there are any; how many those
/// were. One that was cut short after all its refs were deleted is never tried again, and the user
/// would meet its locks first.
pub(super) fn clear(place: &Place) -> io::Result<usize> {
    let entries = match fs::read_dir(folder(place)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let written = entries.flatten().filter(|e| e.metadata().is_ok_and(|found| found.len() > 0));
    let mut texts = written.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    if texts.any(|lines| is_locked(place, &lines)) { sweep(place, "") } else { Ok(0) }
}

/// Waits for the transactions under way that name a ref; tells whether they ended. The git of a driver
/// that was killed goes on and may move it yet.
pub(super) fn await_naming(place: &Place, name: &str) -> io::Result<bool> {
    let entries = match fs::read_dir(folder(place)) {
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

/// Removes the locks of transactions that were cut short, if they are in the way of these lines or
/// written down; how many that were.
pub(super) fn sweep(place: &Place, lines: &str) -> io::Result<usize> {
    sweep_until(place, lines, Instant::now() + QUIET_WAIT)
}

/// The same, but transactions of others are waited for until a time.
pub(super) fn sweep_until(place: &Place, lines: &str, deadline: Instant) -> io::Result<usize> {
    let folder = folder(place);
    let held = held(&folder)?;
    if !quiet(&held, deadline)? {
        return Ok(0);
    }
    let (mut removed, mut all_quiet) = (0, true);
    for entry in fs::read_dir(&folder)?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if name.as_encoded_bytes().starts_with(NEW.as_bytes()) {
            // Nobody is about to name it now.
            fs::remove_file(&path)?;
        } else if name != HELD {
            let file = File::open(&path)?;
            if !quiet(&file, deadline)? {
                all_quiet = false;
                continue;
            }
            let begun = file.metadata()?.modified()?;
            let lines = fs::read_to_string(&path)?;
            for lock in locks(place, &lines) {
                removed += usize::from(lock.remove_if_ours(begun)?);
            }
            fs::remove_file(&path)?;
        }
    }
    if all_quiet {
        // What the end of the machine left need not be written down: nobody of ours is at work.
        for lock in locks(place, lines).iter().filter(|lock| lock.own) {
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

/// The locks that git takes for the lines of a transaction.
fn locks(place: &Place, lines: &str) -> Vec<Lock> {
    let mut all = Vec::new();
    let lock =
        |path: PathBuf, own, value: &str| Lock { path, own, value: value.to_owned(), beside: None };
    let (mut heads, mut deletes) = (false, false);
    for line in lines.lines() {
        let mut words = line.split(' ');
        let (Some(word), Some(name)) = (words.next(), words.next()) else { continue };
        if !["verify", "update", "delete"].contains(&word) {
            continue;
        }
        let new = words.next().filter(|_| word == "update").unwrap_or_default();
        let path = place.common.join(format!("{name}.lock"));
        all.push(lock(path, name.starts_with(super::PREFIX), new));
        heads |= name.starts_with("refs/heads/");
        deletes |= word == "delete";
    }
    if heads {
        // The log of a checked-out branch is that of HEAD too.
        let dirs = [&place.common, &place.git_dir];
        all.extend(dirs.map(|dir| lock(dir.join("HEAD.lock"), false, "")));
    }
    if deletes {
        let packed = lock(place.common.join("packed-refs.lock"), false, "");
        all.push(Lock { beside: Some(place.common.join("packed-refs.new")), ..packed });
    }
    all
}

impl Lock {
    /// Removes it, if a transaction that began at a time made it and was cut short.
    fn remove_if_ours(&self, begun: SystemTime) -> io::Result<bool> {
        let Some(found) = seen(&self.path) else { return Ok(false) };
        if !self.own {
            let text = String::from_utf8_lossy(&found.1);
            let fits = text.is_empty() || text.trim_end() == self.value;
            let soon = found.0.duration_since(begun).is_ok_and(|after| after < MADE_WITHIN);
            if !fits || !soon {
                return Ok(false);
            }
            std::thread::sleep(UNCHANGED_FOR);
            if seen(&self.path).as_ref() != Some(&found) {
                return Ok(false);
            }
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
mod tests {
    use super::*;
    use crate::git::git;
    use crate::refs::{Transaction, value};

    const NAME: &str = "refs/piton/r/epoch";
    const BRANCH: &str = "refs/heads/b";

    struct Repo {
        dir: tempfile::TempDir,
        place: Place,
        commit: String,
    }

    fn repo() -> Repo {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main"]).unwrap();
        let tree = git(dir.path(), &["write-tree"]).unwrap();
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        let commit = git(dir.path(), &[&who[..], &["commit-tree", "-m", "m", &tree]].concat());
        let place = Place::of(dir.path()).unwrap();
        Repo { dir, place, commit: commit.unwrap() }
    }

    impl Repo {
        fn lines(&self) -> String {
            format!("update {NAME} {0}\nupdate {BRANCH} {0}\n", self.commit)
        }

        /// Leaves a transaction as a kill of everybody does, with these locks.
        fn cut_short(&self, locks: &[(&str, &str)]) {
            let underway = Underway::begin(&self.place, &self.lines()).unwrap();
            let (kept, path) = (self.place.state.join("kept"), underway.path.clone());
            fs::copy(&path, &kept).unwrap();
            drop(underway);
            fs::rename(kept, path).unwrap();
            self.lock(locks);
        }

        fn lock(&self, locks: &[(&str, &str)]) {
            for (name, text) in locks {
                let path = self.place.common.join(format!("{name}.lock"));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }

        fn commit(&self) -> Result<(), crate::git::Error> {
            let all = Transaction::default().set(NAME, &self.commit).set(BRANCH, &self.commit);
            all.commit(self.dir.path(), "t")
        }
    }

    #[test]
    fn locks_of_a_transaction_that_was_cut_short_go() {
        let repo = repo();
        let value_line = format!("{}\n", repo.commit);
        repo.cut_short(&[(NAME, ""), (BRANCH, &value_line), ("HEAD", "")]);
        repo.commit().unwrap();
        assert_eq!(value(repo.dir.path(), BRANCH), Some(repo.commit.clone()));
        let left = fs::read_dir(folder(&repo.place)).unwrap().count();
        assert_eq!(left, 1, "only the file that holds a sweep off stays");
    }

    #[test]
    fn our_own_lock_goes_though_nothing_is_written_down() {
        let repo = repo();
        repo.lock(&[(NAME, "")]);
        repo.commit().unwrap();
    }

    #[test]
    fn a_lock_of_the_users_stays() {
        let repo = repo();
        repo.lock(&[(BRANCH, "")]);
        repo.commit().unwrap_err();
        repo.cut_short(&[(BRANCH, "somebody else's\n")]);
        repo.commit().unwrap_err();
        assert!(repo.place.common.join(format!("{BRANCH}.lock")).exists());
        assert_eq!(value(repo.dir.path(), NAME), None);
    }

    #[test]
    fn nothing_goes_while_a_transaction_is_under_way() {
        let repo = repo();
        let underway = Underway::begin(&repo.place, &repo.lines()).unwrap();
        repo.lock(&[(NAME, "")]);
        assert_eq!(sweep_until(&repo.place, &repo.lines(), Instant::now()).unwrap(), 0);
        // The git of a dead driver holds what it reads.
        let (git, path) = (underway.input().unwrap(), underway.path.clone());
        let kept = repo.place.state.join("kept");
        fs::hard_link(&path, &kept).unwrap();
        drop(underway);
        fs::rename(kept, &path).unwrap();
        assert_eq!(sweep_until(&repo.place, &repo.lines(), Instant::now()).unwrap(), 0);
        drop(git);
        assert_eq!(sweep_until(&repo.place, &repo.lines(), Instant::now()).unwrap(), 1);
    }

    #[test]
    fn pages_that_nobody_writes_on_go_when_there_are_many() {
        let repo = repo();
        let mut under_way = Page::new(&repo.place).unwrap();
        assert!(under_way.begin("update a b\n").unwrap());
        let folder = folder(&repo.place);
        for number in 0..=FILES_MAX {
            fs::write(folder.join(format!("0-{number}")), "").unwrap();
        }
        fs::write(folder.join("1-0"), "update c d\n").unwrap();
        let all = || fs::read_dir(&folder).unwrap().count();
        let before = all();
        // Not while somebody may be about to write.
        let first = Page::new(&repo.place).unwrap();
        assert_eq!(all(), before + 1);
        under_way.end();
        assert!(under_way.begin("update a b\n").unwrap());
        under_way.end();
        let mut second = Page::new(&repo.place).unwrap();
        assert_eq!(
            all(),
            3,
            "the file that holds a sweep off, what was cut short, and the new one"
        );
        assert!(second.begin("update a b\n").unwrap());
        // Those who had one see that it is gone.
        assert!(!under_way.begin("update a b\n").unwrap());
        drop((first, second));
        assert_eq!(all(), 2);
    }
}
