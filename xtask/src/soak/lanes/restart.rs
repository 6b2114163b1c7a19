//! Restarts of the machine while lanes work: after a kill or an orderly stop, or by a power cut that
//! loses what was not synced. A person settles conflicts and edits files meanwhile.
//!
//! A restart alone is no reason to touch a file. After it base gets every lane's work once, no commit
//! takes away what another lane merged, and what a person did is there. After a power cut everything
//! that the program had said is still on record, and nothing that had finished runs again.

use std::collections::BTreeSet;

use piton_core::event::{Event, Outcome};
use rustix::process::Signal;

use super::super::activity::{self, Watch};
use super::super::kills::kill_pass;
use super::super::machine::{self, Boot};
use super::super::scratch::{RUN, Scratch, Started};
use super::super::{Broken, Round, processes, record};
use super::person::Person;
use super::project::{self, Setting};
use super::reach;

/// What must have been met, and how often in full.
pub(crate) const AIMS: (&[&str], u64) = (
    &[activity::SNAPSHOT, activity::TEST, activity::REBASE, activity::REF_UPDATE, SETTLED, "edits"],
    3,
);
/// A restart after a person settled a conflict.
const SETTLED: &str = "settled conflict";
/// Restarts of a round under a driver: at least, and by how many more at most.
const RESTARTS: (u64, u64) = (2, 6);
/// So many drivers are enough for every restart, every failure and every conflict of a round.
const DRIVERS_MAX: u64 = 30;
/// What a driver ends with that a person has to help.
const HELP: [i32; 2] = [1, 4];

/// One round with restarts after kills and orderly stops.
pub(crate) fn reboot(round: &mut Round<'_>) -> Result<(), Broken> {
    machine::apart(|| project::round(round, Setting::Person, until_complete))
}

/// One round with power cuts.
pub(crate) fn power(round: &mut Round<'_>) -> Result<(), Broken> {
    machine::apart(|| project::round(round, Setting::PersonAndDisk, until_complete))
}

fn until_complete(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let boot = Boot::new(scratch.outside(), &mut round.rng)?;
    let watch = Watch::new(scratch.outside().join("testing"));
    let mut person = Person::default();
    let restarts = RESTARTS.0 + round.rng.below(RESTARTS.1);
    scratch.sync()?;
    for number in 0..DRIVERS_MAX {
        let mut words = project::words(scratch);
        words.push("--json");
        let mut driver = scratch.start(&words)?;
        if number < restarts && reach(round, &watch, &mut driver)? {
            let met = watch.look(driver.pid());
            round.tally.hits += u64::from(record::running(scratch) > 0);
            fall(round, scratch, &boot, Some(driver))?;
            round.tally.met(&met);
        } else {
            let ended = driver.wait()?;
            if ended.code() == 0 {
                finished_once(scratch)?;
                return person.leaves(scratch);
            }
            if !HELP.contains(&ended.code()) {
                return Err(format!("a driver ended with {}", ended.word()));
            }
            let halfway = round.rng.one_in(4);
            let between = || if halfway { half_settled(round, scratch, &boot) } else { Ok(()) };
            let stdout = scratch.stdout();
            let summary = stdout.lines().last().unwrap_or_default();
            if Person::settles(scratch, summary, between)? && !round.rng.one_in(4) {
                fall(round, scratch, &boot, None)?;
                round.tally.met(&[SETTLED]);
            }
        }
        if round.rng.one_in(2) {
            person.edits(round, scratch)?;
        }
    }
    Err(format!("the run is not complete after {DRIVERS_MAX} drivers"))
}

/// The machine restarts while a person is about to settle a conflict: the program leaves it to them.
fn half_settled(round: &mut Round<'_>, scratch: &Scratch, boot: &Boot) -> Result<(), Broken> {
    scratch.sync()?;
    fall(round, scratch, boot, None)?;
    let ended = scratch.start(&["resume", RUN, "--json"])?.wait()?;
    if HELP.contains(&ended.code()) {
        return Ok(());
    }
    Err(format!("in the middle of a person's rebase, resume ended with {}", ended.word()))
}

/// The machine stops, in one way or another, and starts again.
fn fall(
    round: &mut Round<'_>,
    scratch: &Scratch,
    boot: &Boot,
    driver: Option<Started>,
) -> Result<(), Broken> {
    round.tally.kills += 1;
    let said = scratch.stdout();
    if let Some(disk) = scratch.disk() {
        disk.cut()?;
    } else if round.rng.one_in(3) {
        // An orderly stop: everybody is asked to end, and has a while for it.
        for process in scratch.processes() {
            processes::signal(process.pid, Signal::TERM);
        }
        Scratch::until(|| scratch.processes().is_empty());
    }
    match driver {
        Some(mut driver) => kill_pass(round, scratch, &mut driver, false)?,
        None => scratch.nothing_lives()?,
    }
    boot.next(&mut round.rng)?;
    if let Some(disk) = scratch.disk() {
        disk.restart()?;
        // Without power nobody says anything; the programs did, until they were killed.
        scratch.forget_after(&said)?;
        record::acknowledged(scratch)?;
        // As a machine does when it starts. What says where they are is not synced.
        scratch.clear_temporary()?;
    }
    Ok(())
}

/// Checks that no step of the plan ran again after its success. Tests do, on what is merged.
fn finished_once(scratch: &Scratch) -> Result<(), Broken> {
    let mut finished = BTreeSet::new();
    for (seq, event) in record::events(scratch) {
        match event {
            Event::StepFinished(e) if e.outcome == Outcome::Succeeded && e.step.step != "tests" => {
                finished.insert(e.step.to_string());
            }
            Event::StepStarted(e) if finished.contains(&e.step.to_string()) => {
                return Err(format!("{} ran again after its success: event {seq}", e.step));
            }
            _ => {}
        }
    }
    Ok(())
}
