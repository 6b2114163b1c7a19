//! The start of a session: steps 1 to 4 of resuming, and what happens when that fails.

use piton_core::event::{Cause, Resumed, SessionNotResumed, SessionOpened};
use piton_core::hash::Sha;
use piton_core::session_state::SessionAct;
use piton_protocols::session::brief::{Parts, brief};
use piton_protocols::session::change::Raw;
use piton_protocols::session::checkpoint::Checkpoint;
use piton_protocols::session::cleanup;
use piton_protocols::session::resume::{Verdict, is_open, validate};
use piton_protocols::time;
use piton_view::session::{Start, Started};

use super::count;
use super::here::{self, Here};
use super::run::Recording;
use super::save::{changed, flush, pending, with_changes};
use crate::cli::StartArgs;
use crate::context::{Context, now};
use crate::error::Result;
use crate::ui;

/// How a session is asked to start.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// What the agent program calls it.
    pub session: Option<String>,
    /// Tokens of the conversation.
    pub used: Option<u64>,
    /// Whether it resumes although the protocol file says to ask first.
    pub resume: bool,
}

/// Starts a session as the command line asks for it.
pub fn run(context: &Context, args: &StartArgs) -> Result<Started> {
    let here = Here::find(context)?;
    let used = here.usage(&args.which)?.map(|usage| usage.used);
    let session = args.which.session.clone();
    start(here, &Asked { session, used, resume: args.resume || context.yes })
}

/// Starts a session. Where there is no checkpoint and nothing is to be written, no ledger is opened.
pub fn start(here: Here<'_>, asked: &Asked) -> Result<Started> {
    let context = here.context;
    let started = begun(here, asked)?;
    let session = started.session.clone().or(asked.session.clone());
    let flushed = Here::find(context).and_then(|here| flush(here, session.as_deref(), false));
    if let Err(error) = flushed {
        ui::say(format!("warning: collected changes are not written: {}", error.message));
    }
    Ok(started)
}

fn begun(here: Here<'_>, asked: &Asked) -> Result<Started> {
    if !here.config.enabled {
        return Ok(Started::new(Start::Disabled, Vec::new()));
    }
    if !here.bank.is_there() {
        return Ok(Started::new(Start::NoBank, Vec::new()));
    }
    let here = rebuilt(here.alone()?)?;
    let latest = here.bank.latest.clone();
    let (latest, text) = match &latest {
        None => (Ok(Checkpoint::default()), String::new()),
        Some(file) => (Checkpoint::read(&file.path, &file.text).map(|(c, _)| c), file.text.clone()),
    };
    let checkpoint = match latest {
        Ok(checkpoint) => checkpoint,
        Err(problem) => {
            let why = format!("{}:{}: {}", problem.file, problem.line, problem.message);
            return failed(here, asked, &Checkpoint::default(), text, why);
        }
    };
    clean(&here, &checkpoint);
    let board = here.bank.board().map_err(|problem| here::document(&problem));
    let stack_id = here.bank.stack_id().map_err(|problem| here::document(&problem));
    let verdict = match (&board, &stack_id) {
        _ if !checkpoint.is_active() => Verdict::Nothing,
        (Ok(board), Ok(stack_id)) => validate(&checkpoint, stack_id, board, now()),
        (Err(error), _) | (_, Err(error)) => Verdict::Fails(vec![error.message.clone()]),
    };
    match verdict {
        Verdict::Nothing => Ok(Started::new(Start::Fresh, Vec::new())),
        Verdict::TooOld(why) => Ok(Started::new(Start::TooOld, vec![why])),
        Verdict::Fails(why) => failed(here, asked, &checkpoint, text, why.join("; ")),
        Verdict::Resume(_) if !here.config.auto_resume && !asked.resume => {
            let why = format!("there is a checkpoint of {}", checkpoint.timestamp);
            Ok(Started::new(Start::Asks, vec![why]))
        }
        Verdict::Resume(warnings) => resumed(here, asked, &checkpoint, &text, warnings),
    }
}

/// The bank with its checkpoint written again, if the file is gone or damaged and the ledger has it.
fn rebuilt(mut here: Here<'_>) -> Result<Here<'_>> {
    let is_readable = |here: &Here<'_>| {
        let latest = here.bank.latest.as_ref();
        latest.is_some_and(|file| Checkpoint::read(&file.path, &file.text).is_ok())
    };
    let has_ledger = here.context.project.state_dir.join(piton_ledger::DATABASE_FILE).exists();
    if !is_readable(&here) && has_ledger {
        let mut store = here.context.write_store()?;
        if let Some(loaded) = super::run::found(&here, &mut store, |_| true)? {
            here.show(&mut store, &loaded.row.run_id)?;
            here.read_again()?;
        }
    }
    Ok(here)
}

/// Cleans up the folder of checkpoints; the files of the active one stay.
fn clean(here: &Here<'_>, checkpoint: &Checkpoint) {
    let count = here.clean_up(stamp_of(checkpoint).as_deref());
    if count > 0 {
        ui::say(format!("cleaned up {}", piton_view::text::count(count, "checkpoint file")));
    }
}

/// The stamp in the names of a checkpoint's copies, if it is active.
pub fn stamp_of(checkpoint: &Checkpoint) -> Option<String> {
    checkpoint.at().filter(|_| checkpoint.is_active()).map(time::stamp)
}

/// A checkpoint that cannot be resumed from: logged and kept, and the session starts normally.
fn failed(
    here: Here<'_>,
    asked: &Asked,
    checkpoint: &Checkpoint,
    document: String,
    why: String,
) -> Result<Started> {
    let session = session_name(asked);
    let names = here.archived_names();
    let mut recording = Recording::of_checkpoint(here, checkpoint, &session)?;
    let state = recording.state().session.as_ref();
    let is_known = state.is_some_and(|s| {
        s.not_resumed.as_ref() == Some(&checkpoint.timestamp)
            && s.not_resumed_hash.as_ref() == Some(&Sha::of(document.as_bytes()))
    });
    if !is_known {
        let stamp = cleanup::new_stamp(now(), &names);
        let opened = SessionOpened { session: session.clone(), resumed: None, used: asked.used };
        let not_resumed = SessionNotResumed {
            session,
            timestamp: checkpoint.timestamp.clone(),
            why: why.clone(),
            stamp,
            document,
        };
        recording.record(vec![SessionAct::Open(opened), SessionAct::NotResumed(not_resumed)])?;
    }
    let mut started = Started::new(Start::Failed, vec![why]);
    started.run_id = Some(recording.loaded.row.run_id.clone());
    Ok(started)
}

fn session_name(asked: &Asked) -> String {
    asked.session.clone().unwrap_or_else(super::run::unnamed)
}

/// Goes on from a checkpoint: its changes are applied once, and the agent gets its context.
fn resumed(
    here: Here<'_>,
    asked: &Asked,
    checkpoint: &Checkpoint,
    text: &str,
    warnings: Vec<String>,
) -> Result<Started> {
    let session = session_name(asked);
    let run = checkpoint.owner.as_ref().map(|(run, _)| run.clone());
    let waiting = pending(&here)?.changes;
    let has_delta = here.bank.delta.is_some();
    let mut recording = Recording::of_checkpoint(here, checkpoint, &session)?;
    let is_own = run.as_ref() == Some(&recording.loaded.row.run_id);
    let state = recording.state().session.as_ref();
    let is_applied = state.is_some_and(|s| s.applied.as_ref() == Some(&checkpoint.timestamp));
    let is_continued = state.is_some_and(|s| {
        s.session == session
            && s.resumed.as_ref().is_some_and(|r| r.timestamp == checkpoint.timestamp)
    });
    // What this run wrote is not in the list of changes any more; what another tool did nobody knows.
    let is_left = |change: &&Raw| !is_own || !has_delta || waiting.contains(change);
    let changes: Vec<Raw> = checkpoint.deltas.iter().filter(is_left).cloned().collect();
    let changes = if is_applied { Vec::new() } else { changes };
    let board = recording.here.bank.board().map_err(|problem| here::document(&problem))?;
    let (board, changes) = with_changes(&recording.here, board, &changes)?;
    let applied = changes.len();
    let (bank, redactor) = (&recording.here.bank, &recording.here.context.redactor);
    // As long as it is once secrets are replaced.
    let redacted = |text: &str| count(&redactor.redact(text));
    let made = recording.state().session.as_ref().map(|session| session.artifacts.as_slice());
    let artifacts = made.unwrap_or_default();
    let parts = Parts { bank, board: &board, checkpoint, applied, artifacts, count: &redacted };
    let context = redactor.redact(&brief(parts)).into_owned();
    let task = checkpoint.in_progress.iter().find(|id| is_open(&board, id)).cloned();
    if !is_continued || !changes.is_empty() {
        let resumed = Resumed {
            timestamp: checkpoint.timestamp.clone(),
            task: task.clone(),
            load_tokens: count(text),
            context_tokens: count(&context),
        };
        let (resumed, used) = (Some(resumed), asked.used);
        let mut acts = vec![SessionAct::Open(SessionOpened { session, resumed, used })];
        if !is_applied {
            acts.push(changed(&recording, &changes, Cause::Resume, None));
        }
        recording.record(acts)?;
    }
    let mut started = Started::new(Start::Resumed, warnings);
    started.run_id = Some(recording.loaded.row.run_id.clone());
    started.session = Some(recording.session.clone());
    started.task = task;
    started.applied = applied;
    started.context = Some(context);
    Ok(started)
}
