//! What agents say and what happens to them, with all fields.

use std::collections::BTreeMap;

use piton_core::agent::{Agent, Level, OnLimit, Permissions, Prices, Thresholds, Tokens};
use piton_core::command::Command;
use piton_core::event::{
    AgentBegun, AgentHandedOff, AgentLimited, AgentSaid, Beginning, BudgetWarned, ContextFilled,
    Event,
};
use piton_core::{Millis, Timestamp};

use super::{step, text, texts};

/// The step that has an agent.
const STEP: &str = "P1/A/work";

pub fn begun() -> AgentBegun {
    AgentBegun {
        agent: text("claude"),
        program: text("claude"),
        session: Some(text("s-1")),
        how: Beginning::Continued,
        why: text("attempt 1 was cut short"),
    }
}

/// What happens while an attempt is at work.
pub fn story(attempt: u32) -> Vec<Event> {
    let handed_off = |why: &str, is_lost: bool| {
        let (step, why) = (step(STEP), text(why));
        Event::AgentHandedOff(AgentHandedOff { step, attempt, why, is_lost })
    };
    let until = Timestamp(1_800_000_000_000);
    let filled = |level| {
        let (context, window) = (190, 200);
        Event::ContextFilled(ContextFilled { step: step(STEP), attempt, level, context, window })
    };
    vec![
        Event::AgentSaid(Box::new(AgentSaid {
            step: step(STEP),
            attempt,
            session: Some(text("s-1")),
            tokens: Tokens { input: 3, cached: 4, output: 5 },
            money_micros: 9,
            is_cost_known: true,
            requests: 2,
            context: Some(7),
            window: 200,
            doing: text("Bash make"),
            in_flight: texts(&["Bash make"]),
        })),
        filled(Level::Warning),
        filled(Level::Critical),
        filled(Level::Halt),
        handed_off("full", false),
        handed_off("gone", true),
        Event::AgentLimited(AgentLimited {
            step: step(STEP),
            attempt,
            agent: text("claude"),
            until,
        }),
        Event::BudgetWarned(BudgetWarned {
            budget: text("step_tokens"),
            place: text(STEP),
            used: 8,
            limit: 10,
        }),
    ]
}

/// Agents with all that may be said of them.
pub fn all() -> BTreeMap<String, Agent> {
    let agent = |name: &str, permissions, on_limit| Agent {
        name: text(name),
        program: text("claude"),
        command: Some(Command::Shell(text("claude"))),
        binary: Some(text("/opt/claude")),
        model: Some(text("opus")),
        permissions,
        tools: texts(&["Bash"]),
        args: texts(&["--verbose"]),
        env: [(text("A"), text("1"))].into(),
        mcp: Some(text("mcp.json")),
        window: Some(100),
        thresholds: Thresholds { warning: 1, critical: 2, halt: 3 },
        handoffs: 4,
        requests: 5,
        silence: Millis(60_000),
        on_limit,
        limit_wait: Millis(60_000),
        fallback: texts(&["codex"]),
        prices: Some(Prices { input: 1, cached: 2, output: 3 }),
    };
    let all = [
        agent("a", Permissions::Own, OnLimit::Park),
        agent("b", Permissions::Edits, OnLimit::Fallback),
        agent("c", Permissions::All, OnLimit::Stop),
    ];
    all.into_iter().map(|agent| (agent.name.clone(), agent)).collect()
}
