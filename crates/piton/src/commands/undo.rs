//! `piton undo`: undoes the last rollback, restore, merge, skip or removal of a worktree, or another
//! act by its number; an undo can be undone too.

use piton_core::event::{Revert, RewindKind};
use piton_core::lane_state::{Act, Undoable};
use piton_core::remedy;
use piton_core::text::first_few;
use piton_core::undo::{self, Refused};
use piton_engine::world::{Rewind, RewindTarget};
use piton_view::answers::{Acts, Undone};
use piton_view::text::sanitize;

use super::rewind;
use crate::cli::UndoArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Most lanes that an act is described by; the rest are counted.
const LANES_NAMED_MAX: usize = 3;

/// Undoes the last act.
pub fn run(context: &Context, args: &UndoArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let loaded = rewind::pick(&mut store, args.run.as_deref())?;
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(context, &loaded)?;
    if args.list {
        list(context, &loaded.row.run_id, &loaded.state.undo);
        return Ok(());
    }
    super::request::refuse_deciding(context, &loaded)?;
    rewind::refuse_over(context, &loaded)?;
    let loaded = rewind::finish(context, &mut store, loaded, args.takeover, args.dry_run)?;
    let act = picked(&loaded.state.undo, args.act)?;
    let made = reverse(act);
    let (words, shown) = (act.title(), described(&loaded.state.undo, act));
    if !rewind::Planned::new(context, &loaded, &made)?.tell(context, args.dry_run)? {
        return Ok(());
    }
    rewind::confirm(context, &format!("Undo: {shown}?"))?;
    let run_id = loaded.row.run_id.clone();
    let ending = rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    if context.json {
        ui::data_json(&Undone { run_id: &run_id, undone: &words });
    } else {
        ui::say(format!("undone: {shown}"));
        rewind::say_next(&ending.state, "redo");
    }
    Ok(())
}

/// The act that is meant.
fn picked(acts: &[Undoable], number: Option<u64>) -> Result<&Undoable> {
    let Some(number) = number else {
        return undo::last(acts).ok_or_else(|| {
            CommandError::usage("nothing-to-undo", "there is nothing to undo")
                .hint("rollbacks, restores, merges, replans, skips and removals of worktrees can be undone")
        });
    };
    undo::chosen(acts, number).map_err(|refused| match refused {
        Refused::Unknown => {
            CommandError::usage("nothing-to-undo", format!("no act {number} is known"))
                .hint(remedy![Piton "undo --list", Words " numbers the acts that can be undone"])
        }
        Refused::Undone(by) => {
            CommandError::usage("nothing-to-undo", format!("act {number} is undone already"))
                .hint(remedy![Piton "undo --act {by}", Words " brings it back"])
        }
        Refused::Later(id) => {
            let words = acts
                .iter()
                .find(|a| a.id == id)
                .map(|act| described(acts, act))
                .unwrap_or_default();
            let message = format!("act {number} is not the last on its lanes: {words} came later");
            CommandError::usage("nothing-to-undo", message)
                .hint(remedy![Words "undo that first: ", Piton "undo --act {id}"])
        }
    })
}

/// What an act was about; an undo names what it undid. A rollback names its lanes, so that it can be told
/// from others of its kind.
fn described(acts: &[Undoable], act: &Undoable) -> String {
    let mut first = act;
    while let Some(undone) = acts.iter().find(|known| Some(known.id) == first.undoes) {
        first = undone;
    }
    let lanes = act.lanes.iter().map(|(lane, _)| lane.to_string());
    let words = sanitize(&act.title());
    match first_few(lanes, LANES_NAMED_MAX).filter(|_| first.act == Act::Rollback) {
        Some(lanes) => format!("{words}, of {}", sanitize(&lanes)),
        None => words,
    }
}

/// Lists the acts, the newest first.
fn list(context: &Context, run_id: &str, acts: &[Undoable]) {
    if context.json {
        ui::data_json(&Acts::new(run_id, acts));
        return;
    }
    if acts.is_empty() {
        ui::say("there is nothing to undo");
    }
    for act in acts.iter().rev() {
        let undone = if act.undone { " (undone)" } else { "" };
        ui::data(&format!(
            "{:>6}  {}  {}{undone}",
            act.id,
            ui::place().local(act.at),
            described(acts, act)
        ));
    }
}

/// What brings back what an act changed.
fn reverse(act: &Undoable) -> Rewind {
    let mut intent = rewind::intent(RewindKind::Undo, &act.title(), Vec::new());
    intent.undoes = Some(act.id);
    let targets = act
        .workspaces
        .iter()
        .map(|workspace| RewindTarget {
            lane: workspace.lane.clone(),
            dir: if workspace.lane.is_some() { workspace.dir.clone() } else { String::new() },
            target: workspace.present.commit.clone(),
            beside: Some(workspace.target.clone()),
            paths: workspace.paths.clone(),
            windows: Vec::new(),
            exact: true,
            branch: workspace.branch.clone(),
            head_to: if act.act == Act::Removal {
                workspace.head_to.clone()
            } else {
                workspace.head_from.clone()
            },
            ..RewindTarget::default()
        })
        .collect();
    let merges = act
        .reverts
        .iter()
        .rev()
        .map(|r| {
            // A merge moved base from one commit to the other; a revert did so too.
            let (from, to) = if r.to.is_empty() {
                (r.merged_from.clone(), r.merged_to.clone())
            } else {
                (r.from.clone(), r.to.clone())
            };
            Revert {
                merged_from: from,
                merged_to: to,
                from: String::new(),
                to: String::new(),
                ..r.clone()
            }
        })
        .collect();
    Rewind { intent, targets, merges }
}
