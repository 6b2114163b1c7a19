//! `piton run`: starts a plan, or leads to the unfinished run of it.

mod aside;
pub mod create;
mod existing;
mod features;
mod fix;
mod next_phase;
mod offer;
mod phases;
mod roadmap;

use std::path::PathBuf;

use piton_core::event::{Event, FileHash};
use piton_core::lane::TaskWorktrees;
use piton_core::refusal::Remedy;
use piton_core::{RunId, RunState, Status, remedy};
use piton_engine::store::{Commit, Loaded};
use piton_engine::{Drive, Leased, Store, World as _};
use piton_ledger::{Lease, RunKey, RunRow};
use piton_protocols::lanes::checkpoints::CHECKPOINTS_BYTES_MAX;
use piton_protocols::protocol::{Existing, Start};

pub use self::create::created;
use self::phases::earlier_run;
use super::check::{self, Depth};
use super::doctor;
use super::request::unfinished;
use super::{detach, resume};
use crate::cli::{DriveArgs, ResumeArgs, RollbackArgs, RunArgs};
use crate::context::{Context, now};
use crate::drive;
use crate::environment::environment;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::{self, How, PlanFile};
use crate::ui;
use piton_world::{RealWorld, read};

/// Runs a plan, and says whether the next phase may follow.
pub fn run(context: &Context, args: RunArgs) -> Result<()> {
    let links = args.plan.as_deref().map(|plan| plan_file::chain(context, plan));
    if let (Some(links), Some(plan)) = (links.filter(|links| !links.is_empty()), &args.plan) {
        return roadmap::run(context, plan, &links, &args);
    }
    if let Some(phase) = &args.start_phase {
        let message = format!("`--start-phase {phase}` is for a roadmap, which lists phases");
        return Err(CommandError::usage("usage", message)
            .hint("name a roadmap or a folder of phase documents"));
    }
    let chained = args.next_phase.clone().zip(args.plan.clone()).filter(|_| !args.drive.dry_run);
    let ended = run_plan(context, args);
    if let Some((next, plan)) = chained {
        next_phase::say(context, &plan, &next, ended.as_ref().err());
    }
    ended
}

fn run_plan(context: &Context, mut args: RunArgs) -> Result<()> {
    drive::split_lane(&mut args.drive)?;
    // The parser requires it too, but not beside an option that excludes it.
    if args.to.is_some() && !args.rollback {
        return Err(CommandError::usage("usage", "--to requires --rollback"));
    }
    if args.plan.is_none() && !args.fresh && !args.rollback {
        args.plan = match features::choose(context)? {
            Some(feature) => Some(feature),
            None => plan_here(context)?,
        };
    }
    let Some(path) = &args.plan else {
        if args.fresh {
            return Err(CommandError::usage("no-plan", "`--fresh` needs a plan")
                .hint(remedy![Piton "run PLAN --fresh"]));
        }
        if args.rollback {
            return Err(CommandError::usage("no-plan", "`--rollback` needs a plan")
                .hint(remedy![Piton "run PLAN --rollback"])
                .hint(remedy![Piton "rollback", Words " rolls back the newest run"]));
        }
        return resume::run(context, ResumeArgs { at_boot: false, run: None, drive: args.drive });
    };
    let tasks = args.task_worktrees.map(TaskWorktrees::from);
    // What a document leaves open was asked when the run began, and is not asked only to look.
    let asks = !args.resume && !args.rollback && !args.drive.dry_run;
    let plan = PlanFile::read(context, path, How { tasks, asks, reader: None })?;
    if let Some(fix) = fix::wanted(context, &plan, &args)? {
        return fix::run(context, fix, &args);
    }
    let looks = args.drive.dry_run && !args.fresh;
    let known = if looks { existing::events(context, &plan) } else { Vec::new() };
    drive::check_selection(&plan.live, &args.drive)?;
    let mut store = match args.drive.dry_run.then(|| context.read_store()) {
        None => context.write_store()?,
        Some(Err(error)) if error.code == "no-ledger" => {
            dry_run(context, &plan, &args.drive, &known);
            return Ok(());
        }
        Some(store) => store?,
    };
    let runs = store.runs()?;
    if args.rollback {
        let earlier = earlier_run(context, &mut store, runs, &plan).map(|row| row.run_id);
        let Some(run) = args.run_id.clone().or(earlier) else {
            return Err(CommandError::usage("no-run", "this plan has no run to roll back")
                .hint(start_with(context, &plan)));
        };
        let args = rollback_args(run.clone(), args);
        return super::rollback::run(context, &args).map_err(|e| importable(context, &run, e));
    }
    if let (true, Some(run)) = (args.resume, args.run_id.clone()) {
        let args = ResumeArgs { at_boot: false, run: Some(run.clone()), drive: args.drive };
        return resume::run(context, args).map_err(|e| importable(context, &run, e));
    }
    let newest = runs.iter().map(|r| r.run).max();
    let mut aside = None;
    match earlier_run(context, &mut store, runs, &plan) {
        // A name of its own asks for another run beside a complete one, not beside one under way.
        Some(row) if !args.fresh && (args.run_id.is_none() || unfinished(&row)) => {
            let earlier = store.load(&row.run_id)?;
            drive::hangup::tell(context, &mut store, &earlier);
            if wants_resume(context, &mut store, &args, &row, &plan)? {
                let drive = args.drive;
                return resume::run(
                    context,
                    ResumeArgs { at_boot: false, run: Some(row.run_id), drive },
                );
            }
            aside = Some(row).filter(unfinished);
        }
        Some(row) if unfinished(&row) && args.fresh => aside = Some(row),
        None if args.resume && !existing::is_record(context, &plan) => {
            return Err(CommandError::usage("no-run", "this plan has no run to resume")
                .hint(start_with(context, &plan)));
        }
        _ => {}
    }
    if args.drive.dry_run {
        dry_run(context, &plan, &args.drive, &known);
        return Ok(());
    }
    phases::check_needed(context, &mut store, &plan, &args.drive)?;
    check::refuse(context, &plan, &args.drive)?;
    let mut lanes = plan.live.phases.iter().flat_map(|p| &p.lanes);
    if lanes.any(|lane| !lane.rules.isolation.is_in_place()) {
        super::leftovers::remove_contained(context, &mut store);
    }
    start(context, &mut store, &plan, &args, newest, aside.as_ref())
}

fn start_with(context: &Context, plan: &PlanFile) -> Remedy {
    let typed = context.plan_argument(&plan.path);
    remedy![Words "start one with ", Piton "run {typed}"]
}

/// The plan that is meant where none is named and nothing is unfinished.
fn plan_here(context: &Context) -> Result<Option<PathBuf>> {
    let unfinished = match context.read_store() {
        Ok(mut store) => store.runs()?.iter().any(super::request::resumable),
        Err(error) if error.code == "no-ledger" => false,
        Err(error) => return Err(error),
    };
    let list = |folder: &str| read::names(&context.cwd.join(folder));
    let plan = context.table.iter().find_map(|p| p.around(&list)).filter(|_| !unfinished);
    Ok(plan.map(PathBuf::from))
}

fn rollback_args(run: String, args: RunArgs) -> RollbackArgs {
    RollbackArgs {
        run: Some(run),
        lane: args.drive.lane,
        phase: args.drive.phase,
        to: args.to,
        exact: false,
        dry_run: args.drive.dry_run,
        takeover: args.drive.takeover,
    }
}

/// Whether the earlier run is to be resumed; asks where that is open.
fn wants_resume(
    context: &Context,
    store: &mut Store,
    args: &RunArgs,
    row: &RunRow,
    plan: &PlanFile,
) -> Result<bool> {
    let complete = row.status == Status::Complete.as_str();
    let earlier = store.load(&row.run_id)?.state;
    let start = plan.reader.start(&plan.recorded, &earlier, now());
    let offer = if let Start::Offer(offer) = &start { Some(offer) } else { None };
    if args.resume || args.drive.takeover {
        offer.filter(|_| !complete).into_iter().for_each(offer::say);
        return Ok(true);
    }
    // Its driver died before it recorded the end, and its files do not show it yet.
    let is_unended = earlier.is_over() && earlier.ended.is_none() && !complete;
    if let Start::Fresh(why) = &start
        && !is_unended
    {
        ui::say(format!("{}: {why}, so a new run starts", plan.path));
        return Ok(false);
    }
    if complete && let Some(spec) = changed_spec(context, plan, &earlier) {
        return starts_for_spec(context, args, row, plan, &spec).map(|starts| !starts);
    }
    if complete || args.drive.dry_run || (context.yes && offer.is_none()) {
        return Ok(true);
    }
    if Context::driver_lives(row) {
        return Err(driven(row));
    }
    if start == Start::Resume || matches!(start, Start::Fresh(_)) {
        return Ok(true);
    }
    if let Some(offer) = offer {
        return offer::resumes(context, store, plan, offer, Some(row));
    }
    if !context.can_ask() {
        let message = format!("run {} of {} is unfinished", row.run_id, plan.path);
        let typed = context.plan_argument(&plan.path);
        return Err(CommandError::new(Kind::Blocked, "run-unfinished", message)
            .hint(remedy![Words "continue it with ", Piton "run {typed} --resume"])
            .hint(remedy![
                Words "set it aside and start a new one with ",
                Piton "run {typed} --fresh"
            ]));
    }
    let run = &row.run_id;
    let running = aside::running(context, store, run)?;
    let ends = if running.is_empty() { String::new() } else { format!("; ends {running}") };
    ui::say(format!("Run {run} of this plan is unfinished."));
    ui::say(
        remedy![Words "  no: archives run {run} (", Piton "resume {run}", Words " brings it back){ends}"],
    );
    let choices = ["yes", "no", "cancel"];
    let question = "Resume from checkpoint?";
    let nothing = "nothing was changed";
    match ui::ask(question, &choices, 'y', &mut || false) {
        Some('y') => Ok(true),
        Some('n') => Ok(false),
        Some(_) => Err(offer::cancelled()),
        None => Err(CommandError::new(Kind::Interrupted(2), "interrupted", nothing)),
    }
}

/// The spec of a plan, if it is another than the one that a run was measured against.
fn changed_spec(context: &Context, plan: &PlanFile, earlier: &RunState) -> Option<String> {
    let now = see_spec(context, plan).ok()??;
    (earlier.spec.as_ref() != Some(&now)).then_some(now.path)
}

/// Whether a complete run is followed by a new one because the spec changed since.
fn starts_for_spec(
    context: &Context,
    args: &RunArgs,
    row: &RunRow,
    plan: &PlanFile,
    spec: &str,
) -> Result<bool> {
    let message = format!("run {} is complete, but the spec {spec} changed since", row.run_id);
    if args.drive.dry_run || context.yes {
        ui::say(format!("{message}, so a new run starts"));
        return Ok(true);
    }
    if !context.can_ask() {
        let typed = context.plan_argument(&plan.path);
        return Err(CommandError::new(Kind::Blocked, "spec-changed", message)
            .hint(remedy![Words "start a new run with ", Piton "run {typed} --fresh"]));
    }
    ui::say(message);
    let nothing = "nothing was changed";
    match ui::ask("Start a new run for the changed spec?", &["yes", "no"], 'y', &mut || false) {
        Some('y') => Ok(true),
        Some(_) => Err(offer::cancelled()),
        None => Err(CommandError::new(Kind::Interrupted(2), "interrupted", nothing)),
    }
}

/// Refuses to bring an archived run back beside one of the same plan that is being driven.
pub fn refuse_beside(context: &Context, store: &mut Store, archived: &Loaded) -> Result<()> {
    let (plan, own) = (&archived.row.plan, &archived.row.run_id);
    let here = |r: &RunRow| std::path::Path::new(&r.root) == context.project.root;
    let beside = |r: &&RunRow| r.plan == *plan && r.run_id != *own && here(r);
    let runs = store.runs()?;
    runs.iter().filter(beside).find(|r| Context::driver_lives(r)).map_or(Ok(()), |r| Err(driven(r)))
}

/// The refusal to touch a run of this plan that another process drives.
fn driven(row: &RunRow) -> CommandError {
    let what = format!("run {} of this plan", row.run_id);
    let watch = format!("attach {}", row.run_id);
    let owner = row.owner.as_ref().map(|lease| &lease.owner);
    CommandError::driven(&what, owner, &watch, remedy![Option "--resume --takeover"])
}

/// Prints what a new run of a plan would do that begins with these events.
pub fn dry_run(context: &Context, plan: &PlanFile, args: &DriveArgs, known: &[Event]) {
    let created = created(context, plan, "dry-run", None, None);
    let events = std::iter::once(&created).chain(known).map(|event| (now(), event));
    let state = RunState {
        run_id: Some(RunId(String::new())),
        phases: piton_core::replay(events).map(|s| s.phases).unwrap_or_default(),
        protocol: plan.protocol.clone(),
        ..RunState::default()
    };
    let found = check::look(context, plan, args, Depth::Thorough);
    if !context.json {
        for problem in &found.problems {
            let words = ui::place().refusal(problem);
            ui::say(format!("warning: {words}: the run would be refused"));
        }
        for agent in doctor::agents::answers(&found.agents) {
            ui::say(agent.line());
        }
    }
    super::dry_run::print(context, &plan.recorded, &state, None, args, &found.problems);
}

fn start(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &RunArgs,
    newest: Option<RunKey>,
    aside: Option<&RunRow>,
) -> Result<()> {
    let spec = see_spec(context, plan)?;
    let known = existing::look(context, store, plan, args, aside)?;
    let (row, lease) = create::alone(context, store, plan, args, newest, aside)?;
    let mut known = existing::set_aside(context, plan, known)?;
    if let Some(failed) = aside.filter(|row| row.status == Status::Failed.as_str()) {
        let at = store.load(&failed.run_id)?.state.last_at;
        known.previous = plan.reader.aside(&plan.live, at).into_iter().next().map(|(_, to)| to);
    }
    let spec = known.spec.or(spec);
    let event = created(context, plan, &row.run_id, spec, known.previous);
    if !known.events.is_empty() {
        let events: Vec<Event> = std::iter::once(event).chain(known.events).collect();
        existing::record(store, &row, &lease, &events, true)?;
        let again = ResumeArgs { at_boot: false, run: Some(row.run_id), drive: args.drive.clone() };
        return resume::run(context, again);
    }
    let state = RunState::default();
    let loaded = Loaded { row: row.clone(), state, seq: 0 };
    if args.drive.detach {
        let (mut state, at) = (RunState::default(), now());
        piton_core::apply(&mut state, at, &event)?;
        store.append(&Commit {
            row: &row,
            epoch: lease.epoch,
            expected_seq: 0,
            at,
            events: std::slice::from_ref(&event),
            state: &state,
            answered: &[],
            release: true,
        })?;
        return detach::spawn(context, &row.run_id, &args.drive);
    }
    let leased = first_drive(context, plan.clone(), event, loaded, &lease, &args.drive)?;
    let ending = drive::drive(context, store, leased, &args.drive)?;
    if super::questions::questions(context, store, &row.run_id, &ending)? {
        let again = ResumeArgs { at_boot: false, run: Some(row.run_id), drive: args.drive.clone() };
        return resume::run(context, again);
    }
    drive::exit(ending.verdict, ending.signal)
}

/// What the first driver of a run does. Boxes that are ticked before any step began all count.
fn first_drive(
    context: &Context,
    plan: PlanFile,
    created: Event,
    loaded: Loaded,
    lease: &Lease,
    args: &DriveArgs,
) -> Result<Leased> {
    let state = piton_core::replay([(now(), &created)])?;
    let protocol = context.protocol(&state, &state.protocol.id)?;
    let PlanFile { recorded: plan, live, open_gates, .. } = plan;
    let root = &context.project.root;
    let (ticks, gates) =
        drive::ticks::check(protocol, root, (&plan, Some(open_gates)), &state, false);
    let first = DriveArgs { takeover: false, ..args.clone() };
    let mut opening = vec![created, drive::attached(context, lease, &first)];
    opening.extend(ticks);
    Ok(Leased { loaded, epoch: lease.epoch, plan, live, opening, drive: Drive::Run(gates) })
}

/// Records what another tool did of a run whose driver died before it could; whether it did something.
pub fn take_over(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    lease: &Lease,
) -> Result<bool> {
    let plan = plan_of_unbegun(context, loaded)?;
    let Existing::Midway(midway) = plan.existing(context, now()) else { return Ok(false) };
    let known = existing::set_aside(context, &plan, existing::taken_over(&plan, midway))?;
    if known.events.is_empty() {
        return Ok(false);
    }
    store.keep_plan(&plan.recorded)?;
    let spec = if known.spec.is_some() { known.spec } else { see_spec(context, &plan)? };
    let event = created(context, &plan, &loaded.row.run_id, spec, None);
    let events: Vec<Event> = std::iter::once(event).chain(known.events).collect();
    existing::record(store, &loaded.row, lease, &events, false)?;
    Ok(true)
}

/// Begins a run whose driver died between creating it and recording its first event.
pub fn begin(
    context: &Context,
    store: &mut Store,
    loaded: Loaded,
    lease: &Lease,
    args: &DriveArgs,
) -> Result<Leased> {
    let run_id = loaded.row.run_id.clone();
    let plan = plan_of_unbegun(context, &loaded)?;
    store.keep_plan(&plan.recorded)?;
    let created = created(context, &plan, &run_id, see_spec(context, &plan)?, None);
    first_drive(context, plan, created, loaded, lease, args)
}

/// The plan of a run that has not started: its file is all there is.
pub fn plan_of_unbegun(context: &Context, loaded: &Loaded) -> Result<PlanFile> {
    let RunRow { run_id, plan: path, .. } = &loaded.row;
    PlanFile::for_run(context, &loaded.state, None)?.ok_or_else(|| {
        let message = format!("run {run_id} never started, and its plan {path} does not exist");
        CommandError::new(Kind::Blocked, "resume-blocked", message)
            .hint(remedy![Words "restore the plan, or start another one with ", Piton "run PLAN"])
    })
}

/// Hashes the spec of a plan.
pub fn see_spec(context: &Context, plan: &PlanFile) -> Result<Option<FileHash>> {
    let Some(path) = &plan.recorded.spec else {
        return Ok(None);
    };
    let mut world = RealWorld::new(
        &context.project,
        &context.project.root,
        context.run_dir("none"),
        "none",
        drive::TERMINAL,
        &environment().inherited,
    );
    let seen = world.files(std::slice::from_ref(path))?;
    match seen.get(path).cloned().flatten() {
        Some(sha256) => Ok(Some(FileHash { path: path.clone(), sha256 })),
        None => Err(CommandError::new(
            Kind::Blocked,
            "spec-missing",
            format!("the spec {path} does not exist"),
        )
        .hint("write it, or remove `spec` from the plan")),
    }
}

/// Adds that a run which only a file knows can be taken over.
fn importable(context: &Context, run: &str, error: CommandError) -> CommandError {
    let path = &context.settings.lanes.checkpoints;
    let text = read::text(&context.project.root.join(path), CHECKPOINTS_BYTES_MAX);
    let names = |text: String| text.contains(&format!("\"{run}\""));
    if error.code != "no-run" || !text.is_ok_and(names) {
        return error;
    }
    error.hint(
        remedy![Words "it is recorded in {path}; ", Piton "import {path}", Words " takes it over"],
    )
}
