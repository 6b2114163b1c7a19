//! Refs are moved in one transaction that also verifies the run's epoch.
//!
//! A driver that was taken over holds an older epoch: its transactions fail as a whole, so it can
//! move no ref. The epoch ref names a blob with the number; it is raised when a driver attaches.

mod durable;
mod journal;
pub(crate) mod record;
mod session;

use std::fmt::Write as _;
use std::path::Path;

use crate::git::{Error, Git};
use crate::objects::write_blob;
pub use crate::repo::value;
use crate::repo::{self, Repo};
pub(crate) use durable::sync_ref;
pub use record::{branch_of, run_of_branch};
use session::Outcome;

/// Where all refs of Piton live; nothing of the user's does.
pub const PREFIX: &str = "refs/piton/";

/// How long git waits for whoever holds a ref's lock, in milliseconds: a moment at most, for each
/// holds it for one update; a tenth of a second, its own choice, is not enough on a busy machine.
const PATIENCE: &str = "core.filesRefLockTimeout=1000";

/// The same where a branch is locked that the user may be about to commit to: less than their git
/// waits by itself, for both would wait for the lock that the other one holds. A deletion needs the lock
/// of packed refs, for which git has another setting; whoever is brief tries again by themselves.
const BRIEFLY: [&str; 2] = ["core.filesRefLockTimeout=30", "core.packedRefsTimeout=30"];

/// What every ref update of a run verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    name: String,
    blob: String,
}

impl Fence {
    /// Raises the epoch of a run; a lower one than is there is refused.
    pub fn raise(dir: &Path, run_id: &str, epoch: u64) -> Result<Self, Error> {
        let name = format!("{}epoch", run_prefix(run_id));
        let blob = write_blob(dir, &format!("{epoch}\n"))?;
        let fence = Self { name, blob };
        // A run's first driver finds none, so it need not look.
        let mut old = if epoch > 1 { fence.below(dir, epoch)? } else { None };
        loop {
            let moved = Transaction::default().update(&fence.name, &fence.blob, old.as_deref());
            let Err(error) = moved.commit(dir, "piton: epoch") else { return Ok(fence) };
            // Somebody else raised it between the look and the move.
            let found = fence.below(dir, epoch)?;
            if found == old {
                return Err(error);
            }
            old = found;
        }
    }

    /// What the ref names, unless that is a higher epoch. It moves only from what was looked at: a
    /// driver that is stopped in between must not take the place of one that came in the meantime.
    fn below(&self, dir: &Path, epoch: u64) -> Result<Option<String>, Error> {
        let old = value(dir, &self.name);
        let found = old.as_deref().and_then(|blob| number(dir, blob));
        match found.filter(|found| *found > epoch) {
            None => Ok(old),
            Some(found) => Err(failed(format!("epoch {epoch} was superseded by {found}"))),
        }
    }

    /// The fence that stands, for whoever does not drive; one is put up where there is none.
    pub fn current(dir: &Path, run_id: &str) -> Result<Self, Error> {
        let name = format!("{}epoch", run_prefix(run_id));
        if let Some(blob) = value(dir, &name) {
            return Ok(Self { name, blob });
        }
        // Whoever put one up in the meantime, that one stands.
        let raised = Self::raise(dir, run_id, 0);
        raised.or_else(|e| value(dir, &name).map(|blob| Self { name, blob }).ok_or(e))
    }

    /// Tells whether the epoch still stands; a driver that was taken over finds that it does not.
    pub fn holds(&self, dir: &Path) -> bool {
        value(dir, &self.name).is_some_and(|found| found == self.blob)
    }

    /// The same, where it is known already where the repository keeps things.
    pub(crate) fn holds_in(&self, repo: &Repo) -> bool {
        repo.value(&self.name).is_some_and(|found| found == self.blob)
    }

    /// The epoch that stands in the repository.
    pub fn epoch(dir: &Path, run_id: &str) -> Result<Option<u64>, Error> {
        let name = format!("{}epoch", run_prefix(run_id));
        Ok(number(dir, &name))
    }
}

/// The number that a blob holds.
fn number(dir: &Path, blob: &str) -> Option<u64> {
    std::str::from_utf8(&repo::bytes(dir, blob)?).ok()?.trim().parse().ok()
}

/// Ends the gits that wait for questions and transactions, so that nothing of a repository is in use;
/// the next one starts again.
pub fn end_processes() {
    repo::end_processes();
    session::end_processes();
}

/// Where the refs of a run live.
pub fn run_prefix(run_id: &str) -> String {
    format!("{PREFIX}{}/", component(run_id))
}

/// Makes an id fit for a ref: git refuses `..`, a final `.` or `.lock`.
pub fn component(id: &str) -> String {
    let safe = id.replace("..", ".%");
    match safe.strip_suffix('.') {
        Some(start) => format!("{start}%"),
        None => safe.strip_suffix(".lock").map_or(safe.clone(), |start| format!("{start}%lock")),
    }
}

/// What a transaction leaves in the logs of refs that are not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Logs {
    #[default]
    Nothing,
    /// That refs were made.
    Made,
    /// That refs moved.
    Moved,
}

/// Ref updates that happen together or not at all.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Transaction {
    lines: String,
    brief: bool,
    loose: bool,
    of_lane: bool,
    logs: Logs,
}

impl Transaction {
    /// Begins one that holds only while a run's epoch does.
    pub fn fenced(fence: &Fence) -> Self {
        let mut lines = String::new();
        let _ = writeln!(lines, "verify {} {}", fence.name, fence.blob);
        Self { lines, ..Self::default() }
    }

    /// Lets it give up soon where somebody else holds a lock.
    pub fn brief(mut self) -> Self {
        self.brief = true;
        self
    }

    /// Says that the branches it moves are those of lanes: nobody else moves them.
    pub(crate) fn of_lane(mut self) -> Self {
        self.of_lane = true;
        self
    }

    /// Lets a power cut take it back in the seconds after it: for what is found and done again.
    pub fn without_sync(mut self) -> Self {
        self.loose = true;
        self
    }

    /// Moves a ref from an old value; without one it must not exist yet.
    pub fn update(mut self, name: &str, new: &str, old: Option<&str>) -> Self {
        self.log(name, if old.is_some() { Logs::Moved } else { Logs::Made });
        let old = old.map_or_else(|| "0".repeat(new.len()), ToOwned::to_owned);
        let _ = writeln!(self.lines, "update {name} {new} {old}");
        self
    }

    /// Sets a ref, whatever it was.
    pub fn set(mut self, name: &str, new: &str) -> Self {
        self.log(name, Logs::Moved);
        let _ = writeln!(self.lines, "update {name} {new}");
        self
    }

    fn log(&mut self, name: &str, logs: Logs) {
        if !name.starts_with(PREFIX) {
            self.logs = self.logs.max(logs);
        }
    }

    /// Deletes a ref that has a value.
    pub fn delete(mut self, name: &str, old: &str) -> Self {
        let _ = writeln!(self.lines, "delete {name} {old}");
        self
    }

    /// Requires a ref to have a value.
    pub fn verify(mut self, name: &str, value: &str) -> Self {
        let _ = writeln!(self.lines, "verify {name} {value}");
        self
    }

    /// Carries it out, durably unless it may be loose: when it returns, a power cut can't take the
    /// moves back. Locks that an earlier one left because git was killed in it go first.
    pub fn commit(self, dir: &Path, why: &str) -> Result<(), Error> {
        self.commit_in(&Repo::find(dir)?, why)
    }

    /// The same, where it is known already where the repository keeps things.
    pub(crate) fn commit_in(self, repo: &Repo, why: &str) -> Result<(), Error> {
        let done = self.carry_out(repo, why);
        if done.is_ok() || !journal::is_locked(repo, &self) {
            return done;
        }
        let removed = journal::sweep(repo, &self).map_err(|e| unwritten(&e))?;
        if removed == 0 && journal::is_locked(repo, &self) {
            return done;
        }
        self.once(repo, why)
    }

    /// Carries it out by the git that stays, or else by one of its own.
    fn carry_out(&self, repo: &Repo, why: &str) -> Result<(), Error> {
        if self.fits_session(repo, why) {
            match session::carry_out(repo, self) {
                Outcome::Done => return self.synced(repo),
                Outcome::Refused(error) if self.brief => return Err(error),
                Outcome::Lost if self.is_applied(repo) => return self.synced(repo),
                // A git of its own has more patience with locks, and says what is wrong.
                Outcome::Refused(_) | Outcome::Lost | Outcome::Unasked => {}
            }
        }
        self.once(repo, why)
    }

    /// Whether nobody can tell by the logs that a git which stays did it.
    fn fits_session(&self, repo: &Repo, why: &str) -> bool {
        // Seen from a bare repository, git would not log that a branch was made.
        let made = || why == session::REASON && repo.common.file_name() == Some(".git".as_ref());
        (self.logs == Logs::Nothing || self.logs == Logs::Made && made())
            // A git that stays would not see that refs are not files any more.
            && !durable::has_tables(&repo.common)
    }

    /// Whether all refs are as this would leave them.
    fn is_applied(&self, repo: &Repo) -> bool {
        self.lines.lines().all(|line| {
            let mut words = line.split(' ');
            let (verb, name) = (words.next(), words.next().unwrap_or_default());
            let wanted = words.next().filter(|_| verb != Some("delete"));
            repo.value(name).as_deref() == wanted
        })
    }

    fn once(&self, repo: &Repo, why: &str) -> Result<(), Error> {
        let patience = if self.brief { &BRIEFLY[..] } else { &[PATIENCE] };
        let outcome = session::carry_out_alone(repo, self, why, patience);
        match outcome.map_err(|e| unwritten(&e))? {
            Outcome::Done => self.synced(repo),
            Outcome::Refused(error) => Err(error),
            Outcome::Lost | Outcome::Unasked => {
                Err(failed("git ended in the middle of it without a word; try again".to_owned()))
            }
        }
    }

    fn synced(&self, repo: &Repo) -> Result<(), Error> {
        if self.loose {
            return Ok(());
        }
        durable::sync(&repo.common, &self.lines).map_err(|e| unsynced(&e))
    }
}

fn failed(message: String) -> Error {
    Error { command: "update-ref".to_owned(), code: None, message }
}

fn unwritten(error: &std::io::Error) -> Error {
    let advice = "see that the disk has room";
    failed(format!("the transaction could not be written down: {error}; {advice}"))
}

fn unsynced(error: &std::io::Error) -> Error {
    failed(format!("moved refs could not be synced: {error}; see that the disk is in order"))
}

/// Removes the locks of ref transactions that were interrupted by a kill; how many those were.
pub fn clear_locks(dir: &Path) -> Result<usize, Error> {
    journal::clear(&Repo::find(dir)?).map_err(|e| unwritten(&e))
}

/// Waits until no transaction of a process that was killed moves a ref any more.
pub fn settle(dir: &Path, name: &str) -> Result<(), Error> {
    value_after_transactions(&Repo::find(dir)?, name).map(drop)
}

/// The value of a ref once no transaction of a driver that was killed can move it any more.
pub(crate) fn value_after_transactions(repo: &Repo, name: &str) -> Result<Option<String>, Error> {
    if !journal::await_naming(repo, name).map_err(|e| unwritten(&e))? {
        return Err(failed(format!(
            "a git of an earlier driver still moves {name}; try again later"
        )));
    }
    Ok(value(&repo.root, name))
}

/// A ref as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Its full name.
    pub name: String,
    /// The object it names.
    pub value: String,
    /// When that was committed, in seconds since 1970; nothing where it is not a commit.
    pub committed_at: Option<i64>,
}

/// Whether a repository may have refs below a prefix that ends in `/`, told from its files alone:
/// where it says no, no git need be asked.
pub fn may_exist(common: &Path, prefix: &str) -> bool {
    let packed = || std::fs::read(common.join("packed-refs")).unwrap_or_default();
    let names = |text: &[u8]| text.windows(prefix.len()).any(|part| part == prefix.as_bytes());
    common.join(prefix).is_dir() || durable::has_tables(common) || names(&packed())
}

/// All refs below a prefix that ends in `/`.
pub fn list(dir: &Path, prefix: &str) -> Result<Vec<Ref>, Error> {
    let format = "--format=%(refname) %(objectname) %(committerdate:unix)";
    let text = Git::at(dir).args(["for-each-ref", format, prefix.trim_end_matches('/')]).text()?;
    let standing = |line: &str| {
        let mut words = line.split(' ');
        let (name, value) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some(Ref { name, value, committed_at: words.next().and_then(|at| at.parse().ok()) })
    };
    Ok(text.lines().filter_map(standing).collect())
}

/// Deletes refs of ours, each only if it still stands as it was seen. The objects go with git's own
/// collection of garbage.
pub fn delete(dir: &Path, refs: &[Ref]) -> Result<(), Error> {
    let ours = refs.iter().filter(|r| r.name.starts_with(PREFIX));
    let all = ours.fold(Transaction::default(), |all, r| all.delete(&r.name, &r.value));
    if all.lines.is_empty() {
        return Ok(());
    }
    all.commit(dir, "piton: gc")
}
