//! What the ledger says of agents, against what they noted themselves.

use std::collections::BTreeMap;
use std::fs;

use piton_core::agent::Level;
use piton_core::event::{Event, Outcome};
use serde_json::Value;

use super::super::scratch::{RUN, Scratch};
use super::super::{Broken, record};
use super::project::{HANDOFFS, Story};

/// A line that an agent noted.
#[derive(Debug)]
struct Note {
    step: String,
    attempt: u32,
    what: String,
    more: String,
}

impl Note {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(str::to_owned);
        let (step, attempt) = (words.next()?, words.next()?.parse().ok()?);
        Some(Self { step, attempt, what: words.next()?, more: words.next().unwrap_or_default() })
    }

    /// Whether a process began to work with it.
    fn is_beginning(&self) -> bool {
        ["BEGUN", "BRIEFED"].contains(&self.what.as_str())
    }
}

/// Hand-offs and parked attempts of the run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) handoffs: u64,
    pub(super) limits: u64,
}

/// Checks a complete run; tells what happened in it.
pub(super) fn complete(
    scratch: &Scratch,
    stories: &[Story],
    is_gentle: bool,
) -> Result<Seen, Broken> {
    let account = scratch.outside().join("agents/account");
    let text = fs::read_to_string(account).map_err(|e| e.to_string())?;
    let notes: Option<Vec<Note>> = text.lines().map(Note::read).collect();
    let notes = notes.ok_or_else(|| format!("the account has a line cut short:\n{text}"))?;
    let events = record::events(scratch);
    let all = || -> Result<(), Broken> {
        for story in stories {
            succeeds_once(story, &events, &notes)?;
            one_at_a_time(story, &notes)?;
            if is_gentle {
                runs_as_told(story, &notes)?;
            }
        }
        handed_off(&events, &notes)?;
        counted_once(scratch, &events, &notes)
    };
    all().map_err(|broken| format!("{broken}\n{text}"))?;
    let count =
        |is: fn(&Event) -> bool| events.iter().filter(|(_, event)| is(event)).count() as u64;
    Ok(Seen {
        handoffs: count(|event| matches!(event, Event::AgentHandedOff(_))),
        limits: count(|event| matches!(event, Event::AgentLimited(_))),
    })
}

/// A step has one success, and no agent works on it afterwards.
fn succeeds_once(story: &Story, events: &[(u64, Event)], notes: &[Note]) -> Result<(), Broken> {
    let step = story.step;
    let mut success = None;
    for (_, event) in events {
        match event {
            Event::StepStarted(e) if e.step.step == step && success.is_some() => {
                return Err(format!("{step} was started after its success"));
            }
            Event::StepFinished(e) if e.step.step == step && e.outcome == Outcome::Succeeded => {
                success = Some(e.attempt);
            }
            _ => {}
        }
    }
    let success = success.ok_or_else(|| format!("{step} has no success"))?;
    let of_step = || notes.iter().filter(|note| note.step == step);
    if of_step().any(|note| note.attempt > success) {
        return Err(format!("an agent worked on {step} after attempt {success} had succeeded"));
    }
    let last = of_step().rfind(|note| note.what == "DONE");
    match last {
        Some(last) if last.more == "good" => Ok(()),
        _ => Err(format!("{step} succeeded, and its agent did not do the work: {last:?}")),
    }
}

/// No attempt has two processes, no session two at once, and no session is begun twice.
fn one_at_a_time(story: &Story, notes: &[Note]) -> Result<(), Broken> {
    let mut begun = BTreeMap::<u32, u32>::new();
    for note in notes.iter().filter(|note| note.step == story.step) {
        *begun.entry(note.attempt).or_default() += u32::from(note.is_beginning());
        if ["DOUBLE", "REUSED"].contains(&note.what.as_str()) {
            return Err(format!("a session was used twice: {note:?}"));
        }
    }
    if begun.values().all(|count| *count <= 1) {
        return Ok(());
    }
    Err(format!("an attempt of {} had two processes: {begun:?}", story.step))
}

/// Where agents are never killed, as many work as the story needs.
fn runs_as_told(story: &Story, notes: &[Note]) -> Result<(), Broken> {
    let of_step = notes.iter().filter(|note| note.step == story.step);
    let begun = of_step.filter(|note| note.is_beginning()).count() as u64;
    if begun == story.processes() {
        return Ok(());
    }
    Err(format!("{} had {begun} agents, not {}: {story:?}", story.step, story.processes()))
}

/// The agent after a hand-off has a brief, and there are not too many of them.
fn handed_off(events: &[(u64, Event)], notes: &[Note]) -> Result<(), Broken> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for (_, event) in events {
        let Event::AgentHandedOff(handed) = event else { continue };
        let step = handed.step.step.as_str();
        let of_step = || notes.iter().filter(|note| note.step == step);
        // Sessions that were gone are given up in the same way, and are not limited.
        let is_full = of_step().any(|n| n.attempt == handed.attempt && n.what == "ASKED");
        *counts.entry(step).or_default() += u64::from(is_full);
        let mut next = of_step().filter(|note| note.attempt > handed.attempt);
        let next = next.find(|note| note.is_beginning());
        if next.is_none_or(|next| next.what != "BRIEFED") {
            let number = handed.attempt;
            return Err(format!("{step} was handed off by attempt {number} to {next:?}"));
        }
    }
    if counts.values().all(|count| *count <= HANDOFFS) {
        return Ok(());
    }
    Err(format!("more hand-offs than {HANDOFFS}: {counts:?}"))
}

/// Each request counts once, and the run used what its attempts did.
fn counted_once(scratch: &Scratch, events: &[(u64, Event)], notes: &[Note]) -> Result<(), Broken> {
    let counted = counts(events);
    counts_fit(&counted, notes)?;
    let sum: u64 = counted.values().sum();
    let output = scratch.piton(&["status", RUN, "--json"]).output().map_err(|e| e.to_string())?;
    let status: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    if status["used"]["tokens"] == sum {
        return Ok(());
    }
    Err(format!("attempts used {sum} tokens, status says {}", status["used"]["tokens"]))
}

/// The tokens of each attempt, as the ledger has them.
fn counts(events: &[(u64, Event)]) -> BTreeMap<(String, u32), u64> {
    let mut counted = BTreeMap::<(String, u32), u64>::new();
    for (_, event) in events {
        let (step, attempt, tokens) = match event {
            Event::AgentSaid(e) => (&e.step, e.attempt, e.tokens.total()),
            Event::StepFinished(e) => (&e.step, e.attempt, e.facts.tokens),
            _ => continue,
        };
        let count = counted.entry((step.step.clone(), attempt)).or_default();
        *count = tokens.max(*count);
    }
    counted
}

/// Compares tokens with those that agents noted. A request that was being said when its agent was
/// killed may be missing.
fn counts_fit(counted: &BTreeMap<(String, u32), u64>, notes: &[Note]) -> Result<(), Broken> {
    let mut noted = BTreeMap::<(String, u32), (u64, u64)>::new();
    for note in notes {
        let (said, asked) = noted.entry((note.step.clone(), note.attempt)).or_default();
        let tokens: u64 = note.more.parse().unwrap_or_default();
        match note.what.as_str() {
            "ASKED" => *asked += tokens,
            "SAID" => *said += tokens,
            _ => {}
        }
    }
    for (of, (said, asked)) in &noted {
        let found = counted.get(of).copied().unwrap_or_default();
        if !(*said..=*asked).contains(&found) {
            return Err(format!("{of:?} used {said} to {asked} tokens, {found} are on record"));
        }
    }
    match counted.iter().find(|(of, count)| **count > 0 && !noted.contains_key(*of)) {
        Some(of) => Err(format!("tokens of no agent are on record: {of:?}")),
        None => Ok(()),
    }
}

/// Whether an agent is being stopped because its window is full.
pub(super) fn is_handing_off(events: &[(u64, Event)]) -> bool {
    let mut full = Vec::new();
    for (_, event) in events {
        match event {
            Event::ContextFilled(e) if e.level >= Level::Critical => {
                full.push((e.step.clone(), e.attempt));
            }
            Event::StepFinished(e) => full.retain(|of| *of != (e.step.clone(), e.attempt)),
            _ => {}
        }
    }
    !full.is_empty()
}

/// Whether a step waits for the end of a limit.
pub(super) fn is_parked(events: &[(u64, Event)]) -> bool {
    let mut parked = Vec::new();
    for (_, event) in events {
        match event {
            Event::AgentLimited(e) => parked.push(e.step.clone()),
            Event::StepStarted(e) => parked.retain(|step| *step != e.step),
            _ => {}
        }
    }
    !parked.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost, the loop would pass whatever is counted.
    #[test]
    fn a_token_that_is_lost_or_counted_twice_is_seen() {
        let text = ["a1 1 BEGUN", "a1 1 ASKED 100", "a1 1 SAID 100", "a1 1 ASKED 30"];
        let notes: Vec<Note> = text.into_iter().filter_map(Note::read).collect();
        let fits = |of: (&str, u32), tokens| {
            let counted = BTreeMap::from([((of.0.to_owned(), of.1), tokens)]);
            counts_fit(&counted, &notes).is_ok()
        };
        assert!(fits(("a1", 1), 100));
        assert!(fits(("a1", 1), 130));
        assert!(!fits(("a1", 1), 0));
        assert!(!fits(("a1", 1), 200));
        assert!(!fits(("a1", 2), 100));
    }
}
