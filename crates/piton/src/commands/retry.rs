//! `piton retry`: further attempts for failed steps, or finished work again on purpose.

use piton_core::remedy;
use piton_core::request::Request;
use piton_engine::{Loaded, Store};

use super::request::{self, Target, names};
use crate::cli::RetryArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};

/// Gives a step, or all failed ones, further attempts.
pub fn run(context: &Context, args: &RetryArgs) -> Result<()> {
    let mut store = request::open(context)?;
    let (run, wanted) =
        names::split(&mut store, args.run_or_step.as_deref(), args.step.as_deref())?;
    let loaded = pick(&mut store, run, args.again)?;
    request::refuse_deciding(context, &loaded)?;
    let loaded = super::rewind::finish_wherever(context, &mut store, loaded)?;
    let steps = match wanted {
        Some(wanted) => vec![names::step(&loaded, wanted)?],
        None => names::failed(&loaded.state),
    };
    if let Some(over) = piton_core::request::over(&loaded.state) {
        return Err(piton_engine::Error::from(over).into());
    }
    if steps.is_empty() || (args.again && wanted.is_none()) {
        return Err(nothing(&loaded, args.again));
    }
    let mut sent = Vec::with_capacity(steps.len());
    for step in &steps {
        let (again, downstream) = (args.again, args.downstream);
        let asked = Request::Retry { step: step.clone(), again, downstream };
        sent.push(request::send(context, &mut store, &loaded, &asked, Target::Step(step))?);
    }
    request::report_and_resume(context, store, &loaded.row.run_id, &sent, !args.no_resume)
}

/// Finished work may be asked for again in a complete run too.
fn pick(store: &mut Store, run: Option<&str>, again: bool) -> Result<Loaded> {
    let row = if again {
        Context::pick(store, run, |row| !request::is_given_up(row), "run that can go on")?
    } else {
        Context::pick(store, run, request::unfinished, "unfinished run")?
    };
    Ok(store.load_row(row)?)
}

fn nothing(loaded: &Loaded, again: bool) -> CommandError {
    let run = &loaded.row.run_id;
    if again {
        return CommandError::usage("no-step", "which step do you want to run again?")
            .hint(remedy![Piton "status {run}", Words " shows its steps"]);
    }
    CommandError::usage("no-step", format!("no step of run {run} has failed"))
        .hint(remedy![Piton "retry {run} STEP --again", Words " runs a finished step again"])
}
