//! `piton status`: where a run stands, once or again and again.
//!
//! The command people and prompts call most: it opens the ledger for reading, loads one run, prints.
//! What would run again is named as far as small files tell; `piton resume --dry-run` looks at all.

use std::thread;
use std::time::Duration;

use piton_core::evidence::{self, Rerun};
use piton_core::state::{Progress, StepState};
use piton_core::summary::run_status;
use piton_core::{RunState, Status, StepPath};
use piton_engine::resume::leave_out_unrecorded;
use piton_engine::{Loaded, Store, World as _};
use piton_view::frame::glance;
use piton_view::{RunView, Seen, tree};

use super::{leftovers, moved_bases};
use crate::cli::StatusArgs;
use crate::context::Context;
use crate::drive;
use crate::error::Result;
use crate::ui;
use crate::ui::picture::Picture;

/// The pause between two looks: a clock that shows seconds needs no more.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Largest artifact that a status hashes: a larger one counts as unchanged here, not on resume.
const HASHED_BYTES_MAX: u64 = 16 << 20;

/// Shows where a run stands.
pub fn run(context: &Context, args: &StatusArgs) -> Result<()> {
    let mut store = context.read_store()?;
    let mut loaded = find(&mut store, args.run.as_deref())?;
    drive::hangup::tell(context, &mut store, &loaded);
    let run_id = loaded.row.run_id.clone();
    let mut lives = Context::driver_lives(&loaded.row);
    let mut in_flight = loaded.state.running();
    if !lives {
        mark_ended(context, &mut loaded);
    }
    if !args.watch {
        let rerun = rerun(context, &mut store, &loaded, &in_flight, lives)?;
        print(context, &loaded, &rerun);
        // The process ends here: taking a large state apart first would only take time.
        std::mem::forget(loaded);
        return Ok(());
    }
    let draws = !context.json && ui::draws(&std::io::stdout());
    let (mut shown, mut picture) = (None, Picture::default());
    loop {
        // Elsewhere than on a terminal only what changed is worth a line.
        let stopped = loaded.row.owner.as_ref().is_some_and(|lease| lease.owner.is_stopped());
        let version = (loaded.seq, lives, stopped);
        if draws || shown != Some(version) {
            let rerun = rerun(context, &mut store, &loaded, &in_flight, lives)?;
            if draws {
                draw(context, &loaded, &rerun, &mut picture);
            } else {
                print(context, &loaded, &rerun);
            }
            shown = Some(version);
        }
        if !lives || run_status(&loaded.state, lives).is_final() {
            return Ok(());
        }
        thread::sleep(WATCH_EVERY);
        if store.ledger().changed()? {
            loaded = store.load(&run_id)?;
        }
        lives = Context::driver_lives(&loaded.row);
        in_flight = loaded.state.running();
        if !lives {
            mark_ended(context, &mut loaded);
        }
    }
}

/// The run that is named, else the newest that can be read: a damaged one must not hide the others.
fn find(store: &mut Store, named: Option<&str>) -> Result<Loaded> {
    let row = Context::pick(store, named, |_| true, "run")?;
    let newest = store.load_row(row.clone());
    let Err(problem) = &newest else { return Ok(newest?) };
    let others = if named.is_none() { store.runs()? } else { Vec::new() };
    let Some(found) = others.into_iter().find_map(|row| store.load_row(row).ok()) else {
        return Ok(newest?);
    };
    ui::say(format!("warning: run {} cannot be read: {problem}", row.run_id));
    Ok(found)
}

/// Shows steps that ended while nobody drove the run as what they are: no longer at work. What came
/// of them is recorded by the next driver.
fn mark_ended(context: &Context, loaded: &mut Loaded) {
    let running = loaded.state.running();
    if running.is_empty() {
        return;
    }
    let dir = context.run_dir(&loaded.row.run_id);
    let keeper = piton_process::keeper_alive(&dir);
    let facts = piton_process::Journal::read(&dir).unwrap_or_default();
    for (step, attempt) in running {
        use piton_process::Fact;
        // Of one whose outcome waits for a person the lane says why.
        let lane = loaded.state.lane(&step.lane()).and_then(|lane| lane.work.as_ref());
        if lane.is_some_and(|work| work.blocked.is_some()) {
            continue;
        }
        let key = format!("{step}#{attempt}");
        let (code, cut) = match facts.fact(&key) {
            Fact::Started { .. } | Fact::Maybe if keeper.is_some() => continue,
            Fact::Finished(exit) => (exit.code, false),
            _ => (None, true),
        };
        if let Some(found) = shown_step(&mut loaded.state, &step) {
            (found.progress, found.interrupted) = (Progress::Pending, cut);
            found.exit_code = code;
        }
    }
}

/// A step of a state that is only shown.
pub fn shown_step<'a>(state: &'a mut RunState, path: &StepPath) -> Option<&'a mut StepState> {
    let phase = state.phases.iter_mut().find(|p| p.id == path.phase)?;
    let lane = phase.lanes.iter_mut().find(|l| l.id == path.lane)?;
    lane.steps.iter_mut().find(|s| s.id == path.step)
}

/// Draws where a run stands over what was drawn before, as much as the screen has room for.
fn draw(context: &Context, loaded: &Loaded, rerun: &[Rerun], picture: &mut Picture) {
    let layout = ui::stdout();
    let lines = shown(context, loaded, rerun, |view| glance(view, &Picture::workspace(&layout)));
    let bytes = picture.draw(lines, &layout);
    if !bytes.is_empty() {
        ui::data_bytes(&bytes);
    }
}

/// The finished steps that a resume would run again, as far as a quick look tells.
/// `in_flight` are the attempts that no outcome is recorded of.
fn rerun(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    in_flight: &[(StepPath, u32)],
    lives: bool,
) -> Result<Vec<Rerun>> {
    let state = &loaded.state;
    let done = |s: &&StepState| s.progress == Progress::Done;
    let all = state.phases.iter().flat_map(|p| &p.lanes).flat_map(|l| &l.steps);
    let evidence = all.filter(done).any(|s| !s.artifacts.is_empty() || !s.inputs.is_empty());
    if lives || !evidence || state.ended.is_some_and(Status::is_final) {
        return Ok(Vec::new());
    }
    // A plan that is lost is for `piton doctor` to tell; the run can be looked at without.
    let Ok(plan) = store.plan(state) else { return Ok(Vec::new()) };
    let mut world = drive::world(context, state);
    let root = drive::root_of(context, state);
    let small = |path: &String| {
        std::fs::metadata(root.join(path)).map_or(true, |m| m.len() <= HASHED_BYTES_MAX)
    };
    let paths: Vec<String> = evidence::paths_to_see(state).into_iter().filter(small).collect();
    let mut files = world.files(&paths)?;
    let mut inputs = evidence::Inputs::new();
    for (step, patterns) in evidence::steps_with_inputs(&plan, state) {
        let dir = state.lane(&step.lane()).map_or("", |l| l.dir());
        let seen = world.inputs(dir, patterns)?;
        inputs.insert(step, seen);
    }
    leave_out_unrecorded(&plan, state, in_flight, &mut world, &mut files, &mut inputs)?;
    Ok(evidence::stale(&plan, state, &files, &inputs))
}

fn print(context: &Context, loaded: &Loaded, rerun: &[Rerun]) {
    shown(context, loaded, rerun, |view| {
        ui::show(context.json, view, || tree::render(view, &ui::stdout()));
    });
}

/// Shows a run with what the repository has to say about it.
fn shown<T>(
    context: &Context,
    loaded: &Loaded,
    rerun: &[Rerun],
    show: impl FnOnce(&RunView<'_>) -> T,
) -> T {
    let root = drive::root_of(context, &loaded.state);
    let left = leftovers::in_run(&root, &loaded.state, false);
    let moved = moved_bases::in_run(&root, &loaded.state);
    let (left, moved) = (&left, &moved);
    let seen = Seen { rerun, left, moved, ..Context::seen(loaded) };
    show(&RunView::new(&loaded.state, seen))
}
