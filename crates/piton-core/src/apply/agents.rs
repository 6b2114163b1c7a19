//! How what agents say changes the state: sessions, counts, windows, hand-offs, limits.

use crate::agent::Level;
use crate::agent_state::{AgentState, Day, Spent};
use crate::event::{AgentBegun, AgentHandedOff, AgentSaid, Beginning, ContextFilled, Event, Facts};
use crate::id::StepPath;
use crate::state::{RunState, StepState};
use crate::time::Timestamp;

/// The attempt that an event about an agent belongs to.
pub(super) fn attempt_of(event: &Event) -> Option<(&StepPath, u32)> {
    match event {
        Event::AgentSaid(e) => Some((&e.step, e.attempt)),
        Event::ContextFilled(e) => Some((&e.step, e.attempt)),
        Event::AgentHandedOff(e) => Some((&e.step, e.attempt)),
        Event::AgentLimited(e) => Some((&e.step, e.attempt)),
        _ => None,
    }
}

/// Applies an event about agents; whether it is one.
pub(super) fn change(state: &mut RunState, at: Timestamp, event: &Event) -> bool {
    match event {
        Event::AgentSaid(e) => said(state, at, e),
        Event::ContextFilled(e) => filled(state, e),
        Event::AgentHandedOff(e) => handed_off(state, e),
        Event::AgentLimited(e) => {
            state.limited.insert(e.agent.clone(), e.until);
        }
        Event::BudgetWarned(e) => {
            state.warned.insert((e.budget.clone(), e.place.clone(), e.limit));
        }
        _ => return false,
    }
    true
}

/// An attempt begins: what is known of the agent before is gone, but for the hand-offs.
pub(super) fn begun(step: &mut StepState, attempt: u32, begun: Option<&AgentBegun>) {
    let last = step.agent.take().map(|agent| *agent).unwrap_or_default();
    let (handoffs, before) = (last.handoffs, last.in_flight);
    let is_filling = last.is_minimal || last.level >= Level::Warning;
    step.agent = begun.map(|begun| {
        Box::new(AgentState {
            name: begun.agent.clone(),
            program: begun.program.clone(),
            session: begun.session.clone(),
            how: begun.how,
            attempt,
            before,
            handoffs,
            is_minimal: is_filling && begun.how == Beginning::Continued,
            ..AgentState::default()
        })
    });
}

/// What an agent says counts for its attempt, in the place of what it said before.
fn said(state: &mut RunState, at: Timestamp, event: &AgentSaid) {
    let now = Spent { tokens: event.tokens.total(), money_micros: event.money_micros };
    let Some(step) = state.step_mut(&event.step) else { return };
    let before = counted(step, event.attempt);
    let known = step.agent.take().filter(|agent| agent.attempt == event.attempt);
    let known = *known.unwrap_or_default();
    step.agent = Some(Box::new(AgentState {
        attempt: event.attempt,
        session: event.session.clone().or(known.session),
        tokens: event.tokens,
        money_micros: event.money_micros,
        is_cost_known: event.is_cost_known,
        requests: event.requests,
        context: event.context.or(known.context),
        window: event.window,
        doing: event.doing.clone(),
        in_flight: event.in_flight.clone(),
        ..known
    }));
    count(state, at, &event.step, (before, now));
}

/// What an attempt used in all, in the place of what its agent said while it worked.
pub(super) fn finished(
    state: &mut RunState,
    at: Timestamp,
    (step, attempt): (&StepPath, u32),
    facts: &Facts,
) {
    let before = state.step(step).map(|s| counted(s, attempt)).unwrap_or_default();
    // An attempt that was lost with its keeper says nothing: what was counted stays.
    let now = Spent {
        tokens: facts.tokens.max(before.tokens),
        money_micros: if facts.money_micros > 0 { facts.money_micros } else { before.money_micros },
    };
    count(state, at, step, (before, now));
}

fn counted(step: &StepState, attempt: u32) -> Spent {
    let agent = step.agent.as_ref().filter(|agent| agent.attempt == attempt);
    agent.map_or_else(Spent::default, |agent| Spent {
        tokens: agent.tokens.total(),
        money_micros: agent.money_micros,
    })
}

fn count(state: &mut RunState, at: Timestamp, step: &StepPath, (before, now): (Spent, Spent)) {
    if before == now {
        return;
    }
    let used = &mut state.used;
    let mut all = Spent { tokens: used.tokens, money_micros: used.money_micros };
    all.exchange(before, now);
    (used.tokens, used.money_micros) = (all.tokens, all.money_micros);
    let number = Day::number_at(at);
    if used.day.number != number {
        used.day = Day { number, spent: Spent::default() };
    }
    used.day.spent.exchange(before, now);
    if let Some(step) = state.step_mut(step) {
        step.spent.exchange(before, now);
    }
}

fn filled(state: &mut RunState, event: &ContextFilled) {
    if let Some(agent) = state.step_mut(&event.step).and_then(|step| step.agent.as_mut()) {
        agent.level = event.level;
    }
}

fn handed_off(state: &mut RunState, event: &AgentHandedOff) {
    if let Some(agent) = state.step_mut(&event.step).and_then(|step| step.agent.as_mut()) {
        agent.handoffs += u32::from(!event.is_lost);
        agent.handed_off.clone_from(&event.why);
    }
}
