//! The moments at which something may be recorded: the project, its settings and its ledger are opened.

use std::path::Path;
use std::time::Duration;

use piton_agents::hook::Caller;
use piton_core::event::Reason;
use piton_protocols::Table;
use piton_protocols::session::checkpoint::Checkpoint;
use piton_protocols::session::tokens::Usage;
use piton_view::hook::{Answer, stop_now, warned};
use piton_view::session::Saved;

use super::note::{Note, Passed, model_number};
use super::trouble::Result;
use super::{Asked, log, measure};
use crate::cli::{EndArgs, Which};
use crate::commands::session::{self, Here};
use crate::context::Context;
use crate::environment;

/// So long a hook may take: shorter than the limits that `init` writes, so that it ends by itself and
/// says so. What it was recording then is finished by the next command.
const TIME_MAX: Duration = Duration::from_secs(25);

/// The project of a call, opened.
fn open(table: &'static Table, asked: &Asked) -> Result<Context> {
    let (state_dir, words) = (asked.project.state_dir.clone(), asked.words());
    let limit = move || {
        std::thread::sleep(TIME_MAX);
        log::add(&state_dir, &words, &format!("gave up after {} s", TIME_MAX.as_secs()));
        std::process::exit(0);
    };
    // On a machine without room for a thread, the program that called sets the limit.
    let _ = std::thread::Builder::new().spawn(limit);
    Ok(Context::new(table, &asked.cwd, (false, false), true)?)
}

fn keep(asked: &Asked, note: &Note) -> Result<()> {
    note.keep(asked.state_dir(), &asked.call.session)
}

/// The first note about a session; `None` where nothing is recorded.
fn first_note(asked: &Asked, here: &Here<'_>, old: Option<&Note>) -> Note {
    let used = asked.call.tokens().unwrap_or_else(|| old.map_or(0, |note| note.used));
    let window = asked.call.fits().unwrap_or_else(|| asked.caller.window());
    let note = Note {
        used,
        window,
        passed: old.map_or(Passed::Nothing, |note| note.passed),
        is_kept: here.config.enabled && here.bank.is_there(),
        process: measure::agent_process(environment::agent_pid()),
        ..Note::default()
    };
    with_settings(asked, here, note, asked.call.model.as_deref())
}

/// The note with what settings say of the window of a model, or of the program.
fn with_settings(asked: &Asked, here: &Here<'_>, note: Note, model: Option<&str>) -> Note {
    let names: Vec<&str> = model.into_iter().chain([asked.caller.as_str()]).collect();
    let said = here.window(&names);
    let usual = || asked.call.fits().unwrap_or_else(|| asked.caller.window());
    let otherwise = || if note.is_window_set { usual() } else { note.window };
    Note {
        window: said.tokens.unwrap_or_else(otherwise),
        is_window_set: said.tokens.is_some(),
        thresholds: said.thresholds(),
        model: model.map_or(0, model_number),
        ..note
    }
}

/// The note of a conversation in which a model answers that was not looked up yet.
pub(super) fn of_model(
    table: &'static Table,
    asked: &Asked,
    note: Note,
    model: Option<String>,
) -> Result<Note> {
    let Some(model) = model.filter(|model| model_number(model) != note.model) else {
        return Ok(note);
    };
    if !note.is_kept {
        return Ok(note);
    }
    let context = open(table, asked)?;
    let here = Here::find(&context)?;
    Ok(with_settings(asked, &here, note, Some(&model)))
}

/// Makes the note of a session whose start nobody saw.
pub(super) fn begin(table: &'static Table, asked: &Asked) -> Result<Option<Note>> {
    let context = open(table, asked)?;
    let here = Here::find(&context)?;
    let note = first_note(asked, &here, None);
    // A folder without a memory bank and without a ledger is none of ours: nothing is left there.
    if !note.is_kept && !asked.state_dir().exists() {
        return Ok(None);
    }
    keep(asked, &note)?;
    Ok(Some(note))
}

/// A session starts: the agent gets what it needs to continue.
pub(super) fn start(
    table: &'static Table,
    asked: &Asked,
    old: Option<Note>,
) -> Result<Option<Answer>> {
    let context = open(table, asked)?;
    let here = Here::find(&context)?;
    let mut note = first_note(asked, &here, old.as_ref());
    if asked.call.is_compacted() {
        // The conversation is short again: its thresholds are ahead of it.
        (note.passed, note.used) = (Passed::Nothing, 0);
    }
    if !note.is_kept {
        return if asked.state_dir().exists() {
            keep(asked, &note).map(|()| None)
        } else {
            Ok(None)
        };
    }
    keep(asked, &note)?;
    if is_of_another(asked.state_dir(), &here, &asked.call.session) {
        return Ok(None);
    }
    let session = Some(asked.call.session.clone());
    let used = asked.call.tokens();
    let started = session::begin(here, session, used)?;
    let remarks = started.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    Ok(match started.context {
        Some(text) => Some(Answer::context(&asked.call.event, text)),
        None if started.needs_a_person() => Some(Answer::context(&asked.call.event, remarks)),
        None => None,
    })
}

/// Whether the checkpoint is that of another session whose agent is at work.
pub fn is_of_another(state_dir: &Path, here: &Here<'_>, own: &str) -> bool {
    let latest = here.bank.latest.as_ref();
    let read = latest.and_then(|file| Checkpoint::read(&file.path, &file.text).ok());
    let owner = read.and_then(|(checkpoint, _)| checkpoint.owner);
    owner.is_some_and(|(_, session)| {
        session != own && Note::read(state_dir, &session).is_some_and(|note| note.is_at_work())
    })
}

fn save(
    here: Here<'_>,
    asked: &Asked,
    reason: Reason,
    usage: Option<Usage>,
    message: &str,
) -> Result<Saved> {
    let session = Some(asked.call.session.clone());
    Ok(session::save(here, session, reason, usage, message)?)
}

/// A threshold was passed: a checkpoint, and at the last one the agent stops.
pub(super) fn threshold(
    table: &'static Table,
    asked: &Asked,
    note: Note,
    usage: Usage,
) -> Result<Option<Answer>> {
    let Some(reason) = usage.trigger() else { return Ok(None) };
    let context = open(table, asked)?;
    let here = Here::find(&context)?;
    let saved = save(here, asked, reason, Some(usage), "")?;
    let passed = Passed::of(usage);
    let note = Note { passed, ..note };
    let event = &asked.call.event;
    let Some(name) = saved.checkpoint.as_deref().filter(|_| saved.saved) else {
        // Switched off, or nothing to record: not asked again at this threshold.
        keep(asked, &note)?;
        return Ok(None);
    };
    if !saved.halt {
        keep(asked, &note)?;
        let words = format!("piton: {} %, recorded checkpoint {name}", usage.percent());
        return Ok(Some(Answer::context(event, warned(usage.percent(), name)).say(words)));
    }
    keep(asked, &note.stopped(true))?;
    Ok(Some(match asked.caller {
        // It has no hook that stops between operations: it is told, and further ones are refused.
        Caller::Codex => Answer::context(event, stop_now(&saved.talk)),
        _ => Answer::stop(saved.talk),
    }))
}

/// The conversation is about to be compacted: work in progress is saved.
pub(super) fn compact(
    table: &'static Table,
    asked: &Asked,
    note: Option<Note>,
) -> Result<Option<Answer>> {
    checkpoint(table, asked, note, Reason::TokenWarning, "before compaction")
}

/// The agent ends its turn: work in progress is saved, unless that was just done.
pub(super) fn stop(
    table: &'static Table,
    asked: &Asked,
    note: Option<Note>,
) -> Result<Option<Answer>> {
    if note.as_ref().is_some_and(|note| note.is_stopped) {
        return Ok(None);
    }
    checkpoint(table, asked, note, Reason::SessionEnd, "at the end of a turn")
}

fn checkpoint(
    table: &'static Table,
    asked: &Asked,
    note: Option<Note>,
    reason: Reason,
    message: &str,
) -> Result<Option<Answer>> {
    if note.as_ref().is_some_and(|note| !note.is_kept) {
        return Ok(None);
    }
    let context = open(table, asked)?;
    let here = Here::find(&context)?;
    if !here.config.enabled || !here.bank.is_there() {
        return Ok(None);
    }
    if !session::has_work(&here, Some(&asked.call.session))? {
        return Ok(None);
    }
    let note = note.unwrap_or_else(|| first_note(asked, &here, None));
    let (note, _) = measure::measured(asked, &note);
    let usage = (note.used > 0).then_some(note.usage());
    save(here, asked, reason, usage, message)?;
    Ok(None)
}

/// The session ends.
pub(super) fn end(
    table: &'static Table,
    asked: &Asked,
    note: Option<Note>,
) -> Result<Option<Answer>> {
    Note::forget(asked.state_dir(), &asked.call.session);
    if note.as_ref().is_some_and(|note| note.is_stopped) {
        // Its checkpoint is for the next session, and so is its task.
        Here::forget(asked.state_dir(), &asked.call.session);
    }
    if note.as_ref().is_some_and(|note| !note.is_kept || note.is_stopped) {
        return Ok(None);
    }
    let context = open(table, asked)?;
    let which = Which { session: Some(asked.call.session.clone()), tokens: None };
    session::end(&context, &EndArgs { which })?;
    Ok(None)
}
