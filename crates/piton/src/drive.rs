//! Driving a run from the terminal: the driver, its observers, the summary.

pub mod briefs;
pub mod decisions;
pub mod epoch;
pub mod hangup;
pub mod ticks;
mod views;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use piton_core::event::{DriverAttached, Event, Verdict};
use piton_core::plan::OnFailure;
use piton_core::redact::Redactor;
use piton_core::{Limits, Plan, RunState, Timestamp};
use piton_engine::store::Loaded;
use piton_engine::{Drive, Driver, Ending, Leased, Observer, Options, Store, World as _};
use piton_ledger::{HEARTBEAT_EVERY_MS, Lease};
use piton_protocols::files::Occasion;
use piton_protocols::plain::Plain;
use piton_protocols::{Protocol, find};
use piton_view::answers::Answer;
use piton_view::course::Course;
use piton_view::{RunView, Tally};
use piton_workspace::snapshot::Rules;

use self::views::{bring_up, driving};
pub use self::views::{bring_views_back, say_words, set_views_aside, show_decision, write_views};
use crate::cli::DriveArgs;
use crate::context::{Context, now};
use crate::environment::environment;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::{self, knowing, redactor_beside_keeper};
use crate::ui;
use piton_world::remarks;
use piton_world::workspaces::{GitWorkspaces, LaneOptions};
use piton_world::{RealWorld, Signals, Terminal, last_line};

/// The folder of stat caches, within the state folder.
pub const CACHE_DIR: &str = "cache";
/// The file in the folder of a run that its drivers lock while they act on the repository.
const RUN_LOCK_FILE: &str = "run.lock";

/// The event that says who drives now.
pub fn attached(context: &Context, lease: &Lease, args: &DriveArgs) -> Event {
    Event::DriverAttached(DriverAttached {
        epoch: lease.epoch,
        pid: lease.owner.pid,
        host: lease.owner.host.clone(),
        head: context.project.head(),
        takeover: args.takeover,
        base: args.base.clone(),
        retries: args.retries,
        seed_dirty: args.seed_dirty,
        keep_going: args.keep_going,
        // One that fell lived until the heartbeat that did not come, at most.
        driven_until: lease.former_heartbeat.map(|at| Timestamp(at + HEARTBEAT_EVERY_MS)),
    })
}

/// Where the steps of a run run: where it was started, if that folder is still one of the project's.
pub fn root_of(context: &Context, state: &RunState) -> PathBuf {
    let recorded = PathBuf::from(&state.root);
    if context.is_own_root(&recorded) { recorded } else { context.project.root.clone() }
}

/// How the world shows what it waits for.
pub const TERMINAL: Terminal = Terminal {
    hashing: |hashing| ui::say(piton_view::words::hashing("comparing files", hashing)),
    utc_offset_secs: |at| ui::place().utc_offset_secs(at),
};

/// The world of a run.
pub fn world(context: &Context, state: &RunState) -> RealWorld {
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let root = root_of(context, state);
    let (run_dir, inherited) = (context.run_dir(&run_id), &environment().inherited);
    let mut world = RealWorld::new(&context.project, &root, run_dir, &run_id, TERMINAL, inherited);
    world.notify.clone_from(&context.settings.notify);
    world.own = own_paths(context, state).iter().map(|path| root.join(path)).collect();
    world
}

/// What Piton writes in a project itself, from its root: its state where there is no git, the
/// worktrees of lanes, and the views.
fn own_paths(context: &Context, state: &RunState) -> Vec<String> {
    let Context { project, settings, .. } = context;
    let within = project.state_dir.strip_prefix(&project.root).ok();
    let mut own: Vec<String> = within.iter().map(|dir| dir.to_string_lossy().into()).collect();
    own.push(settings.lanes.worktrees.clone());
    own.extend(views::own_paths(context, state));
    own
}

/// The protocol that a run follows. One that is not known can only be ended: then nothing is named or
/// given to steps, and the plain one stands for it.
pub fn followed(context: &Context, state: &RunState) -> &'static dyn Protocol {
    find(context.table, &state.protocol.id).unwrap_or(&Plain)
}

/// The lanes of a run in its repository; nothing without git, or where snapshots are switched off.
pub fn workspaces(context: &Context, state: &RunState, args: &DriveArgs) -> Option<GitWorkspaces> {
    let project = &context.project;
    project.git_dir.as_ref()?;
    if switched_off(context, state) {
        return None;
    }
    let root = root_of(context, state);
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let settings = &context.settings;
    let options = LaneOptions {
        base: args.base.clone().or_else(|| state.base.clone()),
        usual_base: settings.lanes.base.clone(),
        seed_dirty: args.seed_dirty || state.seed_dirty,
        worktrees: settings.lanes.worktrees.clone(),
        protocol: followed(context, state),
        own: views::own_paths(context, state),
        plan: Some(state.plan_path.clone()).filter(|path| !path.starts_with('/')),
        merged: settings.pull_request.merged.clone(),
    };
    let rules = Rules {
        file_bytes_max: settings.snapshots.file_max,
        files_max: usize::try_from(settings.snapshots.files_max).unwrap_or(usize::MAX),
        home: environment().home.clone(),
        ..Rules::default()
    };
    let cache = project.state_dir.join(CACHE_DIR);
    let run_lock = context.run_dir(&run_id).join(RUN_LOCK_FILE);
    Some(GitWorkspaces::new(&root, &cache, &run_lock, &run_id, options, rules))
}

/// Whether a run has no checkpoints because the settings say so; worktrees need them.
pub fn switched_off(context: &Context, state: &RunState) -> bool {
    let in_place = state.lanes().all(|(_, lane)| lane.isolation.is_in_place());
    in_place && !context.settings.snapshots.enabled
}

/// Drives until nothing can move, and says how it went.
pub fn drive(
    context: &Context,
    store: &mut Store,
    mut leased: Leased,
    args: &DriveArgs,
) -> Result<Ending> {
    let state = &opening_state(&leased);
    let run_dir = context.run_dir(&leased.loaded.row.run_id);
    let mut signals = Signals::catch()
        .map_err(|e| CommandError::failed("signals", format!("signals cannot be caught: {e}")))?;
    if context.settings.detach_on_hangup && matches!(leased.drive, Drive::Run(_)) {
        hangup::outlive(&mut signals, &run_dir);
    }
    let mut workspaces = workspaces(context, state, args);
    if let Some(workspaces) = &mut workspaces {
        workspaces.take_over(leased.epoch)?;
        // What was said is written down, and not by one that was taken over.
        let held = workspaces.turn()?;
        let worktrees = state.lanes().any(|(_, lane)| !lane.isolation.is_in_place());
        let root = root_of(context, state);
        let remarks = remarks::check(&context.project, &root, worktrees);
        drop(held);
        remarks.lines.iter().for_each(ui::say);
        workspaces.refuse(remarks.refusal);
    }
    let mut writer = driving(context, state, leased.epoch)?;
    if let Some(writer) = writer.as_mut().filter(|_| leased.loaded.seq > 0) {
        bring_up(store, &leased.loaded, &leased.plan, writer)?;
    }
    let mut world = world(context, state);
    world.keep(&leased.live);
    world.protocol = Some(followed(context, state));
    (world.signals, world.workspaces, world.views) = (Some(signals), workspaces, writer);
    world.plans = Some(plan_file::files(context, &context.project.root, state));
    // What takes a run back runs no step: ticks since the last one are a person's, if that ended well.
    if matches!(leased.drive, Drive::Run(_)) || leased.loaded.state.driven {
        context.protocol(state, &state.protocol.id)?;
        world.ticked_plan = Some(state.plan_path.clone());
    }
    if args.keep_going || state.keep_going {
        leased.plan.on_failure = OnFailure::Continue;
        leased.live.on_failure = OnFailure::Continue;
    }
    // What was asked for when it began holds for whoever goes on.
    let retries = args.retries.or(state.retries);
    let known = redactor_beside_keeper(context, &leased.loaded.row.run_id);
    let redactor = knowing(&known, &leased.live, &context.settings.secrets);
    let options = Options {
        limits: Limits {
            jobs: args.jobs.unwrap_or(context.settings.jobs) as usize,
            phase: args.phase.clone(),
            lane: args.lane.clone(),
            checkpoints: world.workspaces().is_some() || world.views().is_some(),
            force_replan: args.force_replan.then(Context::who),
            ..Limits::default()
        },
        retries,
        redactor,
        merge_rounds: Some(context.settings.lanes.merge_rounds),
        notify: true,
    };
    world.briefs = Some(briefs::of_driver(context, &leased.loaded.row, &options.redactor));
    // Other drives are parts of a command that says what came of it.
    let (runs, is_first) = (matches!(leased.drive, Drive::Run(_)), leased.loaded.seq == 0);
    let mut tally = Tally::default();
    tally.no_next = args.no_next;
    // A command that ends a run answers with one object; its events are no answer.
    let streams = context.json && !matches!(leased.drive, Drive::Abort(_));
    let draws = runs && !context.json && ui::draws(&std::io::stderr());
    let mut screen: Box<dyn Observer> = if streams {
        Box::new(ui::Stream::json())
    } else if draws {
        let live = live(&world, &run_dir, &leased.live, retries, &options.redactor);
        Box::new(hangup::Screen::new(live))
    } else {
        Box::new(ui::Stream::words())
    };
    let row = leased.loaded.row.clone();
    let mut both = ui::Both(screen.as_mut(), &mut tally);
    let ending = Driver::drive(store, &mut world, &mut both, leased, options);
    drop(screen);
    let ending = ending?;
    if !is_first && matches!(ending.verdict, Verdict::Complete | Verdict::Waiting) {
        // Whoever looks now was perhaps not there for any of it.
        let mut course = Course::default();
        store.each_event(&row, 0, |_, at, event| course.take(at, event))?;
        tally.course = course;
    }
    tally.course.terminals_closed = hangup::closed_terminals(&run_dir);
    let logs = run_dir.join("logs");
    let view = RunView::by_driver(&ending.state, now(), ui::place());
    let mut summary = tally.summary(&view, ending.verdict, &logs);
    if streams && ending.refused.is_none() {
        if ending.verdict == Verdict::Waiting {
            summary.decide = decisions::decisions(context, store, &ending.state);
        }
        ui::drive_json(&Answer::Summary(summary));
    } else if runs && !streams {
        ui::say_as_is(summary.render(&ui::stderr()).trim_end());
        if is_first {
            say_words(context, &ending.state, Occasion::Stopped);
        }
    }
    Ok(ending)
}

/// Drives a run by its plan on record, just as far as it takes to do something else than its steps.
pub fn drive_without_steps(
    context: &Context,
    store: &mut Store,
    loaded: Loaded,
    plan: Plan,
    (lease, takeover): (&Lease, bool),
    how: Drive,
) -> Result<Ending> {
    let args = DriveArgs { takeover, ..DriveArgs::default() };
    let opening = vec![attached(context, lease, &args)];
    let (epoch, live) = (lease.epoch, plan.clone());
    drive(context, store, Leased { loaded, epoch, plan, live, opening, drive: how }, &args)
}

/// The state as it will be once a run is created; enough to find the root.
fn opening_state(leased: &Leased) -> RunState {
    let mut state = leased.loaded.state.clone();
    for event in leased.opening.iter().filter(|event| matches!(event, Event::RunCreated(_))) {
        // A state that can't take its creation is reported by the driver.
        let _ = piton_core::apply(&mut state, now(), event);
    }
    state
}

/// The live picture of a run that this process drives.
fn live(
    world: &RealWorld,
    run_dir: &Path,
    plan: &Plan,
    retries: Option<u32>,
    redactor: &Redactor,
) -> ui::Live {
    let (running, run_dir, redactor) = (world.running(), run_dir.to_owned(), redactor.clone());
    let tail = Box::new(move |step: &piton_core::StepPath| {
        let begins = *running.borrow().get(step)?;
        last_line(&run_dir, step, begins, &redactor)
    });
    ui::Live::new(tail).with_plan(plan, retries)
}

/// Takes a lane that was named as `PHASE/LANE` apart.
pub fn split_lane(args: &mut DriveArgs) -> Result<()> {
    let Some((phase, lane)) = args.lane.as_deref().and_then(|lane| lane.split_once('/')) else {
        return Ok(());
    };
    if let Some(other) = args.phase.as_ref().filter(|other| *other != phase) {
        let message = format!("lane `{phase}/{lane}` is not in phase `{other}`");
        return Err(CommandError::usage("no-step", message)
            .hint("leave out `--phase`: the lane includes its phase"));
    }
    (args.phase, args.lane) = (Some(phase.to_owned()), Some(lane.to_owned()));
    Ok(())
}

/// Refuses a selection that selects nothing: a mistyped name must not look like finished work.
pub fn check_selection(plan: &Plan, args: &DriveArgs) -> Result<()> {
    let phases = || plan.phases.iter().filter(|p| args.phase.as_ref().is_none_or(|id| *id == p.id));
    let (what, name, known) = match (&args.phase, &args.lane) {
        (Some(phase), _) if phases().next().is_none() => {
            ("phase", phase, plan.phases.iter().map(|p| p.id.as_str()).collect::<Vec<_>>())
        }
        (_, Some(lane)) if !phases().flat_map(|p| &p.lanes).any(|l| l.id == *lane) => {
            let lanes = phases().flat_map(|p| &p.lanes).map(|l| l.id.as_str());
            ("lane", lane, lanes.collect::<BTreeSet<_>>().into_iter().collect())
        }
        _ => return Ok(()),
    };
    let message = format!("the plan has no {what} `{name}`");
    Err(CommandError::usage("no-step", message).hint(format!("it has: {}", known.join(", "))))
}

/// The exit that belongs to a verdict.
pub fn exit(verdict: Verdict, signal: Option<i32>) -> Result<()> {
    let kind = match verdict {
        Verdict::Complete | Verdict::SelectionDone | Verdict::RolledBack => return Ok(()),
        Verdict::Failed | Verdict::Aborted => Kind::Failed,
        Verdict::Waiting => Kind::Waiting,
        Verdict::Blocked => Kind::Blocked,
        Verdict::Budget => Kind::Budget,
        Verdict::Interrupted => Kind::Interrupted(signal.unwrap_or(2)),
    };
    Err(CommandError::silent(kind))
}
