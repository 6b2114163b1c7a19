//! Which phase is planned again next, and which wait for a person instead.

use super::{Action, Limits, Survey, gate_open};
use crate::event::ReplanRefused;
use crate::plan::Plan;
use crate::replan::{self, Standing};
use crate::replan_state::Due;
use crate::state::{PhaseState, RunState};

/// A replan to be begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Replan {
    /// The phase to plan again.
    pub phase: String,
    /// What asks for it.
    pub due: Due,
    /// How many replans the phase has had with it.
    pub number: u32,
    /// The number of its process.
    pub attempt: u32,
}

/// What the walk over the phases found about replans.
#[derive(Default)]
pub(super) struct Found {
    /// The one to begin next.
    pub(super) next: Option<Replan>,
    refused: Vec<ReplanRefused>,
    /// Phases that wait: what comes after them waits too.
    held: Vec<String>,
}

impl Found {
    /// Whether a phase that comes before another one waits for another plan, or for a person.
    pub(super) fn holds(&self, phase: &PhaseState) -> bool {
        phase.needs.iter().chain(&phase.after).any(|id| self.held.contains(id))
    }

    /// Whether a phase waits for another plan, or for a person.
    pub(super) fn is_held(&self, phase: &str) -> bool {
        self.held.iter().any(|id| id == phase)
    }

    /// What to do, where the run does not end and nothing is at work.
    pub(super) fn actions(&self, ends: bool, is_idle: bool) -> Vec<Action> {
        let refused = self.refused.iter().cloned().map(Box::new).map(Action::RefuseReplan);
        let next = self.next.clone().filter(|_| !ends && is_idle);
        refused.chain(next.map(Box::new).map(Action::Replan)).collect()
    }
}

/// Notes the replan that is under way: it is at work, or begins again.
pub(super) fn note_under_way(state: &RunState, survey: &mut Survey) {
    let Some(under_way) = &state.replans.under_way else { return };
    if !under_way.interrupted {
        survey.running += 1;
        return;
    }
    let begun = &under_way.begun;
    let due = Due {
        trigger: begun.trigger,
        reason: begun.reason.clone(),
        step: begun.step.clone(),
        signature: begun.signature.clone(),
        forced_by: begun.forced_by.clone(),
    };
    let (phase, number) = (begun.phase.clone(), begun.number);
    let attempt = state.replans.attempts + 1;
    survey.replans.next = Some(Replan { phase, due, number, attempt });
}

/// Whether a phase goes on by the plan as it is. One that is over still asks: what it did may call for
/// another plan of what follows.
pub(super) fn goes_on(
    (plan, state, limits): (&Plan, &RunState, &Limits),
    phase: &PhaseState,
    is_open: bool,
    survey: &mut Survey,
) -> bool {
    let is_due = state.replans.phases.get(&phase.id).is_some_and(|p| p.due.is_some());
    let selected = limits.phase.as_deref().is_none_or(|id| id == phase.id);
    let asks = is_open || (is_due && selected);
    if !asks || state.replans.under_way.is_some() || state.is_over() {
        return true;
    }
    match replan::standing(plan, state, phase, limits.force_replan.as_deref()) {
        Standing::GoesOn => return true,
        Standing::Begins(due) => {
            let (number, attempt) =
                (state.replans.count(&phase.id) + 1, state.replans.attempts + 1);
            let phase = phase.id.clone();
            survey.replans.next.get_or_insert(Replan { phase, due, number, attempt });
        }
        Standing::Refused(due, why) => survey.replans.refused.push(ReplanRefused {
            phase: phase.id.clone(),
            trigger: due.trigger,
            reason: due.reason,
            why,
        }),
        Standing::Asks(gate, name) => drop(gate_open(state, gate, Some(&name), survey)),
    }
    survey.replans.held.push(phase.id.clone());
    false
}
