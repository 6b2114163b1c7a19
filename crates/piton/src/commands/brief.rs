//! `piton brief`: what an agent needs to go on with a run, in at most so many tokens.
//!
//! Rebuilt from the ledger each time. It only reads: files that changed after the last snapshot are not
//! named.

use piton_agents::brief::{self, Chosen, Input};
use piton_core::plan::Work;
use piton_core::state::Progress;
use piton_core::summary::current;
use piton_core::{Plan, RunState, StepPath, remedy};

use crate::cli::BriefArgs;
use crate::context::{Context, now};
use crate::drive;
use crate::drive::briefs::{course, more, told};
use crate::error::Result;
use crate::plan_file::redactor_of_run;
use crate::ui;

/// Prints the brief of a run.
pub fn run(context: &Context, args: &BriefArgs) -> Result<()> {
    let (run_id, brief) = of(context, args)?;
    let Some(brief) = brief else {
        ui::say(remedy![
            Words "run {run_id} has not started, so there is nothing to sum up; start it with ",
            Piton "resume {run_id}"
        ]);
        return Ok(());
    };
    let shown = piton_view::brief::Brief::new(&run_id, &brief);
    ui::show(context.json, &shown, || brief.text.clone());
    Ok(())
}

/// The run that is meant and its brief; none if it has not started.
pub fn of(context: &Context, args: &BriefArgs) -> Result<(String, Option<Chosen>)> {
    let mut store = context.read_store()?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let run_id = &loaded.row.run_id;
    if loaded.seq == 0 {
        return Ok((run_id.clone(), None));
    }
    let course = course(&mut store, &loaded.row, loaded.seq)?;
    let state = &loaded.state;
    // A plan that is lost is for `piton doctor` to tell; much can be said without.
    let plan = store.plan(state).ok();
    let own = args.agent.as_deref().and_then(|agent| step_of(state, plan.as_ref()?, agent));
    let step = own.or_else(|| current(state));
    let redactor = redactor_of_run(context, run_id, &state.plan_path);
    let told = told(context, state);
    let is_told = told.is_some();
    let of_step = |step: &StepPath| more(&drive::root_of(context, state), state, step);
    let input = Input {
        state,
        plan: plan.as_ref(),
        course: &course,
        step: step.as_ref(),
        more: told.or_else(|| step.as_ref().map(of_step)).unwrap_or_default(),
        is_told,
        now: now(),
        redactor: &redactor,
    };
    let limit = match &args.agent {
        // How tokens are counted depends on the program, whatever the agent is called.
        Some(agent) => brief::limit_for(&program_of(context, plan.as_ref(), agent), args.tokens),
        None => args.tokens,
    };
    Ok((run_id.clone(), Some(brief::brief(&input, limit))))
}

/// The program of an agent, by the plan, else by the settings.
fn program_of(context: &Context, plan: Option<&Plan>, agent: &str) -> String {
    let of_plan = plan.and_then(|plan| plan.agents.get(agent)).map(|known| &known.program);
    let of_settings = || context.settings.agents.get(agent).map(|known| &known.rules.program);
    of_plan.or_else(of_settings).cloned().unwrap_or_else(|| agent.to_owned())
}

/// The step that an agent works on, or that it is next to work on.
fn step_of(state: &RunState, plan: &Plan, agent: &str) -> Option<StepPath> {
    let is_own = |path: &StepPath| {
        plan.step(path).is_some_and(
            |step| matches!(&step.work, Work::Prompt { agent: other, .. } if other == agent),
        )
    };
    let mut open: Vec<_> = state.steps().filter(|(_, step)| !step.progress.is_over()).collect();
    // Those at work first.
    open.sort_by_key(|(_, step)| !matches!(step.progress, Progress::Running { .. }));
    open.into_iter().map(|(path, _)| path).find(is_own)
}
