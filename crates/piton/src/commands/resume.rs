//! `piton resume`: compares the world with the record, says what it found ([`mod@report`]), goes on.

mod report;

use std::collections::BTreeSet;
use std::path::Path;

use piton_agents::ready::needs;
use piton_core::event::{Event, StepReset, StepRetried, Verdict};
use piton_core::hash::Sha;
use piton_core::refusal::Remedy;
use piton_core::state::{LaneState, Progress};
use piton_core::{LanePath, Plan, RunState, Status, StepPath, apply, remedy};
use piton_engine::resume::{Accepts, Check, Commands, Difference, Severity, check};
use piton_engine::store::Loaded;
use piton_engine::{Drive, Gates, Leased, Store, World as _};
use piton_ledger::{Acquire, Lease, RunRow, owner_liveness};
use piton_protocols::files::Occasion;
use piton_protocols::protocol::{Effect, Finding};
use piton_view::answers::{Answer, Complete};
use piton_view::at_boot::AtBoot;
use piton_world::read::protocol_file;

use self::report::report;
use super::request::resumable;
use super::{detach, dry_run};
use crate::cli::{DriveArgs, ResumeArgs};
use crate::context::{Context, now};
use crate::drive::{self, ticks};
use crate::environment::environment;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::{PlanFile, before_replan};
use crate::ui;
use piton_world::{kept, scratch_folders};

/// What is said of a step that goes on without a driver.
const RUNNING: &str = "is still running";

/// Resumes a run.
pub fn run(context: &Context, mut args: ResumeArgs) -> Result<()> {
    drive::split_lane(&mut args.drive)?;
    super::detach::leave_terminal();
    let dry = args.drive.dry_run || args.at_boot;
    // Nothing to continue with is no reason to make a ledger.
    let mut store = if dry { context.read_store()? } else { super::request::open(context)? };
    let row = match Context::pick(&mut store, args.run.as_deref(), resumable, "unfinished run") {
        Err(error) if args.run.is_none() => match complete_here(context, &mut store)? {
            // As if it were named: taking it back may have been cut short, its evidence or its views
            // may be gone.
            Some(row) => row,
            None => return Err(error),
        },
        found => found?,
    };
    let loaded = store.load_row(row)?;
    super::request::refuse_session(&loaded)?;
    drive::hangup::tell(context, &mut store, &loaded);
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_moved(context, &loaded)?;
    if !dry && loaded.state.lanes().any(|(_, lane)| !lane.isolation.is_in_place()) {
        super::leftovers::remove_contained(context, &mut store);
    }
    let archived = loaded.state.ended == Some(Status::Archived);
    if let Some(status) = loaded.state.ended.filter(|s| s.is_final() && !archived) {
        let message = format!("run {} is {status} and cannot be resumed", loaded.row.run_id);
        let plan = context.plan_argument(&loaded.state.plan_path);
        return Err(CommandError::usage("run-over", message)
            .hint(remedy![Words "start a new run with ", Piton "run {plan} --fresh"]));
    }
    if args.at_boot {
        let boot = at_boot(context, &mut store, &loaded)?;
        ui::show(context.json, &boot, || boot.text());
        return Ok(());
    }
    if args.drive.dry_run {
        return look(context, &mut store, &loaded, &args.drive);
    }
    if args.drive.is_decision() {
        super::request::refuse_deciding(context, &loaded)?;
    }
    super::request::refuse_inside(context, &loaded)?;
    if archived {
        super::run::refuse_beside(context, &mut store, &loaded)?;
        ui::say(format!("run {} was archived and is now continued", loaded.row.run_id));
        drive::bring_views_back(context, &mut store, &loaded.state)?;
    }
    if args.drive.detach {
        return detach::spawn(context, &loaded.row.run_id, &args.drive);
    }
    go_on(context, &mut store, loaded, args.drive)
}

/// How a run is continued at boot, where little is set of what is set here.
fn at_boot(context: &Context, store: &mut Store, loaded: &Loaded) -> Result<AtBoot> {
    let inherited = &environment().inherited;
    let is_set = |name: &&str| inherited.variable(name).is_some_and(|value| !value.is_empty());
    let plan = store.plan(&loaded.state)?;
    let needs = plan.agents.values().filter_map(|agent| needs(&agent.program));
    let names = needs.flat_map(|needs| needs.variables.iter().copied().chain([needs.folder.0]));
    let names: BTreeSet<&str> = names.filter(is_set).collect();
    let path = inherited.variable("PATH").map(|path| path.to_string_lossy().into_owned());
    let place = (context.project.root.as_path(), &*inherited.own_program());
    let names = names.into_iter().map(str::to_owned).collect();
    Ok(AtBoot::new(&loaded.row.run_id, place, &path.unwrap_or_default(), names))
}

/// The newest run of this place, if it is complete: then there is nothing to go on with.
fn complete_here(context: &Context, store: &mut Store) -> Result<Option<RunRow>> {
    let here = |r: &RunRow| std::path::Path::new(&r.root) == context.project.root;
    let newest = store.runs()?.into_iter().find(here);
    Ok(newest.filter(|r| r.status == Status::Complete.as_str()))
}

fn go_on(context: &Context, store: &mut Store, loaded: Loaded, mut args: DriveArgs) -> Result<()> {
    let (mut loaded, mut again) = (loaded, true);
    loop {
        let run_id = loaded.row.run_id.clone();
        let lease = acquire(context, store, &loaded.row, args.takeover, by_resume)?;
        let prepared = prepare(context, store, &run_id, &lease, &args, again);
        // What a person left for later in the questions that follow stays so.
        again = false;
        let leased = match prepared {
            Ok(Some(leased)) => leased,
            other => {
                store.ledger().release(loaded.row.run, lease.epoch, now().0)?;
                return other.map(|_| ());
            }
        };
        let ending = drive::drive(context, store, leased, &args)?;
        if !super::questions::questions(context, store, &run_id, &ending)? {
            return drive::exit(ending.verdict, ending.signal);
        }
        args.takeover = false;
        loaded = store.load(&run_id)?;
    }
}

/// How a resume takes a run over.
pub fn by_resume(run: &str) -> Remedy {
    remedy![Piton "resume {run} --takeover"]
}

/// Takes the lease of a run, or says who has it and how it is taken over.
pub fn acquire(
    context: &Context,
    store: &mut Store,
    row: &RunRow,
    takeover: bool,
    take: fn(&str) -> Remedy,
) -> Result<Lease> {
    drive::epoch::refuse_behind(context, store, &row.run_id)?;
    let how = if takeover { Acquire::Takeover } else { Acquire::IfFree };
    let acquire = |store: &mut Store| match store.acquire(
        row,
        &Context::owner(),
        now(),
        how,
        &owner_liveness,
    ) {
        Err(piton_engine::Error::Ledger(error)) => Ok(Err(error)),
        other => other.map(Ok),
    };
    let mut taken = acquire(store)?;
    if let Err(piton_ledger::Error::HolderStopped { pid, .. }) = &taken {
        // The driver stands still in the middle of a write: it would never let go. It may have come
        // after the look that found this row.
        let (pid, now) = (*pid, store.ledger().run(&row.run_id)?);
        let owner = now.and_then(|row| row.owner).map(|lease| lease.owner);
        taken = match owner.filter(|owner| owner.pid == pid) {
            Some(_) if takeover && kill(pid) => acquire(store)?,
            Some(owner) if !takeover => Err(piton_ledger::Error::Held { owner }),
            _ => taken,
        };
    }
    let taken = taken.map_err(|error| match error {
        piton_ledger::Error::Held { owner } => {
            let run = &row.run_id;
            let (what, watch) = (format!("run {run}"), format!("attach {run}"));
            CommandError::driven(&what, Some(&owner), &watch, take(run))
        }
        other => other.into(),
    })?;
    drive::epoch::lift(context, store, row, taken)
}

fn kill(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok())
}

/// Loads and compares under the lease; nothing when there is nothing left to do.
fn prepare(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    lease: &Lease,
    args: &DriveArgs,
    again: bool,
) -> Result<Option<Leased>> {
    let mut loaded = store.load(run_id)?;
    if loaded.seq == 0 {
        if !super::run::take_over(context, store, &loaded, lease)? {
            return super::run::begin(context, store, loaded, lease, args).map(Some);
        }
        loaded = store.load(run_id)?;
    }
    let compared = compare(context, store, &loaded, args)?;
    let Compared { mut check, live, gates, ticks } = compared;
    // All steps done is not enough: a driver that died before it could leave left that to the next.
    // So is a rewind that was cut short.
    let left = loaded.state.verdict == Some(Verdict::Complete) && loaded.state.rewinding.is_none();
    if left && loaded.state.is_over() && check.events.is_empty() && !check.stops() {
        let_go(context, &loaded, lease, &check.plan)?;
        drive::write_views(context, store, &loaded, &check.plan, lease.epoch)?;
        say_complete(context, &loaded.state);
        return Ok(None);
    }
    if again {
        check.events.extend(retries(context, &loaded.state, &check.plan, args)?);
    }
    // After a question the person has read it.
    if again || check.stops() {
        let resume = report(context, &loaded, &check, false);
        if context.json {
            ui::drive_json(&Answer::Resume(resume));
        }
    }
    if check.stops() {
        return Err(blocked(&check, run_id, args));
    }
    super::check::refuse_agents(context, &check.plan, &loaded.state, args)?;
    if again && !args.no_next {
        drive::say_words(context, &loaded.state, Occasion::Resumed);
    }
    if Some(check.plan.hash()) != loaded.state.plan_hash {
        store.keep_plan(&check.plan)?;
    }
    let mut opening = vec![drive::attached(context, lease, args)];
    opening.extend(ticks);
    opening.extend(resets_that_apply(&loaded.state, &opening[0], check.events));
    let (epoch, plan, drive) = (lease.epoch, check.plan, Drive::Run(gates));
    Ok(Some(Leased { loaded, epoch, plan, live, opening, drive }))
}

/// The refusal of a resume that differences stop.
fn blocked(check: &Check, run_id: &str, args: &DriveArgs) -> CommandError {
    let stops = || check.differences.iter().filter(|d| d.severity == Severity::Stops);
    let resume = check.resume_command(run_id, args.accept_plan);
    let causes: Vec<&str> = stops().map(|difference| difference.message.as_str()).collect();
    let message = format!("cannot resume {run_id}: {}", causes.join("; "));
    let error = CommandError::new(Kind::Blocked, "resume-blocked", message);
    stops().fold(error, |error, Difference { next, step, .. }| {
        let step = step.as_ref().map(ToString::to_string).unwrap_or_default();
        let retry = format!("retry {run_id} {step} --again");
        error.hint((next.next)(&Commands { resume: &resume, retry: &retry }))
    })
}

/// Lets the keeper of a complete run go, and its temporary files, if its last driver could not.
fn let_go(context: &Context, loaded: &Loaded, lease: &Lease, plan: &Plan) -> Result<()> {
    let dir = context.run_dir(&loaded.row.run_id);
    if piton_process::keeper_alive(&dir).is_some() || !scratch_folders(&dir).is_empty() {
        let mut world = drive::world(context, &loaded.state);
        world.keep(plan);
        world.attach(lease.epoch, &loaded.state.mark, &[])?;
        world.leave()?;
    }
    Ok(())
}

/// Gives failed steps new attempts where that is what resuming means to the run's protocol. Of others,
/// naming the lane says that what failed was put right.
/// So does a step whose definition changed since it failed.
fn retries(
    context: &Context,
    state: &RunState,
    plan: &Plan,
    args: &DriveArgs,
) -> Result<Vec<Event>> {
    let protocol = context.protocol(state, &state.protocol.id)?;
    // What a person did in a worktree is looked at again, whoever keeps files of the run.
    let apart = state.lanes().any(|(_, lane)| !lane.isolation.is_in_place());
    let all = apart || protocol.retries_on_resume() || args.lane.is_some();
    let changed = |path: &StepPath, begun_as: &Option<Sha>| {
        let Some(begun_as) = begun_as else { return false };
        plan.step(path).is_some_and(|s| !s.is_defined_by(begun_as))
    };
    let meant = |path: &LanePath, lane: &LaneState| {
        args.phase.as_ref().is_none_or(|p| *p == path.phase)
            && args.lane.as_ref().is_none_or(|l| l == lane.parent_id())
    };
    let lanes = state.lanes().filter(|(path, lane)| meant(path, lane));
    let failed = lanes.flat_map(|(path, lane)| {
        let steps = lane.steps.iter().filter(|s| s.progress == Progress::Failed);
        let steps = steps.map(move |s| (StepPath::new(&path.phase, &path.lane, &s.id), s));
        steps.filter(|(path, s)| all || changed(path, &s.definition)).map(|(path, _)| path)
    });
    let by = Context::who();
    Ok(failed.map(|step| Event::StepRetried(StepRetried { step, by: by.clone() })).collect())
}

/// Drops events about steps that the new plan no longer has.
fn resets_that_apply(state: &RunState, attached: &Event, events: Vec<Event>) -> Vec<Event> {
    let mut state = state.clone();
    let _ = apply(&mut state, now(), attached);
    events.into_iter().filter(|event| apply(&mut state, now(), event).is_ok()).collect()
}

/// Compares the world with the record of a run that nobody drives, and changes nothing.
pub fn compared(context: &Context, store: &mut Store, loaded: &Loaded) -> Result<Check> {
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    Ok(compare(context, store, loaded, &DriveArgs::default())?.check)
}

struct Compared {
    check: Check,
    live: Plan,
    gates: Gates,
    /// The ticks that count from now on.
    ticks: Vec<Event>,
}

fn compare(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    args: &DriveArgs,
) -> Result<Compared> {
    let recorded = store.plan(&loaded.state)?;
    if loaded.state.linked && !std::path::Path::new(&loaded.state.root).is_dir() {
        let message = format!("the work tree {} is gone", loaded.state.root);
        let check = Check::only(&recorded, "worktree-gone", message);
        return Ok(Compared { check, live: recorded, gates: Gates::default(), ticks: Vec::new() });
    }
    let tasks = Some(recorded.task_worktrees);
    // While a replan writes the plan's files, the plan is what they were before.
    let file = match before_replan(context, &loaded.state, &recorded)? {
        Some(file) => Some(file),
        None => PlanFile::for_run(context, &loaded.state, tasks)?.map(|file| file.like(&recorded)),
    };
    let mut world = drive::world(context, &loaded.state);
    let who = Context::who();
    let (plan, spec, outputs) = (args.accept_plan, args.accept_spec, args.accept_outputs);
    let accepts = Accepts { plan, spec, outputs, by: &who };
    let now_plan = file.as_ref().map(|f| &f.recorded);
    let mut check = check(&loaded.state, &recorded, now_plan, accepts, &mut world)?;
    drive::check_selection(&check.plan, args)?;
    let root = drive::root_of(context, &loaded.state);
    if root != std::path::Path::new(&loaded.state.root) {
        let (was, now) = (&loaded.state.root, root.display());
        let message =
            format!("{was}, where it began, is no longer this project; steps run in {now}");
        check.add("root-moved", message);
    }
    in_flight(context, &loaded.state, &loaded.row.run_id, &mut check, args.accept_plan);
    let protocol = context.protocol(&loaded.state, &loaded.state.protocol.id)?;
    let read = |path: &str| protocol_file(&root, path);
    for found in protocol.checks(&check.plan, &loaded.state, &read) {
        take_finding(&mut check, found);
    }
    let open = file.as_ref().map(|file| file.open_gates.clone());
    let (ticks, gates) =
        ticks::check(protocol, &root, (&check.plan, open), &loaded.state, args.accept_gates);
    let live = file.map_or(recorded, |f| f.live);
    Ok(Compared { check, live, gates, ticks })
}

/// Adds what a check of the protocol found.
fn take_finding(check: &mut Check, found: Finding) {
    let Finding { check: name, effect, message } = found;
    let message = format!("{name}: {message}");
    match effect {
        Effect::Holds => check.holds.push(message),
        Effect::Warns => check.add("protocol-warns", message),
        Effect::Stops => check.add("protocol-refuses", message),
        Effect::RunsAgain(step) => {
            let reason = message.clone();
            check.add_about("protocol-reruns", message, Some(step.clone()));
            check.events.push(Event::StepReset(StepReset { step, reason }));
        }
    }
}

/// Names what is in flight, from the outside: nothing is touched yet.
fn in_flight(context: &Context, state: &RunState, run_id: &str, check: &mut Check, accepted: bool) {
    let dir = context.run_dir(run_id);
    let keeper = piton_process::keeper_alive(&dir);
    let facts = piton_process::Journal::read(&dir).unwrap_or_default();
    for (step, attempt) in state.running() {
        use piton_process::Fact;
        let (name, word) = match facts.fact(&format!("{step}#{attempt}")) {
            Fact::Started { .. } | Fact::Maybe if keeper.is_some() => ("step-running", RUNNING),
            Fact::Finished(_) if lost_its_workspace(state, &step.lane()) => {
                ("step-lost", "has finished, but the worktree it worked in was deleted")
            }
            Fact::Finished(_) => ("step-running", "has finished in the meantime"),
            Fact::NotStarted => ("step-running", "was about to start"),
            _ => ("step-lost", "was running when its keeper died"),
        };
        let message = format!("{step} (attempt {attempt}) {word}");
        let done =
            matches!(facts.fact(&format!("{step}#{attempt}")), Fact::Finished(e) if e.success());
        let begun_as = state.step(&step).and_then(|s| s.definition.clone());
        let same =
            |s: &piton_core::plan::Step| begun_as.as_ref().is_some_and(|d| s.is_defined_by(d));
        let changed = check.plan.step(&step).is_some_and(|s| !same(s));
        if done && changed && !accepted {
            // It is finished, though nobody was there to record it.
            check.differences.retain(|d| d.name != "plan-changed");
            let message = format!("finished steps changed in the plan: {message}");
            check.add("plan-changed-finished", message);
            continue;
        }
        if check.plan.step(&step).is_some() {
            check.add(name, message);
            continue;
        }
        let then = if word == RUNNING { "it is ended" } else { "its outcome is not taken" };
        check.add("step-removed", format!("{message}, and is no longer in the plan: {then}"));
    }
    if state.epoch > 0 {
        let strays = piton_process::strays::find(&state.mark, keeper, &kept(&check.plan));
        if !strays.is_empty() {
            let names: Vec<String> =
                strays.iter().map(|s| format!("{} ({})", s.name, s.pid)).collect();
            check.add("strays", format!("processes without a keeper: {}", names.join(", ")));
        }
    }
}

/// The steps that succeeded while nobody drove the run, with what each began as.
fn finished_alone(context: &Context, loaded: &Loaded) -> Vec<(StepPath, Option<Sha>)> {
    let facts = piton_process::Journal::read(&context.run_dir(&loaded.row.run_id));
    let facts = facts.unwrap_or_default();
    let succeeded = |(step, attempt): &(StepPath, u32)| {
        let fact = facts.fact(&format!("{step}#{attempt}"));
        matches!(fact, piton_process::Fact::Finished(exit) if exit.success())
    };
    let begun_as = |step: &StepPath| loaded.state.step(step).and_then(|s| s.definition.clone());
    let found = loaded.state.running().into_iter().filter(succeeded);
    found.map(|(step, _)| (step.clone(), begun_as(&step))).collect()
}

/// Whether the worktree of a lane was deleted: what was done there since its last checkpoint is gone.
fn lost_its_workspace(state: &RunState, lane: &LanePath) -> bool {
    let dir = state.lane(lane).map_or("", |l| l.dir());
    !dir.is_empty() && !Path::new(dir).is_dir()
}

fn say_complete(context: &Context, state: &RunState) {
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let typed = context.plan_argument(&state.plan_path);
    let words = remedy![Words "run {run_id} is already complete\nhint: run it again with ", Piton "run {typed} --fresh"];
    let (run_id, status) = (&run_id, Status::Complete);
    ui::report(context.json, &Complete { run_id, status, words });
}

fn look(context: &Context, store: &mut Store, loaded: &Loaded, args: &DriveArgs) -> Result<()> {
    if loaded.seq == 0 {
        let plan = super::run::plan_of_unbegun(context, loaded)?;
        drive::check_selection(&plan.live, args)?;
        ui::say(format!("run {} has not started: all of it would run", loaded.row.run_id));
        super::run::dry_run(context, &plan, args, &[]);
        return Ok(());
    }
    let mut check = compare(context, store, loaded, args)?.check;
    check.events.extend(retries(context, &loaded.state, &check.plan, args)?);
    let resume = report(context, loaded, &check, true);
    let mut state = loaded.state.clone();
    for event in &check.events {
        let _ = apply(&mut state, now(), event);
    }
    // What the next driver finds finished does not run, whoever records it.
    for (path, step) in finished_alone(context, loaded) {
        let same = |s: &piton_core::plan::Step| step.as_ref().is_some_and(|d| s.is_defined_by(d));
        if check.plan.step(&path).is_some_and(same)
            && let Some(step) = super::status::shown_step(&mut state, &path)
        {
            step.progress = Progress::Done;
        }
    }
    dry_run::print(context, &check.plan, &state, Some(&resume), args, &[]);
    Ok(())
}
