//! What happens to agents, in words for a person who watches; and where one stands, on one line.

use piton_core::agent::Level;
use piton_core::agent_state::AgentState;
use piton_core::budget::{amount, dollars};
use piton_core::event::{AgentBegun, Beginning, BudgetWarned, ContextFilled, Event};

use crate::text::sanitize;

/// An event about an agent in words; nothing for what the live view shows, and for other events.
pub(crate) fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::ContextFilled(e) => {
            let what = match e.level {
                Level::Critical | Level::Halt => "it stops after the operation under way",
                Level::Fine | Level::Warning => "its work is checkpointed",
            };
            format!("{}: the agent's window is {} % full; {what}", e.step, share(e))
        }
        Event::AgentHandedOff(e) if e.is_lost => {
            format!("{}: a fresh agent goes on ({})", e.step, sanitize(&e.why))
        }
        Event::AgentHandedOff(e) => {
            format!("{}: handed off to a fresh agent ({})", e.step, sanitize(&e.why))
        }
        Event::BudgetWarned(e) => warned(e),
        _ => return None,
    })
}

fn share(e: &ContextFilled) -> u64 {
    e.context.saturating_mul(100).checked_div(e.window).unwrap_or(0)
}

fn warned(e: &BudgetWarned) -> String {
    let (name, place) = (sanitize(&e.budget), sanitize(&e.place));
    let of = if place.is_empty() { String::new() } else { format!(" of {place}") };
    let (used, limit) = (amount(&e.budget, e.used), amount(&e.budget, e.limit));
    format!("budget {name}{of}: {used} of {limit} used")
}

/// How the agent of an attempt begins, as the end of a sentence; empty for a first attempt.
pub(crate) fn begins(begun: &AgentBegun) -> String {
    let (agent, why) = (sanitize(&begun.agent), sanitize(&begun.why));
    let session = begun.session.as_deref().map(sanitize).unwrap_or_default();
    match begun.how {
        Beginning::Fresh => String::new(),
        Beginning::Continued => format!(": {agent} continues session {session} ({why})"),
        Beginning::Briefed => format!(": {agent} begins a new session with a brief ({why})"),
    }
}

/// Where an agent stands: its tokens, its window, what it costs, and what it does. The numbers come
/// first, because a live picture cuts the end.
pub fn standing(agent: &AgentState) -> String {
    let mut parts = Vec::new();
    let tokens = agent.tokens.total();
    if tokens > 0 {
        parts.push(format!("{} tokens", thousands(tokens)));
    }
    parts.extend(agent.percent().map(|percent| format!("window {percent} %")));
    if tokens > 0 {
        let cost = dollars(agent.money_micros);
        parts.push(if agent.is_cost_known {
            cost
        } else {
            format!("cost unknown (counts {cost})")
        });
    }
    let standing = parts.join(", ");
    match (sanitize(&agent.doing), standing.is_empty()) {
        (doing, true) => doing,
        (doing, false) if doing.is_empty() => standing,
        (doing, false) => format!("{standing}: {doing}"),
    }
}

/// A number of tokens as people say it.
fn thousands(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        10_000..10_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}M", tokens / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use piton_core::agent::Tokens;

    use super::*;

    /// Lost: an unknown cost reads like a known one, or like nothing.
    #[test]
    fn an_agent_stands_on_one_line() {
        let tokens = Tokens { input: 30_000, cached: 0, output: 500 };
        let mut agent = AgentState { tokens, money_micros: 1_250_000, ..AgentState::default() };
        (agent.context, agent.window) = (Some(30_000), 200_000);
        agent.doing = "Bash make".to_owned();
        let known = "30k tokens, window 15 %, $1.25: Bash make";
        let unknown = "30k tokens, window 15 %, cost unknown (counts $1.25): Bash make";
        assert_eq!(standing(&agent), unknown);
        agent.is_cost_known = true;
        assert_eq!(standing(&agent), known);
        assert_eq!(standing(&AgentState::default()), "");
    }
}
