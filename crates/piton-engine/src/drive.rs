//! One drive of a run: what it is for, what it is given, and how it ends.

use std::collections::BTreeMap;

use piton_core::event::{Event, RunAborted, Verdict};
use piton_core::redact::Redactor;
use piton_core::{LanePath, Limits, Plan, RunState};

use crate::store::Loaded;
use crate::world::Rewind;

/// What a driver is to do with a run.
#[derive(Clone, Debug)]
pub enum Drive {
    /// Go on until nothing can move. Lanes wait for these gates.
    Run(Gates),
    /// End what runs, and record the abort.
    Abort(RunAborted),
    /// End what runs, and carry out a rollback, restore or undo.
    Rewind(Box<Rewind>),
    /// Finish a rollback that was cut short, and nothing else.
    FinishRewind,
}

/// Gates of the phase document that keep lanes from beginning, by lane.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// Those that are open.
    pub open: BTreeMap<LanePath, Vec<String>>,
    /// Those that are ticked, but perhaps by a step.
    pub doubted: BTreeMap<LanePath, Vec<String>>,
}

/// A run whose lease is held, about to be driven.
#[derive(Clone, Debug)]
pub struct Leased {
    /// The run.
    pub loaded: Loaded,
    /// The epoch of the lease.
    pub epoch: u64,
    /// The plan as recorded, its secrets taken out.
    pub plan: Plan,
    /// The same plan as its file says it, from which steps start.
    pub live: Plan,
    /// What to record first.
    pub opening: Vec<Event>,
    /// What to do with it.
    pub drive: Drive,
}

/// The settings of a driver, whatever it does.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many lanes, and which.
    pub limits: Limits,
    /// Retries of every step, over what the plan says.
    pub retries: Option<u32>,
    /// Keeps secrets out of what is recorded.
    pub redactor: Redactor,
    /// Rounds a lane may go through the merge queue because base moved; the built-in limit without.
    pub merge_rounds: Option<u32>,
    /// Whether the notify command runs.
    pub notify: bool,
}

/// How a driver's work ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The verdict.
    pub verdict: Verdict,
    /// The signal that stopped it.
    pub signal: Option<i32>,
    /// The state at the end.
    pub state: RunState,
    /// Why a rollback, restore or undo was not carried out. What was under way may have ended first.
    pub refused: Option<piton_core::refusal::Refusal>,
}
