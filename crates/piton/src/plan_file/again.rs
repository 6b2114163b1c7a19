//! The plan of a run read again from given texts: what a replan wrote, or what was there before it.

use std::io;
use std::path::Path;

use piton_core::{Plan, RunState};
use piton_engine::world::{NotAPlan, PlanRead};
use piton_protocols::protocol::{Source, Unreadable};
use piton_world::plans::{PlanFiles, Texts, before};

use super::{PlanFile, asking, knowing, redactor_beside_keeper};
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};

/// Most problems of a plan that are named: the first ones mostly cause the others.
const PROBLEMS_NAMED_MAX: usize = 3;

/// The files of the plan of a run, for replans.
pub fn files(context: &Context, root: &Path, state: &RunState) -> PlanFiles {
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let (run_dir, state_dir) = (context.run_dir(&run_id), context.project.state_dir.clone());
    let context = context.clone();
    let reader = move |state: &RunState, before: &Plan, texts: &Texts<'_>| {
        let file = from_texts(&context, state, before, texts)?;
        let known = redactor_beside_keeper(&context, &run_id);
        let redactor = Some(knowing(&known, &file.live, &context.settings.secrets));
        Ok(PlanRead { recorded: file.recorded, live: file.live, redactor })
    };
    PlanFiles::new(root, &run_dir, &state_dir, Box::new(reader))
}

/// The plan of a run as it was before the replan that is under way: its files may be half written.
pub fn before_replan(
    context: &Context,
    state: &RunState,
    recorded: &Plan,
) -> Result<Option<PlanFile>> {
    let Some((_, attempt)) = state.replans.process() else { return Ok(None) };
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let unreadable = |NotAPlan(why)| {
        let message = format!("the plan as it was before the replan cannot be read: {why}");
        CommandError::new(Kind::Blocked, "plan-unreadable", message)
            .hint("look at the folder `replans` of the run; it holds the plan")
    };
    let texts = before(&context.project.root, &context.run_dir(&run_id), attempt);
    let texts = texts.map_err(|e| unreadable(no_plan(&e)))?;
    from_texts(context, state, recorded, &texts).map(Some).map_err(unreadable)
}

/// Reads the plan of a run from texts, as the recorded one was read.
fn from_texts(
    context: &Context,
    state: &RunState,
    recorded: &Plan,
    texts: &dyn Fn(&str) -> io::Result<String>,
) -> Result<PlanFile, NotAPlan> {
    let reader = context.protocol(state, &state.protocol.reader).map_err(|e| no_plan(&e))?;
    let full = context.project.root.join(&state.plan_path);
    let text = if full.is_dir() { None } else { Some(texts(&state.plan_path)) };
    let text = text.transpose().map_err(|e| no_plan(&format!("{}: {e}", state.plan_path)))?;
    let source = Source {
        file: &state.plan_path,
        path: &state.plan_path,
        text: text.as_deref(),
        read: texts,
        // Only the files of the plan count: what lies beside it is not looked for.
        list: &|_| Vec::new(),
        modified: &|_| None,
        settings: &context.settings,
        git: context.project.git_dir.is_some(),
        task_worktrees: Some(recorded.task_worktrees),
    };
    let reading = reader.read(&source).map_err(|why| match why {
        Unreadable::Problems(found) => {
            let words = found.iter().take(PROBLEMS_NAMED_MAX);
            let words = words.map(|p| format!("line {}: {}", p.line, p.message));
            no_plan(&words.collect::<Vec<_>>().join("; "))
        }
        Unreadable::Refused(refusal) | Unreadable::Blocked(refusal) => no_plan(&refusal),
    })?;
    let reading = asking::answered(context, reading, false).map_err(|e| no_plan(&e))?;
    let file = PlanFile::new(context, &full, reader, reading).map_err(|e| no_plan(&e))?;
    Ok(file.like(recorded))
}

fn no_plan(why: &dyn ToString) -> NotAPlan {
    NotAPlan(why.to_string())
}
