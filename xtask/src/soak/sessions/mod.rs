//! SIGKILL while a scripted agent works through a board of twelve tasks in four sessions.
//!
//! Its hooks, its commands, its calls over MCP and a driver beside it are killed again and again; what
//! was killed is called again, as an agent does. The checkpoint and the board are read all the time.
//! In the end every task is done once, every collected change was written once, and the files still
//! have what people wrote in them.

mod agent;
mod bank;
mod check;
mod many;

use super::reader::{Content, Reader};
use super::scratch::Scratch;
use super::{Broken, Round};

pub(super) use bank::{is_board, is_checkpoint};
pub(super) use many::many;

/// What must have been killed, and how often in full.
pub(super) const AIMS: (&[&str], u64) = (&[HOOK, COMMAND, MCP, DRIVER], 100);
/// Kills of hooks.
const HOOK: &str = "a hook";
/// Kills of commands of a session.
const COMMAND: &str = "a command";
/// Kills of calls over MCP.
const MCP: &str = "an MCP call";
/// Kills of the driver.
const DRIVER: &str = "a driver";

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::with_files(round, false, |_| bank::files())?;
    let at = |path: &str| scratch.base().join("repo").join(path);
    let readers = [
        Reader::start(&at(bank::LATEST), Content::SessionCheckpoint)?,
        Reader::start(&at(bank::BOARD), Content::Board)?,
    ];
    let mut checked = agent::works(round, &scratch);
    for reader in readers {
        let read = reader.finish().map(|reads| round.tally.reads += reads);
        checked = checked.and(read);
    }
    let checked = checked.and_then(|()| {
        check::all_is_done(&scratch)?;
        scratch.clean()
    });
    checked.map_err(|broken| scratch.report(&broken))
}
