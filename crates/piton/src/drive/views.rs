//! The protocol files of a run, from the side of commands: which there are, and when they are written.

use std::path::Path;

use piton_core::{Plan, RunState};
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_ledger::Open;
use piton_protocols::files::{Files, Occasion, Run};
use piton_protocols::find;
use piton_world::run_lock::RunLock;
use piton_world::views::{Place, Writer};

use super::{RUN_LOCK_FILE, root_of};
use crate::context::Context;
use crate::error::Result;
use crate::ui;

/// The files that its protocol keeps of a run; nothing where it keeps none.
fn files(context: &Context, state: &RunState) -> Option<Box<dyn Files>> {
    let (root, settings) = (&root_of(context, state), &context.settings);
    find(context.table, &state.protocol.id)?.files(&Run { root, settings, state })
}

/// What protocols write, from the root of a run.
pub fn own_paths(context: &Context, state: &RunState) -> Vec<String> {
    let (root, settings) = (&root_of(context, state), &context.settings);
    let run = Run { root, settings, state };
    let mut all: Vec<String> =
        context.table.iter().flat_map(|protocol| protocol.own_paths(&run)).collect();
    all.extend(documents(context, state));
    all
}

/// The documents of other runs here. Piton ticks them too, and a tick of an earlier phase must not keep
/// the next from starting.
fn documents(context: &Context, state: &RunState) -> Vec<String> {
    let rows = context.read_store().ok().and_then(|mut store| store.runs().ok());
    let is_document = |plan: &String| Path::new(plan).extension().is_some_and(|e| e == "md");
    let rows = rows.unwrap_or_default().into_iter().filter(|row| row.root == state.root);
    let plans = rows.map(|row| row.plan).filter(|plan| !plan.starts_with('/'));
    plans.filter(is_document).filter(|plan| *plan != state.plan_path).collect()
}

/// Who writes the protocol files of a run for the driver of an epoch; nothing where there are none.
pub(super) fn driving(context: &Context, state: &RunState, epoch: u64) -> Result<Option<Writer>> {
    let mut writer = writer(context, state);
    if writer.is_some() {
        keep_out(context, state);
    }
    writer.as_mut().map_or(Ok(()), |writer| writer.take_over(epoch))?;
    Ok(writer)
}

/// Keeps the files of the run's protocol out of the user's commits.
fn keep_out(context: &Context, state: &RunState) {
    let kept = find(context.table, &state.protocol.id).map(|p| p.kept_out(&context.settings));
    let root = root_of(context, state);
    if let Err(why) = piton_workspace::checks::keep_out(&root, &kept.unwrap_or_default()) {
        ui::say(format!("warning: git cannot be told to ignore the files of the run: {why}"));
    }
}

fn writer(context: &Context, state: &RunState) -> Option<Writer> {
    let files = files(context, state)?;
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let run_dir = context.run_dir(&run_id);
    let run_lock = RunLock::new(run_dir.join(RUN_LOCK_FILE), state.epoch);
    let place = Place {
        root: root_of(context, state),
        state_dir: context.project.state_dir.clone(),
        run_dir,
        run_id,
        ledger: |dir| Some(Store::new(piton_ledger::open(dir, Open::ReadOnly).ok()?)),
        protocol: state.protocol.id.clone(),
    };
    Some(Writer::new(place, files, run_lock))
}

/// Says what the protocol of a run has to say.
pub fn say_words(context: &Context, state: &RunState, occasion: Occasion) {
    let files = files(context, state);
    for line in files.map(|files| files.words(state, occasion)).unwrap_or_default() {
        ui::say(piton_view::text::sanitize(&line));
    }
}

/// Writes the protocol files of a run that nobody drives as the ledger has it.
pub fn write_views(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    plan: &Plan,
    epoch: u64,
) -> Result<()> {
    match driving(context, &loaded.state, epoch)? {
        Some(mut writer) => bring_up(store, loaded, plan, &mut writer),
        None => Ok(()),
    }
}

/// Brings the files of a run up to date after a decision that was recorded without a driver. One that
/// came since writes them itself. Whether they were written here.
pub fn show_decision(context: &Context, store: &mut Store, run_id: &str) -> Result<bool> {
    let loaded = store.load(run_id)?;
    let Some(mut writer) = writer(context, &loaded.state) else { return Ok(true) };
    let plan = store.plan(&loaded.state)?;
    if Context::driver_lives(&loaded.row) || writer.take_over(loaded.row.epoch).is_err() {
        return Ok(false);
    }
    bring_up(store, &loaded, &plan, &mut writer)?;
    Ok(true)
}

/// Renames the files of a run that was archived, so that its successor's are not taken for them.
pub fn set_views_aside(context: &Context, store: &mut Store, run_id: &str) -> Result<()> {
    let loaded = store.load(run_id)?;
    let state = &loaded.state;
    let Some(mut writer) = writer(context, state) else { return Ok(()) };
    let plan = store.plan(state).map_err(|error| error.to_string());
    let aside = plan.and_then(|plan| writer.set_aside(&plan, state).map_err(|e| e.to_string()));
    if let Err(error) = aside {
        ui::say(format!("warning: the protocol files of {run_id} were not renamed: {error}"));
    }
    Ok(())
}

/// Gives the files of an archived run that goes on their names back.
pub fn bring_views_back(context: &Context, store: &mut Store, state: &RunState) -> Result<()> {
    let Some(writer) = writer(context, state) else { return Ok(()) };
    if let Err(error) = writer.bring_back(&store.plan(state)?, state) {
        ui::say(format!("warning: the protocol files were not renamed: {error}"));
    }
    Ok(())
}

/// Brings the files up to what the ledger says; a driver that died may have left them behind.
pub(super) fn bring_up(
    store: &mut Store,
    loaded: &Loaded,
    plan: &Plan,
    writer: &mut Writer,
) -> Result<()> {
    let all = store.history(&loaded.row)?;
    for said in writer.bring_up(&all, plan, &loaded.state) {
        ui::say(format!("warning: {said}"));
    }
    Ok(())
}
