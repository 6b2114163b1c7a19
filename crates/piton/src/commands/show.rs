//! `piton show`: a run, or one phase, lane, step or checkpoint of it, with its history.

use piton_core::plan::Work;
use piton_core::{LanePath, StepPath, remedy};
use piton_engine::world::Attempt;
use piton_engine::{Loaded, Store};
use piton_formats::plan::PROMPT_BYTES_MAX;
use piton_view::{show, tree};
use piton_workspace::{refs, snapshot};

use super::request::names;
use super::rewind;
use crate::cli::ShowArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;
use piton_world::{prompt_file, read};

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
    if args.prompt {
        return prompt(context, &mut store, &loaded, &part, args.attempt);
    }
    match &part {
        Part::Run => full_run(context, &mut store, &loaded),
        Part::Checkpoint(name) => {
            checkpoint(context, &mut store, &loaded, name, args.lane.as_deref())
        }
        Part::Step(path) => step(context, &mut store, &loaded, path),
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
    let view = Context::view(loaded);
    let run_id = view.run_id;
    match view.part(phase, lane) {
        None => {
            return Err(CommandError::usage("no-step", format!("there is no {phase} in this run"))
                .hint(remedy![Piton "status {run_id}", Words " shows what there is"]));
        }
        Some((phase, lane)) if !context.json => {
            ui::data(tree::subtree(&view, phase, lane, &ui::stdout()).trim_end());
        }
        Some((_, Some(part))) => ui::data_json(&show::Part { part, run_id }),
        Some((part, None)) => ui::data_json(&show::Part { part, run_id }),
    }
    Ok(())
}

/// A run in full.
fn full_run(context: &Context, store: &mut Store, loaded: &Loaded) -> Result<()> {
    with_run(context, store, loaded, |full| {
        ui::show(context.json, full, || full.render(&ui::stdout()));
    })
}

/// Gives a run in full to whoever shows it.
pub fn with_run<T>(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    shows: impl FnOnce(&show::FullRun<'_>) -> T,
) -> Result<T> {
    let (history, points) = (history_of(store, loaded)?, rewind::points(store, loaded)?);
    let plan = store.plan(&loaded.state).ok();
    let (view, logs) = (Context::view(loaded), context.run_dir(&loaded.row.run_id).join("logs"));
    let costs = snapshot_costs(context, loaded);
    Ok(shows(&show::FullRun::new(view, &history, plan.as_ref(), &points, costs, logs)))
}

fn history_of(store: &mut Store, loaded: &Loaded) -> Result<show::History> {
    let mut told = show::History::default();
    store.each_event(&loaded.row, 0, |_, at, event| told.take(at, event))?;
    Ok(told)
}

/// What the snapshots of a run take beyond everything else; nothing where it has none.
fn snapshot_costs(context: &Context, loaded: &Loaded) -> Option<show::Costs> {
    context.project.git_dir.as_ref()?;
    let prefix = refs::run_prefix(&loaded.row.run_id);
    let snapshot::Costs { objects, bytes } =
        snapshot::costs(&context.project.root, &prefix).ok()?;
    (objects > 0).then_some(show::Costs { objects, bytes })
}

fn checkpoint(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    name: &str,
    lane: Option<&str>,
) -> Result<()> {
    with_checkpoint(context, store, loaded, (name, lane), |view| {
        ui::show(context.json, view, || view.render(ui::place()));
    })
}

/// Gives a checkpoint in full to whoever shows it.
pub fn with_checkpoint<T>(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    (name, lane): (&str, Option<&str>),
    shows: impl FnOnce(&show::PointView<'_>) -> T,
) -> Result<T> {
    let history = history_of(store, loaded)?;
    let remark = history.remarks().into_iter().find(|p| p.name == name);
    let all = rewind::points(store, loaded)?;
    let found = rewind::named(&all, &loaded.state, name, lane);
    let run = &loaded.row.run_id;
    if remark.is_none() && found.is_empty() {
        let message = format!("run {run} has no checkpoint `{name}`");
        return Err(CommandError::usage("no-step", message)
            .hint(remedy![Piton "show {run}", Words " lists its checkpoints"]));
    }
    let snapshots = found.iter().map(|point| {
        let there = snapshot::is_there(&context.project.root, &point.commit);
        show::Snapshot { point, gone: there.is_ok_and(|there| !there) }
    });
    Ok(shows(&show::PointView::new(run, name, remark, snapshots.collect())))
}

/// The prompt of a step: as it was sent, or its template.
fn prompt(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    part: &Part,
    attempt: Option<u32>,
) -> Result<()> {
    let steps = loaded.state.steps().map(|(path, _)| path);
    let of_part = steps.filter(|path| match part {
        Part::Step(step) => path == step,
        Part::Lane(lane) => path.lane() == *lane,
        Part::Phase(phase) => path.phase == *phase,
        _ => false,
    });
    let plan = store.plan(&loaded.state)?;
    let template = |path: &StepPath| match &plan.step(path)?.work {
        Work::Prompt { prompt, .. } => Some(prompt.clone()),
        _ => None,
    };
    let found: Vec<(StepPath, String)> =
        of_part.filter_map(|path| template(&path).map(|text| (path, text))).collect();
    let run_id = &loaded.row.run_id;
    let [(step, template)] = &found[..] else {
        let message = "`--prompt` needs a step with a prompt";
        return Err(CommandError::usage("no-step", message)
            .hint(remedy![Words "name one: ", Piton "show {run_id}/PHASE/LANE/STEP --prompt"]));
    };
    let last = loaded.state.step(step).map_or(0, |s| s.attempts);
    let number = attempt.unwrap_or(last);
    let file = prompt_file(&context.run_dir(run_id), &Attempt { step: step.clone(), number });
    let sent = read::text(&file, PROMPT_BYTES_MAX).ok();
    if attempt.is_some() && sent.is_none() {
        let message = format!("no prompt of attempt {number} of {step} is kept");
        return Err(CommandError::usage("no-step", message));
    }
    let is_sent = sent.is_some();
    let text = sent.unwrap_or_else(|| template.clone());
    let attempt = is_sent.then_some(number);
    ui::show(context.json, &show::Prompt { step, attempt, prompt: &text }, || text.clone());
    Ok(())
}

fn step(context: &Context, store: &mut Store, loaded: &Loaded, path: &StepPath) -> Result<()> {
    let mut happened = Vec::new();
    store.each_event(&loaded.row, 0, |_, at, event| {
        if event.step() == Some(path) {
            show::take(&mut happened, at, event);
        }
    })?;
    let plan = store.plan(&loaded.state).ok();
    let definition = plan.as_ref().and_then(|p| p.step(path));
    let view = Context::view(loaded);
    let shown = show::StepView::new(&view, path, definition, &context.redactor, &happened);
    let Some(shown) = shown else {
        let run = &loaded.row.run_id;
        return Err(CommandError::usage("no-step", format!("there is no step {path} in this run"))
            .hint(remedy![Piton "status {run}", Words " shows its steps"]));
    };
    ui::show(context.json, &shown, || shown.render());
    Ok(())
}
