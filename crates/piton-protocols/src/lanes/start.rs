//! What earlier runs mean for a phase document: which ran the same phase, and which a phase that it
//! depends on.
//!
//! A document with another phase in its first heading is another plan, even at the same path.

use piton_core::state::PhaseState;
use piton_core::{Plan, RunState};

use super::fix::is_fix;
use super::phase::plan_id;
use crate::protocol::Start;

/// What an earlier run of the same path means for a document.
pub fn start(plan: &Plan, earlier: &RunState) -> Start {
    let wanted = plan.phases.first().map_or("", |phase| phase.id.as_str());
    match earlier.phases.first() {
        Some(first) if earlier.phase(wanted).is_none() => {
            Start::Other(format!("phase {}, which this document described before", first.id))
        }
        // A run that never started has no phases yet.
        _ => Start::Ask,
    }
}

/// Tells whether a run has a phase, by any of its names: `P1`, `Phase 1` or `P1/SL-1`.
pub fn has_phase(run: &RunState, name: &str) -> bool {
    let name = short(name);
    let named = |id: &str| {
        let rest = name.strip_prefix(short(id).as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    };
    // A fix of a phase is not the phase.
    let is_whole = |phase: &&PhaseState| phase.lanes.iter().any(|lane| !is_fix(&lane.id));
    run.phases.iter().filter(is_whole).any(|phase| named(&phase.id))
}

/// The name of a phase in one spelling: `Phase 1` and `P1` are the same.
fn short(name: &str) -> String {
    let id = plan_id(name).to_ascii_lowercase();
    let number = id.strip_prefix("phase-").filter(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    number.map_or_else(|| id.clone(), |number| format!("p{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_known_by_each_of_its_names() {
        for name in ["P1", "p1", "Phase 1", "phase-1", "PHASE 1"] {
            assert_eq!(short(name), "p1", "{name}");
        }
        assert_eq!(short("P1/SL-1"), "p1-sl-1");
        assert_eq!(short("Phase P1"), "phase-p1");
        assert_eq!(short("OTHERPHASE"), "otherphase");
    }
}
