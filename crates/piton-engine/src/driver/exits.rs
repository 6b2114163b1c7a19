//! What the exit of an attempt's last process tells by itself.

use piton_core::lane::Role;
use piton_core::plan::{Step, Work};
use piton_core::replan::EXIT_REPLAN;

use crate::world::Ended;

/// `SIGKILL`: sent by nobody's program on purpose, but by people, the kernel and falling machines.
const SIGKILL: i32 = 9;
/// How a shell reports that its child was killed.
const EXIT_KILLED: i32 = 137;

/// Whether the work of a step ended with the exit code that asks for a replan.
pub(super) fn asks_for_replan(step: &Step, ended: &Ended) -> bool {
    let works = ended.part == 0 && !matches!(step.work, Work::Tests(_));
    works && step.role != Role::PullRequest && ended.code == Some(EXIT_REPLAN)
}

pub(super) fn was_killed(ended: &Ended) -> bool {
    ended.signal == Some(SIGKILL) || ended.code == Some(EXIT_KILLED)
}

pub(super) fn how(ended: &Ended) -> String {
    match (ended.code, ended.signal) {
        (Some(127), _) => "exit code 127 (command not found)".to_owned(),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "it ended in a way the system did not tell".to_owned(),
    }
}
