//! `piton run ROADMAP.md`, or a folder: its phases one after the other, each as a run of its own.
//!
//! What was done is asked of the runs, and not kept anywhere else: a phase with a complete run is passed
//! over, and one with an unfinished run continues. So the same command goes on where it stopped.

use std::path::Path;

use piton_core::{Status, remedy};
use piton_protocols::protocol::Link;

use super::next_phase;
use crate::cli::RunArgs;
use crate::commands::request::is_given_up;
use crate::context::Context;
use crate::drive;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// Runs the phases of a roadmap, from the first or from the one that was named.
pub fn run(context: &Context, roadmap: &Path, links: &[Link], args: &RunArgs) -> Result<()> {
    refuse_options(args)?;
    let first = match &args.start_phase {
        None => 0,
        Some(wanted) => position(links, wanted)?,
    };
    check(context, &links[first..])?;
    let typed = context.plan_argument(&recorded(context, roadmap));
    let count = links.len();
    for (at, link) in links.iter().enumerate().skip(first) {
        let phase = &link.phase;
        let Some(document) = &link.document else {
            let message = format!("phase {phase} of the roadmap has no document yet");
            return Err(CommandError::new(Kind::Blocked, "roadmap-stopped", message)
                .hint(remedy![Words "write it, then run ", Piton "run {typed}"]));
        };
        let next = links.get(at + 1);
        if args.drive.dry_run {
            ui::say(format!("phase {phase} ({} of {count}): {document}", at + 1));
            super::run_plan(context, of_phase(context, document, args))?;
            continue;
        }
        let path = context.path_from_cwd(document);
        if let Some((run, true)) = newest(context, document)? {
            ui::say(format!("phase {phase} ({} of {count}) is complete: run {run}", at + 1));
            tell(context, &run)?;
        } else {
            ui::say(format!("phase {phase} ({} of {count}): {document}", at + 1));
            let ended = super::run_plan(context, of_phase(context, document, args));
            if let Some(next) = next.and_then(|next| next.document.as_ref()) {
                next_phase::say(context, &path, &context.path_from_cwd(next), ended.as_ref().err());
            }
            if let Err(error) = ended {
                return Err(stopped(error, phase, (at, count), &typed));
            }
        }
        let Some(next) = next else { continue };
        let is_begun = match &next.document {
            Some(document) => newest(context, document)?.is_some(),
            None => false,
        };
        // Who began the next phase has seen this.
        if let Some(why) = next_phase::stopped(context, &path, None).filter(|_| !is_begun) {
            let next = &next.phase;
            return Err(CommandError::new(Kind::Blocked, "roadmap-stopped", why).hint(remedy![
                Words "look at what phase {phase} did, then continue with ",
                Piton "run {typed} --start-phase {next}"
            ]));
        }
    }
    if !args.drive.dry_run {
        ui::say(match count - first {
            1 => "the phase is complete".to_owned(),
            many => format!("all {many} phases are complete"),
        });
    }
    Ok(())
}

/// Refuses options that are about one run.
fn refuse_options(args: &RunArgs) -> Result<()> {
    let given = [
        ("--lane", args.drive.lane.is_some()),
        ("--phase", args.drive.phase.is_some()),
        ("--detach", args.drive.detach),
        ("--rollback", args.rollback),
        ("--fresh", args.fresh),
        ("--run-id", args.run_id.is_some()),
        ("--next-phase", args.next_phase.is_some()),
    ];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    let message = format!("`{option}` is for one phase, and a roadmap has several");
    Err(CommandError::usage("usage", message).hint("name the document of that phase instead"))
}

/// The place of a phase that a person named by its id, or by its document.
fn position(links: &[Link], wanted: &str) -> Result<usize> {
    let is_meant = |link: &Link| {
        let document = link.document.as_deref().map(Path::new);
        let stem = document.and_then(Path::file_stem).map(|stem| stem.to_string_lossy());
        link.phase.eq_ignore_ascii_case(wanted)
            || stem.is_some_and(|stem| stem == wanted)
            || link.document.as_deref() == Some(wanted)
    };
    links.iter().position(is_meant).ok_or_else(|| {
        let known: Vec<&str> = links.iter().map(|link| link.phase.as_str()).collect();
        CommandError::usage("no-step", format!("the roadmap has no phase `{wanted}`"))
            .hint(format!("it has: {}", known.join(", ")))
    })
}

/// Refuses before the first phase what would stop a later one: a document that cannot be read.
fn check(context: &Context, links: &[Link]) -> Result<()> {
    for link in links {
        let Some(document) = &link.document else {
            let phase = &link.phase;
            ui::say(format!(
                "note: phase {phase} has no document yet: the roadmap stops before it"
            ));
            return Ok(());
        };
        if let Some(why) = next_phase::unreadable(context, &context.path_from_cwd(document)) {
            let typed = context.plan_argument(document);
            return Err(CommandError::usage("plan-unreadable", why)
                .hint(remedy![Piton "inspect {typed}", Words " shows all problems"]));
        }
    }
    Ok(())
}

/// What `piton run DOCUMENT` is told for a phase; an unfinished run of it continues.
fn of_phase(context: &Context, document: &str, args: &RunArgs) -> RunArgs {
    let is_unfinished = matches!(newest(context, document), Ok(Some((_, false))));
    RunArgs {
        plan: Some(context.path_from_cwd(document)),
        resume: is_unfinished,
        fresh: false,
        rollback: false,
        to: None,
        task_worktrees: args.task_worktrees,
        next_phase: None,
        start_phase: None,
        run_id: None,
        drive: args.drive.clone(),
    }
}

/// The newest run of a document here, and whether it is complete.
fn newest(context: &Context, document: &str) -> Result<Option<(String, bool)>> {
    let mut store = match context.read_store() {
        Ok(store) => store,
        Err(error) if error.code == "no-ledger" => return Ok(None),
        Err(error) => return Err(error),
    };
    let root = context.project.root.as_path();
    let mut runs = store.runs()?.into_iter();
    let row = runs.find(|r| r.plan == document && !is_given_up(r) && Path::new(&r.root) == root);
    Ok(row.map(|row| (row.run_id, row.status == Status::Complete.as_str())))
}

/// Says what happened to the run of a phase since its terminal closed, if nobody was told yet.
fn tell(context: &Context, run: &str) -> Result<()> {
    let mut store = context.read_store()?;
    let loaded = store.load(run)?;
    drive::hangup::tell(context, &mut store, &loaded);
    Ok(())
}

/// Where the roadmap stopped, and how it goes on.
fn stopped(
    error: CommandError,
    phase: &str,
    (at, count): (usize, usize),
    typed: &str,
) -> CommandError {
    ui::say(format!("the roadmap stopped at phase {phase} ({} of {count})", at + 1));
    let again =
        remedy![Words "afterwards ", Piton "run {typed}", Words " goes on with phase {phase}"];
    if error.message.is_empty() {
        ui::say(again);
        return error;
    }
    error.hint(again)
}

fn recorded(context: &Context, path: &Path) -> String {
    crate::plan_file::recorded_path(&context.project.root, &context.cwd.join(path))
}
