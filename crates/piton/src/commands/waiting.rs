//! `piton waiting`: everything that waits for a person, over all runs of the project.

use std::time::UNIX_EPOCH;

use piton_core::{RunState, StepPath, Timestamp};
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_view::waiting::{Item, Kind, list, nothing, stops, waiting};

use super::request::unfinished;
use super::resume;
use crate::context::{Context, now};
use crate::drive;
use crate::drive::decisions::decisions;
use crate::error::Result;
use crate::ui;

/// Lists what waits, the oldest first.
pub fn run(context: &Context) -> Result<()> {
    let mut items: Vec<Item> = Vec::new();
    match context.read_store() {
        Err(error) if error.code == "no-ledger" => {}
        Err(error) => return Err(error),
        Ok(mut store) => {
            for row in store.runs()?.into_iter().filter(unfinished) {
                // A driver that is at work compares by itself when it comes to it.
                let lives = Context::driver_lives(&row);
                match store.load_row(row.clone()) {
                    Ok(loaded) => {
                        let mut found = of_run(context, &mut store, &loaded, lives);
                        if context.json {
                            present(context, &mut store, &loaded, &mut found);
                        }
                        items.extend(found);
                    }
                    Err(error) => {
                        ui::say(format!("warning: run {} cannot be read: {error}", row.run_id));
                    }
                }
            }
        }
    }
    items.sort_by_key(|item: &Item| -> Timestamp { item.since.0 });
    if context.json {
        ui::data_json(&items);
    } else if items.is_empty() {
        ui::say(nothing());
    } else {
        ui::data(list(&items, now()).trim_end());
    }
    Ok(())
}

fn of_run(context: &Context, store: &mut Store, loaded: &Loaded, lives: bool) -> Vec<Item> {
    let (state, run_id) = (&loaded.state, &loaded.row.run_id);
    let resume = format!("resume {run_id}");
    // A run that a person rejected or ended waits for nobody.
    let is_rejected =
        state.gates.values().any(|g| g.decision.as_ref().is_some_and(|d| !d.approved));
    // Nor does the session of an agent wait for more than its questions: nobody resumes it.
    let is_session = state.session.is_some();
    if lives || loaded.seq == 0 || state.ended.is_some() || is_rejected || is_session {
        return waiting(state, Vec::new(), &resume, ui::place());
    }
    match resume::compared(context, store, loaded) {
        Ok(check) => {
            let since = |step: Option<&StepPath>| changed_at(context, state, step);
            let resume = check.resume_command(run_id, false);
            waiting(state, stops(&check, &since), &resume, ui::place())
        }
        Err(error) => {
            ui::say(format!("warning: run {run_id} cannot be compared: {}", error.message));
            waiting(state, Vec::new(), &resume, ui::place())
        }
    }
}

/// Adds what a person should see before they decide about a gate.
fn present(context: &Context, store: &mut Store, loaded: &Loaded, items: &mut [Item]) {
    let mut all = decisions(context, store, &loaded.state);
    for item in items.iter_mut().filter(|item| item.kind == Kind::Gate) {
        let own = all.iter().position(|decision| decision.gate == item.place);
        item.decide = own.map(|at| all.swap_remove(at));
    }
}

/// When what a step made was last changed, or the spec.
fn changed_at(context: &Context, state: &RunState, step: Option<&StepPath>) -> Option<Timestamp> {
    let root = drive::root_of(context, state);
    let made = |path: &StepPath| {
        let files = state.step(path).into_iter().flat_map(|step| &step.artifacts);
        files.map(|file| state.place_of(path, &file.path)).collect()
    };
    let spec = || state.spec.iter().map(|spec| spec.path.clone()).collect();
    let files: Vec<String> = step.map_or_else(spec, made);
    let changed = files.iter().filter_map(|path| {
        let at = std::fs::metadata(root.join(path)).ok()?.modified().ok()?;
        i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    });
    changed.max().map(Timestamp)
}
