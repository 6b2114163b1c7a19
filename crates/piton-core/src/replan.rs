//! When a phase is planned again, and what may come of it.
//!
//! A replan counts when it begins. It never reopens finished work, and it never puts a plan into effect
//! that the run had before.

use crate::event::Trigger;
use crate::replan_state::gate;
use crate::state::RunState;

/// The exit code with which a step asks for a replan.
pub const EXIT_REPLAN: i32 = 86;

/// What a person is asked instead of a replan of a phase, if one is asked; a yes goes on with the plan
/// as it is.
pub fn question(state: &RunState, phase: &str, trigger: Trigger) -> Option<String> {
    let asked = state.replans.phases.get(phase)?.questions.contains_key(&trigger)
        || state.gates.contains_key(&gate(phase, trigger));
    asked.then(|| format!("Go on with the plan as it is ({phase}: {trigger})"))
}
