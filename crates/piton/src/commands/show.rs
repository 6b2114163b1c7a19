//! `piton show`: a run, or one phase, lane, step or checkpoint of it, with its history.

mod point_view;
mod run_view;
mod step_view;

use piton_core::{LanePath, StepPath};
use piton_engine::{Loaded, Store};

use super::request::names;
use super::rewind;
use crate::cli::ShowArgs;
use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui::{self, Look};

/// What is to be shown of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Run,
    Phase(String),
    Lane(LanePath),
    Step(StepPath),
    Checkpoint(String),
}

/// Shows a run or a part of it.
pub fn run(context: &Context, args: &ShowArgs) -> Result<()> {
    let mut store = context.read_store()?;
    let (loaded, part) = find(&mut store, args.what.as_deref(), args.lane.as_deref())?;
    match &part {
        Part::Run => run_view::show(context, &mut store, &loaded),
        Part::Checkpoint(name) => {
            point_view::show(context, &mut store, &loaded, name, args.lane.as_deref())
        }
        Part::Step(step) => step_view::show(context, &mut store, &loaded, step),
        Part::Phase(phase) => subtree(context, &loaded, phase, None),
        Part::Lane(lane) => subtree(context, &loaded, &lane.phase, Some(&lane.lane)),
    }
}

/// Splits `RUN/PHASE/LANE/STEP`; without a run's id in front the newest run is meant.
fn find(store: &mut Store, what: Option<&str>, lane: Option<&str>) -> Result<(Loaded, Part)> {
    let Some(what) = what else {
        let row = Context::pick(store, None, |_| true, "run")?;
        return Ok((store.load_row(row)?, Part::Run));
    };
    let (first, rest) = what.split_once('/').map_or((what, None), |(a, b)| (a, Some(b)));
    match Context::pick(store, Some(first), |_| true, "run") {
        Ok(row) => {
            let loaded = store.load_row(row)?;
            let rest = rest.filter(|r| !r.is_empty());
            let part = rest.map_or(Ok(Part::Run), |r| part(store, &loaded, r, lane))?;
            Ok((loaded, part))
        }
        Err(no_such_run) => {
            let row = Context::pick(store, None, |_| true, "run")?;
            let loaded = store.load_row(row)?;
            // Neither a run nor a part of the newest one: the first complaint is the clearer one,
            // but for the name of a stage, which no run has.
            let staged = rewind::stage_of(what).is_some() || rewind::lane_and_stage(what).is_some();
            // Likewise for an attempt.
            let staged = staged || what.contains('#');
            let part = part(store, &loaded, what, lane);
            let part = part.map_err(|error| if staged { error } else { no_such_run })?;
            Ok((loaded, part))
        }
    }
}

fn part(store: &mut Store, loaded: &Loaded, text: &str, lane: Option<&str>) -> Result<Part> {
    let state = &loaded.state;
    if state.phase(text).is_some() {
        return Ok(Part::Phase(text.to_owned()));
    }
    if let Ok(lane) = text.parse::<LanePath>()
        && state.lane(&lane).is_some()
    {
        return Ok(Part::Lane(lane));
    }
    if state.checkpoints.iter().any(|c| c.name == text) {
        return Ok(Part::Checkpoint(text.to_owned()));
    }
    match names::step(loaded, text) {
        Ok(step) => Ok(Part::Step(step)),
        // The state holds the newest checkpoints only; the ledger has them all.
        Err(_) if text.starts_with("manual-") => Ok(Part::Checkpoint(text.to_owned())),
        Err(error) => {
            let all = rewind::points(store, loaded)?;
            if !rewind::named(&all, state, text, lane).is_empty() {
                return Ok(Part::Checkpoint(text.to_owned()));
            }
            let staged = rewind::stage_of(text).is_some() || rewind::lane_and_stage(text).is_some();
            Err(if staged || text.contains('#') {
                rewind::none(&all, state, text, lane)
            } else {
                error
            })
        }
    }
}

fn subtree(context: &Context, loaded: &Loaded, phase: &str, lane: Option<&str>) -> Result<()> {
    if !context.json {
        let lives = Context::driver_lives(&loaded.row);
        let tree = ui::tree::subtree(loaded, lives, &[], phase, lane, now(), &Look::stdout());
        ui::data(tree.trim_end());
        return Ok(());
    }
    let document = ui::status_json::status(loaded, Context::driver_lives(&loaded.row), &[]);
    let document = serde_json::to_value(document).unwrap_or_default();
    let id = |value: &serde_json::Value, wanted: &str| value["id"] == wanted;
    let found = document["phases"].as_array().into_iter().flatten().find(|p| id(p, phase));
    let found = match lane {
        None => found,
        Some(lane) => found
            .and_then(|p| p["lanes"].as_array())
            .and_then(|lanes| lanes.iter().find(|l| id(l, lane))),
    };
    let Some(found) = found else {
        return Err(CommandError::usage("no-step", format!("there is no {phase} in this run"))
            .hint(format!("`piton status {}` shows what there is", loaded.row.run_id)));
    };
    let mut found = found.clone();
    found["run_id"] = loaded.row.run_id.clone().into();
    ui::data_json(&found);
    Ok(())
}
