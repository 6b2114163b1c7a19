//! What the ledger says happened, against the lines that steps wrote.

use std::collections::BTreeMap;

use piton_core::event::{Event, Outcome};
use piton_engine::Store;
use piton_formats::codec;
use piton_ledger::Open;
use serde_json::Value;

use super::Broken;
use super::scratch::{LANES, RUN, STEPS, Scratch};

/// How an attempt ended, as far as the ledger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Running,
    Succeeded,
    Interrupted,
    Other,
}

/// Opens the ledger of a round as a reader.
fn open(scratch: &Scratch) -> Result<Store, Broken> {
    let ledger =
        piton_ledger::open(&scratch.state_dir(), Open::ReadOnly).map_err(|e| e.to_string())?;
    Ok(Store::new(ledger))
}

/// All events of the run with their numbers; none while there is no run.
pub(super) fn events(scratch: &Scratch) -> Vec<(u64, Event)> {
    let read = || -> Option<Vec<(u64, Event)>> {
        let mut store = open(scratch).ok()?;
        let row = store.ledger().run(RUN).ok()??;
        let mut all = Vec::new();
        loop {
            let after = all.last().map_or(0, |(seq, _)| *seq);
            let page = store.events(&row, after).ok()?;
            if page.is_empty() {
                return Some(all);
            }
            all.extend(page.into_iter().map(|(seq, _, event)| (seq, event)));
        }
    };
    read().unwrap_or_default()
}

/// The events of all runs.
pub(super) fn events_of_all(scratch: &Scratch) -> Vec<Event> {
    let read = || -> Option<Vec<Event>> {
        let mut store = open(scratch).ok()?;
        let mut all = Vec::new();
        for row in store.runs().ok()? {
            let mut after = 0;
            loop {
                let page = store.events(&row, after).ok()?;
                let Some((last, ..)) = page.last() else { break };
                after = *last;
                all.extend(page.into_iter().map(|(_, _, event)| event));
            }
        }
        Some(all)
    };
    read().unwrap_or_default()
}

/// The status of the run's row; nothing while there is none.
pub(super) fn status(scratch: &Scratch) -> Option<String> {
    let row = open(scratch).ok()?.ledger().run(RUN).ok()??;
    Some(row.status)
}

/// The process that has the lease of the run.
pub(super) fn driver(scratch: &Scratch) -> Option<u32> {
    let row = open(scratch).ok()?.ledger().run(RUN).ok()??;
    row.owner.map(|lease| lease.owner.pid)
}

/// Attempts that have an intent and no outcome.
pub(super) fn running(scratch: &Scratch) -> usize {
    let attempts = attempts(&events(scratch));
    attempts.values().flatten().filter(|(_, how)| **how == Attempt::Running).count()
}

/// Whether a driver that attached after this event has begun to act: strays were ended by then.
pub(super) fn acted_after(scratch: &Scratch, seq: u64) -> bool {
    let events = events(scratch);
    let attached = events
        .iter()
        .find(|(number, event)| *number > seq && matches!(event, Event::DriverAttached(_)));
    let Some((attached, _)) = attached else {
        return false;
    };
    let acts = |event: &Event| matches!(event, Event::StepStarted(_) | Event::StepFinished(_));
    events.iter().any(|(number, event)| number > attached && acts(event))
}

/// Checks that every event that a driver wrote on stdout as JSON is on record as it was said.
pub(super) fn acknowledged(scratch: &Scratch) -> Result<(), Broken> {
    let recorded: BTreeMap<u64, Event> = events(scratch).into_iter().collect();
    for line in scratch.stdout().lines() {
        let said: Value = serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?;
        let Some(seq) = said["seq"].as_u64() else { continue };
        let encoded = recorded.get(&seq).map(codec::encode);
        let is_same = encoded.is_some_and(|event| {
            let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
            let mut fields = body.as_object().into_iter().flatten();
            said["event"] == event.tag && fields.all(|(name, value)| said[name] == *value)
        });
        if !is_same {
            let found = recorded.get(&seq);
            return Err(format!("event {seq} was said and is not on record: {line}\n{found:?}"));
        }
    }
    Ok(())
}

fn attempts(events: &[(u64, Event)]) -> BTreeMap<String, BTreeMap<u32, Attempt>> {
    let mut steps: BTreeMap<String, BTreeMap<u32, Attempt>> = BTreeMap::new();
    for (_, event) in events {
        let (step, attempt, how) = match event {
            Event::StepStarted(e) => (&e.step, e.attempt, Attempt::Running),
            Event::StepFinished(e) => {
                let how = match e.outcome {
                    Outcome::Succeeded => Attempt::Succeeded,
                    Outcome::Interrupted { .. } => Attempt::Interrupted,
                    Outcome::Failed { .. } => Attempt::Other,
                };
                (&e.step, e.attempt, how)
            }
            _ => continue,
        };
        steps.entry(format!("{RUN}/{step}")).or_default().insert(attempt, how);
    }
    steps
}

/// How often a step may have written its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Each step exactly once: nothing that ran was lost.
    ExactlyOnce,
    /// Once for the recorded success and never after it; before it, attempts recorded as
    /// interrupted may have come so far.
    OnceForSuccess,
}

/// Checks a complete run: each step has one recorded success, and its lines fit.
pub(super) fn check(scratch: &Scratch, rule: Lines) -> Result<(), Broken> {
    let status = status(scratch);
    if status.as_deref() != Some("complete") {
        return Err(format!("the run is {status:?}, not complete"));
    }
    let attempts = attempts(&events(scratch));
    let mut lines: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (key, attempt) in scratch.lines() {
        lines.entry(key).or_default().push(attempt);
    }
    for lane in LANES {
        for step in STEPS {
            let key = format!("{RUN}/P/{lane}/{step}");
            let wrote = lines.remove(&key).unwrap_or_default();
            let known = attempts.get(&key).cloned().unwrap_or_default();
            step_fits(&wrote, &known, rule)
                .map_err(|why| format!("{key}: {why}; lines {wrote:?}, recorded {known:?}"))?;
        }
    }
    if lines.is_empty() { Ok(()) } else { Err(format!("lines of no step: {lines:?}")) }
}

fn step_fits(
    wrote: &[u32],
    known: &BTreeMap<u32, Attempt>,
    rule: Lines,
) -> Result<(), &'static str> {
    let succeeded = |how: &Attempt| *how == Attempt::Succeeded;
    let successes: Vec<u32> =
        known.iter().filter(|(_, how)| succeeded(how)).map(|(number, _)| *number).collect();
    let [success] = successes.as_slice() else {
        return Err("it has not exactly one recorded success");
    };
    if wrote.iter().filter(|number| *number == success).count() != 1 {
        return Err("its success did not write exactly one line");
    }
    if wrote.last() != Some(success) {
        return Err("something wrote after its success");
    }
    if rule == Lines::ExactlyOnce && wrote.len() != 1 {
        return Err("it ran more than once");
    }
    let others = wrote.iter().filter(|number| *number != success);
    if others.into_iter().any(|number| known.get(number) != Some(&Attempt::Interrupted)) {
        return Err("a line belongs to an attempt that is not recorded as interrupted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost, the loops would pass whatever the program does.
    #[test]
    fn each_way_to_break_the_promise_is_seen() {
        let fits = |wrote: &[u32], known: &[(u32, Attempt)], rule| {
            step_fits(wrote, &known.iter().copied().collect(), rule).is_ok()
        };
        let (ok, cut) = (Attempt::Succeeded, Attempt::Interrupted);
        assert!(fits(&[1], &[(1, ok)], Lines::ExactlyOnce));
        assert!(fits(&[1, 2], &[(1, cut), (2, ok)], Lines::OnceForSuccess));
        assert!(!fits(&[1, 2], &[(1, cut), (2, ok)], Lines::ExactlyOnce));
        assert!(!fits(&[], &[(1, ok)], Lines::OnceForSuccess));
        assert!(!fits(&[1, 1], &[(1, ok)], Lines::OnceForSuccess));
        assert!(!fits(&[2, 1], &[(1, cut), (2, ok)], Lines::OnceForSuccess));
        assert!(!fits(&[1, 2], &[(1, ok), (2, ok)], Lines::OnceForSuccess));
        assert!(!fits(&[1, 2], &[(1, Attempt::Other), (2, ok)], Lines::OnceForSuccess));
        assert!(!fits(&[1, 2], &[(2, ok)], Lines::OnceForSuccess));
    }
}
