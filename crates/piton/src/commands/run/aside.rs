//! The unfinished run that a new one takes the place of: what would refuse the new one is looked at
//! first, so that nothing is ended and set aside for nothing.

use piton_core::refusal::Remedy;
use piton_core::request::Request;
use piton_core::{Status, remedy};
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_ledger::RunRow;

use super::driven;
use crate::cli::RunArgs;
use crate::commands::{abort, questions, request};
use crate::context::Context;
use crate::drive;
use crate::error::{CommandError, Result};
use crate::plan_file::PlanFile;
use crate::ui;

/// Refuses what could not start, before the run it would take the place of is set aside.
pub fn check(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &RunArgs,
    aside: &RunRow,
) -> Result<()> {
    // As it is now: somebody may have taken it up while a person was asked.
    let run = &aside.run_id;
    let old = store.load(run)?;
    request::refuse_deciding(context, &old)?;
    if Context::driver_lives(&old.row) {
        return Err(
            driven(&old.row).hint(remedy![Words "or end it first with ", Piton "abort {run}"])
        );
    }
    super::see_spec(context, plan)?;
    if let Some(name) = &args.run_id {
        super::create::check_name(name)?;
        check_free(context, store, plan, name, &old)?;
    }
    Ok(())
}

fn not_set_aside(run: &str) -> Remedy {
    remedy![Words "run {run} was not set aside; continue it with ", Piton "resume {run}"]
}

/// Refuses a name that another run has. One that never began is removed and leaves its name.
fn check_free(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    name: &str,
    old: &Loaded,
) -> Result<()> {
    let unbegun = old.seq == 0 && old.row.run_id == name;
    if unbegun || store.ledger().run(name)?.is_none() {
        return Ok(());
    }
    let typed = context.plan_argument(&plan.path);
    Err(CommandError::usage("run-exists", format!("there is already a run `{name}`"))
        .hint(remedy![Words "choose another name: ", Piton "run {typed} --fresh --run-id NAME"])
        .hint(not_set_aside(&old.row.run_id)))
}

/// The steps of a run that are at work although nobody drives it, in words.
pub fn running(context: &Context, store: &mut Store, run_id: &str) -> Result<String> {
    if piton_process::keeper_alive(&context.run_dir(run_id)).is_none() {
        return Ok(String::new());
    }
    let steps = store.load(run_id)?.state.running().into_iter();
    let steps = steps.map(|(step, attempt)| format!("{step} (attempt {attempt})"));
    Ok(steps.collect::<Vec<_>>().join(", "))
}

/// Sets a run aside; it can be brought back.
pub fn archive(context: &Context, store: &mut Store, row: &RunRow) -> Result<()> {
    if abort::forget_unbegun(store, &row.run_id)? {
        return Ok(());
    }
    let run = &row.run_id;
    let ended = match running(context, store, run)? {
        steps if steps.is_empty() => steps,
        steps => format!(", ended {steps}"),
    };
    let told =
        remedy![Words "archived {run}{ended}; ", Piton "resume {run}", Words " brings it back"];
    // What still runs of it is ended first: nothing of a run that was set aside may go on.
    let ended = abort::end_steps(context, store, &row.run_id);
    let archived = ended.and_then(|()| questions::carry_out(store, &row.run_id, &Request::Archive));
    if let Err(error) = archived {
        // Of several who start the plan anew at once, one goes on and the others are told who does.
        let by_another = store.load(&row.run_id)?.state.ended == Some(Status::Archived);
        return if by_another { Ok(()) } else { Err(error) };
    }
    drive::set_views_aside(context, store, &row.run_id)?;
    ui::say(told);
    Ok(())
}
