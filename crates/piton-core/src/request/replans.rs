//! A wish for another plan, and the questions that are asked instead of one.

use super::Refused;
use crate::event::{Event, ReplanWanted, Trigger};
use crate::id::GateRef;
use crate::replan;
use crate::replan_state::gate;
use crate::state::{PhaseState, RunState};

/// Turns a wish for a replan into events.
pub(super) fn wanted(state: &RunState, wish: ReplanWanted) -> Result<Vec<Event>, Refused> {
    let Some(phase) = state.phase(&wish.phase) else {
        let known: Vec<&str> = state.phases.iter().map(|p| p.id.as_str()).collect();
        return Err(Refused::NoPhase(wish.phase, known.join(", ")));
    };
    if PhaseState::is_over(phase) {
        return Err(Refused::PhaseOver(wish.phase));
    }
    if let Some(under_way) = &state.replans.under_way {
        return Err(Refused::Replanning(under_way.begun.phase.clone()));
    }
    let place = gate(&wish.phase, Trigger::Requested);
    let decided = state.gates.get(&place).and_then(|gate| gate.decision.as_ref());
    match decided {
        // A person's own wish stands above what a person said before.
        Some(decision) if wish.step.is_some() => {
            Err(Refused::GoesOn(wish.phase, decision.by.clone()))
        }
        _ => Ok(vec![Event::ReplanWanted(wish)]),
    }
}

/// The questions that are asked instead of replans: place and text.
pub(super) fn gates(state: &RunState) -> Vec<(GateRef, String)> {
    let mut found = Vec::new();
    for (phase, replans) in &state.replans.phases {
        for trigger in replans.questions.keys() {
            let text = replan::question(state, phase, *trigger);
            found.extend(text.map(|text| (gate(phase, *trigger), text)));
        }
    }
    found
}
