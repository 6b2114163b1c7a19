//! `piton undo`: undoes the last rollback, restore, merge, skip or removal of a worktree, or another
//! act by its number; an undo can be undone too.

use piton_core::event::{Revert, RewindKind};
use piton_core::lane_state::{Act, Undoable};
use piton_core::undo::{self, Refused};
use piton_engine::world::{Rewind, RoomTarget};
use piton_view::answers::{Acts, Undone};

use super::rewind;
use crate::cli::UndoArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Lanes that an act is told by; of more only their number is.
const LANES_NAMED_MAX: usize = 3;

/// Undoes the last act.
pub fn run(context: &Context, args: &UndoArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let any = |r: &piton_ledger::RunRow| !matches!(r.status.as_str(), "archived" | "cancelled");
    let row = Context::pick(&mut store, args.run.as_deref(), any, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.of_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(context, &loaded)?;
    if args.list {
        list(context, &loaded.row.run_id, &loaded.state.undo);
        return Ok(());
    }
    super::request::refuse_inside(context, &mut store, &loaded)?;
    rewind::refuse_over(context, &loaded)?;
    let loaded = if args.dry_run {
        loaded
    } else {
        rewind::finish(context, &mut store, loaded, args.takeover)?
    };
    let act = picked(&loaded.state.undo, args.act)?;
    let made = reverse(act);
    let (words, shown) = (act.words.clone(), told(act));
    if !context.json {
        ui::say(&format!("undo: {shown}"));
    }
    if !rewind::Planned::of(context, &loaded, &made)?.tell(context, args.dry_run)? {
        return Ok(());
    }
    rewind::confirm(context, &format!("Undo the {shown}?"))?;
    let run_id = loaded.row.run_id.clone();
    let ending = rewind::drive(context, &mut store, &run_id, made, args.takeover)?;
    if context.json {
        ui::data_json(&Undone { run_id: &run_id, undone: &words });
    } else {
        ui::say(&format!("undone: {shown}"));
        ui::say(&format!("  and back again: piton undo {run_id}"));
        if let Some(act) = undo::further(&ending.state.undo) {
            let (id, words) = (act.id, told(act));
            ui::say(&format!("  further back:   piton undo {run_id} --act {id} ({words})"));
        }
    }
    Ok(())
}

/// The act that is meant.
fn picked(acts: &[Undoable], number: Option<u64>) -> Result<&Undoable> {
    let Some(number) = number else {
        return undo::last(acts).ok_or_else(|| {
            CommandError::usage("nothing-to-undo", "there is nothing to undo")
                .hint("rollbacks, restores, merges, skips and removals of worktrees can be undone")
        });
    };
    undo::chosen(acts, number).map_err(|refused| match refused {
        Refused::Unknown => {
            CommandError::usage("nothing-to-undo", format!("no act {number} is known"))
                .hint("`piton undo --list` numbers the acts that can be undone")
        }
        Refused::Undone(by) => {
            CommandError::usage("nothing-to-undo", format!("act {number} is undone already"))
                .hint(format!("`piton undo --act {by}` brings it back"))
        }
        Refused::Later(id) => {
            let words = acts.iter().find(|a| a.id == id).map(told).unwrap_or_default();
            let message = format!("act {number} is not the last on its lanes: {words} came later");
            CommandError::usage("nothing-to-undo", message)
                .hint(format!("undo that first: `piton undo --act {id}`"))
        }
    })
}

/// What an act was about; an undo names what it undid. One that many lanes have in common names them,
/// so that it can be told from others of its kind.
fn told(act: &Undoable) -> String {
    let lanes: Vec<String> = act.lanes.iter().map(|(lane, _)| lane.to_string()).collect();
    let is_named = |lane: &String| act.words.contains(lane.as_str());
    let words = piton_view::text::sanitize(&act.words);
    if lanes.is_empty() || lanes.iter().any(is_named) {
        return words;
    }
    if lanes.len() > LANES_NAMED_MAX {
        return format!("{words}, of {} lanes", lanes.len());
    }
    format!("{words}, of {}", piton_view::text::sanitize(&lanes.join(" and ")))
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
        ui::data(&format!("{:>6}  {}  {}{undone}", act.id, ui::place().local(act.at), told(act)));
    }
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
            beside: Some(room.target.clone()),
            paths: room.paths.clone(),
            windows: Vec::new(),
            exact: true,
            branch: room.branch.clone(),
            head_to: if act.act == Act::Removal {
                room.head_to.clone()
            } else {
                room.head_from.clone()
            },
            set_aside: room.aside.clone(),
            ..RoomTarget::default()
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
