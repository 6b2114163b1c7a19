//! `piton abort`: ends a run, its running steps first.

use std::time::{Duration, Instant};

use piton_core::event::RunAborted;
use piton_core::request::{Reply, Request};
use piton_core::{Status, remedy};
use piton_engine::store::Asked;
use piton_engine::{Drive, Store};
use piton_ledger::{RunRow, owner_liveness};
use piton_view::answers::Ended;

use super::request::unfinished;
use super::resume::{acquire, by_resume};
use crate::cli::AbortArgs;
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// Steps get their grace before they are killed; the driver answers after that.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// Pause between two looks at the answer.
const PAUSE: Duration = Duration::from_millis(50);

/// Ends a run.
pub fn run(context: &Context, args: &AbortArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    // What was ended may still be ended for good.
    let open = |r: &RunRow| unfinished(r) && (args.cancel || r.status != Status::Aborted.as_str());
    let row = Context::pick(&mut store, args.run.as_deref(), open, "unfinished run")?;
    let loaded = store.load_row(row.clone())?;
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    super::request::refuse_deciding(context, &loaded)?;
    if !Context::driver_lives(&row) && forget_unbegun(&mut store, &row.run_id)? {
        said(context, &row.run_id, "removed the run, which had not started");
        return Ok(());
    }
    let message = super::request::message(context, &loaded, &args.message)?;
    if Context::driver_lives(&row) {
        return ask_driver(context, &mut store, &row, args.cancel, message);
    }
    let event = RunAborted { by: Context::who(), message: message.clone(), cancel: args.cancel };
    match end_alone(context, &mut store, &row.run_id, event) {
        // Somebody began to drive it meanwhile: then it is theirs to end.
        Err(error) if error.code == "run-driven" => {
            let row = store.ledger().run(&row.run_id)?.ok_or(piton_ledger::Error::NoRun)?;
            ask_driver(context, &mut store, &row, args.cancel, message)
        }
        ended => ended,
    }
}

fn said(context: &Context, run_id: &str, answer: &str) {
    ui::report(context.json, &Ended { run_id, answer });
}

/// Asks the driver to end the run; if it goes without having seen that, ends the run here.
fn ask_driver(
    context: &Context,
    store: &mut Store,
    row: &RunRow,
    cancel: bool,
    message: String,
) -> Result<()> {
    let event = RunAborted { by: Context::who(), message: message.clone(), cancel };
    let request = Request::Abort { cancel, message };
    let asked = Asked {
        request: &request,
        key: &format!("abort-{}-{}", row.epoch, cancel),
        by: &event.by,
        at: now(),
        owner: &Context::owner(),
        alive: &owner_liveness,
    };
    let id = store.post(&row.run_id, &asked)?;
    let stopped = || row.owner.as_ref().map(|l| &l.owner).filter(|owner| owner.is_stopped());
    let deadline = Instant::now() + ANSWER_WAIT;
    while Instant::now() < deadline && stopped().is_none() {
        let row = store.ledger().run(&row.run_id)?.ok_or(piton_ledger::Error::NoRun)?;
        if !Context::driver_lives(&row) && !store.load(&row.run_id)?.state.running().is_empty() {
            // It died over steps that may still run: they are ended first.
            return end_alone(context, store, &row.run_id, event);
        }
        match store.answer(&row.run_id, id, &Asked { at: now(), ..asked })? {
            Some(Reply::Done(words)) => {
                said(context, &row.run_id, &words);
                return Ok(());
            }
            Some(Reply::Refused(refusal)) => {
                return Err(CommandError::refused(Kind::Usage, refusal));
            }
            None => std::thread::sleep(PAUSE),
        }
    }
    let run = &row.run_id;
    let stays = remedy![
        Words "the request stays in its inbox; ",
        Piton "status {run}",
        Words " shows what comes of it",
    ];
    Err(match stopped() {
        Some(owner) => {
            let why = format!("{owner} is stopped and does not answer");
            CommandError::failed("no-answer", why).hint(stays).hint(CommandError::wake(owner, run))
        }
        None => {
            CommandError::failed("no-answer", format!("the driver of {run} did not answer yet"))
                .hint(stays)
                .hint(remedy![
                    Words "replace it with ",
                    Piton "resume {run} --takeover",
                    Words ", which carries out the request",
                ])
        }
    })
}

/// Ends a run that nobody drives, its steps first.
fn end_alone(context: &Context, store: &mut Store, run_id: &str, event: RunAborted) -> Result<()> {
    let what = if event.cancel { "cancelled the run" } else { "aborted the run" };
    let resumes = !event.cancel;
    drive_to_the_end(context, store, run_id, event)?;
    if context.json {
        said(context, run_id, what);
    } else if resumes {
        ui::say_as_is(&format!("next: {}", ui::place().piton(format_args!("resume {run_id}"))));
    }
    Ok(())
}

/// Drives a run that nobody drives just far enough to end what runs, then records the abort.
fn drive_to_the_end(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    event: RunAborted,
) -> Result<()> {
    let row = store.load(run_id)?.row;
    let lease = acquire(context, store, &row, false, by_resume)?;
    let loaded = store.load(run_id)?;
    let complete = loaded.state.is_over().then_some(Status::Complete);
    if let Some(status) = loaded.state.ended.filter(|s| s.is_final()).or(complete) {
        store.ledger().release(row.run, lease.epoch, now().0)?;
        return Err(CommandError::usage("run-over", format!("run {run_id} is already {status}")));
    }
    let plan = store.plan(&loaded.state)?;
    let how = Drive::Abort(event);
    drive::drive_without_steps(context, store, loaded, plan, (&lease, false), how)?;
    Ok(())
}

/// Removes a run whose creator died before the first event: there is nothing to end, to set aside
/// or to keep. Says whether it was one.
pub fn forget_unbegun(store: &mut Store, run_id: &str) -> Result<bool> {
    let loaded = store.load(run_id)?;
    if loaded.seq > 0 {
        return Ok(false);
    }
    store.ledger().delete_run(loaded.row.run, now().0, &owner_liveness)?;
    Ok(true)
}

/// Ends what still runs of a run that nobody drives, if anything does, before it is archived.
pub fn end_steps(context: &Context, store: &mut Store, run_id: &str) -> Result<()> {
    let loaded = store.load(run_id)?;
    if loaded.state.running().is_empty() {
        return Ok(());
    }
    let message = "the run was archived".to_owned();
    let event = RunAborted { by: Context::who(), message, cancel: false };
    drive_to_the_end(context, store, run_id, event)
}
