//! `piton attach`: watches a run that another process drives, through the ledger alone.
//!
//! The same observers that a driver feeds are fed with what it wrote, so both look alike. Ctrl-C ends
//! the watching, never the run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use piton_core::event::{DriverLeft, Event, Verdict};
use piton_core::summary::standing_verdict;
use piton_core::{LanePath, RunState, Status, apply, remedy};
use piton_engine::{Loaded, Observer, Store};
use piton_ledger::RunRow;
use signal_hook::consts::SIGINT;

use super::request::unfinished;
use crate::cli::RunName;
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::redactor_of_run;
use crate::ui::{self, Live, Stream};
use piton_view::answers::Complete;
use piton_view::words;
use piton_world::last_line;

/// The pause between two looks: asking whether anything was committed is nearly free.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// In how many of the last events a driver's leaving is looked for; only an abort follows it.
const LAST_EVENTS: u64 = 4;

/// How the watching ended.
enum End {
    /// The driver left with a verdict.
    Left(DriverLeft),
    /// The driver is gone without a word.
    Gone,
    /// The person looks away.
    Detached,
}

/// Watches a driven run.
pub fn run(context: &Context, args: &RunName) -> Result<()> {
    let mut store = context.read_store()?;
    let row = pick(&mut store, args.run.as_deref())?;
    let run_id = row.run_id.clone();
    if !Context::driver_lives(&row) {
        // Whoever starts a run in the background and then watches it may come too late.
        if row.status == Status::Complete.as_str() {
            let words = remedy![Words "run {run_id} is complete; ", Piton "show {run_id}", Words " shows what happened"];
            let (run_id, status) = (&run_id, Status::Complete);
            ui::report(context.json, &Complete { run_id, status, words });
            return Ok(());
        }
        return Err(not_driven(&store.load_row(row)?));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))
        .map_err(|e| CommandError::failed("signals", format!("Ctrl-C cannot be caught: {e}")))?;
    let mut loaded = store.load_row(row)?;
    let ends = Rc::new(RefCell::new(ends(&loaded.state)));
    let mut observer = observer(context, &mut store, &loaded, &ends);
    if !context.json {
        ui::say(format!("watching run {run_id}; Ctrl-C stops watching; the run continues"));
    }
    let end = match left_already(&mut store, &loaded)? {
        Some(left) => End::Left(left),
        None => watch(&mut store, &mut loaded, observer.as_mut(), &ends, &interrupted)?,
    };
    // Takes the live tree off the screen before anything else is said.
    drop(observer);
    finish(&loaded, end)
}

fn pick(store: &mut Store, named: Option<&str>) -> Result<RunRow> {
    if named.is_some() {
        return Context::pick(store, named, |_| true, "run");
    }
    let mut runs = store.runs()?;
    if let Some(driven) = runs.iter().position(Context::driver_lives) {
        return Ok(runs.swap_remove(driven));
    }
    let newest = runs.into_iter().next().filter(|r| r.status == Status::Complete.as_str());
    newest.map_or_else(|| Context::pick(store, None, unfinished, "unfinished run"), Ok)
}

/// There is nothing to watch: ends as the run stands, and says what to type instead.
fn not_driven(loaded: &Loaded) -> CommandError {
    let (run, row) = (&loaded.row.run_id, &loaded.row);
    let verdict = standing_verdict(&loaded.state).unwrap_or(Verdict::Interrupted);
    let kind = match verdict {
        Verdict::Failed => Kind::Failed,
        Verdict::Waiting => Kind::Waiting,
        Verdict::Budget => Kind::Budget,
        _ => Kind::Blocked,
    };
    let error =
        |kind| CommandError::new(kind, "not-driven", format!("no process drives run {run}"));
    if !unfinished(row) {
        let status = &row.status;
        let hint =
            remedy![Words "it is {status}; ", Piton "show {run}", Words " shows what happened"];
        return error(Kind::Blocked).hint(hint);
    }
    let next = Context::view(loaded).next_typed(verdict).swap_remove(0);
    error(kind).hint(format!("next: {next}"))
}

/// Where the output of the running attempt of each lane begins, in its two logs.
type Ends = Rc<RefCell<BTreeMap<LanePath, (u64, u64)>>>;

fn ends(state: &RunState) -> BTreeMap<LanePath, (u64, u64)> {
    let mut ends = BTreeMap::new();
    for (path, step) in state.steps() {
        let end: &mut (u64, u64) = ends.entry(path.lane()).or_default();
        *end = (end.0.max(step.logs.stdout.1), end.1.max(step.logs.stderr.1));
    }
    ends
}

fn observer(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    ends: &Ends,
) -> Box<dyn Observer> {
    if context.json {
        return Box::new(Stream::json());
    }
    if !std::io::stderr().is_terminal() {
        return Box::new(Stream::words());
    }
    let run_dir = context.run_dir(&loaded.row.run_id);
    let redactor = redactor_of_run(context, &loaded.row.run_id, &loaded.state.plan_path);
    let ends = Rc::clone(ends);
    let live = Live::new(Box::new(move |step| {
        let begins = ends.borrow().get(&step.lane()).copied().unwrap_or_default();
        last_line(&run_dir, step, begins, &redactor)
    }));
    match store.plan(&loaded.state) {
        Ok(plan) => Box::new(live.with_plan(&plan, None)),
        Err(_) => Box::new(live),
    }
}

/// How the driver left, if it did between being found and the history being read.
fn left_already(store: &mut Store, loaded: &Loaded) -> Result<Option<DriverLeft>> {
    // One that holds the lease and is not in the history yet has still to begin.
    let row = store.ledger().run(&loaded.row.run_id)?;
    if loaded.state.driven || row.as_ref().is_some_and(Context::driver_lives) {
        return Ok(None);
    }
    let mut left = None;
    // Leaving is in a driver's last commit, which holds few events.
    for (_, _, event) in store.events(&loaded.row, loaded.seq.saturating_sub(LAST_EVENTS))? {
        if let Event::DriverLeft(event) = event {
            left = Some(event);
        }
    }
    Ok(left)
}

fn watch(
    store: &mut Store,
    loaded: &mut Loaded,
    observer: &mut dyn Observer,
    ends: &Ends,
    interrupted: &AtomicBool,
) -> Result<End> {
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(End::Detached);
        }
        // Looked at before the events, so that the last ones of a driver are not missed.
        let lives = Context::driver_lives(&loaded.row);
        let changed = store.ledger().changed()?;
        if changed || !lives {
            if let Some(left) = take_events(store, loaded, observer, ends)? {
                return Ok(End::Left(left));
            }
            if let Some(row) = store.ledger().run(&loaded.row.run_id)? {
                loaded.row = row;
            }
            // Another driver may have taken over from the one that is gone.
            if !lives && !Context::driver_lives(&loaded.row) {
                return Ok(End::Gone);
            }
        }
        if observer.wants_ticks() {
            observer.tick(now(), &loaded.state);
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn take_events(
    store: &mut Store,
    loaded: &mut Loaded,
    observer: &mut dyn Observer,
    ends: &Ends,
) -> Result<Option<DriverLeft>> {
    let mut left = None;
    loop {
        let page = store.events(&loaded.row, loaded.seq)?;
        if page.is_empty() {
            return Ok(left);
        }
        for (seq, at, event) in page {
            if apply(&mut loaded.state, at, &event).is_err() {
                // What cannot follow is for `doctor` to explain; the view goes on from the record.
                *loaded = store.load(&loaded.row.run_id)?;
                return Ok(left);
            }
            loaded.seq = seq;
            // A driver that attaches takes back what the one before said on leaving.
            left = match &event {
                Event::DriverLeft(event) => Some(event.clone()),
                Event::DriverAttached(_) => None,
                _ => left,
            };
            if let Event::StepFinished(e) = &event
                && !e.logs.is_empty()
            {
                ends.borrow_mut().insert(e.step.lane(), (e.logs.stdout.1, e.logs.stderr.1));
            }
            observer.event(seq, at, &event, &loaded.state);
        }
    }
}

fn finish(loaded: &Loaded, end: End) -> Result<()> {
    let run = &loaded.row.run_id;
    match end {
        End::Detached => {
            ui::say(
                remedy![Words "stopped watching; run {run} continues (", Piton "attach {run}", Words ")"],
            );
            Err(CommandError::silent(Kind::Interrupted(SIGINT)))
        }
        End::Gone => {
            let message =
                format!("the driver of run {run} is gone; steps that it started may still run");
            Err(CommandError::new(Kind::Failed, "driver-gone", message)
                .hint(remedy![Piton "resume {run}", Words " continues it"]))
        }
        End::Left(left) => {
            let view = Context::view(loaded);
            let (words, more) = words::verdict(left.verdict, &view);
            ui::say_as_is(&format!("run {run} {words}{}", words::detail(&more)));
            for command in view.next_typed(left.verdict) {
                ui::say_as_is(&format!("next: {command}"));
            }
            crate::drive::exit(left.verdict, left.signal)
        }
    }
}
