//! What the ledger says of a workflow, against what its agents noted, its checkpoint and its plan.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use piton_core::event::{Event, Outcome, ReplanOutcome};
use serde_json::Value;

use super::super::scratch::Scratch;
use super::super::{Broken, record};
use super::project::{CHECKPOINT, PHASES, PLAN, plan};

/// The fields that a checkpoint has at every moment.
const FIELDS: [&str; 9] = [
    "workflow_id",
    "plan_path",
    "current_phase",
    "completed_phases",
    "phase_metadata",
    "replan_history",
    "replan_count",
    "artifact_paths",
    "context_metadata",
];

/// Tells what a checkpoint lacks.
pub(in super::super) fn sound(text: &str) -> Result<(), Broken> {
    let found: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let missing: Vec<&str> =
        FIELDS.into_iter().filter(|field| found.get(field).is_none()).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("it lacks {missing:?}")) }
}

/// Tells what a plan lacks: every phase has its heading and one box, and nothing is cut off.
pub(in super::super) fn is_whole(text: &str) -> Result<(), Broken> {
    let headings = text.lines().filter(|line| line.starts_with("## Phase ")).count();
    let boxes = text.lines().filter(|l| l.starts_with("- [ ] ") || l.starts_with("- [x] ")).count();
    let is_ended = text.ends_with("## Success Criteria\n\n- [ ] all of it\n");
    if headings == PHASES.len() && boxes == PHASES.len() + 1 && is_ended {
        return Ok(());
    }
    Err(format!("{headings} headings, {boxes} boxes"))
}

/// Whether a replan has begun and not ended.
pub(super) fn is_replanning(events: &[(u64, Event)]) -> bool {
    let mut under_way = false;
    for (_, event) in events {
        match event {
            Event::ReplanBegun(_) => under_way = true,
            Event::ReplanEnded(e) => {
                under_way = matches!(e.outcome, ReplanOutcome::Interrupted { .. });
            }
            _ => {}
        }
    }
    under_way
}

/// Checks a complete run.
pub(super) fn complete(scratch: &Scratch, kills_all: bool) -> Result<(), Broken> {
    let events = record::events(scratch);
    for (phase, _) in PHASES {
        succeeds_once(phase, &events)?;
    }
    if !kills_all {
        let log = fs::read_to_string(scratch.outside().join("log")).unwrap_or_default();
        for (phase, asks) in PHASES {
            let count = |what: &str| {
                let is =
                    |line: &&str| line.starts_with(&format!("{phase} ")) && line.ends_with(what);
                log.lines().filter(is).count()
            };
            if count(" OK") != 1 || count(" ASKED") != usize::from(asks) {
                return Err(format!("phase {phase} did not run once:\n{log}"));
            }
        }
    }
    replans(scratch, &events)?;
    let text = read(scratch, PLAN)?;
    if text == plan(true) {
        Ok(())
    } else {
        Err(format!("the plan is not as it should be:\n{text}"))
    }
}

fn succeeds_once(phase: &str, events: &[(u64, Event)]) -> Result<(), Broken> {
    let mut successes = 0;
    for (_, event) in events {
        match event {
            Event::StepStarted(e) if e.step.phase == phase && successes > 0 => {
                return Err(format!("phase {phase} was started after its success"));
            }
            Event::StepFinished(e) if e.step.phase == phase => {
                successes += u32::from(e.outcome == Outcome::Succeeded);
            }
            _ => {}
        }
    }
    if successes == 1 { Ok(()) } else { Err(format!("phase {phase} has {successes} successes")) }
}

/// Compares the replans that took effect with what the checkpoint says.
fn replans(scratch: &Scratch, events: &[(u64, Event)]) -> Result<(), Broken> {
    // Begun again after an interruption it has the same number.
    let mut under_way: Option<(String, u32)> = None;
    let mut effective: BTreeSet<(String, u32)> = BTreeSet::new();
    for (_, event) in events {
        match event {
            Event::ReplanBegun(e) => under_way = Some((e.phase.clone(), e.number)),
            Event::ReplanEnded(e) if matches!(e.outcome, ReplanOutcome::Replanned(_)) => {
                effective.extend(under_way.take());
            }
            _ => {}
        }
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (phase, _) in &effective {
        *counts.entry(phase.clone()).or_default() += 1;
    }
    let wanted: BTreeMap<String, u64> =
        PHASES.into_iter().filter(|(_, asks)| *asks).map(|(id, _)| (id.to_owned(), 1)).collect();
    if counts != wanted {
        return Err(format!("replans are {counts:?}"));
    }
    let found: Value =
        serde_json::from_str(&read(scratch, CHECKPOINT)?).map_err(|e| e.to_string())?;
    let listed = found["replan_history"].as_array().map_or(0, Vec::len);
    if found["replan_count"] != serde_json::json!(counts) || listed != effective.len() {
        return Err(format!("the checkpoint has other replans than {counts:?}: {found:#}"));
    }
    let numbers: Vec<u64> = PHASES.iter().filter_map(|(id, _)| id.parse().ok()).collect();
    let is_done = found["completed_phases"] == serde_json::json!(numbers);
    let is_over = found["status"] == "completed" && found["current_phase"] == 6;
    if is_done && is_over {
        Ok(())
    } else {
        Err(format!("the checkpoint is not complete: {found:#}"))
    }
}

fn read(scratch: &Scratch, path: &str) -> Result<String, Broken> {
    let file = scratch.base().join("repo").join(path);
    fs::read_to_string(&file).map_err(|e| format!("{path}: {e}"))
}
