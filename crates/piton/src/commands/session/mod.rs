//! `piton session`: what happens in the session of an agent, and what the next one needs.
//!
//! Each act is one function with typed input and answer, so that hooks and other callers use the same.

mod here;
mod run;
mod save;
mod start;
mod task;
mod work;

use piton_core::event::Reason;
use piton_protocols::session::checkpoint::Checkpoint;
use piton_protocols::session::cleanup::stamp_of;
use piton_protocols::session::tokens::Usage;
use piton_view::session::{Saved, Start, Started, Unsaved};

use crate::cli::{SessionArgs, SessionCommand, TaskCommand};
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

pub use here::Here;
pub use run::Recording;
pub use save::{Asked as SaveAsked, checkpoint, has_work};
pub use task::{end, finish as finish_task, start as start_task};
pub use work::{phase, record_artifact};

/// The tokens of a text, as `piton brief` counts them.
fn count(text: &str) -> u64 {
    piton_agents::tokens::count(text) as u64
}

/// Starts a session of an agent program.
pub fn begin(here: Here<'_>, session: Option<String>, used: Option<u64>) -> Result<Started> {
    start::start(here, &start::Asked { session, used, resume: false })
}

/// Continues from the last checkpoint, because somebody asks for it.
pub fn resume(here: Here<'_>, session: Option<String>, used: Option<u64>) -> Result<Started> {
    start::start(here, &start::Asked { session, used, resume: true })
}

/// Records a checkpoint of such a session.
pub fn save(
    here: Here<'_>,
    session: Option<String>,
    reason: Reason,
    usage: Option<Usage>,
    message: &str,
) -> Result<Saved> {
    let is_routine = reason == Reason::SessionEnd;
    let (message, reason, parts) = (message.to_owned(), Some(reason), Vec::new());
    save::checkpoint(here, &save::Asked { session, reason, usage, parts, message, is_routine })
}

/// Carries out what happens in a session.
pub fn run(context: &Context, args: &SessionArgs) -> Result<()> {
    match &args.command {
        SessionCommand::Start(args) => {
            let started = start::run(context, args)?;
            started.warnings().iter().for_each(|line| ui::say(line.as_str()));
            if context.json || started.context.is_some() {
                ui::show(context.json, &started, || started.context.clone().unwrap_or_default());
            }
            match started.start {
                Start::Asks => Err(CommandError::silent(Kind::Waiting)),
                _ => Ok(()),
            }
        }
        SessionCommand::Checkpoint(args) => {
            let saved = save::run(context, args)?;
            ui::show(context.json, &saved, || saved.words());
            match saved.why {
                Some(Unsaved::NoBank) => Err(CommandError::silent(Kind::Usage)),
                _ => Ok(()),
            }
        }
        SessionCommand::Task(TaskCommand::Start(args)) => {
            let moved = task::start(Here::find(context)?, args)?;
            ui::show(context.json, &moved, || moved.words());
            Ok(())
        }
        SessionCommand::Task(TaskCommand::Finish(args)) => {
            let moved = task::finish(Here::find(context)?, args)?;
            ui::show(context.json, &moved, || moved.words());
            Ok(())
        }
        SessionCommand::End(args) => {
            let ended = task::end(context, args)?;
            ui::show(context.json, &ended, || ended.words());
            Ok(())
        }
    }
}

/// Cleans up the checkpoints of the memory bank here; says how many files that were.
pub fn clean_up(context: &Context) -> Result<usize> {
    let here = here::Here::find(context)?;
    if !here.config.enabled || !here.bank.is_there() {
        return Ok(0);
    }
    if !here.checkpoint_names().iter().any(|name| stamp_of(name).is_some()) {
        return Ok(0);
    }
    let here = here.alone()?;
    let latest = here.bank.latest.as_ref();
    let latest = latest.and_then(|file| Checkpoint::read(&file.path, &file.text).ok());
    Ok(here.clean_up(latest.and_then(|(checkpoint, _)| start::stamp_of(&checkpoint)).as_deref()))
}
