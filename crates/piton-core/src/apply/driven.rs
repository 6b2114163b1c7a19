//! The time that a run and its phases were driven.

use crate::event::Event;
use crate::state::{LaneState, RunState};
use crate::time::Timestamp;

/// Adds the time since the last event to what the run and its busy phases used, while driven.
pub(super) fn account(state: &mut RunState, at: Timestamp, event: &Event) {
    state.last_at = state.last_at.max(at);
    let until = match event {
        // The driver before fell: it was at work for as long as it showed signs of life.
        Event::DriverAttached(e) => e.driven_until.map(|until| until.min(at)),
        Event::DriverLeft(e) => Some(e.driven_until.map_or(at, |until| until.min(at))),
        event if is_drivers(event) => Some(at),
        // A person's act may come hours after a driver fell; the next event of a driver counts.
        _ => return,
    };
    let passed = until.map_or(0, |until| until.since(state.counted_at).0);
    if state.driven && passed > 0 {
        state.used.driven_ms.0 += passed;
        for phase in &mut state.phases {
            if phase.lanes.iter().any(LaneState::is_running) {
                phase.driven_ms.0 += passed;
            }
        }
    }
    // Also where the clock was set back: what passes from now on counts.
    state.counted_at = at;
}

/// Whether only a driver at work records such an event.
fn is_drivers(event: &Event) -> bool {
    matches!(
        event,
        Event::DriverLeft(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_)
            | Event::GateAsked(_)
            | Event::BudgetExhausted(_)
            | Event::AgentSaid(_)
            | Event::ReplanBegun(_)
            | Event::ReplanEnded(_)
    )
}
