//! The plan of a run that is taken over: the one of its protocol, or the least that its records tell.

use std::path::{Path, PathBuf};

use piton_core::lane::TaskWorktrees;
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::Protocol;
use piton_protocols::import::ForeignRun;

use crate::cli::ImportArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::plan_file::{How, PlanFile};
use piton_world::read;

/// The records of others are about lanes: their tasks had no worktrees of their own.
const HOW: How = How { reader: None, tasks: Some(TaskWorktrees::Off), asks: true };

/// Where plans are looked for.
const PLANS_DIR: &str = "plans";
/// The plan made from records, in the folder of its run.
const MADE: &str = "imported.toml";

/// Finds the plan of a run; and what is to be said of it.
pub fn find(
    context: &Context,
    args: &ImportArgs,
    run_id: &str,
    (protocol, run): (&dyn Protocol, &ForeignRun),
) -> Result<(PlanFile, Vec<String>)> {
    let named = args.plan.clone().or_else(|| document(context, protocol, run));
    if let Some(path) = named {
        return Ok((PlanFile::read(context, &path, HOW)?, Vec::new()));
    }
    if run.lanes.is_empty() {
        let message = format!("the records of {run_id} are about phases, not about lanes");
        return Err(
            CommandError::usage("no-run", message).hint("name their phase document with `--plan`")
        );
    }
    let path = context.run_dir(run_id).join(MADE);
    let failed = |e: std::io::Error| {
        CommandError::failed("world", format!("{}: {e}", path.display()))
            .hint("check that you own the folder and that the disk has space")
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let root = context.project.root.to_string_lossy();
    std::fs::write(&path, run.plan_text((run_id, protocol.id()), &root)).map_err(failed)?;
    let remark = format!(
        "no phase document was found (name it with `--plan`), so the work of the lanes is not known: \
         they only run their tests and merge; lanes without a recorded test stay on their branches, \
         and lanes that have not started are refused. The plan made from the records is {}",
        path.display()
    );
    Ok((PlanFile::read(context, &path, HOW)?, vec![remark]))
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
