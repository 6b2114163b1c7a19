//! The plan of a run that is taken over: the one that is named, or the document with its phase.

use std::path::PathBuf;

use piton_core::lane::TaskWorktrees;
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::Protocol;
use piton_protocols::import::ForeignRun;

use crate::cli::ImportArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::plan_file::{How, PlanFile};
use piton_view::text::sanitize;
use piton_world::read;

/// The records of others are about lanes: their tasks had no worktrees of their own.
const HOW: How = How { reader: None, tasks: Some(TaskWorktrees::Off), asks: true };

/// Where plans are looked for.
const PLANS_DIR: &str = "plans";

/// Finds the plan of a run.
pub fn find(
    context: &Context,
    args: &ImportArgs,
    protocol: &dyn Protocol,
    run: &ForeignRun,
) -> Result<PlanFile> {
    let named = args.plan.clone().or_else(|| document(context, protocol, run));
    let path = named.ok_or_else(|| {
        let message =
            format!("no document in {PLANS_DIR}/ is the plan of run {}", sanitize(&run.id));
        CommandError::usage("no-plan", message).hint("name it with `--plan PLAN`")
    })?;
    PlanFile::read(context, &path, HOW)
}

/// The document in the folder of plans whose phase is the one of the records.
fn document(context: &Context, protocol: &dyn Protocol, run: &ForeignRun) -> Option<PathBuf> {
    let [phase] = run.phases.as_slice() else { return None };
    let entries = std::fs::read_dir(context.project.root.join(PLANS_DIR)).ok()?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let is_it = |path: &PathBuf| {
        read::text(path, PLAN_BYTES_MAX).is_ok_and(|text| protocol.is_plan_of(&text, phase))
    };
    files.into_iter().find(is_it)
}
