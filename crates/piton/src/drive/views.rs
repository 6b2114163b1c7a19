//! The views of a run, from the side of commands: where they lie, when they are written, and how they
//! come back with what the ledger knows of all runs.

use std::path::{Path, PathBuf};

use piton_core::{Event, Plan, RunState, Timestamp};
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_formats::settings;
use piton_ledger::{Open, RunRow, Sqlite};

use super::{HANDS_FILE, rooms, root_of};
use crate::cli::DriveArgs;
use crate::context::Context;
use crate::error::Result;
use crate::ui;
use piton_world::folder::FolderRooms;
use piton_world::views::{AllRecords, Mode, ViewPaths, Viewed, Views, records};

/// The views of a run.
pub fn views(context: &Context, state: &RunState) -> Views {
    let (root, settings) = (root_of(context, state), &context.settings);
    let paths = ViewPaths {
        checkpoints: settings.lanes.checkpoints.clone(),
        run_logs: settings.lanes.run_logs.clone(),
        run_reports: settings.lanes.run_reports.clone(),
        worktrees: settings.lanes.worktrees.clone(),
    };
    let mode = match settings.lanes.views {
        settings::Views::Auto => Mode::Auto,
        settings::Views::On => Mode::On,
        settings::Views::Off => Mode::Off,
    };
    let (state_dir, at, of) = (context.project.state_dir.clone(), root.clone(), paths.clone());
    let own = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let (ledger_dir, run_id) = (state_dir.clone(), own.clone());
    let history = move || history(&ledger_dir, &run_id).unwrap_or_default();
    let others = move || all_records(&state_dir, &at, &of, mode, &own);
    Views::new(&root, &context.project.state_dir, paths, mode)
        .with_plan(&state.protocol, &state.plan_path)
        .with_others(Box::new(others))
        .with_history(Box::new(history))
}

/// All events of a run; nothing where they can't be read.
fn history(state_dir: &Path, run_id: &str) -> Option<Vec<(u64, Timestamp, Event)>> {
    let ledger = Sqlite::open(state_dir, Open::ReadOnly).ok()?;
    let mut store = Store::new(Box::new(ledger));
    let row = store.ledger().run(run_id).ok()??;
    events(&mut store, &row).ok()
}

/// All events of a run, page by page.
fn events(store: &mut Store, row: &RunRow) -> Result<Vec<(u64, Timestamp, Event)>> {
    let mut all: Vec<(u64, Timestamp, Event)> = Vec::new();
    loop {
        let page = store.events(row, all.last().map_or(0, |(seq, ..)| *seq))?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// What the ledger says of all runs that have views in a folder, without the records of the one that
/// asks: it knows them. What can't be read is left out.
fn all_records(
    state_dir: &Path,
    root: &Path,
    paths: &ViewPaths,
    mode: Mode,
    own: &str,
) -> AllRecords {
    let Ok(ledger) = Sqlite::open(state_dir, Open::ReadOnly) else { return Vec::new() };
    let mut store = Store::new(Box::new(ledger));
    let mut rows = store.runs().unwrap_or_default();
    rows.retain(|row| Path::new(&row.root) == root);
    let mut all = Vec::new();
    // The newest is the first of them.
    for row in rows.into_iter().rev() {
        if row.run_id == own {
            all.push((row.run_id, Vec::new()));
            continue;
        }
        let Ok(Loaded { row, state, .. }) = store.load_row(row) else { continue };
        if mode == Mode::On || is_lanes(&state) {
            all.push((row.run_id, records(root, paths, &state.plan_path, &state)));
        }
    }
    all
}

/// Whether a run follows the lanes protocol.
fn is_lanes(state: &RunState) -> bool {
    state.protocol.id == "lanes"
}

/// The lanes of a run without snapshots; nothing where it has no views.
pub(super) fn folder(context: &Context, state: &RunState) -> Option<FolderRooms> {
    let views = views(context, state);
    if !views.is_wanted() {
        return None;
    }
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let hands: PathBuf = context.run_dir(&run_id).join(HANDS_FILE);
    Some(FolderRooms::new(&root_of(context, state), &hands, views))
}

/// Whether a run may have views: only then its whole history is read when a driver starts.
pub fn has_views(context: &Context, state: &RunState) -> bool {
    match context.settings.lanes.views {
        settings::Views::On => true,
        settings::Views::Off => false,
        settings::Views::Auto => is_lanes(state),
    }
}

/// Writes the views of a run that nobody drives as the ledger has it.
pub fn write_views(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    plan: &Plan,
    epoch: u64,
) -> Result<()> {
    if let Some(mut rooms) = rooms(context, &loaded.state, &DriveArgs::default()) {
        rooms.take_over(epoch)?;
        return bring_up(context, store, loaded, plan, &mut rooms);
    }
    let Some(mut folder) = folder(context, &loaded.state) else { return Ok(()) };
    folder.take_over(epoch)?;
    bring_up(context, store, loaded, plan, &mut folder)
}

/// Renames the views of a run that was archived, so that its successor's are not taken for them.
pub fn set_views_aside(context: &Context, store: &mut Store, run_id: &str) -> Result<()> {
    let loaded = store.load(run_id)?;
    let plan = store.plan(&loaded.state).map_err(|error| error.to_string());
    let mut views = views(context, &loaded.state);
    let aside =
        plan.and_then(|plan| views.set_aside(&plan, &loaded.state).map_err(|e| e.to_string()));
    if let Err(error) = aside {
        ui::say(&format!("warning: the views of {run_id} were not renamed: {error}"));
    }
    Ok(())
}

/// Gives the views of an archived run that goes on their names back.
pub fn bring_views_back(context: &Context, state: &RunState) {
    if let Err(error) = views(context, state).bring_back(state) {
        ui::say(&format!("warning: the views were not renamed: {error}"));
    }
}

/// Brings the views up to what the ledger says; a driver that died may have left them behind.
pub(super) fn bring_up(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    plan: &Plan,
    rooms: &mut dyn Viewed,
) -> Result<()> {
    if !has_views(context, &loaded.state) {
        return Ok(());
    }
    let all = events(store, &loaded.row)?;
    if let Err(error) = rooms.rebuild_log(&loaded.row.run_id, all) {
        ui::say(&format!("warning: the run log was not written: {error}"));
    }
    match rooms.views(plan, &loaded.state) {
        Ok(warnings) => warnings.iter().for_each(|w| ui::say(&format!("warning: {w}"))),
        Err(error) => ui::say(&format!("warning: a view was not written: {error}")),
    }
    Ok(())
}
