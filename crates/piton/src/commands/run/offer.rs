//! A record of an earlier run of the same plan: it resumes, or a person chooses what happens to it.

use piton_core::remedy;
use piton_engine::Store;
use piton_ledger::RunRow;
use piton_protocols::protocol::Offer;
use piton_protocols::time::stamp;
use piton_world::read;

use super::aside;
use crate::commands::inspect::FILE_BYTES_MAX;
use crate::commands::request;
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::PlanFile;
use crate::ui;

/// Where records that a person deleted are kept, in the state folder.
const DELETED: &str = "deleted";

/// Says what the record tells, and whether its run goes on; `row` is the run if the ledger knows it.
pub fn resumes(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    offer: &Offer,
    row: Option<&RunRow>,
) -> Result<bool> {
    say(offer);
    let Some(reason) = &offer.reason else { return Ok(true) };
    let reason = piton_view::text::sanitize(reason);
    if context.yes {
        ui::say(format!("{reason}; resuming anyway because of --yes"));
        return Ok(true);
    }
    if !context.can_ask() {
        return Err(refused(context, plan, offer, &reason));
    }
    ui::say(format!("It does not resume by itself: {reason}"));
    if let Some(row) = row {
        let running = aside::running(context, store, &row.run_id)?;
        if !running.is_empty() {
            ui::say(format!("  start fresh and delete end {running}"));
        }
    }
    loop {
        let choices = ["resume", "start fresh", "view", "delete", "cancel"];
        let question = "Resume from checkpoint?";
        return match ui::ask_or_confirm(question, &choices, ('r', 's'), &mut || false) {
            Some('r') => Ok(true),
            Some('s') => Ok(false),
            Some('v') => {
                view(context, offer);
                continue;
            }
            Some('d') => delete(context, store, offer, row),
            Some(_) => Err(cancelled()),
            None => {
                Err(CommandError::new(Kind::Interrupted(2), "interrupted", "nothing was changed"))
            }
        };
    }
}

/// The end of a command that a person does not want after all.
pub fn cancelled() -> CommandError {
    ui::say("nothing was changed");
    CommandError::silent(Kind::Waiting)
}

/// Says what the record tells.
pub fn say(offer: &Offer) {
    offer.said.iter().for_each(|line| ui::say(piton_view::text::sanitize(line)));
}

fn refused(context: &Context, plan: &PlanFile, offer: &Offer, reason: &str) -> CommandError {
    let (typed, record) = (context.plan_argument(&plan.path), &offer.record);
    let message =
        format!("{} has an unfinished run that does not resume by itself: {reason}", plan.path);
    CommandError::new(Kind::Blocked, "run-unfinished", message)
        .hint(remedy![Words "continue it with ", Piton "run {typed} --resume"])
        .hint(remedy![Words "set it aside and start a new one with ", Piton "run {typed} --fresh"])
        .hint(remedy![Words "look at it with ", Piton "inspect {record}"])
}

fn view(context: &Context, offer: &Offer) {
    let file = context.project.root.join(&offer.record);
    match read::text(&file, FILE_BYTES_MAX) {
        Ok(text) => {
            let redactor = context.redactor_of_text(&text);
            ui::say(piton_view::text::sanitize_lines(&redactor.redact(&text)));
        }
        Err(error) => ui::say(format!("{}: {error}", offer.record)),
    }
}

/// Deletes a record, and sets its run aside. A copy stays in the state folder.
fn delete(
    context: &Context,
    store: &mut Store,
    offer: &Offer,
    row: Option<&RunRow>,
) -> Result<bool> {
    if let Some(row) = row {
        let run = store.load(&row.run_id)?;
        request::refuse_deciding(context, &run)?;
    }
    let failed = |error: std::io::Error| {
        CommandError::failed("world", format!("{} was not deleted: {error}", offer.record))
            .hint("check that you own the file and that the disk has space")
    };
    let (from, folder) =
        (context.project.root.join(&offer.record), context.project.state_dir.join(DELETED));
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let copy = folder.join(format!("{name}.{}", stamp(now())));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    match std::fs::copy(&from, &copy) {
        Ok(_) => std::fs::remove_file(&from).map_err(failed)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    if let Some(row) = row {
        aside::archive(context, store, row)?;
    }
    ui::say(format!("deleted {} (a copy is {})", offer.record, copy.display()));
    Err(CommandError::silent(Kind::Waiting))
}
