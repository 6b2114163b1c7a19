//! `piton replan`: asks for another plan of a phase, as a person or from inside a step.

use piton_core::decide::phase_ready;
use piton_core::request::Request;
use piton_core::{RunState, StepPath, remedy};
use piton_engine::{Loaded, Store};
use piton_view::answers::Sent;

use super::request::{self, Target};
use crate::cli::ReplanArgs;
use crate::context::Context;
use crate::environment::environment;
use crate::error::{CommandError, Result};

/// Asks for a replan.
pub fn run(context: &Context, args: &ReplanArgs) -> Result<()> {
    let mut store = request::open(context)?;
    let Wanted { run_id, sent, is_inside, .. } = ask(context, &mut store, args)?;
    let resumes = !args.no_resume && !is_inside;
    request::report_and_resume(context, store, &run_id, &[sent], resumes)
}

/// A replan that was asked for.
pub struct Wanted {
    /// The run.
    pub run_id: String,
    /// The phase.
    pub phase: String,
    /// What came of it.
    pub sent: Sent,
    /// Whether a step of the run asked.
    pub is_inside: bool,
}

/// Puts the request to the run that is meant.
pub fn ask(context: &Context, store: &mut Store, args: &ReplanArgs) -> Result<Wanted> {
    let own = environment().run_id.clone();
    let run = args.run.as_ref().or(own.as_ref()).map(String::as_str);
    let row = Context::pick(store, run, request::resumable, "unfinished run")?;
    let loaded = store.load_row(row)?;
    request::refuse_session(&loaded)?;
    let inside = request::is_inside(context, &loaded);
    // A step may ask for another plan; what the limits say, only a person may set aside.
    if args.force_replan || !inside {
        request::refuse_deciding(context, &loaded)?;
    }
    let step = if inside { Some(asking(&loaded.state, args.phase.as_deref())?) } else { None };
    let phase = args.phase.clone().or_else(|| step.as_ref().map(|step| step.phase.clone()));
    let Some(phase) = phase.or_else(|| current(&loaded.state)) else {
        return Err(nothing(&loaded));
    };
    let reason = request::message(context, &loaded, &args.reason)?;
    let force = args.force_replan;
    let asked = Request::Replan { phase: phase.clone(), reason, step, force };
    let sent = request::send(context, store, &loaded, &asked, Target::Run)?;
    Ok(Wanted { run_id: loaded.row.run_id, phase, sent, is_inside: inside })
}

/// The step that asks, as far as it can be told: by its environment, or one that runs.
pub fn asking(state: &RunState, phase: Option<&str>) -> Result<StepPath> {
    let [own, lane, step] = &environment().step;
    let named = match (own, lane, step) {
        (Some(phase), Some(lane), Some(step)) => Some(StepPath::new(phase, lane, step)),
        _ => None,
    };
    let running = || state.running().into_iter().map(|(step, _)| step);
    let known = named.filter(|step| state.step(step).is_some());
    let found = known.or_else(|| running().find(|s| phase.is_none_or(|id| s.phase == id)));
    found.or_else(|| running().next()).ok_or_else(|| {
        CommandError::usage("no-step", "no step of the run is running, so none can ask")
            .hint("run the command in your own terminal")
    })
}

/// The first phase that can go on and is not complete.
fn current(state: &RunState) -> Option<String> {
    let open = state.phases.iter().filter(|phase| !phase.is_over());
    let ready = open.clone().find(|phase| phase_ready(state, phase));
    ready.or_else(|| open.clone().next()).map(|phase| phase.id.clone())
}

fn nothing(loaded: &Loaded) -> CommandError {
    let run = &loaded.row.run_id;
    CommandError::usage("no-step", format!("no phase of run {run} is left to plan"))
        .hint(remedy![Piton "status {run}", Words " shows its phases"])
}
