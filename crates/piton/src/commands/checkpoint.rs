//! `piton checkpoint`: a named point of a run with a person's, or an agent's, remark.
//!
//! Allowed from inside a step too: it records, it decides nothing.

use piton_core::request::Request;
use piton_engine::Store;
use piton_view::answers::{Outcome, Sent};

use super::request::{self, Target};
use crate::cli::CheckpointArgs;
use crate::context::Context;
use crate::environment::environment;
use crate::error::Result;

/// Records a checkpoint.
pub fn run(context: &Context, args: &CheckpointArgs) -> Result<()> {
    let mut store = request::open(context)?;
    let named = args.run.as_deref().or(environment().run_id.as_deref().filter(|own| {
        // Inside a step its own run is meant, whatever else runs here.
        args.run.is_none() && store.ledger().run(own).is_ok_and(|row| row.is_some())
    }));
    let recorded = record(context, &mut store, named, &args.message)?;
    let Recorded { run_id, sent, checkpoint } = recorded;
    request::report(context, &mut store, &run_id, &[sent], checkpoint)
}

/// A checkpoint that was asked for.
pub struct Recorded {
    /// The run.
    pub run_id: String,
    /// What came of it.
    pub sent: Sent,
    /// Its name, once it is recorded.
    pub checkpoint: Option<String>,
}

/// Asks for a checkpoint of the run that is named, else of the newest unfinished one.
pub fn record(
    context: &Context,
    store: &mut Store,
    run: Option<&str>,
    message: &str,
) -> Result<Recorded> {
    let row = Context::pick(store, run, request::unfinished, "unfinished run")?;
    let loaded = store.load_row(row)?;
    request::refuse_unbegun(&loaded)?;
    let message = request::message(context, &loaded, message)?;
    let loaded = super::rewind::finish_wherever(context, store, loaded)?;
    // Where the run works, not where the command was given: the two may be different work trees.
    let elsewhere = context.for_run(&loaded.state.root)?;
    let there = elsewhere.as_ref().unwrap_or(context);
    request::refuse_moved(there, &loaded)?;
    let (head, snapshots) = (there.project.head(), super::current_files::all(there, &loaded)?);
    let asked = Request::Checkpoint { message: message.clone(), head, snapshots };
    let sent = request::send(context, store, &loaded, &asked, Target::Run)?;
    // Found by its message: the same command given twice records one.
    let now = store.load(&loaded.row.run_id)?.state;
    let named = now.checkpoints.into_iter().rev().find(|c| c.message == message);
    let checkpoint = named.filter(|_| sent.outcome == Outcome::Done).map(|c| c.name);
    Ok(Recorded { run_id: loaded.row.run_id, sent, checkpoint })
}
