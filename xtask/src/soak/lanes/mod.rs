//! SIGKILL while lanes work in worktrees: aimed at what touches the repository, and at random.
//!
//! However often driver, keeper and steps are killed, base ends with the work of each lane once, in
//! one line of commits, and nothing else is left. [`mod@drivers`] does the same with several drivers
//! instead of dead ones, [`restart`] restarts the machine and has a person at it.

mod contract;
mod drivers;
mod person;
mod project;
mod restart;

use std::thread;
use std::time::Duration;

use super::activity::{self, Watch};
use super::kills::{completed, kill_pass};
use super::scratch::{Scratch, Started};
use super::{Broken, Round, record, repository};

use project::Setting;

pub(super) use drivers::{AIMS as DRIVER_AIMS, many as drivers};
pub(super) use restart::{AIMS as RESTART_AIMS, power, reboot};

/// What must have been met, and how often in full.
pub(super) const AIMS: (&[&str], u64) = (
    &[
        activity::WORKTREE,
        activity::SNAPSHOT,
        activity::TEST,
        activity::REBASE,
        activity::REF_UPDATE,
        activity::REMOVAL,
    ],
    20,
);
/// The same for the loop with fewer rounds.
pub(super) const BULLET_AIMS: (&[&str], u64) = (AIMS.0, 10);
/// Kills of a round: at least, and by how many more at most. Then it is left to finish.
const KILLS: (u64, u64) = (4, 8);
/// An aimed kill comes within so many milliseconds of what it aims at.
const AFTER_MS: u64 = 3;
/// A kill without an aim comes within so many milliseconds of the driver's start.
const ANYWHERE_MS: u64 = 1500;
/// Longest wait for what a kill aims at: a driver that is through with it ends before.
const AIM_WAIT: Duration = Duration::from_secs(30);
/// The user commits to base in one of so many cases: while a driver runs, and after its end.
const COMMIT_ONE_IN: u64 = 4;
/// One in so many kills has no aim.
const UNAIMED_ONE_IN: u64 = 4;

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    project::round(round, Setting::Alone, kill_until_complete)
}

/// One round with a document of list items.
pub(super) fn bullets(round: &mut Round<'_>) -> Result<(), Broken> {
    project::round(round, Setting::Bullets, kill_until_complete)
}

fn kill_until_complete(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let watch = Watch::new(scratch.outside().join("testing"));
    let kills = KILLS.0 + round.rng.below(KILLS.1);
    for _ in 0..kills {
        let mut driver = scratch.start(&project::words(scratch))?;
        if round.rng.one_in(COMMIT_ONE_IN) {
            thread::sleep(round.rng.millis_below(ANYWHERE_MS));
            user_commits(round, scratch)?;
        }
        let Some(met) = stop_somewhere(round, &watch, &mut driver)? else {
            return completed(&driver.wait()?);
        };
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        round.tally.met(&met);
        match round.rng.below(3) {
            0 => kill_pass(round, scratch, &mut driver, false)?,
            1 => kill_pass(round, scratch, &mut driver, true)?,
            _ => drop(driver.kill()?),
        }
        contract::holds(scratch)?;
        if round.rng.one_in(COMMIT_ONE_IN) {
            user_commits(round, scratch)?;
        }
    }
    completed(&scratch.start(&project::words(scratch))?.wait()?)
}

fn user_commits(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    round.tally.commits += u64::from(repository::user_commits(scratch)?);
    Ok(())
}

/// Stops a driver at something it does, or anywhere; nothing when it ended first.
fn stop_somewhere(
    round: &mut Round<'_>,
    watch: &Watch,
    driver: &mut Started,
) -> Result<Option<Vec<&'static str>>, Broken> {
    if reach(round, watch, driver)? { watch.stop(driver) } else { Ok(None) }
}

/// Waits until a driver does something, or for any moment; false when it ended first.
fn reach(round: &mut Round<'_>, watch: &Watch, driver: &mut Started) -> Result<bool, Broken> {
    if round.rng.one_in(UNAIMED_ONE_IN) {
        return Ok(driver.wait_for(round.rng.millis_below(ANYWHERE_MS))?.is_none());
    }
    let aims = AIMS.0;
    let aim = usize::try_from(round.rng.below(aims.len() as u64)).unwrap_or(0);
    if !watch.until(driver, aims[aim], AIM_WAIT)? {
        return Ok(false);
    }
    thread::sleep(round.rng.millis_below(AFTER_MS));
    Ok(true)
}
