//! The minimal context of a fresh agent: step 3 of the protocol, in its order and within its limit.

use super::bank::{Bank, File};
use super::board::{Board, Task};
use super::checkpoint::Checkpoint;
use super::tokens::Count;

/// Tokens that the context may have.
pub const TOKENS_MAX: u64 = 2_000;
/// Tokens that one file of the bank may take of it.
const FILE_TOKENS_MAX: u64 = 400;
/// Tokens that the description of the task may take.
const TASK_TOKENS_MAX: u64 = 500;
/// What is loaded later, and when.
const DEFERRED: [(&str, &str); 4] = [
    ("stack profiles", "when coding resumes"),
    ("techContext.md", "if needed"),
    ("systemPatterns.md", "if needed"),
    ("deliverables.md", "only for a release task"),
];

/// What the context is made of.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The files.
    pub bank: &'a Bank,
    /// The board, with the changes of the checkpoint.
    pub board: &'a Board,
    /// The checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// How many changes of the checkpoint were applied.
    pub applied: usize,
    /// Counts tokens.
    pub count: &'a Count<'a>,
}

/// The context, at most [`TOKENS_MAX`] tokens.
pub fn brief(parts: Parts<'_>) -> String {
    let Parts { bank, board, checkpoint, applied, count } = parts;
    let task = checkpoint.in_progress.first().and_then(|id| board.task(id));
    let mut sections = vec![format!(
        "# Resume from the checkpoint of {} ({})\n\nRecovery mode: load only what is named here.",
        checkpoint.timestamp, checkpoint.reason
    )];
    sections.push(file("context-strategy.md (recovery mode)", bank.strategy.as_ref(), count));
    sections.push(file("token-monitoring.md", bank.monitoring.as_ref(), count));
    sections.push(format!("## STACK_ID\n\n{}", or_none(&checkpoint.stack_id)));
    sections.push(active_context(checkpoint));
    sections.push(current_task(task, checkpoint, count));
    let steps: Vec<String> = checkpoint.next_steps.iter().map(|step| format!("- {step}")).collect();
    if !steps.is_empty() {
        sections.push(format!("## Next steps\n\n{}", steps.join("\n")));
    }
    if applied > 0 {
        sections.push(format!("{applied} changes of the checkpoint are applied to the files."));
    }
    let deferred: Vec<String> =
        DEFERRED.iter().map(|(name, when)| format!("- {name}: {when}")).collect();
    sections.push(format!("## Load later\n\n{}", deferred.join("\n")));
    sections.retain(|section| !section.is_empty());
    fitted(&sections, count)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// A file that the agent reads; what does not fit is left to it.
fn file(title: &str, file: Option<&File>, count: &Count<'_>) -> String {
    let Some(File { path, text }) = file else { return String::new() };
    let shown = cut(text.trim(), FILE_TOKENS_MAX, count);
    let rest = if shown.len() < text.trim().len() {
        format!("\n\n… the rest is in {path}")
    } else {
        String::new()
    };
    format!("## {title}\n\n{shown}{rest}")
}

fn active_context(checkpoint: &Checkpoint) -> String {
    let Checkpoint { objective, sprint, phase, .. } = checkpoint;
    let mut lines = vec![format!("- objective: {}", or_none(objective))];
    lines.push(format!("- phase: {}", or_none(phase)));
    if !sprint.is_empty() {
        lines.push(format!("- sprint: {sprint}"));
    }
    lines.push(format!("- completed: {}", checkpoint.completed.len()));
    format!("## Active context\n\n{}", lines.join("\n"))
}

fn current_task(task: Option<&Task>, checkpoint: &Checkpoint, count: &Count<'_>) -> String {
    let Some(task) = task else {
        let next: Vec<&str> = checkpoint.backlog.iter().map(|(id, _)| id.as_str()).collect();
        return format!("## Current task\n\nnone in progress; next: {}", or_none(&next.join(", ")));
    };
    let mut lines = vec![task.name()];
    if !task.description.is_empty() {
        lines.push(cut(&task.description, TASK_TOKENS_MAX, count).to_owned());
    }
    lines.extend(task.criteria.iter().map(|open| format!("- [ ] {open}")));
    format!("## Current task\n\n{}", lines.join("\n"))
}

/// The beginning of a text, up to the end of a line or word within a number of tokens.
fn cut<'t>(text: &'t str, tokens: u64, count: &Count<'_>) -> &'t str {
    if count(text) <= tokens {
        return text;
    }
    let ends: Vec<usize> = text.match_indices(['\n', ' ']).map(|(at, _)| at).collect();
    let fits = ends.partition_point(|end| count(&text[..*end]) <= tokens);
    fits.checked_sub(1).map_or("", |last| text[..ends[last]].trim_end())
}

/// The sections joined; if they are too long, the end is cut.
fn fitted(sections: &[String], count: &Count<'_>) -> String {
    let mut text = sections.join("\n\n");
    text.push('\n');
    if count(&text) <= TOKENS_MAX {
        return text;
    }
    let mut text = cut(&text, TOKENS_MAX - 10, count).to_owned();
    text.push_str("\n…\n");
    text
}
