//! What the events of a run tell beside its state: when steps started and finished, what people did
//! beside gates, and what steps noted.

use std::collections::{HashMap, VecDeque};

use piton_core::event::{Event, RewindKind};
use piton_core::{StepPath, Timestamp};

use super::{Fact, Section};

/// Most decisions and notes that are kept, the newest: no brief has room for more.
const KEPT_MAX: usize = 200;

/// When something happened: the number of its event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub event: u64,
    pub at: Timestamp,
}

/// What the events of a run tell beside its state.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The last start of each step.
    started: HashMap<StepPath, When>,
    /// The last end of each step.
    ended: HashMap<StepPath, When>,
    /// Decisions and notes, the oldest first.
    said: VecDeque<Fact>,
}

impl Course {
    /// Takes an event of the run, in order.
    pub fn take(&mut self, seq: u64, at: Timestamp, event: &Event) {
        let when = When { event: seq, at };
        match event {
            Event::StepStarted(e) => {
                self.started.insert(e.step.clone(), when);
            }
            Event::StepFinished(e) => {
                self.ended.insert(e.step.clone(), when);
                for note in &e.facts.notes {
                    self.say(when, format!("{} noted: {note}", e.step));
                }
            }
            Event::StepProven(e) => {
                self.ended.insert(e.step.clone(), when);
            }
            _ => {
                if let Some(words) = decided(event) {
                    self.say(when, words);
                }
            }
        }
    }

    pub(super) fn started(&self, step: &StepPath) -> Option<When> {
        self.started.get(step).copied()
    }

    pub(super) fn ended(&self, step: &StepPath) -> Option<When> {
        self.ended.get(step).copied()
    }

    /// Decisions and notes, the oldest first.
    pub(super) fn said(&self) -> impl Iterator<Item = &Fact> {
        self.said.iter()
    }

    fn say(&mut self, when: When, words: String) {
        if self.said.len() == KEPT_MAX {
            self.said.pop_front();
        }
        self.said.push_back(
            Fact::new(Section::Decisions, words, format!("event {}", when.event)).at(when.at),
        );
    }
}

/// What somebody decided that the state does not keep with its time, in words.
fn decided(event: &Event) -> Option<String> {
    Some(match event {
        Event::ChangesWanted(e) => {
            format!("{} wants changes at {}: {}", e.review.by, e.gate, e.review.lines().join(" "))
        }
        Event::GateReopened(e) => {
            format!("{} took back the approval of {}: {}", e.by, e.gate, e.why)
        }
        Event::StepRetried(e) => format!("{} gave {} new attempts", e.by, e.step),
        Event::StepSkipped(e) => format!("{} skipped {}", e.by, e.step),
        Event::ReplanWanted(e) => format!("{} wants {} planned again: {}", e.by, e.phase, e.reason),
        Event::PlanAccepted(e) if !e.by.is_empty() => format!("{} accepted a changed plan", e.by),
        Event::SpecAccepted(e) => format!("{} accepted a changed spec", e.by),
        Event::OutputsAccepted(e) => format!("{} accepted changed outputs of {}", e.by, e.step),
        Event::RewindIntended(e) => {
            let what = match e.kind {
                RewindKind::Rollback => "rolled back to",
                RewindKind::Restore => "restored",
                RewindKind::Undo => "undid",
            };
            format!("{} {what} {}", e.by, e.to)
        }
        Event::RunAborted(e) => format!("{} ended the run: {}", e.by, e.message),
        _ => return None,
    })
}
