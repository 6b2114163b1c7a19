//! `piton skip`: leaves a step out, after saying what depends on it.

use piton_core::StepPath;
use piton_core::decide::dependents;
use piton_core::remedy;
use piton_core::request::{Request, skip_warning, turn};
use piton_engine::Loaded;

use super::request::{self, Target, names};
use crate::cli::SkipArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Leaves a step out.
pub fn run(context: &Context, args: &SkipArgs) -> Result<()> {
    let mut store = request::open(context)?;
    let (run, wanted) =
        names::split(&mut store, args.run_or_step.as_deref(), args.step.as_deref())?;
    let row = Context::pick(&mut store, run, request::unfinished, "unfinished run")?;
    let loaded = store.load_row(row)?;
    request::refuse_deciding(context, &loaded)?;
    let loaded = super::rewind::finish_wherever(context, &mut store, loaded)?;
    let step = match wanted {
        Some(wanted) => names::step(&loaded, wanted)?,
        None => only_failed(&loaded)?,
    };
    let asked = Request::Skip { step: step.clone(), satisfy: args.satisfy };
    // Of what is refused anyway nothing follows, and nobody need be asked.
    if turn(&loaded.state, &asked, "").is_ok() {
        if let Some(warning) = skip_warning(&loaded.state, &step, args.satisfy) {
            ui::say(format!("warning: {warning}"));
        }
        let question = format!("Skip {step}?");
        if context.interactive && !context.yes && ui::confirms(&question) != Some(true) {
            ui::say("no step was skipped");
            return Ok(());
        }
    }
    let mut sent = request::send(context, &mut store, &loaded, &asked, Target::Step(&step))?;
    sent.dependents = Some(dependents(&loaded.state, &step));
    request::report(context, &mut store, &loaded.row.run_id, &[sent], None)
}

fn only_failed(loaded: &Loaded) -> Result<StepPath> {
    let run = &loaded.row.run_id;
    match names::failed(&loaded.state).as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(CommandError::usage("no-step", format!("no step of run {run} has failed"))
            .hint(remedy![Words "name the step: ", Piton "skip PHASE/LANE/STEP"])),
        many => {
            let message = format!("several steps have failed: {}", names::listed(many));
            Err(CommandError::usage("ambiguous-step", message).hint("name the one to skip"))
        }
    }
}
