//! Driving a run from the terminal: the driver, its observers, the summary, and the questions that
//! follow when a person is there.

pub mod epoch;
mod questions;
pub mod ticks;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use piton_core::event::{DriverAttached, Event, RunAborted, Verdict};
use piton_core::plan::OnFailure;
use piton_core::redact::Redactor;
use piton_core::{LanePath, Limits, Plan, RunState, Timestamp};
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, World as _};
use piton_engine::{Driver, Ending, Observer, Options, Store};
use piton_ledger::{HEARTBEAT_EVERY_MS, Lease};
use piton_workspace::snapshot::Rules;

pub use self::questions::{carry_out, questions};
use self::views::{bring_up, folder};
pub use self::views::{bring_views_back, has_views, set_views_aside, views, write_views};
use crate::cli::DriveArgs;
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::{knowing, redactor_beside_keeper};
use crate::ui;
use piton_world::remarks;
use piton_world::rooms::{GitRooms, LaneOptions};
use piton_world::views::{Told, Viewed};
use piton_world::{RealWorld, Signals, Terminal, last_line};

/// The folder of stat caches, within the state folder.
pub const CACHE_DIR: &str = "cache";
/// The file in the folder of a run that its drivers lock while they act on the repository.
const HANDS_FILE: &str = "hands";

/// A run about to be driven: its lease is held.
pub struct Session {
    /// The run.
    pub loaded: Loaded,
    /// The plan as recorded.
    pub plan: Plan,
    /// The plan as steps start from it.
    pub live: Plan,
    /// What to record first.
    pub opening: Vec<Event>,
    /// An abort to carry out instead of going on.
    pub abort: Option<RunAborted>,
    /// Whether the run is set aside right after: then no way on is told.
    pub aside: bool,
    /// A rollback, restore or undo to carry out instead of going on.
    pub rewind: Option<Rewind>,
    /// Whether nothing but a rollback that was cut short is to be finished.
    pub settle: bool,
    /// Gates of the phase document that are open, for each lane that waits for them.
    pub open_gates: BTreeMap<LanePath, Vec<String>>,
    /// Those that are ticked, but perhaps by a step.
    pub doubted_gates: BTreeMap<LanePath, Vec<String>>,
}

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
    hashing: |hashing| ui::say(&ui::words::hashing("comparing files", hashing)),
    utc_offset_secs: ui::time::utc_offset_secs,
};

/// The world of a run.
pub fn world(context: &Context, state: &RunState) -> RealWorld {
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let root = root_of(context, state);
    RealWorld::new(&context.project, &root, context.run_dir(&run_id), &run_id, TERMINAL)
        .with_notify(context.settings.notify.clone())
        .with_own(&own_paths(context, state))
}

/// What Piton writes in a project itself, from its root: its state where there is no git, the
/// worktrees of lanes, and the views.
fn own_paths(context: &Context, state: &RunState) -> Vec<String> {
    let Context { project, settings, .. } = context;
    let within = project.state_dir.strip_prefix(&project.root).ok();
    let mut own: Vec<String> = within.iter().map(|dir| dir.to_string_lossy().into()).collect();
    own.push(settings.lanes.worktrees.clone());
    own.extend(views(context, state).own_paths());
    own
}

/// The lanes of a run in its repository; nothing without git, or where snapshots are switched off.
pub fn rooms(context: &Context, state: &RunState, args: &DriveArgs) -> Option<GitRooms> {
    let project = &context.project;
    project.git_dir.as_ref()?;
    if switched_off(context, state) {
        return None;
    }
    let root = root_of(context, state);
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let settings = &context.settings;
    let views = views(context, state);
    let options = LaneOptions {
        base: args.base.clone().or_else(|| state.base.clone()),
        usual_base: settings.lanes.base.clone(),
        seed_dirty: args.seed_dirty || state.seed_dirty,
        worktrees: settings.lanes.worktrees.clone(),
        merged: settings.pull_request.merged.clone(),
    };
    let rules = Rules {
        file_bytes_max: settings.snapshots.file_max,
        files_max: usize::try_from(settings.snapshots.files_max).unwrap_or(usize::MAX),
        // A work tree is known by its real path.
        home: std::env::var_os("HOME").map(PathBuf::from).map(|h| h.canonicalize().unwrap_or(h)),
        ..Rules::default()
    };
    let cache = project.state_dir.join(CACHE_DIR);
    let hands = context.run_dir(&run_id).join(HANDS_FILE);
    Some(GitRooms::new(&root, &cache, &hands, &run_id, options, rules, views))
}

/// Whether a run has no checkpoints because the settings say so; worktrees need them.
pub fn switched_off(context: &Context, state: &RunState) -> bool {
    let in_place = state.lanes().all(|(_, lane)| lane.isolation.is_in_place());
    in_place && !context.settings.snapshots.enabled
}

/// Says of lanes what the contract wants to be said.
pub fn say_lanes(context: &Context, state: &RunState, told: Told) {
    for line in views(context, state).prompt(state, told) {
        ui::say(&ui::text::sanitize(&line));
    }
}

/// Drives until nothing can move, and says how it went.
pub fn drive(
    context: &Context,
    store: &mut Store,
    session: Session,
    epoch: u64,
    args: &DriveArgs,
) -> Result<Ending> {
    let state = &session.opening_state();
    let run_id = session.loaded.row.run_id.clone();
    let run_dir = context.run_dir(&run_id);
    let signals = Signals::catch()
        .map_err(|e| CommandError::failed("signals", format!("signals can't be caught: {e}")))?;
    let mut rooms = rooms(context, state, args);
    if let Some(rooms) = &mut rooms {
        rooms.take_over(epoch)?;
        // What was said is written down, and not by one that was taken over.
        let held = rooms.turn()?;
        let worktrees = state.lanes().any(|(_, lane)| !lane.isolation.is_in_place());
        let remarks = remarks::look(&context.project, &root_of(context, state), worktrees);
        drop(held);
        remarks.lines.iter().for_each(|line| ui::say(line));
        rooms.refuse(remarks.refusal);
    }
    let mut folder = if rooms.is_none() { folder(context, state) } else { None };
    if let Some(folder) = &mut folder {
        folder.take_over(epoch)?;
    }
    if session.loaded.seq > 0 {
        let viewed = rooms.as_mut().map(|rooms| rooms as &mut dyn Viewed);
        let viewed = viewed.or_else(|| folder.as_mut().map(|folder| folder as &mut dyn Viewed));
        viewed.map_or(Ok(()), |v| bring_up(context, store, &session.loaded, &session.plan, v))?;
    }
    let mut world = world(context, state)
        .with_signals(signals)
        .with_keep(&session.live)
        .with_rooms(rooms)
        .with_folder(folder);
    // What takes a run back runs no step: ticks since the last one are a person's, if that ended well.
    let steps = session.abort.is_none() && session.rewind.is_none() && !session.settle;
    if steps || session.loaded.state.driven {
        world = world.with_document(&state.plan_path);
    }
    let mut plan = session.plan;
    let mut live = session.live;
    if args.keep_going || state.keep_going {
        plan.on_failure = OnFailure::Continue;
        live.on_failure = OnFailure::Continue;
    }
    // What was asked for when it began holds for whoever goes on.
    let retries = args.retries.or(state.retries);
    let known = redactor_beside_keeper(context, &session.loaded.row.run_id);
    let redactor = knowing(&known, &live, &context.settings.secrets);
    let options = Options {
        limits: Limits {
            jobs: args.jobs.unwrap_or(context.settings.jobs) as usize,
            draining: false,
            phase: args.phase.clone(),
            lane: args.lane.clone(),
            checkpoints: world.rooms().is_some(),
            unmerged: Vec::new(),
            put_off: Vec::new(),
        },
        retries,
        redactor,
        abort: session.abort,
        open_gates: session.open_gates,
        doubted_gates: session.doubted_gates,
        merge_rounds: Some(context.settings.lanes.merge_rounds),
        rewind: session.rewind,
        settle: session.settle,
        notify: true,
    };
    let mut tally = ui::Tally::default();
    tally.no_way_on = session.aside;
    // A command that ends a run answers with one object; its events are no answer.
    let streams = context.json && options.abort.is_none();
    let mut screen = if context.json && !streams {
        Screen::Plain(ui::Plain::new())
    } else {
        screen(context, &world, &run_dir, &live, (retries, &options.redactor))
    };
    let ending = {
        let mut both = ui::Both(screen.as_observer(), &mut tally);
        Driver::new(store, &mut world, &mut both, plan, live, session.loaded, epoch, options)
            .drive(session.opening)
    };
    screen.clear();
    let ending = ending?;
    let logs = run_dir.join("logs");
    if ending.refused.is_some() {
        // Nothing happened: the error says why.
    } else if streams {
        ui::drive_json(&tally.summary_json(&ending.state, ending.verdict, &logs));
    } else {
        let look = ui::Look::stderr();
        ui::say_as_is(tally.render(&ending.state, ending.verdict, &logs, &look).trim_end());
        if ending.verdict != Verdict::RolledBack && !session.aside {
            say_lanes(context, &ending.state, Told::Stuck);
        }
    }
    Ok(ending)
}

impl Session {
    /// A run about to go on.
    pub fn new(loaded: Loaded, plan: Plan, live: Plan, opening: Vec<Event>) -> Self {
        let (open_gates, doubted_gates) = (BTreeMap::new(), BTreeMap::new());
        let (abort, aside, rewind, settle) = (None, false, None, false);
        Self {
            loaded,
            plan,
            live,
            opening,
            abort,
            aside,
            rewind,
            settle,
            open_gates,
            doubted_gates,
        }
    }

    /// The state as it will be once the opening events are applied; enough to find the root.
    fn opening_state(&self) -> RunState {
        let mut state = self.loaded.state.clone();
        for event in &self.opening {
            if let Event::RunCreated(_) = event {
                // A state that can't take its creation is reported by the driver.
                let _ = piton_core::apply(&mut state, now(), event);
            }
        }
        state
    }
}

/// What a driver's progress is shown on.
enum Screen {
    Live(Box<ui::Live>),
    Plain(ui::Plain),
    Json(ui::JsonStream),
}

impl Screen {
    fn as_observer(&mut self) -> &mut dyn Observer {
        match self {
            Self::Live(live) => live.as_mut(),
            Self::Plain(plain) => plain,
            Self::Json(json) => json,
        }
    }

    fn clear(&mut self) {
        if let Self::Live(live) = self {
            live.clear();
        }
    }
}

fn screen(
    context: &Context,
    world: &RealWorld,
    run_dir: &std::path::Path,
    plan: &Plan,
    (retries, redactor): (Option<u32>, &Redactor),
) -> Screen {
    use std::io::IsTerminal as _;
    if context.json {
        return Screen::Json(ui::JsonStream::new());
    }
    let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb");
    if !std::io::stderr().is_terminal() || dumb {
        return Screen::Plain(ui::Plain::new());
    }
    let (running, run_dir) = (world.running(), run_dir.to_owned());
    let redactor = redactor.clone();
    let tail = Box::new(move |step: &piton_core::StepPath| {
        let begins = *running.borrow().get(step)?;
        last_line(&run_dir, step, begins, &redactor)
    });
    Screen::Live(Box::new(ui::Live::new(tail).with_plan(plan, retries)))
}

/// Takes a lane that was named as `PHASE/LANE` apart.
pub fn split_lane(args: &mut DriveArgs) -> Result<()> {
    let named = args.lane.clone().unwrap_or_default();
    args.split_lane().map_err(|phase| {
        let message = format!("lane `{named}` is not in phase `{phase}`");
        CommandError::usage("no-step", message).hint("leave out `--phase`: the lane names its own")
    })
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
    let message = format!("there is no {what} `{name}` to run");
    Err(CommandError::usage("no-step", message).hint(format!("there are: {}", known.join(", "))))
}

/// The exit that belongs to an ending.
pub fn exit(ending: &Ending) -> Result<()> {
    let kind = match ending.verdict {
        Verdict::Complete | Verdict::SelectionDone | Verdict::RolledBack => return Ok(()),
        Verdict::Failed | Verdict::Aborted | Verdict::Unknown => Kind::Failed,
        Verdict::Waiting => Kind::Waiting,
        Verdict::Blocked => Kind::Blocked,
        Verdict::Budget => Kind::Budget,
        Verdict::Interrupted => Kind::Interrupted(ending.signal.unwrap_or(2)),
    };
    Err(CommandError::silent(kind))
}
