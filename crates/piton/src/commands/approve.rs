//! `piton approve` and `piton reject`: a person's decision about a gate, recorded once.

use piton_core::remedy;
use piton_core::request::Request;

use super::request::names::gate_choice;
use super::request::{self, Target, names};
use crate::cli::GateArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};

/// Approves or rejects a gate.
pub fn run(context: &Context, args: &GateArgs, approved: bool) -> Result<()> {
    let mut store = request::open(context)?;
    let verb = if approved { "approve" } else { "reject" };
    let (run, gate) = names::split(&mut store, Some(&args.run_or_gate), args.gate.as_deref())?;
    let Some(gate) = gate else {
        return Err(no_gate_given(&mut store, &args.run_or_gate, verb)?);
    };
    let (loaded, place) = names::run_with_gate(&mut store, run, gate, verb)?;
    request::refuse_deciding(context, &loaded)?;
    super::approval::refuse_asker(&loaded, &place)?;
    if approved {
        request::refuse_unheld(context, &loaded)?;
    }
    let message = request::message(context, &loaded, &args.message)?;
    let asked = Request::Decide { gate: place.0.clone(), approved, message };
    let sent = request::send(context, &mut store, &loaded, &asked, Target::Gate(&place))?;
    // Nothing of a run waits for the answer to a question.
    let is_gate = !loaded.state.questions.contains_key(&place);
    let resumes = approved && is_gate && !args.no_resume;
    request::report_and_resume(context, store, &loaded.row.run_id, &[sent], resumes)
}

/// A run without a gate: which gate is meant is never guessed, however few there are.
pub fn no_gate_given(
    store: &mut piton_engine::Store,
    run: &str,
    verb: &str,
) -> Result<CommandError> {
    let row = Context::pick(store, Some(run), |_| true, "run")?;
    let state = store.load_row(row)?.state;
    let message = format!("which gate of run {run} do you want to {verb}?");
    let mut error = CommandError::usage("no-gate", message);
    for (place, gate) in state.open_decisions() {
        error = error.hint(gate_choice(verb, run, place, &format!("\"{}\"", gate.name)));
    }
    if error.hints.is_empty() {
        error = error.hint(
            remedy![Words "no gate is waiting; ", Piton "show {run}", Words " lists all gates"],
        );
    }
    Ok(error)
}
