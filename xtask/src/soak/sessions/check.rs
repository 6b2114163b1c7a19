//! What the files and the ledger say in the end.

use std::collections::BTreeMap;
use std::fs;

use piton_core::event::{Cause, Event};
use piton_formats::yaml::Document;
use serde_json::Value;

use super::super::scratch::Scratch;
use super::super::{Broken, record};
use super::bank::{self, BOARD, DELTA, LATEST, PROGRESS, TASKS, task};

/// Checks that everything is done once.
pub(super) fn all_is_done(scratch: &Scratch) -> Result<(), Broken> {
    let read = |path: &str| {
        let file = scratch.base().join("repo").join(path);
        fs::read_to_string(file).map_err(|e| format!("{path}: {e}"))
    };
    let board = read(BOARD)?;
    bank::is_board(&board).map_err(|why| format!("{why}\n{board}"))?;
    let document = Document::new(BOARD, &board).map_err(|problem| problem.message)?;
    let done = bank::column_of(&document, "done");
    if done.len() != TASKS {
        return Err(format!("not all tasks are done:\n{board}"));
    }
    let mut log = bank::log_of(&read(PROGRESS)?)?;
    log.sort_unstable();
    let (tasks, changes) = recorded(scratch);
    if let Some((change, times)) = changes.iter().find(|(_, times)| **times != 1) {
        return Err(format!("a change was recorded {times} times: {change}"));
    }
    let mut wanted: Vec<String> = changes.keys().filter_map(|change| entry(change)).collect();
    wanted.sort_unstable();
    // One for each time that a session worked on a task: the last of a session is taken up by the next.
    if log != wanted || wanted.len() != TASKS + 3 {
        return Err(format!("the log is {log:?}, and the ledger has {wanted:?}"));
    }
    let once: BTreeMap<String, u32> = (1..=TASKS).map(|number| (task(number), 1)).collect();
    if tasks != once {
        return Err(format!("tasks were finished so often: {tasks:?}"));
    }
    let delta: Value = serde_json::from_str(&read(DELTA)?).map_err(|e| e.to_string())?;
    if delta["changes"].as_array().is_none_or(|changes| !changes.is_empty()) {
        return Err(format!("changes are left: {delta}"));
    }
    let latest: Value = serde_json::from_str(&read(LATEST)?).map_err(|e| e.to_string())?;
    if latest["timestamp"] == "" { Ok(()) } else { Err(format!("a checkpoint is left: {latest}")) }
}

/// The entry of the log that a change adds.
fn entry(change: &str) -> Option<String> {
    let change: Value = serde_json::from_str(change).ok()?;
    (change["operation"] == "add").then(|| change["value"].as_str().map(str::to_owned))?
}

/// How often each task was finished, and each change of the agent recorded, in all runs.
fn recorded(scratch: &Scratch) -> (BTreeMap<String, u32>, BTreeMap<String, u32>) {
    let (mut tasks, mut changes) = (BTreeMap::new(), BTreeMap::new());
    for event in record::events_of_all(scratch) {
        let Event::SessionChanged(e) = event else { continue };
        if let (Cause::TaskFinished, Some(task)) = (e.cause, &e.task) {
            *tasks.entry(task.clone()).or_default() += 1;
        }
        // Its own have the time of the clock.
        for change in e.changes.iter().filter(|change| change.contains("\"session-")) {
            *changes.entry(change.clone()).or_default() += 1;
        }
    }
    (tasks, changes)
}
