//! What the events of a run tell beyond its state: when phases ended, what they said, what was taken
//! over from another tool.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::event::{Class, Next, Outcome, StepFinished};
use piton_core::time::Millis;
use piton_core::{Event, StepPath, Timestamp};

/// Most words of key results: the pattern's own limit.
const WORDS_MAX: usize = 50;

/// How a step ended last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ended {
    /// When; `None` if another tool did not say.
    pub(super) at: Option<Timestamp>,
    /// What it said.
    pub(super) words: String,
    /// The files that it changed.
    pub(super) changed: Vec<String>,
}

/// Why a phase failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    /// When.
    pub(super) at: Timestamp,
    /// The error and the last line of output.
    pub(super) error: String,
    /// Whether a test failed.
    pub(super) is_test: bool,
    /// How long the phase had taken.
    pub(super) spent: Millis,
}

/// The story of a run so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    ended: BTreeMap<StepPath, Ended>,
    /// The phases that failed and have not succeeded since.
    failed: BTreeMap<String, Failure>,
    /// How long the attempts of each phase took.
    spent: BTreeMap<String, Millis>,
    /// The phases of which another tool did something.
    foreign: BTreeSet<String>,
    /// The phases in which something was started.
    begun: BTreeSet<String>,
}

impl Story {
    /// Takes an event that happened at a time.
    pub(super) fn take(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::StepStarted(e) => {
                self.begun.insert(e.step.phase.clone());
                self.foreign.remove(&e.step.phase);
            }
            Event::StepFinished(e) => self.finished(at, e),
            Event::StepProven(e) => self.end(&e.step, Ended { at: Some(at), ..Ended::default() }),
            Event::StepSkipped(e) => self.end(&e.step, Ended { at: Some(at), ..Ended::default() }),
            Event::StepReset(e) => drop(self.failed.remove(&e.step.phase)),
            Event::Rewound(_) => self.failed.clear(),
            Event::StepImported(e) if e.is_done => {
                self.foreign.insert(e.step.phase.clone());
                self.end(&e.step, Ended { at: e.at, ..Ended::default() });
            }
            _ => {}
        }
    }

    fn finished(&mut self, at: Timestamp, event: &StepFinished) {
        let phase = &event.step.phase;
        let spent = self.spent.entry(phase.clone()).or_default();
        spent.0 = spent.0.saturating_add(event.duration_ms.0);
        match &event.outcome {
            Outcome::Succeeded => {
                let words = shortened(&event.facts.notes.join(" "));
                let changed = event.changed.clone();
                self.end(&event.step, Ended { at: Some(at), words, changed });
            }
            Outcome::Failed { class, error, lines, next: Next::Fail | Next::Escalate, .. } => {
                let last = lines.last().map(|line| format!(": {}", line.trim()));
                let error = format!("{error}{}", last.unwrap_or_default());
                let (spent, is_test) = (*spent, *class == Class::Test);
                self.failed.insert(phase.clone(), Failure { at, error, is_test, spent });
            }
            Outcome::Failed { .. } | Outcome::Interrupted { .. } => {}
        }
    }

    fn end(&mut self, step: &StepPath, ended: Ended) {
        self.failed.remove(&step.phase);
        self.ended.insert(step.clone(), ended);
    }

    /// Why a phase failed that has not succeeded since.
    pub(super) fn failure(&self, phase: &str) -> Option<&Failure> {
        self.failed.get(phase)
    }

    /// How long the attempts of a phase took.
    pub(super) fn spent(&self, phase: &str) -> Millis {
        self.spent.get(phase).copied().unwrap_or_default()
    }

    /// How a step ended last.
    pub(super) fn of(&self, step: &StepPath) -> Option<&Ended> {
        self.ended.get(step)
    }

    /// Whether only another tool did something of a phase.
    pub(super) fn is_foreign(&self, phase: &str) -> bool {
        self.foreign.contains(phase)
    }

    /// Whether this run started something of a phase.
    pub(super) fn has_begun(&self, phase: &str) -> bool {
        self.begun.contains(phase)
    }
}

/// The first words of a text, on one line.
fn shortened(text: &str) -> String {
    text.split_whitespace().take(WORDS_MAX).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_results_are_fifty_words() {
        let long = "word ".repeat(80);
        assert_eq!(shortened(&long).split(' ').count(), WORDS_MAX);
        assert_eq!(shortened(" two\n words "), "two words");
    }
}
