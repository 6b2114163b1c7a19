//! What an agent is told: the prompt of its step, or how to go on after it was cut short.

use std::fmt::Write as _;

use piton_core::event::Beginning;
use piton_core::plan::Work;
use piton_core::state::StepState;
use piton_core::{Plan, RunState, StepPath};
use piton_formats::template;

/// Most tokens of a brief: what a fresh agent reads in a moment and still has its window for the work.
pub const BRIEF_TOKENS_MAX: u32 = 2_000;

/// Makes the brief for a step of a run, of at most so many tokens.
pub type Brief = fn(&Plan, &RunState, &StepPath, u32) -> String;

/// Most failed attempts that the short brief tells of.
const FAILURES_MAX: usize = 3;
/// Characters of a token, at least: the short brief counts no tokens.
const TOKEN_CHARS: usize = 3;

/// What stands after the prompt of an attempt: failures that the template does not tell itself, and the
/// brief of a fresh agent that goes on with another's work.
pub(crate) fn after(
    (plan, state): (&Plan, &RunState),
    path: &StepPath,
    brief: Brief,
) -> Option<String> {
    let step = state.step(path)?;
    let agent = step.agent.as_deref()?;
    let mut parts = Vec::new();
    if agent.how == Beginning::Briefed {
        parts.push(brief(plan, state, path, BRIEF_TOKENS_MAX));
    }
    let planned = plan.step(path).map(|step| &step.work);
    let tells = |prompt: &str| template::uses(prompt, "failure_context");
    let told = matches!(planned, Some(Work::Prompt { prompt, .. }) if tells(prompt));
    let failures = step.failure_text();
    if !told && !failures.is_empty() {
        parts.push(format!("Earlier attempts of this step failed:\n{failures}"));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The prompt with which a session continues.
pub(crate) fn continuing(step: &StepState) -> String {
    let mut text =
        "Your process was ended before this step was finished. Go on where you stopped. \
                    The files are as you left them.\n"
            .to_owned();
    let in_flight = step.agent.as_deref().map(|agent| agent.before.as_slice()).unwrap_or_default();
    if !in_flight.is_empty() {
        text.push_str(
            "\nThese operations were under way. Look at what they did before you repeat them:\n",
        );
        for operation in in_flight {
            let _ = writeln!(text, "- {operation}");
        }
    }
    let failures = step.failure_text();
    if !failures.is_empty() {
        let _ = write!(text, "\nEarlier attempts of this step failed:\n{failures}");
    }
    text
}

/// A short brief: what is done, what was under way, what failed.
pub fn short_brief(plan: &Plan, state: &RunState, path: &StepPath, tokens_max: u32) -> String {
    let mut text = format!(
        "Another agent worked on this step before you, and its work is in the files. Look at them \
         first, and finish what is missing.\n\nObjective: {}\nStep: {path}\n",
        plan.title
    );
    if let Some(step) = state.step(path) {
        let before = step.agent.as_deref().map(|agent| agent.before.as_slice()).unwrap_or_default();
        for operation in before {
            let _ = writeln!(text, "It was doing: {operation}");
        }
        let from = step.failure_context.len().saturating_sub(FAILURES_MAX);
        for failed in &step.failure_context[from..] {
            let _ = writeln!(text, "Attempt {} failed: {}", failed.attempt, failed.error);
        }
    }
    let done = state.steps().filter(|(_, step)| step.progress.is_over());
    for (done, _) in done {
        let _ = writeln!(text, "Done: {done}");
    }
    let chars_max = usize::try_from(tokens_max).unwrap_or(usize::MAX).saturating_mul(TOKEN_CHARS);
    text.chars().take(chars_max).collect()
}
