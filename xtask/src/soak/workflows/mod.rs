//! SIGKILL while a workflow runs whose phases are planned again twice.
//!
//! Two phases ask for another plan before they can be done. However often driver, keeper, agents and
//! replans are killed, no phase starts again after its success, each replan counts once, the
//! checkpoint is valid at every moment, and the plan is what people and Piton made of it.

mod check;
mod project;

use super::kills::kill_pass;
use super::reader::{Content, Reader};
use super::scratch::{RUN, Scratch, Started};
use super::{Broken, Round, record};

pub(super) use check::{is_whole, sound};

/// What must have happened, and how often in full.
pub(super) const AIMS: (&[&str], u64) = (&[DRIVER, EVERYTHING, REPLAN], 20);
/// Kills of the driver alone.
const DRIVER: &str = "driver alone";
/// Kills of driver and keeper, mostly with the agent.
const EVERYTHING: &str = "everything";
/// Kills while a phase was being planned again.
const REPLAN: &str = "a replan";

/// A driver is killed within so many milliseconds of its start: it needs a third of it to get to
/// work, and the rest for a few phases.
const KILL_WITHIN_MS: u64 = 400;
/// After so many kills a round is left to finish: each kill must leave the run further on, so one
/// that needs more is stuck.
const KILLS_MAX: u64 = 60;
/// More drivers than a round has kills.
const DRIVERS_MAX: u64 = 80;

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    let story = project::Story::of(round);
    let mut scratch = Scratch::with_files(round, false, project::Story::files)?;
    story.prepare(scratch.outside())?;
    let at = |path: &str| scratch.base().join("repo").join(path);
    let readers = [
        Reader::start(&at(project::CHECKPOINT), Content::Checkpoint)?,
        Reader::start(&at(project::PLAN), Content::PlanMarkdown)?,
    ];
    let kills_all = round.rng.one_in(2);
    let acted = until_complete(round, &scratch, kills_all);
    let mut checked = acted;
    for reader in readers {
        let read = reader.finish().map(|reads| round.tally.reads += reads);
        checked = checked.and(read);
    }
    let checked = checked.and_then(|()| {
        check::complete(&scratch, kills_all)?;
        scratch.clean()
    });
    checked.map_err(|broken| scratch.report(&broken))
}

fn until_complete(round: &mut Round<'_>, scratch: &Scratch, kills_all: bool) -> Result<(), Broken> {
    for _ in 0..DRIVERS_MAX {
        let mut driver = scratch.start(&words(round, scratch))?;
        // Undisturbed once in a while, as a phase that is always cut short never ends.
        let is_spared = round.rng.one_in(5) || round.tally.kills >= KILLS_MAX;
        let moment = round.moment(KILL_WITHIN_MS);
        let ended = if is_spared { None } else { driver.wait_for(moment)? };
        let ended = match ended {
            Some(ended) => ended,
            None if is_spared => driver.wait()?,
            None => {
                kills(round, scratch, &mut driver, kills_all)?;
                continue;
            }
        };
        match ended.code() {
            0 => return Ok(()),
            _ => return Err(format!("a driver ended with {}", ended.word())),
        }
    }
    Err(format!("the run is not complete after {DRIVERS_MAX} drivers"))
}

fn kills(
    round: &mut Round<'_>,
    scratch: &Scratch,
    driver: &mut Started,
    kills_all: bool,
) -> Result<(), Broken> {
    if kills_all && round.rng.one_in(2) {
        let spare_agents = round.rng.one_in(3);
        kill_pass(round, scratch, driver, spare_agents)?;
        round.tally.met(&[EVERYTHING]);
    } else {
        if !driver.kill()?.killed() {
            // It had just ended by itself; the next driver says how.
            return Ok(());
        }
        round.tally.met(&[DRIVER]);
    }
    round.tally.kills += 1;
    round.tally.hits += u64::from(record::running(scratch) > 0);
    if check::is_replanning(&record::events(scratch)) {
        round.tally.met(&[REPLAN]);
    }
    Ok(())
}

/// The next command of a round.
fn words(round: &mut Round<'_>, scratch: &Scratch) -> Vec<&'static str> {
    match record::status(scratch).as_deref() {
        None => vec!["run", project::PLAN, "--run-id", RUN],
        Some("complete") => vec!["resume", RUN],
        Some(_) if round.rng.one_in(2) => vec!["run", project::PLAN],
        Some(_) => vec!["resume", RUN],
    }
}
