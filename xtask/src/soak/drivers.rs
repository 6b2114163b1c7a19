//! Two drivers on one run: started at the same moment, or one that slept through a takeover.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use piton_core::Event;
use rustix::process::Signal;

use super::processes;
use super::record::{self, Lines};
use super::scratch::{RUN, Scratch, Started};
use super::{Broken, Round};

/// Exit code of a driver that finds another one at work.
pub(super) const DRIVEN: i32 = 5;
/// Steps so long that the winner of two cannot be through before the loser looked.
const LONG_STEP_MS: (u64, u64) = (60, 60);
/// Steps short enough for many rounds and long enough to be stopped in.
const STEP_MS: (u64, u64) = (20, 20);
/// A driver is stopped within so many milliseconds of its run's first event.
const STOP_WITHIN_MS: u64 = 150;
/// One that is stopped as it starts, within so many of its start: it takes the lease in that time.
const STARTS_WITHIN_MS: u64 = 25;

/// Starts a run and waits until this holds of it.
fn begin(scratch: &Scratch, holds: impl Fn(&Scratch) -> bool) -> Result<Started, Broken> {
    let driver = scratch.start(&Scratch::run_words())?;
    if Scratch::until(|| holds(scratch)) {
        return Ok(driver);
    }
    Err("the run did not get to work".to_owned())
}

/// One round with two drivers started at the same moment.
pub(super) fn two(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::new(round, LONG_STEP_MS)?;
    start_two(round, &scratch).map_err(|broken| scratch.report(&broken))
}

fn start_two(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let mut first = begin(scratch, |scratch| !scratch.lines().is_empty())?;
    first.kill()?;
    round.tally.kills += 1;
    round.tally.hits += u64::from(record::running(scratch) > 0);
    let mut pair = vec![scratch.start(&["resume", RUN])?, scratch.start(&["resume", RUN])?];
    let pids: Vec<String> = pair.iter().map(|driver| driver.pid().to_string()).collect();
    let second = pair.pop().ok_or("a pair has two")?.wait()?;
    let first = pair.pop().ok_or("a pair has two")?.wait()?;
    let (refused, winner) = match (first.code(), second.code()) {
        (0, DRIVEN) => (second, &pids[0]),
        (DRIVEN, 0) => (first, &pids[1]),
        _ => {
            return Err(format!("two drivers ended with {} and {}", first.word(), second.word()));
        }
    };
    if !refused.said.contains(winner.as_str()) {
        return Err(format!("the refused driver does not name process {winner}"));
    }
    record::check(scratch, Lines::ExactlyOnce)?;
    scratch.clean()
}

/// One round with a driver that is stopped, replaced, and continued.
pub(super) fn takeover(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::new(round, STEP_MS)?;
    replace(round, &scratch).map_err(|broken| scratch.report(&broken))
}

fn replace(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let mut old = begin(scratch, |scratch| !record::events(scratch).is_empty())?;
    let mut moment = round.rng.millis_below(STOP_WITHIN_MS);
    if round.rng.one_in(2) {
        old.kill()?;
        old = scratch.start(&["resume", RUN])?;
        moment = round.rng.millis_below(STARTS_WITHIN_MS);
    }
    if old.wait_for(moment)?.is_some() {
        // It was through before it could be stopped: nothing was shown, nothing broke.
        return scratch.clean();
    }
    processes::signal(old.pid(), Signal::STOP);
    if record::driver(scratch) != Some(old.pid()) {
        // It had not come to drive the run: there is nothing to take over.
        processes::signal(old.pid(), Signal::CONT);
        let ended = old.wait()?;
        if ended.code() != 0 {
            return Err(format!("a driver that was only stopped ended with {}", ended.word()));
        }
        record::check(scratch, Lines::ExactlyOnce)?;
        return scratch.clean();
    }
    round.tally.kills += 1;
    round.tally.hits += u64::from(record::running(scratch) > 0);
    let new = scratch.start(&["resume", RUN, "--takeover"])?;
    if round.rng.one_in(2) {
        return continue_early(scratch, old, new);
    }
    let ended = new.wait()?;
    if ended.code() != 0 {
        processes::signal(old.pid(), Signal::KILL);
        return Err(format!("the new driver ended with {}", ended.word()));
    }
    record::check(scratch, Lines::ExactlyOnce)?;
    let before = Trace::of(scratch);
    processes::signal(old.pid(), Signal::CONT);
    stale(old)?;
    let after = Trace::of(scratch);
    if let Some(difference) = before.difference(&after) {
        return Err(format!("a stale driver did something: {difference}"));
    }
    scratch.clean()
}

/// The old driver goes on while the new one is at work.
fn continue_early(scratch: &Scratch, old: Started, new: Started) -> Result<(), Broken> {
    let taken = |(_, event): &(u64, Event)| matches!(event, Event::DriverAttached(e) if e.takeover);
    let attached = Scratch::until(|| record::events(scratch).iter().any(taken));
    processes::signal(old.pid(), Signal::CONT);
    let ended = new.wait()?;
    stale(old)?;
    if !attached || ended.code() != 0 {
        return Err(format!("the new driver ended with {} (attached: {attached})", ended.word()));
    }
    record::check(scratch, Lines::ExactlyOnce)?;
    scratch.clean()
}

/// Checks how a driver ended that was replaced: refused, or killed by its successor because it held
/// the ledger's lock while it was stopped.
pub(super) fn stale(old: Started) -> Result<(), Broken> {
    let ended = old.wait()?;
    if ended.code() == DRIVEN || ended.killed() {
        return Ok(());
    }
    Err(format!("the replaced driver ended with {}", ended.word()))
}

/// Everything that a run leaves outside of processes.
struct Trace {
    events: usize,
    lines: usize,
    files: [Files; 2],
}

impl Trace {
    fn of(scratch: &Scratch) -> Self {
        // A keeper that was let go writes until it is gone.
        Scratch::until(|| scratch.processes().iter().all(|p| p.kind != processes::Kind::Keeper));
        let (events, lines) = (record::events(scratch).len(), scratch.lines().len());
        Self {
            events,
            lines,
            files: ["repo", "tmp"].map(|dir| Files::of(&scratch.base().join(dir))),
        }
    }

    fn difference(&self, after: &Self) -> Option<String> {
        if self.events != after.events {
            return Some(format!("{} events became {}", self.events, after.events));
        }
        if self.lines != after.lines {
            return Some(format!("{} lines became {}", self.lines, after.lines));
        }
        self.files.iter().zip(&after.files).find_map(|(old, new)| old.difference(new))
    }
}

/// The files below a folder, with their contents and when they were written.
pub(super) struct Files(BTreeMap<PathBuf, (SystemTime, Vec<u8>)>);

impl Files {
    /// Looks at a folder.
    pub(super) fn of(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        list(folder, &mut files);
        Self(files)
    }

    /// What changed, apart from the index of the ledger's log: that is memory which the processes that
    /// have the ledger open share, and whoever reads notes in it up to where.
    pub(super) fn difference(&self, after: &Self) -> Option<String> {
        let counts = |path: &&PathBuf| !path.ends_with("ledger.db-shm");
        let paths = self.0.keys().chain(after.0.keys()).filter(counts);
        let changed: Vec<&PathBuf> =
            paths.filter(|path| self.0.get(*path) != after.0.get(*path)).collect();
        if changed.is_empty() { None } else { Some(format!("it touched {changed:?}")) }
    }
}

fn list(folder: &Path, files: &mut BTreeMap<PathBuf, (SystemTime, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = fs::symlink_metadata(&path) else {
            continue;
        };
        if about.is_dir() {
            list(&path, files);
        }
        let bytes = if about.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
        files.insert(path, (about.modified().unwrap_or(SystemTime::UNIX_EPOCH), bytes));
    }
    thread::yield_now();
}
