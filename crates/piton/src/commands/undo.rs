//! `piton undo`: undoes the last rollback, restore, merge, skip or removal of a worktree; an undo
//! can be undone too.

use piton_core::event::{Revert, RewindKind};
use piton_core::lane_state::{Act, Undoable};
use piton_engine::world::{Rewind, RoomTarget};

use super::rewind;
use crate::cli::UndoArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Undoes the last act.
pub fn run(context: &Context, args: &UndoArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let any = |r: &piton_ledger::RunRow| !matches!(r.status.as_str(), "archived" | "cancelled");
    let row = Context::pick(&mut store, args.run.as_deref(), any, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.of_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_inside(context, &mut store, &loaded)?;
    let loaded = if args.dry_run {
        loaded
    } else {
        rewind::settle(context, &mut store, loaded, args.takeover)?
    };
    let last = loaded.state.undo.iter().rev().find(|u| !u.undone);
    let Some(act) = last.cloned() else {
        return Err(CommandError::usage("nothing-to-undo", "there is nothing to undo")
            .hint("rollbacks, restores, merges, skips and removals of worktrees can be undone"));
    };
    let made = reverse(&act);
    let words = act.words.clone();
    if !context.json {
        ui::say(&format!("undo: {words}"));
    }
    let present = super::look::present(context, &loaded, &made.targets)?;
    rewind::print_plan(context, &loaded, &made, &present)?;
    if args.dry_run {
        return Ok(());
    }
    rewind::confirm(context, &format!("Undo the {words}?"))?;
    let run_id = loaded.row.run_id.clone();
    rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    if context.json {
        ui::data_json(&serde_json::json!({"run_id": run_id, "undone": words}));
    } else {
        ui::say(&format!("undone: {words}"));
        ui::say(&format!("  and back again: piton undo {run_id}"));
    }
    Ok(())
}

/// What brings back what an act changed.
fn reverse(act: &Undoable) -> Rewind {
    let mut intent = rewind::intent(RewindKind::Undo, &act.words, Vec::new());
    intent.undoes = Some(act.id);
    let targets = act
        .rooms
        .iter()
        .map(|room| RoomTarget {
            lane: room.lane.clone(),
            dir: if room.lane.is_some() { room.dir.clone() } else { String::new() },
            target: room.present.commit.clone(),
            paths: room.paths.clone(),
            windows: Vec::new(),
            exact: true,
            branch: room.branch.clone(),
            head_to: if act.act == Act::Removal {
                room.head_to.clone()
            } else {
                room.head_from.clone()
            },
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
