//! SIGKILL while agents work, hand over to each other and wait for the end of a limit.
//!
//! The agents are scripted: they fill their windows, meet a limit of their account, and fail a test.
//! However often driver, keeper and agents are killed, no step is worked on after its success, each
//! request counts once, each hand-off has a brief, no session has two processes at once, and none
//! of them lives on.

mod check;
mod project;

use std::time::Duration;

use super::kills::{gone, keepers, kill_pass};
use super::processes::{self, Process};
use super::scratch::{Ended, RUN, Scratch, Started};
use super::{Broken, Round, record};

/// What must have happened, and how often in full.
pub(super) const AIMS: (&[&str], u64) =
    (&[DRIVER, KEEPER, EVERYTHING, FULL, PARKED, HANDOFFS, LIMITS], 20);
/// Kills of the driver alone.
const DRIVER: &str = "driver alone";
/// Kills of the keeper alone.
const KEEPER: &str = "keeper alone";
/// Kills of driver and keeper, mostly with the agents.
const EVERYTHING: &str = "everything";
/// Kills while an agent was being stopped because its window was full.
const FULL: &str = "a full window";
/// Kills while a step waited for the end of a limit.
const PARKED: &str = "a parked step";
/// Hand-offs.
const HANDOFFS: &str = "hand-offs";
/// Limits that were met.
const LIMITS: &str = "limits";

/// A driver is killed within so many milliseconds of its start: it needs a third of it to get to
/// work, and the rest for an agent or two.
const KILL_WITHIN_MS: u64 = 700;
/// The pause between two looks whether something is so.
const LOOK: Duration = Duration::from_millis(20);
/// So many looks are made: a driver that never gets there is killed where it is.
const LOOKS_MAX: u32 = 100;
/// After so many kills a round is left to finish: each kill must leave the run further on, so one
/// that needs more is stuck.
const KILLS_MAX: u64 = 30;
/// More drivers than a round has kills.
const DRIVERS_MAX: u64 = 80;

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    let stories = project::Story::of_all(round);
    let mut scratch = Scratch::with_plan(round, &project::plan())?;
    project::prepare(&scratch, &stories)?;
    // In every other round agents are never killed, so that it is known how many there must be.
    let is_gentle = round.rng.one_in(2);
    let mut harm = Harm { is_gentle, strays: None };
    let checked = harm.until_complete(round, &scratch).and_then(|()| {
        let seen = check::complete(&scratch, &stories, is_gentle)?;
        *round.tally.met.entry(HANDOFFS).or_default() += seen.handoffs;
        *round.tally.met.entry(LIMITS).or_default() += seen.limits;
        scratch.clean()
    });
    checked.map_err(|broken| scratch.report(&broken))
}

/// Who does harm to a run.
struct Harm {
    /// Whether only the driver is killed.
    is_gentle: bool,
    /// The agents that lived on when driver and keeper were killed, and the last event at that time.
    strays: Option<(u64, Vec<Process>)>,
}

impl Harm {
    fn until_complete(&mut self, round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
        for _ in 0..DRIVERS_MAX {
            let words = match record::status(scratch) {
                None => Scratch::run_words().to_vec(),
                Some(_) => vec!["resume", RUN],
            };
            let mut driver = scratch.start(&words)?;
            // Undisturbed once in a while, as an agent that is always cut short never ends.
            let is_spared = round.rng.one_in(5) || round.tally.kills >= KILLS_MAX;
            let moment = round.moment(KILL_WITHIN_MS);
            let mut ended = match () {
                () if is_spared => None,
                // On a busy machine a moment alone seldom meets it.
                () if round.rng.one_in(4) => {
                    until(&mut driver, || check::is_parked(&record::events(scratch)))?
                }
                () => driver.wait_for(moment)?,
            };
            if ended.is_none() && !is_spared {
                if !self.is_gentle && round.rng.one_in(3) {
                    ended = until(&mut driver, || !keepers(scratch).is_empty())?;
                    if ended.is_none() {
                        kills_keeper(round, scratch);
                        ended = driver.wait_for(round.moment(KILL_WITHIN_MS))?;
                    }
                }
                if ended.is_none() {
                    self.kills(round, scratch, &mut driver)?;
                    continue;
                }
            }
            let ended = match ended {
                Some(ended) => ended,
                None => driver.wait()?,
            };
            gone(scratch, self.strays.take())?;
            match ended.code() {
                0 => return Ok(()),
                _ => return Err(format!("a driver ended with {}", ended.word())),
            }
        }
        Err(format!("the run is not complete after {DRIVERS_MAX} drivers"))
    }

    fn kills(
        &mut self,
        round: &mut Round<'_>,
        scratch: &Scratch,
        driver: &mut Started,
    ) -> Result<(), Broken> {
        let mut lives_on = false;
        if !self.is_gentle && round.rng.one_in(2) {
            lives_on = round.rng.one_in(3);
            kill_pass(round, scratch, driver, lives_on)?;
            gone(scratch, self.strays.take())?;
            meets(round, scratch, EVERYTHING);
        } else {
            if !driver.kill()?.killed() {
                // It had just ended by itself; the next driver says how.
                return Ok(());
            }
            gone(scratch, self.strays.take())?;
            meets(round, scratch, DRIVER);
        }
        if lives_on {
            let seq = record::events(scratch).last().map_or(0, |(seq, _)| *seq);
            self.strays = Some((seq, scratch.processes()));
        }
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        Ok(())
    }
}

/// Waits until something is so, the driver ends, or it has taken long enough; how the driver ended.
fn until(driver: &mut Started, is_so: impl Fn() -> bool) -> Result<Option<Ended>, Broken> {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return Ok(None);
        }
        let ended = driver.wait_for(LOOK)?;
        if ended.is_some() {
            return Ok(ended);
        }
    }
    Ok(None)
}

/// Kills the keeper under its driver, which goes on.
fn kills_keeper(round: &mut Round<'_>, scratch: &Scratch) {
    let running = record::running(scratch) > 0;
    let keepers = keepers(scratch);
    processes::end(&keepers);
    if !keepers.is_empty() {
        round.tally.kills += 1;
        round.tally.hits += u64::from(running);
        meets(round, scratch, KEEPER);
    }
}

/// Counts what a kill met.
fn meets(round: &mut Round<'_>, scratch: &Scratch, whom: &'static str) {
    round.tally.met(&[whom]);
    let events = record::events(scratch);
    if check::is_handing_off(&events) {
        round.tally.met(&[FULL]);
    }
    if check::is_parked(&events) {
        round.tally.met(&[PARKED]);
    }
}
