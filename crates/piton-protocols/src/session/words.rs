//! The texts of the protocol.

use piton_core::event::Reason;

use super::board::Task;

/// What a person reads when a session stops.
pub fn interrupted(task: Option<&str>) -> String {
    let at = task.unwrap_or("no task");
    format!(
        "Session interrupted at {at}. To resume:\n\n1. Start new session\n2. Agent will auto-detect \
         checkpoint\n3. Or manually: \"Resume from last checkpoint\"\n4. System loads minimal context \
         and continues"
    )
}

/// What an agent reads that goes on after the warning.
pub fn minimal(task: Option<&str>) -> String {
    let task = task.map_or_else(|| "the current task".to_owned(), |task| format!("task {task}"));
    format!("Minimal context mode: load only what {task} needs, and continue with it.")
}

/// What the next agent is told to do.
pub fn instructions(reason: Reason, task: Option<&Task>) -> String {
    let Some(task) = task else {
        return "Load recovery context, then continue with the next task of the board.".to_owned();
    };
    let go_on = format!(
        "Load recovery context, complete {}, run tests, then full sync and return to standard mode.",
        task.name()
    );
    match reason {
        Reason::TokenCritical => format!("{}\n\n{go_on}", interrupted(Some(&task.id))),
        _ => go_on,
    }
}

/// What an agent is told that goes on although its checkpoint is recorded.
pub fn full() -> String {
    "The context is full, and the checkpoint is recorded: begin nothing more, and stop.".to_owned()
}
