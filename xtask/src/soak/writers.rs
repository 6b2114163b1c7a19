//! Sixty-four processes at once: they record checkpoints in a run that is being driven and read it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread;

use piton_core::Event;

use super::record;
use super::scratch::Scratch;
use super::{Broken, Round};
use crate::shell;

/// Processes at the same time.
const PROCESSES: u64 = 64;
/// Requests of each, in full.
const REQUESTS: u64 = 100;
/// Requests of each, as a sample of a few seconds.
const REQUESTS_SAMPLE: u64 = 3;
/// Every so many requests the run is also looked at.
const LOOK_EVERY: u64 = 4;

/// A step that runs until it is told to stop.
const PLAN: &str = "
title = \"Many writers\"
[[phase]]
id = \"P\"
run = \"while [ ! -e ../stop ]; do sleep 0.05; done\"
";

/// One round: everybody writes and reads, nothing is lost, nobody sees a locked database.
pub(super) fn many(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::with_plan(round, PLAN)?;
    crowd(round, &scratch).map_err(|broken| scratch.report(&broken))?;
    if round.sample {
        // The ledger's own crowd is one of the tests.
        return Ok(());
    }
    let test = ["test", "--package", "piton-ledger", "--test", "processes", "a_crowd_of_processes"];
    let count = REQUESTS.to_string();
    let (passed, said) = shell::capture(shell::cargo(&test).env("PITON_TEST_EVENTS", count));
    if passed && said.contains("1 passed") { Ok(()) } else { Err(said) }
}

fn crowd(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let requests = if round.sample { REQUESTS_SAMPLE } else { REQUESTS };
    let driver = scratch.start(&Scratch::run_words())?;
    if !Scratch::until(|| record::running(scratch) > 0) {
        return Err("the run did not get to work".to_owned());
    }
    let complaints: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..PROCESSES)
            .map(|writer| scope.spawn(move || write(scratch, writer, requests)))
            .collect();
        writers.into_iter().filter_map(|writer| writer.join().ok()?.err()).collect()
    });
    fs::write(scratch.base().join("stop"), "").map_err(|e| e.to_string())?;
    let ended = driver.wait()?;
    round.tally.kills += PROCESSES * requests;
    // All of them meet the one step, which runs until they are through.
    round.tally.hits += PROCESSES * requests;
    if let Some(first) = complaints.first() {
        return Err(format!("{} writers failed, the first: {first}", complaints.len()));
    }
    if ended.code() != 0 {
        return Err(format!("the driver ended with {}", ended.word()));
    }
    let mut recorded: BTreeMap<String, u64> = BTreeMap::new();
    for (_, event) in record::events(scratch) {
        if let Event::CheckpointRecorded(point) = event {
            *recorded.entry(point.message).or_default() += 1;
        }
    }
    for writer in 0..PROCESSES {
        for number in 0..requests {
            let times = recorded.get(&message(writer, number)).copied().unwrap_or(0);
            if times != 1 {
                return Err(format!("`{}` was recorded {times} times", message(writer, number)));
            }
        }
    }
    scratch.clean()
}

fn message(writer: u64, number: u64) -> String {
    format!("writer {writer}, number {number}")
}

fn write(scratch: &Scratch, writer: u64, requests: u64) -> Result<(), Broken> {
    for number in 0..requests {
        call(scratch, &["checkpoint", "-m", &message(writer, number)])?;
        if (writer + number).is_multiple_of(LOOK_EVERY) {
            call(scratch, &["status", "--json"])?;
        }
    }
    Ok(())
}

fn call(scratch: &Scratch, words: &[&str]) -> Result<(), Broken> {
    let output = scratch.piton(words).stdout(Stdio::null()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("piton {} ended with {}: {said}", words.join(" "), output.status))
}
