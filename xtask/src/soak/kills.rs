//! SIGKILL: of the driver alone, of the keeper alone, of driver, keeper and steps at once.

use super::processes::{self, Kind, Process};
use super::record::{self, Lines};
use super::scratch::{Ended, RUN, Scratch, Started};
use super::{Broken, Round};

/// A driver is killed within so many milliseconds of its start: a round takes about twice as long
/// undisturbed, so kills fall on start-up, on every step and on the end.
const KILL_WITHIN_MS: u64 = 150;
/// After so many kills a round is left to finish: each kill must leave the run further on, so one
/// that needs more is stuck.
const KILLS_MAX: u64 = 60;
/// Kills of a keeper in one round; each costs every running step its attempt.
const KEEPER_KILLS_MAX: u64 = 4;

/// How long steps of a round take before and after they write their line, in milliseconds.
fn step_ms(round: &mut Round<'_>) -> (u64, u64) {
    (5 + round.rng.below(25), 10 + round.rng.below(25))
}

/// The next command of a round. A person whose driver was killed resumes, even if its last act was
/// to complete the run.
pub(super) fn next_words(scratch: &Scratch) -> Vec<&'static str> {
    match record::status(scratch) {
        None => Scratch::run_words().to_vec(),
        Some(_) => vec!["resume", RUN],
    }
}

/// Checks that a command that ended by itself completed the run.
pub(super) fn completed(ended: &Ended) -> Result<(), Broken> {
    match ended.code() {
        0 => Ok(()),
        _ => Err(format!("a driver ended with {} instead of completing the run", ended.word())),
    }
}

/// One round that kills the driver until the run is complete.
pub(super) fn driver(round: &mut Round<'_>) -> Result<(), Broken> {
    let step_ms = step_ms(round);
    let mut scratch = Scratch::new(round, step_ms)?;
    kill_drivers(round, &scratch).map_err(|broken| scratch.report(&broken))
}

fn kill_drivers(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    loop {
        let mut driver = scratch.start(&next_words(scratch))?;
        let moment = round.moment(KILL_WITHIN_MS);
        let ended = match driver.wait_for(moment)? {
            Some(ended) => ended,
            None => driver.kill()?,
        };
        if !ended.killed() {
            completed(&ended)?;
            break;
        }
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        if round.tally.kills > KILLS_MAX {
            return Err(format!("the run is not complete after {KILLS_MAX} kills"));
        }
    }
    record::check(scratch, Lines::ExactlyOnce)?;
    scratch.clean()
}

/// One round that kills everything at once until the run is complete.
pub(super) fn all(round: &mut Round<'_>) -> Result<(), Broken> {
    let step_ms = step_ms(round);
    let mut scratch = Scratch::new(round, step_ms)?;
    kill_everything(round, &scratch).map_err(|broken| scratch.report(&broken))
}

fn kill_everything(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    // What lived on when driver and keeper were killed, and the last event at that time.
    let mut strays: Option<(u64, Vec<Process>)> = None;
    loop {
        let mut driver = scratch.start(&next_words(scratch))?;
        // Undisturbed once in a while, else a run whose every step is cut short would never end.
        let patience = if round.rng.one_in(4) { 4 } else { 1 };
        let moment = round.moment(KILL_WITHIN_MS * patience);
        if let Some(ended) = driver.wait_for(moment)? {
            completed(&ended)?;
            gone(scratch, strays.take())?;
            break;
        }
        let spare_steps = round.rng.one_in(2);
        kill_pass(round, scratch, &mut driver, spare_steps)?;
        gone(scratch, strays.take())?;
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        if spare_steps {
            let seq = record::events(scratch).last().map_or(0, |(seq, _)| *seq);
            strays = Some((seq, scratch.processes()));
        }
        if round.tally.kills > KILLS_MAX {
            return Err(format!("the run is not complete after {KILLS_MAX} kills"));
        }
    }
    record::check(scratch, Lines::OnceForSuccess)?;
    scratch.clean()
}

/// Kills driver, keeper and (unless they are to be found as strays) steps, in a random order.
pub(super) fn kill_pass(
    round: &mut Round<'_>,
    scratch: &Scratch,
    driver: &mut Started,
    spare_steps: bool,
) -> Result<(), Broken> {
    let targets = || -> Vec<Process> {
        let all = scratch.processes().into_iter();
        all.filter(|process| !(spare_steps && process.kind == Kind::Step)).collect()
    };
    let mut found = targets();
    round.rng.shuffle(&mut found);
    processes::end(&found);
    driver.kill()?;
    // What they were just starting is not in the first list, and what waits for the disk dies late.
    let gone = Scratch::until(|| {
        let left = targets();
        processes::end(&left);
        left.is_empty()
    });
    if gone { Ok(()) } else { Err(format!("these outlive being killed: {:?}", targets())) }
}

/// Checks that what lived on was ended by the driver that acted after it.
pub(super) fn gone(scratch: &Scratch, strays: Option<(u64, Vec<Process>)>) -> Result<(), Broken> {
    let Some((seq, strays)) = strays else {
        return Ok(());
    };
    if !record::acted_after(scratch, seq) {
        return Ok(());
    }
    let now = scratch.processes();
    let strays = strays.iter().filter(|stray| stray.kind != Kind::Stays);
    let left: Vec<&Process> = strays.filter(|stray| now.iter().any(|p| p.is(stray))).collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(format!("a new driver acted while these of the dead run still lived: {left:?}"))
}

/// One round that kills the keeper while one driver goes on.
pub(super) fn keeper(round: &mut Round<'_>) -> Result<(), Broken> {
    let step_ms = step_ms(round);
    let mut scratch = Scratch::new(round, step_ms)?;
    kill_keepers(round, &scratch).map_err(|broken| scratch.report(&broken))
}

/// The keepers of a round.
pub(super) fn keepers(scratch: &Scratch) -> Vec<Process> {
    scratch.processes().into_iter().filter(|p| p.kind == Kind::Keeper).collect()
}

fn kill_keepers(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let mut driver = scratch.start(&Scratch::run_words())?;
    let kills = 1 + round.rng.below(KEEPER_KILLS_MAX);
    let mut ended = None;
    for _ in 0..kills {
        // On a busy machine it takes a while until there is one to kill.
        Scratch::until(|| !keepers(scratch).is_empty() || driver.is_over().unwrap_or(true));
        let moment = round.rng.millis_below(KILL_WITHIN_MS);
        ended = driver.wait_for(moment)?;
        if ended.is_some() {
            break;
        }
        let running = record::running(scratch) > 0;
        let keepers = keepers(scratch);
        processes::end(&keepers);
        round.tally.kills += u64::from(!keepers.is_empty());
        round.tally.hits += u64::from(!keepers.is_empty() && running);
    }
    let ended = match ended {
        Some(ended) => ended,
        None => driver.wait()?,
    };
    completed(&ended)?;
    record::check(scratch, Lines::OnceForSuccess)?;
    scratch.clean()
}
