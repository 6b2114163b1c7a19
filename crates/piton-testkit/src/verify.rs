//! The promises, checked from outside: what was done to the world against what is recorded.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::event::{Class, Event, Next, Outcome, ReplanOutcome};
use piton_core::replan_state::REPLAN_LANE;
use piton_core::state::Progress;
use piton_core::{GateRef, StepPath, Timestamp, replay};
use piton_engine::world::Attempt;

use crate::machine::Effect;
use crate::rig::Rig;

/// What a scenario allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Nothing that finished may run again.
    NothingAgain,
    /// The person or the world asked for something to run again.
    MayRunAgain,
}

/// What the log of effects adds up to.
#[derive(Default)]
struct Done {
    started: BTreeMap<Attempt, usize>,
    completed: BTreeMap<Attempt, i32>,
    killed: BTreeSet<Attempt>,
}

impl Rig {
    /// Every promise that the run so far has broken, in words.
    pub fn violations(&self, care: Care) -> Vec<String> {
        let events = match self.events() {
            Ok(events) => events,
            Err(error) => return vec![format!("the ledger cannot be read: {error}")],
        };
        let mut found = Vec::new();
        self.check_acknowledged(&events, &mut found);
        self.check_effects(&events, &mut found);
        check_gates(&events, &mut found);
        if care == Care::NothingAgain {
            for (seq, _, event) in &events {
                if let Event::StepReset(reset) = event {
                    found.push(format!("{seq}: finished work runs again: {}", reset.step));
                }
            }
        }
        self.check_state(&events, &mut found);
        found
    }

    fn done(&self) -> Done {
        let mut done = Done::default();
        for effect in &self.machine.borrow().log {
            match effect {
                Effect::Started { attempt, .. } => {
                    *done.started.entry(attempt.clone()).or_default() += 1;
                }
                Effect::Completed { attempt, code } => {
                    done.completed.insert(attempt.clone(), *code);
                }
                Effect::Killed { attempt } => {
                    done.killed.insert(attempt.clone());
                }
                Effect::Notified(_) => {}
            }
        }
        done
    }

    /// What was acknowledged is in the ledger.
    fn check_acknowledged(&self, events: &[(u64, Timestamp, Event)], found: &mut Vec<String>) {
        for (seq, event) in self.acknowledged.borrow().iter() {
            if !events.iter().any(|(s, _, e)| s == seq && e == event) {
                found.push(format!("{seq}: acknowledged, but not in the ledger"));
            }
        }
    }

    /// Every start has an intent and happens once; every success has one effect, every effect its
    /// outcome.
    fn check_effects(&self, events: &[(u64, Timestamp, Event)], found: &mut Vec<String>) {
        let done = self.done();
        let mut intents = BTreeSet::new();
        let mut outcomes: BTreeMap<Attempt, Outcome> = BTreeMap::new();
        for (_, _, event) in events {
            match event {
                Event::StepStarted(e) => {
                    intents.insert(Attempt { step: e.step.clone(), number: e.attempt });
                }
                Event::StepFinished(e) => {
                    let attempt = Attempt { step: e.step.clone(), number: e.attempt };
                    outcomes.insert(attempt, e.outcome.clone());
                }
                Event::ReplanBegun(e) => {
                    intents.insert(replan(&e.phase, e.attempt));
                }
                Event::ReplanEnded(e) => {
                    outcomes.insert(replan(&e.phase, e.attempt), as_outcome(&e.outcome));
                }
                _ => {}
            }
        }
        for (attempt, count) in &done.started {
            if *count > 1 {
                found.push(format!("{attempt} was started {count} times"));
            }
            if !intents.contains(attempt) {
                found.push(format!("{attempt} was started without an intent"));
            }
        }
        let lost = self.lost.borrow();
        for (attempt, code) in &done.completed {
            let recorded = match outcomes.get(attempt) {
                Some(Outcome::Succeeded) => *code == 0,
                Some(Outcome::Failed { .. }) => true,
                _ => false,
            };
            if !recorded && !lost.contains(attempt) {
                found.push(format!("{attempt} ended by itself, and that is not what is recorded"));
            }
        }
        for (attempt, outcome) in outcomes {
            let effect = done.completed.get(&attempt);
            match outcome {
                Outcome::Succeeded if effect != Some(&0) => {
                    found.push(format!("{attempt} is recorded as a success without its effect"));
                }
                Outcome::Interrupted { .. }
                    if done.started.contains_key(&attempt)
                        && !done.killed.contains(&attempt)
                        && !lost.contains(&attempt) =>
                {
                    found.push(format!("{attempt} is recorded as interrupted, but nothing fell"));
                }
                _ => {}
            }
        }
    }

    /// A replay gives the loaded state, and recorded artifacts are there.
    fn check_state(&self, events: &[(u64, Timestamp, Event)], found: &mut Vec<String>) {
        let replayed = match replay(events.iter().map(|(_, at, event)| (*at, event))) {
            Ok(state) => state,
            Err(illegal) => {
                found.push(format!("the history cannot be replayed: {illegal}"));
                return;
            }
        };
        match self.load() {
            Ok(loaded) if loaded.state == replayed => {}
            Ok(_) => found.push("the loaded state is not what the events add up to".to_owned()),
            Err(error) => found.push(format!("the run cannot be loaded: {error}")),
        }
        let machine = self.machine.borrow();
        let merged = |path: &StepPath| {
            let work = replayed.lane(&path.lane()).and_then(|l| l.work.as_deref());
            work.is_some_and(|w| w.merged().is_some())
        };
        for (path, step) in replayed.steps().filter(|(_, s)| s.progress == Progress::Done) {
            for artifact in step.artifacts.iter().filter(|_| !merged(&path)) {
                let place = replayed.place_of(&path, &artifact.path);
                let last = replayed.recorded.get(&place).map(|r| r.sha256.clone());
                if machine.hash(&place) != last {
                    found
                        .push(format!("{path} is done, but its artifact {} is not", artifact.path));
                }
            }
        }
    }
}

/// The process of a replan.
fn replan(phase: &str, number: u32) -> Attempt {
    Attempt { step: StepPath::new(phase, REPLAN_LANE, "replan"), number }
}

/// What came of a replan, as far as its process goes.
fn as_outcome(outcome: &ReplanOutcome) -> Outcome {
    match outcome {
        ReplanOutcome::Replanned(_) => Outcome::Succeeded,
        ReplanOutcome::Interrupted { why } => Outcome::Interrupted { why: why.clone() },
        ReplanOutcome::Failed { .. } | ReplanOutcome::Looped { .. } => Outcome::Failed {
            class: Class::Command,
            error: String::new(),
            lines: Vec::new(),
            budget: None,
            signature: String::new(),
            next: Next::Fail,
        },
    }
}

/// A person is asked once about a gate, and their decision stands.
fn check_gates(events: &[(u64, Timestamp, Event)], found: &mut Vec<String>) {
    let mut asked: BTreeMap<&GateRef, usize> = BTreeMap::new();
    for (_, _, event) in events {
        if let Event::GateAsked(e) = event {
            *asked.entry(&e.gate).or_default() += 1;
        }
    }
    for (gate, count) in asked.into_iter().filter(|(_, count)| *count > 1) {
        found.push(format!("a person was asked {count} times about gate {gate}"));
    }
}
