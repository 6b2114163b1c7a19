//! The minimal context of a fresh agent: step 3 of the protocol, in its order and within its limit.

use piton_core::event::SessionArtifact;
use piton_core::session_state::SessionState;

use super::bank::{Bank, File};
use super::board::{Board, Task};
use super::checkpoint::Checkpoint;
use super::resume::is_open;
use super::tokens::Count;
use crate::protocol::Told;

/// Tokens that the context may have.
pub const TOKENS_MAX: u64 = 2_000;
/// Tokens that a name, a time or the like may take of it: other tools write what they like.
const WORD_TOKENS_MAX: u64 = 40;
/// Tokens for how context is loaded.
const STRATEGY_TOKENS_MAX: u64 = 300;
/// Tokens for how tokens are watched.
const MONITORING_TOKENS_MAX: u64 = 200;
/// Tokens for the objective.
const OBJECTIVE_TOKENS_MAX: u64 = 150;
/// Tokens for the description of the task.
const DESCRIPTION_TOKENS_MAX: u64 = 300;
/// Tokens for the criteria of the task.
const CRITERIA_TOKENS_MAX: u64 = 200;
/// Tokens for the next steps. All limits together, with what stands around, are below the whole.
const STEPS_TOKENS_MAX: u64 = 250;
/// Tokens for the files that were made.
const ARTIFACTS_TOKENS_MAX: u64 = 100;
/// Tasks that are named where none is in progress.
const NEXT_MAX: usize = 5;
/// Bytes of a text that are looked at for each token it may have; prose has about four.
const BYTES_PER_TOKEN_MAX: usize = 12;
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
    /// Files that the sessions before made, the newest last.
    pub artifacts: &'a [SessionArtifact],
    /// Counts tokens.
    pub count: &'a Count<'a>,
}

/// The context, at most [`TOKENS_MAX`] tokens: what is longer than its part is cut, so that no part is
/// missing.
pub fn brief(parts: Parts<'_>) -> String {
    let Parts { bank, board, checkpoint, applied, artifacts, count } = parts;
    let word = |text: &str| cut(or_none(text), WORD_TOKENS_MAX, count).to_owned();
    let strategy = ("context-strategy.md", " (recovery mode)", STRATEGY_TOKENS_MAX);
    let monitoring = ("token-monitoring.md", "", MONITORING_TOKENS_MAX);
    let mut sections = vec![
        format!(
            "# Resume from the checkpoint of {} ({})\n\nRecovery mode: load only what is named here.",
            word(&checkpoint.timestamp),
            word(&checkpoint.reason)
        ),
        file(strategy, bank.strategy.as_ref(), count),
        file(monitoring, bank.monitoring.as_ref(), count),
        format!("## projectConfig.md\n\nSTACK_ID: {}", word(&checkpoint.stack_id)),
        active_context(checkpoint, count),
        current_task(board, checkpoint, count),
    ];
    let steps = checkpoint.next_steps.iter().map(|step| format!("- {step}"));
    let steps = listed(steps, STEPS_TOKENS_MAX, count);
    // Those of a task that was finished since mislead.
    let is_left = checkpoint.in_progress.iter().any(|id| is_open(board, id));
    if !steps.is_empty() && (is_left || checkpoint.in_progress.is_empty()) {
        sections.push(format!("## Next steps\n\n{steps}"));
    }
    let made = artifacts.iter().rev().map(|artifact| format!("- {}", made(artifact)));
    let made = listed(made, ARTIFACTS_TOKENS_MAX, count);
    if !made.is_empty() {
        sections.push(format!("## Files made\n\n{made}"));
    }
    if applied > 0 {
        sections.push(format!("{applied} changes of the checkpoint are applied to the files."));
    }
    let deferred: Vec<String> =
        DEFERRED.iter().map(|(name, when)| format!("- {name}: {when}")).collect();
    sections.push(format!("## Load later\n\n{}", deferred.join("\n")));
    let mut text = sections.join("\n\n");
    text.push('\n');
    text
}

/// What the brief of a run says of its session.
pub fn told(bank: &Bank, run: &str, session: &SessionState) -> Told {
    let mut told = Told::default();
    told.changed.extend(session.artifacts.iter().rev().map(made));
    let board = bank.board().ok();
    let open = |board: &Board| -> Option<Task> {
        let own = session.task.as_deref().and_then(|id| board.task(id));
        own.or_else(|| board.in_progress(None, &[]).into_iter().next()).cloned()
    };
    match (board.as_ref().and_then(open), &session.task) {
        (Some(task), _) => {
            told.task.push(format!("{} is in {}", task.name(), task.column.as_str()));
            told.task.extend(Some(task.description).filter(|text| !text.is_empty()));
            told.acceptance = task.criteria;
        }
        (None, Some(id)) => told.task.push(format!("{id} is in progress")),
        (None, None) => told.task.push("no task is in progress".to_owned()),
    }
    told.task.extend(session.phase.as_ref().map(|phase| format!("the phase is {phase}")));
    told.task.extend(session.active().map(|point| {
        format!("a new session resumes from {} ({})", point.name, point.reason.as_str())
    }));
    let latest =
        bank.latest.as_ref().and_then(|file| Checkpoint::read(&file.path, &file.text).ok());
    let is_own = |checkpoint: &Checkpoint| {
        checkpoint.owner.as_ref().is_some_and(|(owner, _)| session.active.is_some() && owner == run)
    };
    if let Some((checkpoint, _)) = latest.filter(|(checkpoint, _)| is_own(checkpoint)) {
        told.next = checkpoint.next_steps;
    }
    let next = board.iter().flat_map(|board| board.next(NEXT_MAX).into_iter().map(Task::name));
    told.next.extend(next);
    told
}

fn made(artifact: &SessionArtifact) -> String {
    let SessionArtifact { path, message, .. } = artifact;
    if message.is_empty() { path.clone() } else { format!("{path}: {message}") }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// A file that the agent reads: its name, what the protocol says of it, and the beginning of its text.
fn file((name, of, tokens): (&str, &str, u64), file: Option<&File>, count: &Count<'_>) -> String {
    let Some(File { path, text }) = file else {
        return format!("## {name}{of}\n\nThis memory bank does not have it.");
    };
    let text = text.trim();
    let shown = cut(text, tokens, count);
    let rest = if shown.len() < text.len() {
        format!("\n\n… the rest is in {}", cut(path, WORD_TOKENS_MAX, count))
    } else {
        String::new()
    };
    format!("## {name}{of}\n\n{shown}{rest}")
}

fn active_context(checkpoint: &Checkpoint, count: &Count<'_>) -> String {
    let Checkpoint { objective, sprint, phase, .. } = checkpoint;
    let word = |text: &str, tokens| cut(or_none(text), tokens, count).to_owned();
    let mut lines = vec![
        format!("- objective: {}", word(objective, OBJECTIVE_TOKENS_MAX)),
        format!("- phase: {}", word(phase, WORD_TOKENS_MAX)),
    ];
    if !sprint.is_empty() {
        lines.push(format!("- sprint: {}", word(sprint, WORD_TOKENS_MAX)));
    }
    lines.push(format!("- completed: {}", checkpoint.completed.len()));
    format!("## activeContext.md\n\n{}", lines.join("\n"))
}

/// The task in progress that is not finished yet; of several, the others by their ids.
fn current_task(board: &Board, checkpoint: &Checkpoint, count: &Count<'_>) -> String {
    let mut open = checkpoint.in_progress.iter().filter(|id| is_open(board, id));
    let Some(task) = open.next().and_then(|id| board.task(id)) else {
        let next: Vec<&str> = board.next(NEXT_MAX).iter().map(|task| task.id.as_str()).collect();
        let next = next.join(", ");
        let next = cut(or_none(&next), WORD_TOKENS_MAX, count);
        return format!("## Current task\n\nnone in progress; next: {next}");
    };
    let mut lines = vec![cut(&task.name(), 2 * WORD_TOKENS_MAX, count).to_owned()];
    if !task.description.is_empty() {
        lines.push(cut(&task.description, DESCRIPTION_TOKENS_MAX, count).to_owned());
    }
    let criteria = task.criteria.iter().map(|open| format!("- [ ] {open}"));
    lines.push(listed(criteria, CRITERIA_TOKENS_MAX, count));
    let also: Vec<&str> = open.map(String::as_str).collect();
    if !also.is_empty() {
        let also = also.join(", ");
        lines.push(format!("Also in progress: {}", cut(&also, WORD_TOKENS_MAX, count)));
    }
    lines.retain(|line| !line.is_empty());
    format!("## Current task\n\n{}", lines.join("\n"))
}

/// The lines that fit into a number of tokens, and how many more there are.
fn listed(lines: impl Iterator<Item = String>, tokens: u64, count: &Count<'_>) -> String {
    let all: Vec<String> = lines.collect();
    let mut text = String::new();
    for (number, line) in all.iter().enumerate() {
        let with = if text.is_empty() { line.clone() } else { format!("{text}\n{line}") };
        if count(&with) > tokens {
            let begun =
                if number == 0 { cut(line, tokens, count).to_owned() + "\n" } else { text + "\n" };
            return format!("{begun}- … and {} more", all.len() - number);
        }
        text = with;
    }
    text
}

/// The beginning of a text, up to the end of a line or word within a number of tokens.
fn cut<'t>(text: &'t str, tokens: u64, count: &Count<'_>) -> &'t str {
    // No token is longer than this on average: what is far too long is not counted as a whole.
    let longest = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN_MAX);
    let head =
        text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= longest);
    let head = &text[..head.last().unwrap_or(0)];
    if head.len() == text.len() && count(text) <= tokens {
        return text;
    }
    let is_end = |(_, c): &(usize, char)| c.is_whitespace();
    let mut ends: Vec<usize> = head.char_indices().filter(is_end).map(|(at, _)| at).collect();
    if ends.first().is_none_or(|first| count(&head[..*first]) > tokens) {
        // One endless word.
        ends = head.char_indices().map(|(at, _)| at).collect();
    }
    let fits = ends.partition_point(|end| count(&head[..*end]) <= tokens);
    fits.checked_sub(1).map_or("", |last| head[..ends[last]].trim_end())
}
