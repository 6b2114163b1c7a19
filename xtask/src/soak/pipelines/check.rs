//! What the ledger says of a pipeline, against what its agents noted and what its state file says.

use std::collections::BTreeMap;
use std::fs;

use piton_core::event::{Event, Outcome};
use serde_json::Value;

use super::super::scratch::Scratch;
use super::super::{Broken, record};
use super::project::{GATES, RECORD, STAGES, Story};
use super::state_file::{Sections, well_formed};

/// How an attempt ended, as far as the ledger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Running,
    Succeeded,
    Failed,
    Interrupted,
}

/// A stage as the ledger tells of it.
#[derive(Debug, Default)]
struct Stage {
    /// Its attempts.
    attempts: BTreeMap<u32, Attempt>,
    /// The dispatches of another tool.
    imported: u32,
    /// How often its success was recorded.
    successes: u32,
    /// Whether it was started after that.
    is_redone: bool,
}

impl Stage {
    fn of(name: &str, events: &[(u64, Event)]) -> Self {
        let mut stage = Self::default();
        for (_, event) in events {
            match event {
                Event::StepStarted(e) if e.step.phase == name => {
                    stage.is_redone |= stage.successes > 0;
                    stage.attempts.insert(e.attempt, Attempt::Running);
                }
                Event::StepFinished(e) if e.step.phase == name => {
                    let how = match e.outcome {
                        Outcome::Succeeded => Attempt::Succeeded,
                        Outcome::Failed { .. } => Attempt::Failed,
                        Outcome::Interrupted { .. } => Attempt::Interrupted,
                    };
                    stage.successes += u32::from(how == Attempt::Succeeded);
                    stage.attempts.insert(e.attempt, how);
                }
                Event::StepProven(e) if e.step.phase == name => stage.successes += 1,
                Event::StepImported(e) if e.step.phase == name => {
                    stage.imported = e.attempts;
                    stage.successes += u32::from(e.is_done);
                }
                _ => {}
            }
        }
        stage
    }

    fn dispatches(&self) -> usize {
        self.attempts.len() + self.imported as usize
    }

    /// Tells what does not fit between the ledger and what the agent noted, which begins with the
    /// number of its attempt.
    fn misfit(&self, notes: &[(u32, &str)], kills_all: bool) -> Option<&'static str> {
        let count = |attempt: u32, what: &str| {
            notes.iter().filter(|note| **note == (attempt, what)).count()
        };
        if self.successes != 1 {
            return Some("it has not exactly one recorded success");
        }
        if self.is_redone {
            return Some("it was dispatched after its recorded success");
        }
        let is_unknown = |(attempt, _): &(u32, &str)| !self.attempts.contains_key(attempt);
        if notes.iter().any(is_unknown) {
            return Some("an attempt ran that is not recorded");
        }
        for (attempt, how) in &self.attempts {
            let [begun, ok, failed] = ["START", "OK", "FAILED"].map(|what| count(*attempt, what));
            match how {
                Attempt::Running => return Some("an attempt has no end"),
                Attempt::Succeeded if (begun, ok, failed) != (1, 1, 0) => {
                    return Some("its success was not one attempt from beginning to end");
                }
                Attempt::Succeeded if notes.last() != Some(&(*attempt, "OK")) => {
                    return Some("an agent worked on after its success");
                }
                Attempt::Failed if (begun, ok, failed) != (1, 0, 1) => {
                    return Some("a failure was not one attempt from beginning to end");
                }
                // One that was recorded and never begun is also interrupted.
                Attempt::Interrupted if !kills_all && begun > 0 => {
                    return Some("an attempt was interrupted, and only drivers were killed");
                }
                // It may have come to any point, once.
                Attempt::Interrupted if begun > 1 || ok + failed > 1 => {
                    return Some("one attempt ran twice");
                }
                _ => {}
            }
        }
        None
    }
}

/// The gate that waits for a decision.
pub(super) fn open_gate(events: &[(u64, Event)]) -> Option<String> {
    let mut open = None;
    for (_, event) in events {
        match event {
            Event::GateAsked(e) => open = Some(e.gate.0.clone()),
            Event::GateDecided(e) if open.as_ref() == Some(&e.gate.0) => open = None,
            _ => {}
        }
    }
    open
}

/// Checks the state file after a driver that ended by itself.
pub(super) fn at_rest(scratch: &Scratch) -> Result<(), Broken> {
    let file = super::record_file(scratch);
    let text = fs::read_to_string(file).map_err(|e| format!("{RECORD}: {e}"))?;
    well_formed(&text).map_err(|why| format!("{RECORD}: {why}\n{text}"))?;
    let sections = Sections::of(&text);
    let stage = sections.detail("stage").unwrap_or_default();
    let told = sections.detail("retry_count").unwrap_or_default();
    let dispatches = Stage::of(stage, &record::events(scratch)).dispatches();
    if stage != "done" && told != dispatches.saturating_sub(1).to_string() {
        return Err(format!("{stage} has {dispatches} dispatches and retry_count {told}\n{text}"));
    }
    let inspected = scratch.piton(&["inspect", RECORD, "--json"]).output();
    let inspected = inspected.map_err(|e| e.to_string())?;
    let found: Value = serde_json::from_slice(&inspected.stdout).unwrap_or_default();
    let is_valid = found["valid"] == true && found["format"] == "pipeline/state";
    if is_valid && found["data"]["status"] == sections.field("status").unwrap_or_default() {
        return Ok(());
    }
    Err(format!("inspect says {found}\n{text}"))
}

/// Checks a round whose run ended with success.
pub(super) fn complete(scratch: &Scratch, story: &Story, kills_all: bool) -> Result<(), Broken> {
    let status = record::status(scratch);
    if status.as_deref() != Some("complete") {
        return Err(format!("the run is {status:?}, not complete"));
    }
    let events = record::events(scratch);
    stages(scratch, story, kills_all, &events)?;
    gates(&events)?;
    at_rest(scratch)?;
    file(scratch)
}

fn stages(
    scratch: &Scratch,
    story: &Story,
    kills_all: bool,
    events: &[(u64, Event)],
) -> Result<(), Broken> {
    let log = fs::read_to_string(scratch.outside().join("log")).unwrap_or_default();
    let mut notes: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
    for line in log.lines() {
        let [stage, attempt, what] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("the agent noted {line:?}"));
        };
        let attempt = attempt.parse().map_err(|e| format!("the agent noted {line:?}: {e}"))?;
        notes.entry(stage).or_default().push((attempt, what));
    }
    for (name, _) in STAGES {
        let (stage, noted) = (Stage::of(name, events), notes.remove(name).unwrap_or_default());
        let mut misfit = stage.misfit(&noted, kills_all);
        if story.is_done_before(name) && !noted.is_empty() {
            misfit = Some("it ran, and another tool had completed it");
        }
        if let Some(why) = misfit {
            return Err(format!("{name}: {why}; noted {noted:?}, recorded {stage:?}"));
        }
    }
    if notes.is_empty() { Ok(()) } else { Err(format!("notes of no stage: {notes:?}")) }
}

/// Checks that each gate was asked at most once and approved once.
fn gates(events: &[(u64, Event)]) -> Result<(), Broken> {
    for (gate, _) in GATES {
        let asked = |event: &Event| matches!(event, Event::GateAsked(e) if e.gate.0 == gate);
        let decided = |event: &Event| matches!(event, Event::GateDecided(e) if e.gate.0 == gate);
        let count = |is: &dyn Fn(&Event) -> bool| events.iter().filter(|(_, e)| is(e)).count();
        let (asked, decided) = (count(&asked), count(&decided));
        if asked > 1 || decided != 1 {
            return Err(format!("gate {gate} was asked {asked} times and decided {decided} times"));
        }
    }
    Ok(())
}

/// Checks what the file of a complete run says.
fn file(scratch: &Scratch) -> Result<(), Broken> {
    let text = fs::read_to_string(super::record_file(scratch)).map_err(|e| e.to_string())?;
    let sections = Sections::of(&text);
    let completed = sections.completed();
    let mut single = completed.clone();
    single.sort_unstable();
    single.dedup();
    let is_missing = |(stage, _): &&(&str, u64)| completed.iter().all(|(name, _)| name != stage);
    let why = if sections.field("status") != Some("COMPLETE") {
        "it is not COMPLETE"
    } else if STAGES.iter().any(|stage| is_missing(&stage)) {
        "a completed stage has no row"
    } else if single.len() != completed.len() {
        "a completed stage has a row twice"
    } else if sections.ticked() != GATES.map(|(_, text)| text) {
        "an approved box is not ticked"
    } else {
        return Ok(());
    };
    Err(format!("{RECORD}: {why}\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost, the loop would pass whatever the program does.
    #[test]
    fn each_way_to_break_the_promise_is_seen() {
        let fits = |attempts: &[(u32, Attempt)], notes: &[(u32, &str)], kills_all| {
            let attempts: BTreeMap<_, _> = attempts.iter().copied().collect();
            let done = attempts.values().filter(|how| **how == Attempt::Succeeded).count();
            let successes = u32::from(done > 0) * 2 - u32::from(done == 1);
            Stage { attempts, successes, ..Stage::default() }.misfit(notes, kills_all).is_none()
        };
        let (ok, failed, cut) = (Attempt::Succeeded, Attempt::Failed, Attempt::Interrupted);
        let (first, second) = ([(1, "START"), (1, "OK")], [(2, "START"), (2, "OK")]);
        let both = [first, second].concat();
        assert!(fits(&[(1, ok)], &first, false));
        assert!(fits(&[(1, cut), (2, ok)], &both, true));
        assert!(fits(
            &[(1, failed), (2, ok)],
            &[&[(1, "START"), (1, "FAILED")], &second[..]].concat(),
            false
        ));
        assert!(fits(&[(1, cut), (2, ok)], &second, false), "it never began");
        assert!(!fits(&[(1, cut), (2, ok)], &both, false), "only drivers were killed");
        assert!(!fits(&[(1, failed), (2, ok)], &both, true), "a success recorded as failure");
        assert!(!fits(&[(1, ok), (2, ok)], &both, true), "two successes");
        assert!(!fits(&[(1, ok)], &both, true), "an attempt nobody recorded");
        assert!(!fits(&[(1, ok)], &first[..1], true), "a success without an end");
        assert!(!fits(&[(1, ok)], &[first, first].concat(), true), "one attempt twice");
        assert!(!fits(&[(1, cut)], &first, true), "no success");
        let redone = Stage { successes: 1, is_redone: true, ..Stage::default() };
        assert!(redone.misfit(&[], true).is_some());
    }
}
