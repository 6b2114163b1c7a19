//! Ctrl-C: once, and what runs may finish; twice, and it is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;
use signal_hook::consts::SIGINT;

use super::kills::next_words;
use super::processes;
use super::record::{self, Lines};
use super::scratch::Scratch;
use super::{Broken, Round};

/// A signal comes within so many milliseconds of the start.
const SIGNAL_WITHIN_MS: u64 = 150;
/// The second signal comes within so many milliseconds of the first.
const SECOND_WITHIN_MS: u64 = 20;
/// After so many signals a round is left to finish: each must leave the run further on.
const SIGNALS_MAX: u64 = 60;
/// What a shell shows after Ctrl-C.
const INTERRUPTED: i32 = 130;

/// One round that interrupts the driver until the run is complete.
pub(super) fn ctrl_c(round: &mut Round<'_>) -> Result<(), Broken> {
    let step_ms = (5 + round.rng.below(25), 10 + round.rng.below(25));
    hear_ctrl_c()?;
    let mut scratch = Scratch::new(round, step_ms)?;
    interrupt(round, &scratch).map_err(|broken| scratch.report(&broken))
}

/// Lets drivers have Ctrl-C though this process was told to ignore it, as in the background of a
/// script: they would ignore it too. A handler is not inherited, and this one does what the system does.
fn hear_ctrl_c() -> Result<(), Broken> {
    static HEARD: AtomicBool = AtomicBool::new(false);
    if HEARD.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_default(SIGINT, always)
        .map(|_| ())
        .map_err(|error| format!("Ctrl-C can't be caught: {error}"))
}

fn interrupt(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let impatient = round.rng.one_in(3);
    let mut twice = false;
    loop {
        let mut driver = scratch.start(&next_words(scratch))?;
        let patience = if round.rng.one_in(4) { 4 } else { 1 };
        let moment = round.moment(SIGNAL_WITHIN_MS * patience);
        if let Some(ended) = driver.wait_for(moment)? {
            if ended.code() != 0 {
                return Err(format!("a driver ended with {}", ended.word()));
            }
            break;
        }
        round.tally.hits += u64::from(record::running(scratch) > 0);
        processes::signal(driver.pid(), Signal::INT);
        round.tally.kills += 1;
        if impatient && round.rng.one_in(2) {
            thread::sleep(round.rng.millis_below(SECOND_WITHIN_MS));
            processes::signal(driver.pid(), Signal::INT);
            twice = true;
        }
        let ended = driver.wait()?;
        let complete = record::status(scratch).as_deref() == Some("complete");
        if ended.code() != INTERRUPTED && !(complete && ended.code() == 0) {
            return Err(format!("an interrupted driver ended with {}", ended.word()));
        }
        scratch.nothing_lives()?;
        if round.tally.kills > SIGNALS_MAX {
            return Err(format!("the run is not complete after {SIGNALS_MAX} signals"));
        }
    }
    record::check(scratch, if twice { Lines::OnceForSuccess } else { Lines::ExactlyOnce })?;
    scratch.clean()
}
