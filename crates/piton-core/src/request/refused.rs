//! Why a request is not carried out, and what a person is told then.

use crate::id::{GateRef, StepPath};
use crate::refusal::Refusal;
use crate::remedy;

/// Why a request is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No such step.
    NoStep(String),
    /// No such gate; the run has these.
    NoGate(String, String),
    /// Several gates have that text.
    ManyGates(String, Vec<GateRef>),
    /// Nothing was done before the gate that could be done again.
    NothingBefore(String),
    /// The gate is already decided: a person is asked once.
    Decided(String, &'static str, String),
    /// The step is running.
    Running(StepPath, String),
    /// The step is finished.
    Finished(StepPath, String),
    /// The step has not failed.
    NotFailed(StepPath, String),
    /// No such phase; the run has these.
    NoPhase(String, String),
    /// The phase is over: there is nothing left to plan.
    PhaseOver(String),
    /// This phase is being planned again.
    Replanning(String),
    /// A person decided to go on with the plan as it is, or to stop.
    GoesOn(String, String),
    /// So many questions wait for a person.
    ManyQuestions(usize),
    /// The run was set aside.
    Archived(String),
    /// The run is over for good.
    Over(String),
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let refusal = |cause: String| Self::new("refused", cause);
        match refused {
            Refused::NoStep(step) => {
                Self::new("no-step", format!("there is no step {step} in this run"))
            }
            Refused::NoGate(gate, known) => {
                Self::new("no-gate", format!("there is no gate `{gate}` in this run"))
                    .or(has("gates", &known))
            }
            Refused::ManyGates(gate, places) => {
                let places: Vec<&str> = places.iter().map(|place| place.0.as_str()).collect();
                Self::new("no-gate", format!("several gates are called `{gate}`"))
                    .or(format!("name the place instead: {}", places.join(", ")))
            }
            Refused::NothingBefore(gate) => {
                refusal(format!("no finished step comes before the gate `{gate}`"))
                    .or("change the plan instead")
            }
            Refused::Decided(gate, verb, by) => {
                refusal(format!("gate `{gate}` was already {verb} by {by}"))
            }
            Refused::Running(step, run) => refusal(format!("step {step} is running"))
                .or(remedy![Words "wait for it, or end it with ", Piton "abort {run}"]),
            Refused::Finished(step, run) => refusal(format!("step {step} is finished"))
                .or(remedy![Words "to run it again, use ", Piton "retry {run} {step} --again"]),
            Refused::NotFailed(step, status) => {
                refusal(format!("step {step} is {status}, so there is nothing to retry"))
            }
            Refused::NoPhase(phase, known) => {
                Self::new("no-step", format!("there is no phase {phase} in this run"))
                    .or(has("phases", &known))
            }
            Refused::PhaseOver(phase) => {
                refusal(format!("phase {phase} is complete, so there is nothing left to plan"))
                    .or("name a phase that is not complete")
            }
            Refused::Replanning(phase) => {
                refusal(format!("a replan of phase {phase} is under way"))
                    .or("wait until it has ended")
            }
            Refused::GoesOn(phase, by) => {
                refusal(format!("{by} already decided about a replan of phase {phase}"))
            }
            Refused::ManyQuestions(open) => {
                refusal(format!("{open} questions of this run wait for a person"))
                    .or("wait for their answers")
            }
            Refused::Archived(run) => refusal(format!("run {run} is archived and cannot change"))
                .or(remedy![Words "to bring it back, run ", Piton "resume {run}"]),
            Refused::Over(status) => refusal(format!("the run is {status} and cannot change")),
        }
    }
}

/// What the run has of some kind.
fn has(kind: &str, known: &str) -> String {
    if known.is_empty() {
        return format!("the run has no {kind}");
    }
    format!("the {kind} of this run are: {known}")
}
