//! What the events of a run tell beyond its state: when stages were dispatched and completed, what
//! they said last, and the notes for people.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::event::{FileHash, Outcome, RewindIntended, Shape, StepFinished};
use piton_core::{Event, GateRef, Timestamp};

use super::files::DONE;
use crate::time;

/// Longest summary of an output: it is one line of a list.
const SUMMARY_CHARS_MAX: usize = 200;

/// A stage that was completed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Done {
    pub(super) stage: String,
    /// When; `None` if another tool did not say.
    pub(super) at: Option<Timestamp>,
    pub(super) artifacts: Vec<FileHash>,
    /// Whether another tool completed it, in whose file it stands already.
    pub(super) is_foreign: bool,
}

/// The story of a run so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) started: Option<Timestamp>,
    /// All completions, in order; a stage that ran again has several.
    pub(super) completed: Vec<Done>,
    /// When each stage was last dispatched.
    pub(super) dispatched: BTreeMap<String, Timestamp>,
    /// The attempts of each stage that came to an end of their own.
    pub(super) cycles: BTreeMap<String, u32>,
    /// What each stage said last.
    pub(super) summaries: BTreeMap<String, String>,
    /// Notes for people, and when they were made.
    pub(super) notes: Vec<(Timestamp, String)>,
    /// The gates whose approval was taken back, and when.
    pub(super) reopened: BTreeMap<GateRef, Timestamp>,
    order: Vec<String>,
    over: BTreeSet<String>,
    /// The stages before which a person is asked.
    asked: BTreeSet<String>,
    drivers: u32,
    rewinding: Option<Box<RewindIntended>>,
}

impl Story {
    /// Takes an event that happened at a time.
    pub(super) fn take(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::RunCreated(e) => {
                self.started = Some(at);
                self.learn(&e.shape);
            }
            Event::PlanAccepted(e) => self.learn(&e.shape),
            Event::DriverAttached(_) => self.attached(at),
            Event::StepStarted(e) => {
                self.dispatched.insert(e.step.phase.clone(), at);
            }
            Event::StepFinished(e) => self.finished(at, e),
            Event::StepProven(e) => {
                self.complete(&e.step.phase, Some(at), e.artifacts.clone(), false);
            }
            Event::StepImported(e) => {
                // It is a session that ended, too.
                self.drivers = self.drivers.max(1);
                if e.is_done {
                    self.complete(&e.step.phase, e.at, e.artifacts.clone(), true);
                }
            }
            Event::StepReset(e) => self.reopen(&e.step.phase),
            Event::ChangesWanted(e) => {
                e.steps.iter().for_each(|step| self.reopen(&step.phase));
                self.asked.remove(&e.gate.0);
                let words = e.review.lines().join(" ");
                self.note(at, format!("Changes wanted by {}: {words}", e.review.by));
            }
            Event::GateAsked(e) => drop(self.asked.insert(e.gate.0.clone())),
            // What an agent asked is no stage of the pipeline.
            Event::GateDecided(e) if e.gate.is_question() => {}
            Event::GateDecided(e) if e.approved => {
                self.asked.remove(&e.gate.0);
                self.reopened.remove(&e.gate);
            }
            Event::GateReopened(e) => {
                self.asked.remove(&e.gate.0);
                self.reopened.insert(e.gate.clone(), at);
                let name = &e.gate;
                self.note(at, format!("Approval of {name} taken back by {}: {}", e.by, e.why));
            }
            Event::GateDecided(e) => {
                let why = if e.message.is_empty() { "no reason given" } else { &e.message };
                self.note(at, format!("Rejected by {}: {why}", e.by));
            }
            Event::SpecAccepted(e) => {
                self.note(at, format!("Changed spec accepted by {}.", e.by));
            }
            Event::OutputsAccepted(e) => {
                let stage = &e.step.phase;
                self.note(at, format!("Changed output of {stage} accepted by {}.", e.by));
            }
            Event::RunAborted(e) if !e.message.is_empty() => {
                self.note(at, format!("Stopped by {}: {}", e.by, e.message));
            }
            Event::RewindIntended(e) => self.rewinding = Some(e.clone()),
            Event::Rewound(e) => {
                let intent = self.rewinding.take().filter(|_| e.reverted.is_empty());
                for lane in intent.iter().flat_map(|intent| &intent.lanes) {
                    self.reopen(&lane.phase);
                }
            }
            _ => {}
        }
    }

    fn learn(&mut self, shape: &Shape) {
        self.order = shape.phases.iter().map(|phase| phase.id.clone()).collect();
    }

    /// The first stage that is not over; while a person is asked before it, the one that they decide
    /// about.
    fn current(&self) -> &str {
        let is_open = |stage: &&String| !self.over.contains(*stage) || self.asked.contains(*stage);
        let open = self.order.iter().position(|stage| is_open(&stage));
        let Some(at) = open else { return DONE };
        let before = usize::from(self.asked.contains(&self.order[at]) && at > 0);
        &self.order[at - before]
    }

    fn attached(&mut self, at: Timestamp) {
        if self.drivers > 0 {
            let text = format!(
                "Resumed from checkpoint at {}. Prior session ended at stage: {}.",
                time::write_seconds(at),
                self.current()
            );
            self.note(at, text);
        }
        self.drivers += 1;
    }

    fn finished(&mut self, at: Timestamp, event: &StepFinished) {
        let stage = &event.step.phase;
        let said = match &event.outcome {
            Outcome::Interrupted { .. } => return,
            Outcome::Succeeded => {
                self.complete(stage, Some(at), event.artifacts.clone(), false);
                event.facts.notes.last().cloned().unwrap_or_else(|| "done".to_owned())
            }
            Outcome::Failed { error, lines, .. } => {
                let last = event.facts.notes.last().or(lines.last());
                last.map_or(error.clone(), |last| format!("{error}: {}", last.trim()))
            }
        };
        *self.cycles.entry(stage.clone()).or_default() += 1;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        self.summaries.insert(stage.clone(), said.chars().take(SUMMARY_CHARS_MAX).collect());
    }

    fn complete(
        &mut self,
        stage: &str,
        at: Option<Timestamp>,
        artifacts: Vec<FileHash>,
        is_foreign: bool,
    ) {
        self.over.insert(stage.to_owned());
        self.completed.push(Done { stage: stage.to_owned(), at, artifacts, is_foreign });
    }

    fn reopen(&mut self, stage: &str) {
        self.over.remove(stage);
    }

    fn note(&mut self, at: Timestamp, text: String) {
        self.notes.push((at, text));
    }
}
