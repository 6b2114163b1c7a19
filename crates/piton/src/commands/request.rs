//! What the asking commands share: which run is meant, who may ask, sending, and the answer.
//!
//! Nothing is decided here: a request becomes events in the core, by the driver where one lives and
//! else by this process under the run's lease. Names that people type are resolved in [`names`].

pub mod names;
mod refused;

use std::thread;
use std::time::{Duration, Instant};

use piton_core::event::Event;
use piton_core::lane_state::LaneWork;
use piton_core::refusal::Remedy;
use piton_core::request::{Refused, Reply, Request};
use piton_core::{GateRef, Status, StepPath, remedy};
use piton_engine::store::Asked;
use piton_engine::{Answer, Loaded, Store};
use piton_ledger::{DATABASE_FILE, RunRow, owner_liveness};
use piton_process::{Fact, Journal};
use piton_view::RunView;
use piton_view::answers::{Outcome, Requests, Sent};

use crate::cli::{DriveArgs, ResumeArgs};
use crate::context::{Context, now};
use crate::environment::{Environment, environment};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::redactor_of_run;
use crate::{drive, ui};

/// How long a command waits for the driver: it looks into its inbox many times a second, so only a
/// stopped one takes longer, and a person should not be kept waiting for that.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// The pause between two looks for the answer.
const ANSWER_POLL: Duration = Duration::from_millis(50);
/// Longest message: it is kept for ever, and is a remark, not a document.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// What a request is about: two equal requests are one until this has changed.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A step.
    Step(&'a StepPath),
    /// A gate.
    Gate(&'a GateRef),
    /// The run as a whole.
    Run,
}

/// Opens the ledger for asking; unlike a run, a request never makes one.
pub fn open(context: &Context) -> Result<Store> {
    if !context.project.state_dir.join(DATABASE_FILE).exists() {
        // It says whether there is none, or none that this user may see.
        context.read_store()?;
    }
    context.write_store()
}

/// Whether a run may still go on, as far as its row tells.
pub fn unfinished(row: &RunRow) -> bool {
    row.status != Status::Complete.as_str() && !is_given_up(row)
}

/// Whether a run can be continued by a driver: the session of an agent has no steps to run.
pub fn resumable(row: &RunRow) -> bool {
    unfinished(row) && !row.plan.ends_with(piton_protocols::session::LATEST)
}

/// Refuses to drive the session of an agent.
pub fn refuse_session(loaded: &Loaded) -> Result<()> {
    if loaded.state.session.is_none() {
        return Ok(());
    }
    let message =
        format!("run {} is an agent's session; it has no steps to run", loaded.row.run_id);
    Err(CommandError::usage("session-run", message)
        .hint(remedy![Piton "session start", Words " shows the agent where to continue"]))
}

/// Whether a person ended a run for good or set it aside.
pub fn is_given_up(row: &RunRow) -> bool {
    [Status::Cancelled, Status::Archived].iter().any(|status| status.as_str() == row.status)
}

/// Refuses to decide about a run, or to drive it, from inside one of its own steps: agents cannot
/// approve themselves, accept a changed spec or plan, or push the driver out that holds them. The
/// environment can be changed by a step, its ancestors cannot. Another run may be driven from a step.
pub fn refuse_inside(context: &Context, loaded: &Loaded) -> Result<()> {
    if is_inside(context, loaded) {
        refused::record(context, &loaded.row.run_id);
        return Err(inside(&loaded.row.run_id));
    }
    refuse_unseen(context, loaded)
}

/// Refuses to decide about a run from inside a step, of that run or of another one of this project: an
/// agent could else approve the work of its neighbour, or delete it.
pub fn refuse_deciding(context: &Context, loaded: &Loaded) -> Result<()> {
    refuse_inside(context, loaded)?;
    if piton_process::strays::is_in_step() { refuse_any_step(context) } else { Ok(()) }
}

/// Whether a person may be asked about a run from here.
pub fn may_ask(context: &Context, loaded: &Loaded) -> bool {
    !is_inside(context, loaded) && refuse_unseen(context, loaded).is_ok()
}

/// Whether this process is part of a step of a run.
pub fn is_inside(context: &Context, loaded: &Loaded) -> bool {
    let dir = context.run_dir(&loaded.row.run_id);
    let same = |other: &std::path::Path| {
        other == dir
            || other.canonicalize().ok().is_some_and(|o| dir.canonicalize().ok() == Some(o))
    };
    let above = piton_process::strays::keepers_above(&[&dir]);
    is_marked(loaded) || above.into_iter().filter_map(|a| a.dir).any(|d| same(&d))
}

/// Refuses to touch the worktrees of a run whose project was moved or copied here since: they are
/// recorded where it was, and there may be another's by now.
pub fn refuse_moved(context: &Context, loaded: &Loaded) -> Result<()> {
    let state = &loaded.state;
    let was = std::path::Path::new(&state.root);
    if context.is_own_root(was) {
        return Ok(());
    }
    let stands =
        |work: &LaneWork| !work.is_removed() && std::path::Path::new(&work.dir).starts_with(was);
    let mut lanes = state.lanes().filter(|(_, lane)| !lane.isolation.is_in_place());
    let Some((lane, _)) =
        lanes.find(|(_, lane)| lane.work.as_ref().is_some_and(|work| stands(work)))
    else {
        return Ok(());
    };
    let run_id = &loaded.row.run_id;
    let message = format!(
        "run {run_id} started in {}, where its worktree of {lane} is recorded; this project is in {}",
        was.display(),
        context.project.root.display()
    );
    let error = CommandError::new(Kind::Blocked, "project-moved", message);
    let plan = context.plan_argument(&state.plan_path);
    let anew = remedy![Words "or start a new run here with ", Piton "run {plan} --fresh"];
    let (old, new) = (quoted(was), quoted(&context.project.root));
    if was.exists() {
        return Err(error.hint(remedy![Words "continue it there: ", Shell "cd {old}"]).hint(anew));
    }
    let link =
        remedy![Words "move it back, or link the old path to it: ", Shell "ln -s {new} {old}"];
    Err(error.hint(link).hint(anew))
}

fn quoted(path: &std::path::Path) -> String {
    piton_formats::template::quote_for_shell(&path.to_string_lossy())
}

/// Refuses where it can't be seen whether this is a step: one can hide in a namespace of its own.
fn refuse_unseen(context: &Context, loaded: &Loaded) -> Result<()> {
    let run_id = &loaded.row.run_id;
    if !piton_process::keeper_elsewhere(&context.run_dir(run_id)) {
        return Ok(());
    }
    let message = format!(
        "steps of run {run_id} run in another process namespace, so Piton cannot tell whether this \
         is one of them"
    );
    Err(CommandError::new(Kind::Blocked, "inside-a-step", message)
        .hint("run the command where the run was started, or wait until its steps have ended"))
}

/// Refuses to approve where steps have lost their keeper and nobody has ended them since: one of them
/// may be asking, with nothing left that it is known by.
pub fn refuse_unheld(context: &Context, loaded: &Loaded) -> Result<()> {
    let run_id = &loaded.row.run_id;
    let dir = context.run_dir(run_id);
    if Context::driver_lives(&loaded.row) || piton_process::keeper_alive(&dir).is_some() {
        return Ok(());
    }
    let facts = Journal::read(&dir).unwrap_or_default();
    let is_unheld = |(step, attempt): &(StepPath, u32)| {
        let fact = facts.fact(&format!("{step}#{attempt}"));
        matches!(fact, Fact::Maybe | Fact::Started { .. })
    };
    let Some((step, _)) = loaded.state.running().into_iter().find(is_unheld) else {
        return Ok(());
    };
    let message = format!(
        "the keeper of run {run_id} was lost while {step} ran, so Piton cannot tell whether that \
         step is asking"
    );
    let hint = remedy![Piton "resume {run_id}", Words " ends what is left of it; then approve"];
    Err(CommandError::new(Kind::Blocked, "inside-a-step", message).hint(hint))
}

/// Whether this process came from a step of the run, by what it carries itself or by where it stands.
fn is_marked(loaded: &Loaded) -> bool {
    let carried = match environment() {
        Environment { mark: Some(mark), .. } => *mark == loaded.state.mark,
        Environment { run_id, .. } => run_id.as_ref() == Some(&loaded.row.run_id),
    };
    carried || piton_process::strays::from_step(&loaded.state.mark)
}

fn inside(run_id: &str) -> CommandError {
    let message = format!("this is a step of run {run_id}; a step cannot decide about it");
    CommandError::new(Kind::Blocked, "inside-a-step", message)
        .hint("run the command in your own terminal")
}

/// Refuses to decide about the ledger, or to delete runs, from inside a step of any run. The ledger may
/// not be readable: the folders of the runs say which those are.
pub fn refuse_any_step(context: &Context) -> Result<()> {
    let runs = context.project.state_dir.join("runs");
    for entry in std::fs::read_dir(runs).into_iter().flatten().flatten() {
        if is_step_of(&entry.path()) {
            let run_id = entry.file_name().to_string_lossy().into_owned();
            refused::record(context, &run_id);
            let message =
                format!("this is a step of run {run_id}; a step cannot decide about runs");
            return Err(CommandError::new(Kind::Blocked, "inside-a-step", message)
                .hint("run the command in your own terminal"));
        }
    }
    Ok(())
}

/// The run of this project whose step this process is part of.
pub fn own_run(context: &Context) -> Option<String> {
    if !piton_process::strays::is_in_step() {
        return None;
    }
    let runs = context.project.state_dir.join("runs");
    let dirs = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let found = dirs.map(|entry| entry.path()).find(|dir| is_step_of(dir));
    let name = found.as_ref().and_then(|dir| dir.file_name()?.to_str()).map(str::to_owned);
    let carried = || environment().run_id.clone().filter(|run| context.run_dir(run).exists());
    name.or_else(carried)
}

fn is_step_of(dir: &std::path::Path) -> bool {
    let header = Journal::read(dir).unwrap_or_default().header;
    let above = piton_process::strays::keepers_above(&[dir]);
    above.into_iter().any(|keeper| keeper.dir.as_deref() == Some(dir))
        || header.is_some_and(|header| piton_process::strays::from_step(&header.mark))
}

/// A person's message about a run as it may be kept: without secrets, not too long.
pub fn message(context: &Context, loaded: &Loaded, text: &str) -> Result<String> {
    if text.len() > MESSAGE_BYTES_MAX {
        let problem = format!(
            "the message has {} bytes; at most {MESSAGE_BYTES_MAX} are allowed",
            text.len()
        );
        return Err(CommandError::usage("message-too-long", problem)
            .hint("shorten it, and put the rest into a file of the project"));
    }
    let redactor = redactor_of_run(context, &loaded.row.run_id, &loaded.state.plan_path);
    Ok(redactor.redact(text).into_owned())
}

/// Refuses to ask anything of a run whose first event is not recorded yet.
pub fn refuse_unbegun(loaded: &Loaded) -> Result<()> {
    if loaded.seq > 0 {
        return Ok(());
    }
    let run_id = &loaded.row.run_id;
    Err(CommandError::usage("refused", format!("run {run_id} has not started yet"))
        .hint(remedy![Words "start it with ", Piton "resume {run_id}"]))
}

/// Sends a request, and waits for a living driver's answer.
pub fn send(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    request: &Request,
    target: Target<'_>,
) -> Result<Sent> {
    refuse_unbegun(loaded)?;
    if !Context::driver_lives(&loaded.row) {
        drive::epoch::refuse_behind(context, store, &loaded.row.run_id)?;
    }
    let by = Context::who();
    let owner = Context::owner();
    let key = key(store, loaded, request, target)?;
    let asked = Asked {
        request,
        key: &key,
        by: &by,
        at: now(),
        owner: &owner,
        alive: &|owner| owner_liveness(owner),
    };
    let answer = store.ask(&loaded.row.run_id, &asked);
    let (outcome, answer) = match answer.map_err(|e| refused(context, loaded, e))? {
        Answer::Done(answer) => {
            // Nobody else drives it, so nobody else would show it before the next driver comes.
            drive::show_decision(context, store, &loaded.row.run_id)?;
            (Outcome::Done, answer)
        }
        Answer::Asked(id) => match wait_for_answer(store, &loaded.row.run_id, id, asked)? {
            Some(Reply::Done(answer)) => (Outcome::Done, answer),
            Some(Reply::Refused(why)) => {
                (Outcome::Refused, format!("refused: {}", ui::place().refusal(&why)))
            }
            None => (Outcome::Asked, ui::place().remedy(&in_inbox(&loaded.row))),
        },
    };
    let target = match target {
        Target::Step(step) => step.to_string(),
        Target::Gate(gate) => gate.to_string(),
        Target::Run => loaded.row.run_id.clone(),
    };
    Ok(Sent { target, outcome, answer, dependents: None })
}

/// Why a request was not carried out, as a person sees it. A step that no outcome is recorded of is at
/// work for the state alone: without a driver and a keeper nothing of it need run any more.
fn refused(context: &Context, loaded: &Loaded, error: piton_engine::Error) -> CommandError {
    let piton_engine::Error::Refused(Refused::Running(step, run)) = &error else {
        return error.into();
    };
    let attempt = loaded.state.running().into_iter().find(|(running, _)| running == step);
    let Some((_, attempt)) = attempt.filter(|_| !Context::driver_lives(&loaded.row)) else {
        return error.into();
    };
    let dir = context.run_dir(&loaded.row.run_id);
    let facts = Journal::read(&dir).unwrap_or_default();
    let how = match facts.fact(&format!("{step}#{attempt}")) {
        Fact::Finished(exit) if exit.success() => "has finished",
        Fact::Finished(_) => "has ended",
        _ if piton_process::keeper_alive(&dir).is_some() => return error.into(),
        _ => "was cut short",
    };
    let message =
        format!("step {step} {how}, but this is not recorded yet, because the run has no driver");
    CommandError::usage("refused", message)
        .hint(remedy![Piton "resume {run}", Words " records it and continues from there"])
}

/// When a driver that did not answer in time will take what is in its inbox.
fn in_inbox(row: &RunRow) -> Remedy {
    match row.owner.as_ref().map(|lease| &lease.owner).filter(|owner| owner.is_stopped()) {
        Some(owner) => remedy![Words "in the inbox; {owner}, which drives the run, is stopped: "]
            .and(CommandError::wake(owner, &row.run_id)),
        None => "in the inbox; the driver takes it when it next looks there".into(),
    }
}

/// Waits for a driver's answer; a request that it left behind when it went is carried out here.
fn wait_for_answer(
    store: &mut Store,
    run_id: &str,
    id: i64,
    asked: Asked<'_>,
) -> Result<Option<Reply>> {
    let deadline = Instant::now() + ANSWER_WAIT;
    loop {
        let answer = store.answer(run_id, id, &Asked { at: now(), ..asked })?;
        if answer.is_some() || Instant::now() >= deadline {
            return Ok(answer);
        }
        thread::sleep(ANSWER_POLL);
    }
}

/// The idempotency key: the same command given twice is one request until its target has changed.
fn key(
    store: &mut Store,
    loaded: &Loaded,
    request: &Request,
    target: Target<'_>,
) -> Result<String> {
    // Without a driver nothing goes through the inbox, and the history need not be read.
    let seen = if Context::driver_lives(&loaded.row) {
        last_event_of(store, &loaded.row, target)?
    } else {
        loaded.seq
    };
    Ok(request.key(&loaded.row.run_id, seen))
}

fn last_event_of(store: &mut Store, row: &RunRow, target: Target<'_>) -> Result<u64> {
    let mut last = 0;
    store.each_event(row, 0, |seq, _, event| {
        if concerns(event, target) {
            last = seq;
        }
    })?;
    Ok(last)
}

fn concerns(event: &Event, target: Target<'_>) -> bool {
    match target {
        Target::Step(step) => event.step() == Some(step),
        Target::Gate(gate) => match event {
            Event::GateAsked(e) => e.gate == *gate,
            Event::GateDecided(e) => e.gate == *gate,
            Event::GateReopened(e) => e.gate == *gate,
            _ => false,
        },
        Target::Run => matches!(
            event,
            Event::CheckpointRecorded(_)
                | Event::RunAborted(_)
                | Event::RunArchived(_)
                | Event::DriverAttached(_)
                | Event::ReplanWanted(_)
                | Event::ReplanEnded(_)
        ),
    }
}

/// The next command where nobody drives the run.
fn next(view: &RunView<'_>) -> Option<String> {
    match view.status {
        status if status.is_final() => None,
        _ if can_resume(view) => Some(view.place.piton(format_args!("resume {}", view.run_id))),
        _ => view.next_standing(),
    }
}

/// Whether going on with a run may bring it further. What failed or is blocked would only be met again;
/// a gate that is still open holds nothing but what comes after it.
fn can_resume(view: &RunView<'_>) -> bool {
    view.session.is_none()
        && !view.status.is_final()
        && !matches!(view.status, Status::Failed | Status::Blocked)
}

/// The same, and goes on with the run where a person sits at the terminal and nobody drives it.
pub fn report_and_resume(
    context: &Context,
    mut store: Store,
    run_id: &str,
    sent: &[Sent],
    resumes: bool,
) -> Result<()> {
    let loaded = store.load(run_id)?;
    let view = Context::view(&loaded);
    let is_open = !view.driver_lives() && can_resume(&view);
    let is_done = sent.iter().all(|one| one.outcome != Outcome::Refused);
    if !(resumes && is_open && is_done && context.interactive && !context.json) {
        return report(context, &mut store, run_id, sent, None);
    }
    drop(store);
    for one in sent {
        ui::data(&one.answer);
    }
    let run = Some(run_id.to_owned());
    super::resume::run(context, ResumeArgs { at_boot: false, run, drive: DriveArgs::default() })
}

/// Tells what came of the requests, and the next command where nobody drives the run.
pub fn report(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    requests: &[Sent],
    checkpoint: Option<String>,
) -> Result<()> {
    let loaded = store.load(run_id)?;
    let view = Context::view(&loaded);
    let next = if view.driver_lives() { None } else { next(&view) };
    let answer = Requests { run_id, requests, next, checkpoint };
    let words = || requests.iter().map(|s| s.answer.as_str()).collect::<Vec<_>>().join("\n");
    ui::show(context.json, &answer, words);
    if let Some(next) = answer.next.filter(|_| !context.json) {
        ui::say_as_is(&format!("next: {next}"));
    }
    if requests.iter().any(|s| s.outcome == Outcome::Refused) {
        return Err(CommandError::silent(Kind::Usage));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use piton_core::event::{GateAsked, StepRetried};

    use super::*;

    #[test]
    fn only_what_happened_to_the_target_makes_a_new_request_of_the_same_words() {
        let step = StepPath::new("P1", "A", "build");
        let other = StepPath::new("P1", "A", "test");
        let retried = Event::StepRetried(StepRetried { step: step.clone(), by: "ann".to_owned() });
        assert!(concerns(&retried, Target::Step(&step)));
        assert!(!concerns(&retried, Target::Step(&other)));
        let gate = GateRef("P1".to_owned());
        let asked = Event::GateAsked(GateAsked { gate: gate.clone(), name: "Go?".to_owned() });
        assert!(concerns(&asked, Target::Gate(&gate)));
        assert!(!concerns(&asked, Target::Run));
    }
}
