//! Tasks of the board that begin and end, and the end of a session.

use piton_core::event::{Cause, Reason, SessionEnded, SessionSynced};
use piton_core::remedy;
use piton_core::session_state::{SessionAct, SessionState};
use piton_core::text::first_few;
use piton_protocols::session::board::{Board, Column, Task};
use piton_protocols::session::change::{Raw, moved};
use piton_protocols::session::checkpoint::Checkpoint;
use piton_protocols::session::resume::is_open;
use piton_protocols::session::tokens::Usage;
use piton_protocols::time;
use piton_view::session::{Ended, Moved, SYNCED, Saved, Unsaved};

use super::count;
use super::here::{self, Here};
use super::run::{Recording, found};
use super::save::{self, changed, has_work, pending, with_changes};
use crate::cli::{EndArgs, TaskArgs};
use crate::commands::hook::note::Note;
use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui;

/// Tasks that are named where one is not known.
const NAMED_MAX: usize = 8;

/// Moves a task to those in progress.
pub fn start(here: Here<'_>, args: &TaskArgs) -> Result<Moved> {
    refuse_disabled(&here)?;
    let here = here.alone()?;
    let is_due = pending(&here)?.is_due();
    let (board, waiting) = board(&here)?;
    let task = task(&board, &args.id)?;
    let mut changes = if is_due { waiting } else { Vec::new() };
    if task.column != Column::InProgress {
        let at = time::write_seconds(now());
        changes.push(moved(&task.id, task.column, Column::InProgress, &at));
    }
    // A board that cannot be edited is refused before anything is recorded.
    with_changes(&here, here_board(&here)?, &changes)?;
    let mut recording = Recording::of(here, args.which.session.as_deref())?;
    let (own, others) = recording.tasks();
    if others.contains(&args.id) {
        ui::say(format!("warning: another session started {} and has not finished it", args.id));
    }
    if !changes.is_empty() || own.as_ref() != Some(&args.id) {
        let act = changed(&recording, &changes, Cause::TaskStarted, Some(args.id.clone()));
        recording.record(vec![act])?;
    }
    done(&recording, &args.id, false, Saved::not(Unsaved::NotDue))
}

/// Moves a task to the finished ones and writes all collected changes. If the session went on from a
/// checkpoint, the work of that is finished with it.
pub fn finish(here: Here<'_>, args: &TaskArgs) -> Result<Moved> {
    refuse_disabled(&here)?;
    let usage = here.usage(&args.which)?;
    let here = here.alone()?;
    let (board, waiting) = board(&here)?;
    let task = task(&board, &args.id)?;
    let at = time::write_seconds(now());
    let mut changes = waiting;
    if task.column != Column::Done {
        changes.push(moved(&task.id, task.column, Column::Done, &at));
    }
    changes.extend(
        whole(&board, &task.id).map(|parent| moved(&parent.id, parent.column, Column::Done, &at)),
    );
    with_changes(&here, here_board(&here)?, &changes)?;
    let mut recording = Recording::of(here, args.which.session.as_deref())?;
    let is_over = task.column == Column::Done && changes.is_empty();
    if !is_over {
        let task = Some(args.id.clone());
        let act = changed(&recording, &changes, Cause::TaskFinished, task);
        recording.record(vec![act])?;
    }
    let is_synced = is_recovered(&recording, &args.id)?;
    if is_synced {
        sync(&mut recording, usage)?;
    }
    let saved = if !is_synced && recording.here.config.has(Reason::TaskCompletion) {
        save::save(
            &mut recording,
            Reason::TaskCompletion,
            &save::Asked { usage, ..Default::default() },
        )?
    } else {
        Saved::not(Unsaved::NotDue)
    };
    done(&recording, &args.id, is_synced, saved)
}

/// Whether the work of the checkpoint that the session went on from is finished, with a task.
fn is_recovered(recording: &Recording<'_>, task: &str) -> Result<bool> {
    let state = recording.state().session.as_ref();
    let Some(resumed) = state.and_then(|session| session.resumed.as_ref()) else {
        return Ok(false);
    };
    let latest = recording.here.bank.latest.as_ref();
    let latest = latest.and_then(|file| Checkpoint::read(&file.path, &file.text).ok());
    let run = &recording.loaded.row.run_id;
    let is_own = |checkpoint: &Checkpoint| {
        checkpoint.timestamp == resumed.timestamp
            || checkpoint.owner.as_ref().is_some_and(|(owner, _)| owner == run)
    };
    let board = here_board(&recording.here)?;
    Ok(match latest.map(|(checkpoint, _)| checkpoint).filter(is_own) {
        Some(checkpoint) => !checkpoint.in_progress.iter().any(|id| is_open(&board, id)),
        None => resumed.task.as_ref().is_none_or(|resumed| resumed == task),
    })
}

fn done(recording: &Recording<'_>, task: &str, synced: bool, saved: Saved) -> Result<Moved> {
    let board = recording.here.bank.board().map_err(|problem| here::document(&problem))?;
    Ok(Moved {
        run_id: Some(recording.loaded.row.run_id.clone()),
        task: task.to_owned(),
        column: board.task(task).map(|task| task.column.as_str()),
        synced,
        checkpoint: saved.checkpoint,
        next: board.next(1).first().map(|task| task.id.clone()),
    })
}

/// Records that the work of a checkpoint is finished: its file is emptied.
fn sync(recording: &mut Recording<'_>, usage: Option<Usage>) -> Result<()> {
    let session = recording.session.clone();
    let used = usage.map(|usage| usage.used).or_else(|| measured(recording));
    let cost_tokens = count(SYNCED);
    recording.record(vec![SessionAct::Sync(SessionSynced { session, used, cost_tokens })])
}

/// Tokens of the conversation as hooks measured them: all of them, or since its start if nobody said
/// how many there were then.
fn measured(recording: &Recording<'_>) -> Option<u64> {
    let state_dir = &recording.here.context.project.state_dir;
    let note = Note::read(state_dir, &recording.session).filter(|note| note.used > 0)?;
    let at_start = recording.state().session.as_ref().and_then(|session| session.used_at_start);
    Some(note.used.saturating_sub(at_start.map_or(note.first, |_| 0)))
}

/// The task that was split, if the one that is finished was its last open part.
fn whole<'b>(board: &'b Board, part: &str) -> Option<&'b Task> {
    let (parent, _) = part.rsplit_once('-')?;
    let parent = board.task(parent).filter(|task| task.is_split())?;
    let prefix = format!("{}-", parent.id);
    let is_open = |task: &&Task| {
        task.id.starts_with(&prefix) && task.id != part && task.column != Column::Done
    };
    (!board.tasks.iter().any(|task| is_open(&task))).then_some(parent)
}

/// The board with all collected changes, and those.
fn board(here: &Here<'_>) -> Result<(Board, Vec<Raw>)> {
    let waiting = pending(here)?.changes;
    with_changes(here, here_board(here)?, &waiting)
}

/// The board as its file has it.
fn here_board(here: &Here<'_>) -> Result<Board> {
    here.bank.board().map_err(|problem| here::document(&problem))
}

fn task<'b>(board: &'b Board, id: &str) -> Result<&'b Task> {
    board.task(id).ok_or_else(|| {
        let open = board.tasks.iter().filter(|task| task.column != Column::Done);
        let open: Vec<String> = open.map(|task| task.id.clone()).collect();
        let open = first_few(open.into_iter(), NAMED_MAX);
        let message = format!("there is no task `{id}` on the board");
        CommandError::usage("no-task", message)
            .hint(format!("open tasks: {}", open.unwrap_or_else(|| "none".to_owned())))
    })
}

pub fn refuse_disabled(here: &Here<'_>) -> Result<()> {
    let message = match (here.config.enabled, here.bank.board.is_some()) {
        (true, true) => return Ok(()),
        (false, _) => "the session protocol is switched off here",
        (true, false) => "there is no task board here",
    };
    Err(CommandError::usage("no-session", message)
        .hint("a board is `work/backlog.yaml` or `taskBoard.md` in the memory bank")
        .hint(remedy![Words "set `session.root` in piton.toml if it is elsewhere"]))
}

/// Ends a session: work in progress is saved, everything else is written.
pub fn end(context: &Context, args: &EndArgs) -> Result<Ended> {
    let here = Here::find(context)?;
    let usage = here.usage(&args.which)?;
    if !here.config.enabled || !here.bank.is_there() {
        return Ok(Ended::default());
    }
    let has_ledger = context.project.state_dir.join(piton_ledger::DATABASE_FILE).exists();
    let here = here.alone()?;
    let is_at_work = has_work(&here, args.which.session.as_deref())?;
    if !is_at_work {
        // A session that recorded nothing has nothing to end.
        let mut store = if has_ledger { Some(context.write_store()?) } else { None };
        let session = args.which.session.as_deref();
        let fits = |known: &SessionState| session.is_none_or(|session| session == known.session);
        let known = store.as_mut().map(|store| found(&here, store, fits)).transpose()?.flatten();
        if known.is_none() {
            return Ok(Ended::default());
        }
    }
    let mut recording = Recording::of(here, args.which.session.as_deref())?;
    let is_saved = is_at_work && recording.here.config.has(Reason::SessionEnd);
    let saved = if is_saved {
        let asked = save::Asked { usage, ..Default::default() };
        Some(save::save(&mut recording, Reason::SessionEnd, &asked)?)
    } else {
        let state = recording.state().session.as_ref();
        let is_recovering = state.is_some_and(|s| s.active.is_some() || s.resumed.is_some());
        if is_at_work {
            written(&mut recording)?;
        } else if is_recovering {
            sync(&mut recording, usage)?;
        }
        None
    };
    let (own, others) = recording.tasks();
    let board = here_board(&recording.here)?;
    let task = board.in_progress(own.as_deref(), &others).first().map(|task| task.id.clone());
    let session = recording.session.clone();
    recording.record(vec![SessionAct::End(SessionEnded { session, task: task.clone() })])?;
    Ok(Ended {
        run_id: Some(recording.loaded.row.run_id.clone()),
        session: Some(recording.session.clone()),
        checkpoint: saved.and_then(|saved| saved.checkpoint),
        task,
    })
}

/// Writes all collected changes of a session that makes no checkpoint at its end.
fn written(recording: &mut Recording<'_>) -> Result<()> {
    let waiting = pending(&recording.here)?.changes;
    let (_, fits) = with_changes(&recording.here, here_board(&recording.here)?, &waiting)?;
    if fits.is_empty() {
        return Ok(());
    }
    let act = changed(recording, &fits, Cause::Flush, None);
    recording.record(vec![act])
}
