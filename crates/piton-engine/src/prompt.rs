//! What an agent is told: the prompt of its step, or how to go on after it was cut short.

use std::fmt::Write as _;

use piton_core::event::Beginning;
use piton_core::state::StepState;

/// Most tokens of a brief: what a fresh agent reads in a moment and still has its window for the work.
pub const BRIEF_TOKENS_MAX: usize = 2_000;

/// What a fresh agent is told before the brief.
const HANDED_ON: &str = "Another agent worked on this step before you, and its work is in the files. \
                         Look at them first, and finish what is missing.";

/// Most operations that are named: an agent has few under way at once.
const OPERATIONS_MAX: usize = 8;

/// Whether the agent of a step goes on with the work of another.
pub(crate) fn is_briefed(step: &StepState) -> bool {
    step.agent.as_deref().is_some_and(|agent| agent.how == Beginning::Briefed)
}

/// What a fresh agent is told that goes on with the work of another.
pub(crate) fn handed_on(brief: &str) -> String {
    format!("{HANDED_ON}\n\n{brief}").trim_end().to_owned()
}

/// The prompt with which a session continues.
pub(crate) fn continuing(step: &StepState) -> String {
    let mut text =
        "Your process was ended before this step was finished. Go on where you stopped. \
                    The files are as you left them.\n"
            .to_owned();
    let in_flight = step.agent.as_deref().map(|agent| agent.before.as_slice()).unwrap_or_default();
    let in_flight = in_flight.iter().take(OPERATIONS_MAX);
    if in_flight.len() > 0 {
        text.push_str(
            "\nThese operations were under way. Look at what they did before you repeat them:\n",
        );
        for operation in in_flight {
            let _ = writeln!(text, "- {operation}");
        }
    }
    if step.agent.as_deref().is_some_and(|agent| agent.is_minimal) {
        minimal(step, &mut text);
        return text;
    }
    let failures = step.failure_text();
    if !failures.is_empty() {
        let _ = write!(text, "\nEarlier attempts of this step failed:\n{failures}");
    }
    text
}

/// What a session is told whose window is filling up: only why the last attempt failed, in one line.
fn minimal(step: &StepState, text: &mut String) {
    if let Some(last) = step.last_failure() {
        let line = last.error.lines().next().unwrap_or_default();
        let _ = writeln!(text, "\nThe last failure of this step: {line}");
    }
    text.push_str("\nYour context is filling up: read only what you need.\n");
}
