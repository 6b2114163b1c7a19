//! Checkpoints of a session: the triggers, and steps 1 to 5 of their creation.

use std::collections::BTreeMap;

use piton_core::LanePath;
use piton_core::event::{Cause, Reason, SessionChanged, SessionSaved};
use piton_core::lane::SnapshotRef;
use piton_core::session_state::SessionAct;
use piton_formats::diagnostic::code;
use piton_formats::yaml::Document;
use piton_protocols::session::board::Board;
use piton_protocols::session::change::{Change, Pending, Raw};
use piton_protocols::session::checkpoint::Checkpoint;
use piton_protocols::session::cleanup;
use piton_protocols::session::create::{Moment, create};
use piton_protocols::session::tokens::Usage;
use piton_protocols::session::{decompose, words};
use piton_protocols::time;
use piton_view::session::{Saved, Unsaved};

use super::here::{self, Here};
use super::run::Recording;
use crate::cli::{SaveArgs, Trigger};
use crate::commands::{current_files, request};
use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui;

/// What a checkpoint is asked to be.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Which session; the last one here if none is named.
    pub session: Option<String>,
    /// Why; none if the tokens decide.
    pub reason: Option<Reason>,
    /// How full the conversation is.
    pub usage: Option<Usage>,
    /// Parts that are left to do of the current task.
    pub parts: Vec<String>,
    /// A remark.
    pub message: String,
    /// Whether it is made at each turn: not if nothing has changed since the last one.
    pub is_routine: bool,
}

/// Records a checkpoint as the command line asks for it.
pub fn run(context: &Context, args: &SaveArgs) -> Result<Saved> {
    let reason = args.trigger.map(reason_of);
    let here = Here::find(context)?;
    let usage = here.usage(&args.which)?;
    // Without tokens and without a trigger somebody simply asks for one.
    let reason = reason.or(if usage.is_none() { Some(Reason::Manual) } else { None });
    let (parts, message) = (args.parts.clone(), args.message.clone());
    let session = args.which.session.clone();
    checkpoint(here, &Asked { session, reason, usage, parts, message, is_routine: false })
}

fn reason_of(trigger: Trigger) -> Reason {
    match trigger {
        Trigger::Warning => Reason::TokenWarning,
        Trigger::Critical => Reason::TokenCritical,
        Trigger::End => Reason::SessionEnd,
        Trigger::Task => Reason::TaskCompletion,
        Trigger::Manual => Reason::Manual,
    }
}

/// Records a checkpoint, or says why there is nothing to do. What needs no checkpoint opens no ledger.
pub fn checkpoint(here: Here<'_>, asked: &Asked) -> Result<Saved> {
    if !here.config.enabled {
        return Ok(Saved::not(Unsaved::Disabled));
    }
    if !here.bank.is_there() {
        return Ok(Saved::not(Unsaved::NoBank));
    }
    let triggered = asked.usage.and_then(|usage| usage.trigger());
    let session = asked.session.as_deref();
    let Some(reason) = asked.reason.or(triggered) else {
        flush(here, session, false)?;
        return Ok(Saved::not(Unsaved::NotDue));
    };
    if !here.config.has(reason) {
        // What is switched off is the checkpoint.
        flush(here, session, writes_all(reason))?;
        return Ok(Saved::not(Unsaved::Off));
    }
    // Each threshold is passed once in a session.
    let note = asked.session.as_deref().and_then(|session| here.note(session));
    let before = note.and_then(|note| note.trigger);
    let is_passed = before == Some(reason) || before == Some(Reason::TokenCritical);
    if asked.reason.is_none() && is_passed {
        flush(here, session, false)?;
        let is_full = asked.usage.is_some_and(|usage| usage.is_full());
        let talk = if is_full { words::full() } else { String::new() };
        return Ok(Saved { halt: is_full, talk, ..Saved::not(Unsaved::Done) });
    }
    let here = here.alone()?;
    if reason == Reason::SessionEnd && !has_work(&here, asked.session.as_deref())? {
        return Ok(Saved::not(Unsaved::NoWork));
    }
    let mut recording = Recording::of(here, session)?;
    save(&mut recording, reason, asked)
}

/// Whether all collected changes are written then, however few they are.
fn writes_all(reason: Reason) -> bool {
    matches!(reason, Reason::TokenCritical | Reason::SessionEnd | Reason::TaskCompletion)
}

/// Writes the collected changes that can be made: all of them, or if there are as many as the file
/// allows.
pub fn flush(here: Here<'_>, session: Option<&str>, all: bool) -> Result<()> {
    let is_due = |waiting: &Pending| waiting.is_due() || (all && !waiting.changes.is_empty());
    if !here.config.enabled || !here.bank.is_there() || !is_due(&pending(&here)?) {
        return Ok(());
    }
    let here = here.alone()?;
    let waiting = pending(&here)?;
    if !is_due(&waiting) {
        return Ok(());
    }
    let board = here.bank.board().map_err(|problem| here::document(&problem))?;
    let (_, fits) = with_changes(&here, board, &waiting.changes)?;
    if fits.is_empty() {
        return Ok(());
    }
    let mut recording = Recording::of(here, session)?;
    let act = changed(&recording, &fits, Cause::Flush, None);
    recording.record(vec![act])
}

/// Refuses to record something where there is no memory bank, or the protocol is switched off.
pub fn refuse_without_bank(here: &Here<'_>) -> Result<()> {
    let message = match (here.config.enabled, here.bank.is_there()) {
        (true, true) => return Ok(()),
        (false, _) => "the session protocol is switched off here",
        (true, false) => "there is no memory bank here",
    };
    Err(CommandError::usage("no-session", message)
        .hint("a memory bank has a `projectConfig.md`, a task board or a folder `checkpoints`"))
}

/// Whether a task of a session is in progress, or changes are not written yet. Without a session it is
/// any task.
pub fn has_work(here: &Here<'_>, session: Option<&str>) -> Result<bool> {
    let board = here.bank.board().map_err(|problem| here::document(&problem))?;
    let note = session.and_then(|session| here.note(session)).unwrap_or_default();
    let others = session.map(|_| here.claimed(&note.run)).unwrap_or_default();
    let is_any = !board.in_progress(note.task.as_deref(), &others).is_empty();
    Ok(is_any || !pending(here)?.changes.is_empty())
}

/// The changes that are not written yet.
pub fn pending(here: &Here<'_>) -> Result<Pending> {
    let Some(file) = &here.bank.delta else { return Ok(Pending::default()) };
    let read = Pending::read(&file.path, &file.text);
    read.map(|(pending, _)| pending).map_err(|problem| here::document(&problem))
}

/// The board as it is when collected changes are written, and those of them that fit. A change that
/// Piton does not understand, of a task that is not there, or that cannot be made is reported and left
/// where it is.
pub fn with_changes(here: &Here<'_>, board: Board, changes: &[Raw]) -> Result<(Board, Vec<Raw>)> {
    let mut fits = Vec::new();
    let mut others: BTreeMap<String, Option<Document>> = BTreeMap::new();
    // What cannot be read is refused by whoever writes it.
    let read = |path: &str| Document::new(path, &here.text(path).unwrap_or_default()).ok();
    let mut document = board.document;
    for raw in changes {
        let odd = |why: &str| ui::say(format!("warning: a change is not applied: {why}"));
        let change = match Change::read(raw) {
            Ok(change) => change,
            Err(why) => {
                odd(why);
                continue;
            }
        };
        let Some(target) = here.bank.target(&change.file) else {
            odd(&format!("`{}` is not a file of the memory bank", change.file));
            continue;
        };
        if here.bank.target("taskBoard").as_ref() == Some(&target) {
            document = match change.apply(&document, true) {
                Err(problem) if problem.code == code::UNKNOWN_ID => {
                    odd(&problem.message);
                    continue;
                }
                changed => changed.map_err(|problem| here::document(&problem))?,
            };
        } else if let Some(other) = others.entry(target).or_insert_with_key(|path| read(path)) {
            match change.apply(other, false) {
                Ok(new) => *other = new,
                Err(problem) => {
                    odd(&problem.message);
                    continue;
                }
            }
        }
        fits.push(raw.clone());
    }
    let board = Board::read(document.file(), document.text());
    let (board, _) = board.map_err(|problem| here::document(&problem))?;
    Ok((board, fits))
}

/// Makes the checkpoint: collected changes are written first where the protocol says so.
pub fn save(recording: &mut Recording<'_>, reason: Reason, asked: &Asked) -> Result<Saved> {
    let waiting = pending(&recording.here)?;
    let is_flushed = waiting.is_due() || writes_all(reason);
    let board = recording.here.bank.board().map_err(|problem| here::document(&problem))?;
    let (board, fits) = with_changes(&recording.here, board, &waiting.changes)?;
    let (own, others) = recording.tasks();
    let current = board.in_progress(own.as_deref(), &others).into_iter().next();
    let split = current.filter(|_| reason == Reason::TokenCritical).and_then(|task| {
        let at = time::write_seconds(now());
        Some((task.id.clone(), decompose::split(task, &asked.parts, &at)?))
    });
    let mut acts = Vec::new();
    if is_flushed && !fits.is_empty() {
        acts.push(changed(recording, &fits, Cause::Flush, None));
    }
    if let Some((task, change)) = &split {
        let first = decompose::first_part(task);
        let changes = std::slice::from_ref(change);
        acts.push(changed(recording, changes, Cause::Decomposed, Some(first)));
    }
    if !acts.is_empty() {
        recording.record(acts)?;
    }
    let board = match &split {
        Some((_, change)) => with_changes(&recording.here, board, std::slice::from_ref(change))?.0,
        None => board,
    };
    written(recording, reason, asked, &board, waiting.changes)
}

/// An act that changes files.
pub fn changed(
    recording: &Recording<'_>,
    changes: &[Raw],
    cause: Cause,
    task: Option<String>,
) -> SessionAct {
    let changes = changes.iter().map(Raw::to_string).collect();
    SessionAct::Change(SessionChanged { session: recording.session.clone(), changes, cause, task })
}

/// Records the checkpoint with its snapshot, and writes its files.
fn written(
    recording: &mut Recording<'_>,
    reason: Reason,
    asked: &Asked,
    board: &Board,
    deltas: Vec<Raw>,
) -> Result<Saved> {
    let (own, others) = recording.tasks();
    let Recording { here, loaded, session, .. } = &*recording;
    let bank = &here.bank;
    let run_id = loaded.row.run_id.clone();
    let at = now();
    let checkpoint = create(Moment {
        board,
        task: own.as_deref(),
        others: &others,
        stack_id: bank.stack_id().map_err(|problem| here::document(&problem))?,
        objective: bank.objective().map_err(|problem| here::document(&problem))?,
        deltas,
        phase: loaded
            .state
            .session
            .as_ref()
            .and_then(|s| s.phase.as_deref())
            .or(here.settings.phase()),
        reason,
        usage: asked.usage,
        at,
        is_warned: loaded.state.session.as_ref().is_some_and(|s| s.trigger.is_some()),
        owner: (run_id.clone(), session.clone()),
    });
    let context = here.context;
    let usual = || match checkpoint.in_progress.first() {
        Some(task) => format!("{} at {task}", reason.as_str()),
        None => reason.as_str().to_owned(),
    };
    let message = if asked.message.is_empty() { usual() } else { asked.message.clone() };
    let message = request::message(context, loaded, &message)?;
    let document = context.redactor.redact(&checkpoint.write()).into_owned();
    let task = checkpoint.in_progress.first().cloned();
    let is_critical = reason == Reason::TokenCritical;
    let talk = match reason {
        Reason::TokenCritical => words::interrupted(task.as_deref()),
        Reason::TokenWarning => words::minimal(task.as_deref()),
        _ => String::new(),
    };
    let (head, snapshots) = (context.project.head(), current_files::all(context, loaded)?);
    if asked.is_routine && is_as_before(recording, &document, head.as_deref(), &snapshots) {
        return Ok(Saved::not(Unsaved::Done));
    }
    let stamp = cleanup::new_stamp(at, &here.checkpoint_names());
    let saved = SessionSaved {
        session: session.clone(),
        name: String::new(),
        reason,
        stamp: stamp.clone(),
        cost_tokens: super::count(&document) + super::count(&talk),
        document,
        task: task.clone(),
        tokens: asked.usage.map(|usage| (usage.used, usage.window)),
    };
    let before = recording.state().session.as_ref().and_then(|session| session.active()).cloned();
    recording.record(vec![SessionAct::Save { saved, message, head, snapshots }])?;
    // The one of the turn before is not needed any more, and would push others out.
    if let Some(before) = before.filter(|b| asked.is_routine && b.reason == Reason::SessionEnd) {
        recording.here.forget_copy(&before.stamp);
    }
    let session = recording.state().session.as_ref();
    let name = session.and_then(|session| session.points.last()).map(|point| point.name.clone());
    let kind = if is_critical { cleanup::EMERGENCY } else { cleanup::BACKUP };
    Ok(Saved {
        saved: true,
        why: None,
        run_id: Some(run_id),
        session: Some(recording.session.clone()),
        checkpoint: name,
        reason: Some(reason),
        task,
        files: vec![
            recording.here.bank.path(piton_protocols::session::LATEST),
            recording.here.bank.path(&format!("checkpoints/{kind}{stamp}.json")),
        ],
        halt: is_critical || asked.usage.is_some_and(|usage| usage.is_full()),
        talk,
    })
}

/// Whether the checkpoint that the next session goes on from says the same, of the same files.
fn is_as_before(
    recording: &Recording<'_>,
    document: &str,
    head: Option<&str>,
    snapshots: &[(Option<LanePath>, SnapshotRef)],
) -> bool {
    let state = recording.state();
    let active = state.session.as_ref().and_then(|session| session.active.as_deref());
    let last = state.checkpoints.iter().rev().find(|point| Some(point.name.as_str()) == active);
    let Some((last, latest)) = last.zip(recording.here.bank.latest.as_ref()) else { return false };
    let read = |text: &str| Checkpoint::read(&latest.path, text).ok().map(|(found, _)| found);
    let Some((new, old)) = read(document).zip(read(&latest.text)) else { return false };
    let Checkpoint { timestamp, reason, tokens, mode, instructions, .. } = old.clone();
    let new = Checkpoint { timestamp, reason, tokens, mode, instructions, ..new };
    let trees = |all: &[(Option<LanePath>, SnapshotRef)]| -> Vec<(Option<LanePath>, String)> {
        all.iter().map(|(lane, snapshot)| (lane.clone(), snapshot.tree.clone())).collect()
    };
    new == old && last.head.as_deref() == head && trees(&last.snapshots) == trees(snapshots)
}
