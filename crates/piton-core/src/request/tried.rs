//! What a step tried that only a person may do, as it is recorded.

use crate::event::{CommandRefused, Event};
use crate::id::StepPath;

/// The record of a command that was refused.
pub(super) fn event(
    command: &str,
    step: Option<&StepPath>,
    attempt: Option<u32>,
    by: &str,
) -> Event {
    let (command, by) = (command.to_owned(), by.to_owned());
    Event::CommandRefused(CommandRefused { command, step: step.cloned(), attempt, by })
}
