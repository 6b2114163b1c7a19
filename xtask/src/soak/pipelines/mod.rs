//! SIGKILL while a feature goes through its pipeline, and a person who clears its boxes.
//!
//! The person approves by command, or ticks the box in the state file: while nobody drives, while a
//! stage runs, or before Piton came, when the file is one of another tool. However often driver,
//! keeper and agents are killed, each stage succeeds once, each question is asked once, and the state
//! file can be read at every moment.

mod check;
pub(super) mod histories;
mod project;
pub(super) mod state_file;

use std::fs;
use std::path::PathBuf;

use super::kills::kill_pass;
use super::reader::{Content, Reader};
use super::scratch::{RUN, Scratch, Started};
use super::{Broken, Round, record};

/// What must have happened, and how often in full.
pub(super) const AIMS: (&[&str], u64) = (&[DRIVER, EVERYTHING, COMMAND, TICK, LIVE, FOREIGN], 20);
/// Kills of the driver alone.
const DRIVER: &str = "driver alone";
/// Kills of driver and keeper, mostly with the agent.
const EVERYTHING: &str = "everything";
/// Approvals by command.
const COMMAND: &str = "approvals";
/// Boxes that were ticked while nobody drove.
const TICK: &str = "ticks";
/// Boxes that were ticked while a driver was at work.
const LIVE: &str = "ticks beside a driver";
/// Rounds that begin with the state file of another tool.
const FOREIGN: &str = "files of another tool";

/// A driver is killed within so many milliseconds of its start: it needs a third of it to get to
/// work, and the rest for a few stages.
const KILL_WITHIN_MS: u64 = 400;
/// After so many kills a round is left to finish: each kill must leave the run further on, so one
/// that needs more is stuck.
const KILLS_MAX: u64 = 60;
/// More drivers than a round has kills and gates.
const DRIVERS_MAX: u64 = 80;
/// Exit code of a driver that waits for a person.
const WAITS: i32 = 3;

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    let story = project::Story::of(round);
    let mut scratch = Scratch::with_files(round, false, |outside| story.files(outside))?;
    story.prepare(scratch.outside())?;
    if story.is_foreign() {
        round.tally.met(&[FOREIGN]);
    }
    let reader = Reader::start(&record_file(&scratch), Content::PipelineState)?;
    let mut person = Person { kills_all: round.rng.one_in(2), ..Person::default() };
    let acted = person.until_complete(round, &scratch);
    let read = reader.finish().map(|reads| round.tally.reads += reads);
    let checked = acted.and(read).and_then(|()| {
        check::complete(&scratch, &story, person.kills_all)?;
        scratch.clean()
    });
    checked.map_err(|broken| scratch.report(&broken))
}

/// The state file of the feature.
fn record_file(scratch: &Scratch) -> PathBuf {
    scratch.base().join("repo").join(project::RECORD)
}

/// A person at the run of a feature.
#[derive(Default)]
struct Person {
    /// Whether everything is killed at times, not only the driver.
    kills_all: bool,
    /// Whether they wrote the file beside the driver, who may have finished its own write before: the
    /// file is then as they left it until the next driver.
    wrote_beside: bool,
}

impl Person {
    fn until_complete(&mut self, round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
        for _ in 0..DRIVERS_MAX {
            let mut driver = scratch.start(&words(round, scratch))?;
            self.wrote_beside = false;
            if round.rng.one_in(4) && driver.wait_for(round.moment(KILL_WITHIN_MS))?.is_none() {
                self.ticks_beside(round, scratch)?;
            }
            // Undisturbed once in a while, as a stage that is always cut short never ends.
            let is_spared = round.rng.one_in(4) || round.tally.kills >= KILLS_MAX;
            let moment = round.moment(KILL_WITHIN_MS);
            let ended = if is_spared { None } else { driver.wait_for(moment)? };
            if ended.is_none() && !is_spared {
                self.kills(round, scratch, &mut driver)?;
                // The person may come before the question does.
                if round.rng.one_in(6) && ticks(scratch, None)? {
                    round.tally.met(&[TICK]);
                }
                continue;
            }
            let ended = match ended {
                Some(ended) => ended,
                None => driver.wait()?,
            };
            if !self.wrote_beside {
                check::at_rest(scratch)?;
            }
            match ended.code() {
                0 => return Ok(()),
                WAITS => decides(round, scratch)?,
                _ => return Err(format!("a driver ended with {}", ended.word())),
            }
        }
        Err(format!("the run is not complete after {DRIVERS_MAX} drivers"))
    }

    fn kills(
        &self,
        round: &mut Round<'_>,
        scratch: &Scratch,
        driver: &mut Started,
    ) -> Result<(), Broken> {
        if self.kills_all && round.rng.one_in(2) {
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
        Ok(())
    }

    /// Ticks a box beside the driver.
    fn ticks_beside(&mut self, round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
        if ticks(scratch, None)? {
            self.wrote_beside = true;
            round.tally.met(&[LIVE]);
        }
        Ok(())
    }
}

/// Clears the box that the run waits for.
fn decides(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let asked = check::open_gate(&record::events(scratch));
    let Some(gate) = asked else {
        return Err("a driver waits for a person, and no gate is open".to_owned());
    };
    // One that was ticked beside a driver approves nothing, and cannot be ticked again.
    if round.rng.one_in(2) && ticks(scratch, Some(&gate))? {
        round.tally.met(&[TICK]);
        return Ok(());
    }
    let ended = scratch.start(&["approve", RUN, &gate])?.wait()?;
    if ended.code() != 0 {
        return Err(format!("approve {gate} ended with {}", ended.word()));
    }
    round.tally.met(&[COMMAND]);
    Ok(())
}

/// Ticks the box of a gate, or the first that is not ticked, as an editor does that replaces files;
/// false where there is none.
fn ticks(scratch: &Scratch, gate: Option<&str>) -> Result<bool, Broken> {
    let file = record_file(scratch);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let boxes = project::GATES.iter().filter(|(name, _)| gate.is_none_or(|gate| gate == *name));
    let mut boxes = boxes.map(|(_, text)| format!("- [ ] {text}\n"));
    let Some(open) = boxes.find(|open| text.contains(open.as_str())) else {
        return Ok(false);
    };
    let new = text.replacen(&open, &open.replace("[ ]", "[x]"), 1);
    let edited = scratch.outside().join("edited");
    fs::write(&edited, new).and_then(|()| fs::rename(&edited, &file)).map_err(|e| e.to_string())?;
    Ok(true)
}

/// The next command of a round.
fn words(round: &mut Round<'_>, scratch: &Scratch) -> Vec<&'static str> {
    match record::status(scratch).as_deref() {
        None => vec!["run", project::FOLDER, "--run-id", RUN],
        // To run what is complete would be to start again.
        Some("complete") => vec!["resume", RUN],
        Some(_) if round.rng.one_in(2) => vec!["run", project::FOLDER],
        Some(_) => vec!["resume", RUN],
    }
}
