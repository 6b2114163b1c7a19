//! `piton waiting`: everything that waits for a person, over all runs of the project.

use piton_core::hash::Sha;
use piton_core::{RunState, Timestamp};
use piton_view::waiting::{Item, list, nothing, waiting};
use piton_world::read;

use super::request::unfinished;
use crate::context::{Context, now};
use crate::error::Result;
use crate::ui;
use piton_formats::plan::PLAN_BYTES_MAX;

/// Lists what waits, the oldest first.
pub fn run(context: &Context) -> Result<()> {
    let mut items: Vec<Item> = Vec::new();
    match context.read_store() {
        Err(error) if error.code == "no-ledger" => {}
        Err(error) => return Err(error),
        Ok(mut store) => {
            for row in store.runs()?.into_iter().filter(unfinished) {
                // A driver that is at work asks by itself when it comes to it.
                let lives = Context::driver_lives(&row);
                match store.load_row(row.clone()) {
                    Ok(loaded) => {
                        let spec = changed_spec(context, &loaded.state).filter(|_| !lives);
                        items.extend(waiting(&loaded.state, spec, ui::place()));
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

/// How the spec of a run differs from what is recorded.
fn changed_spec(context: &Context, state: &RunState) -> Option<String> {
    let spec = state.spec.as_ref()?;
    let bytes = read::bytes(&context.project.root.join(&spec.path), PLAN_BYTES_MAX);
    match bytes {
        Ok(bytes) if Sha::of(&bytes) == spec.sha256 => None,
        Ok(_) => Some(format!("{} differs from what was recorded", spec.path)),
        Err(_) => Some(format!("{} cannot be read", spec.path)),
    }
}
