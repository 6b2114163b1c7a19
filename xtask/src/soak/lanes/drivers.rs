//! Several drivers on a run with lanes: started at the same moment after a kill, or one that slept
//! through a takeover in the middle of what it did to the repository.
//!
//! What holds after kills holds here too. And a driver that wakes up after another one took its run
//! over, at whatever point it was stopped, moves no ref and touches no file.

use std::thread;
use std::time::{Duration, Instant};

use piton_core::Event;
use rustix::process::Signal;

use super::super::activity::{self, Watch};
use super::super::drivers::{DRIVEN, Files, stale};
use super::super::kills::{completed, kill_pass};
use super::super::processes::{Kind, Process};
use super::super::scratch::{RUN, Scratch, Started};
use super::super::{Broken, Round, processes, record};
use super::project::{self, Setting};
use super::stop_somewhere;

/// What must have been met, and how often in full.
pub(crate) const AIMS: (&[&str], u64) =
    (&[activity::SNAPSHOT, activity::REBASE, activity::REF_UPDATE, activity::REMOVAL], 3);
/// Stops of a round: at least, and by how many more at most.
const STOPS: (u64, u64) = (2, 3);
/// A replaced driver goes on within so many milliseconds of the takeover, if it does so early: all
/// of what it was about may fall into that time of its successor.
const WAKE_WITHIN_MS: u64 = 60;
/// No driver takes nearly as long to find that another one drives.
const REFUSED_WAIT: Duration = Duration::from_secs(30);
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// One round.
pub(crate) fn many(round: &mut Round<'_>) -> Result<(), Broken> {
    project::round(round, Setting::Alone, replace_until_complete)
}

fn replace_until_complete(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let watch = Watch::new(scratch.outside().join("testing"));
    let mut driver = scratch.start(&project::words(scratch))?;
    for _ in 0..STOPS.0 + round.rng.below(STOPS.1) {
        let Some(met) = stop_somewhere(round, &watch, &mut driver)? else { break };
        if record::status(scratch).is_none() {
            // There is nothing to take over yet.
            processes::signal(driver.pid(), Signal::CONT);
            continue;
        }
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        round.tally.met(&met);
        driver = match round.rng.below(3) {
            0 => pair(round, scratch, driver)?,
            1 => early(round, scratch, driver)?,
            _ => return late(scratch, driver),
        };
    }
    completed(&driver.wait()?)
}

/// Kills a driver and starts two in its place; the one that drives.
fn pair(round: &mut Round<'_>, scratch: &Scratch, mut driver: Started) -> Result<Started, Broken> {
    if round.rng.one_in(2) {
        let spare_steps = round.rng.one_in(2);
        kill_pass(round, scratch, &mut driver, spare_steps)?;
    } else {
        driver.kill()?;
    }
    let mut pair = [scratch.start(&["resume", RUN])?, scratch.start(&["resume", RUN])?];
    let deadline = Instant::now() + REFUSED_WAIT;
    loop {
        for place in 0..pair.len() {
            let Some(ended) = pair[place].wait_for(LOOK_EVERY)? else { continue };
            let [first, second] = pair;
            let other = if place == 0 { second } else { first };
            // Whoever looks when the other one is through finds a complete run.
            let is_complete = record::status(scratch).as_deref() == Some("complete");
            if ended.code() == DRIVEN || (ended.code() == 0 && is_complete) {
                return Ok(other);
            }
            return Err(format!("one of two drivers ended with {}", ended.word()));
        }
        if Instant::now() > deadline {
            return Err("neither of two drivers was refused".to_owned());
        }
    }
}

/// A stopped driver is replaced and goes on while its successor is at work; the successor.
fn early(round: &mut Round<'_>, scratch: &Scratch, old: Started) -> Result<Started, Broken> {
    let mut new = scratch.start(&["resume", RUN, "--takeover"])?;
    let pid = new.pid();
    let is_attached = |(_, event): &(u64, Event)| match event {
        Event::DriverAttached(attached) => attached.takeover && attached.pid == pid,
        _ => false,
    };
    let mut over = false;
    let attached = Scratch::until(|| {
        over = over || new.is_over().unwrap_or(true);
        over || record::events(scratch).iter().any(is_attached)
    });
    thread::sleep(round.rng.millis_below(WAKE_WITHIN_MS));
    processes::signal(old.pid(), Signal::CONT);
    if !attached {
        processes::signal(old.pid(), Signal::KILL);
        return Err("a takeover did not get to work".to_owned());
    }
    stale(old)?;
    Ok(new)
}

/// A stopped driver is replaced and goes on when the run is complete: it finds nothing to do, and
/// does nothing.
fn late(scratch: &Scratch, old: Started) -> Result<(), Broken> {
    let ended = scratch.start(&["resume", RUN, "--takeover"])?.wait()?;
    if ended.code() != 0 {
        processes::signal(old.pid(), Signal::KILL);
        return Err(format!("the new driver ended with {}", ended.word()));
    }
    // The one that answers it waits with it.
    let is_old = |p: &Process| p.pid == old.pid() || p.kind == Kind::Stays;
    let others = || scratch.processes().iter().all(is_old);
    if !Scratch::until(others) {
        return Err(format!("processes still live: {:?}", scratch.processes()));
    }
    let before = Files::of(&scratch.base().join("repo"));
    processes::signal(old.pid(), Signal::CONT);
    stale(old)?;
    match before.difference(&Files::of(&scratch.base().join("repo"))) {
        None => Ok(()),
        Some(difference) => Err(format!("a stale driver did something: {difference}")),
    }
}
