//! `piton checkpoint`: a named point of a run with a person's, or an agent's, remark.
//!
//! Allowed from inside a step too: it records, it decides nothing.

use piton_core::request::Request;
use piton_view::answers::Outcome;

use super::request::{self, Target};
use crate::cli::CheckpointArgs;
use crate::context::Context;
use crate::environment::environment;
use crate::error::Result;

/// Records a checkpoint.
pub fn run(context: &Context, args: &CheckpointArgs) -> Result<()> {
    let mut store = request::open(context)?;
    let row = match (&args.run, &environment().run_id) {
        // Inside a step its own run is meant, whatever else runs here.
        (None, Some(own)) => {
            let is_own = |r: &piton_ledger::RunRow| r.run_id == *own;
            let found = Context::pick(&mut store, None, is_own, "run of this step");
            found.or_else(|_| {
                Context::pick(&mut store, None, request::unfinished, "unfinished run")
            })?
        }
        (named, _) => {
            Context::pick(&mut store, named.as_deref(), request::unfinished, "unfinished run")?
        }
    };
    let loaded = store.load_row(row)?;
    request::refuse_unbegun(&loaded)?;
    let message = request::message(context, &loaded, &args.message)?;
    let loaded = super::rewind::finish_wherever(context, &mut store, loaded)?;
    // Where the run works, not where the command was given: the two may be different work trees.
    let elsewhere = context.for_run(&loaded.state.root)?;
    let there = elsewhere.as_ref().unwrap_or(context);
    request::refuse_moved(there, &loaded)?;
    let (head, snapshots) = (there.project.head(), super::current_files::all(there, &loaded)?);
    let asked = Request::Checkpoint { message: message.clone(), head, snapshots };
    let sent = request::send(context, &mut store, &loaded, &asked, Target::Run)?;
    // Found by its message: the same command given twice records one.
    let now = store.load(&loaded.row.run_id)?.state;
    let named = now.checkpoints.into_iter().rev().find(|c| c.message == message);
    let named = named.filter(|_| sent.outcome == Outcome::Done).map(|c| c.name);
    request::report(context, &mut store, &loaded.row.run_id, &[sent], named)
}
