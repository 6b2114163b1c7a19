//! Whether a session goes on from a checkpoint: steps 1 and 2 of the protocol.

use piton_core::{Millis, Timestamp};

use super::board::{Board, Column};
use super::checkpoint::Checkpoint;

/// How old a checkpoint may be: the work of yesterday may be on another branch by now.
pub const AGE_MAX: Millis = Millis(24 * 60 * 60 * 1000);

/// What a checkpoint means for a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is none: a normal start.
    Nothing,
    /// The session goes on from it; a person should know these.
    Resume(Vec<String>),
    /// It is too old: it is kept and reported, and not resumed.
    TooOld(String),
    /// It does not fit any more, for these reasons.
    Fails(Vec<String>),
}

/// Validates a checkpoint.
pub fn validate(checkpoint: &Checkpoint, stack_id: &str, board: &Board, now: Timestamp) -> Verdict {
    if !checkpoint.is_active() {
        return Verdict::Nothing;
    }
    let Some(at) = checkpoint.at() else {
        return Verdict::Fails(vec![format!("`{}` is not a time", checkpoint.timestamp)]);
    };
    if now.since(at).0 >= AGE_MAX.0 {
        let words = format!("the checkpoint of {} is older than 24 hours", checkpoint.timestamp);
        return Verdict::TooOld(words);
    }
    let mut why = Vec::new();
    if checkpoint.stack_id != stack_id {
        let quoted = |id: &str| if id.is_empty() { "none".to_owned() } else { format!("`{id}`") };
        why.push(format!(
            "the STACK_ID of the checkpoint is {}, and that of the project {}",
            quoted(&checkpoint.stack_id),
            quoted(stack_id)
        ));
    }
    let gone = |ids: &[String]| -> Vec<String> {
        ids.iter().filter(|id| board.task(id).is_none()).cloned().collect()
    };
    let missing = gone(&checkpoint.in_progress);
    why.extend(missing.iter().map(|id| format!("task {id} is not on the board any more")));
    if !why.is_empty() {
        return Verdict::Fails(why);
    }
    let completed = gone(&checkpoint.completed);
    let warning = |id: &String| format!("completed task {id} is not on the board any more");
    let over = checkpoint.in_progress.iter().filter(|id| !is_open(board, id));
    let over = over.map(|id| format!("task {id} was finished after the checkpoint"));
    Verdict::Resume(completed.iter().map(warning).chain(over).collect())
}

/// Tells whether a task of a checkpoint is still to be finished.
pub fn is_open(board: &Board, id: &str) -> bool {
    board.task(id).is_some_and(|task| task.column != Column::Done)
}
