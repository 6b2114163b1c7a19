//! A new checkpoint, made from the files of the memory bank: steps 1 to 4 of the protocol.

use piton_core::Timestamp;
use piton_core::event::Reason;
use serde_json::Value;

use super::board::{Board, Column, Task};
use super::checkpoint::Checkpoint;
use super::tokens::Usage;
use super::words;
use crate::time;

/// Tasks of the backlog in a checkpoint.
const BACKLOG_MAX: usize = 5;
/// Criteria that are next steps; more would not fit into the context of a fresh agent.
const CRITERIA_MAX: usize = 8;

/// What the files of the bank say, and the moment.
#[derive(Clone, Debug)]
pub struct Moment<'a> {
    /// The board, as it is when all changes are written.
    pub board: &'a Board,
    /// The task that the session started.
    pub task: Option<&'a str>,
    /// Tasks that other sessions started.
    pub others: &'a [String],
    /// The stack.
    pub stack_id: String,
    /// The objective.
    pub objective: String,
    /// Changes that are not written yet.
    pub deltas: Vec<Value>,
    /// The phase that the settings name.
    pub phase: Option<&'a str>,
    /// Why the checkpoint is made.
    pub reason: Reason,
    /// How full the conversation is.
    pub usage: Option<Usage>,
    /// The time.
    pub at: Timestamp,
    /// Whether the agent was told to load only what its task needs.
    pub is_warned: bool,
    /// The run and the session.
    pub owner: (String, String),
}

/// Makes the checkpoint.
pub fn create(moment: Moment<'_>) -> Checkpoint {
    let Moment { board, reason, .. } = moment;
    let in_progress = board.in_progress(moment.task, moment.others);
    let current = in_progress.first().copied();
    let mut next_steps = current.map(next_steps).unwrap_or_default();
    if current.is_none()
        && let [task, ..] = board.next(1).as_slice()
    {
        next_steps.push(format!("Start {}", task.name()));
    }
    let mode = match reason {
        Reason::TokenWarning => "minimal",
        Reason::TokenCritical => "recovery",
        _ if moment.is_warned || moment.usage.is_some_and(|usage| usage.trigger().is_some()) => {
            "minimal"
        }
        _ => "standard",
    };
    Checkpoint {
        timestamp: time::write_seconds(moment.at),
        reason: reason.as_str().to_owned(),
        tokens: moment.usage.map_or((0, 0), |usage| (usage.used, usage.percent())),
        mode: mode.to_owned(),
        completed: board.ids(Column::Done),
        in_progress: in_progress.iter().map(|task| task.id.clone()).collect(),
        backlog: board
            .next(BACKLOG_MAX)
            .into_iter()
            .map(|task| (task.id.clone(), task.title.clone()))
            .collect(),
        phase: moment.phase.map_or_else(|| phase_of(current).to_owned(), str::to_owned),
        stack_id: moment.stack_id,
        sprint: board.sprint_of(current).unwrap_or_default().to_owned(),
        objective: moment.objective,
        next_steps,
        deltas: moment.deltas,
        instructions: words::instructions(reason, current),
        owner: Some(moment.owner),
    }
}

/// The phase of the project, from the type of the task in progress.
fn phase_of(task: Option<&Task>) -> &'static str {
    match task.map(|task| task.kind.as_str()) {
        Some("setup") => "bootstrap",
        Some("test" | "testing") => "testing",
        Some("release") => "release",
        _ => "development",
    }
}

/// What is left to do for a task.
fn next_steps(task: &Task) -> Vec<String> {
    let mut steps = vec![format!("Finish {}", task.name())];
    steps.extend(task.criteria.iter().take(CRITERIA_MAX).map(|open| format!("Meet: {open}")));
    steps.extend(["Run quality gates".to_owned(), "Update progress metrics".to_owned()]);
    steps.push(format!("Move {} to done", task.id));
    steps
}
