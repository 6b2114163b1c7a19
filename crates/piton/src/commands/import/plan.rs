//! The plan of a run that is taken over: the phase document, or the least that its records tell.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use piton_core::LanePath;
use piton_core::lane::TaskWorktrees;
use piton_core::plan::UNKNOWN_WORK;
use piton_formats::plan::PLAN_BYTES_MAX;
use piton_protocols::lanes::checkpoints::Record;
use piton_protocols::lanes::{naming, phase};

use crate::cli::ImportArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::plan_file::{How, PlanFile};
use piton_world::read;

/// The records of others are about lanes: their tasks had no worktrees of their own.
const OFF: How = How { reader: None, tasks: Some(TaskWorktrees::Off), asks: true };

/// Where phase documents are looked for.
const PLANS_DIR: &str = "plans";
/// The plan made from records, in the folder of its run.
const MADE: &str = "imported.toml";

/// Finds the plan of a run; and what is to be said of it.
pub fn find(
    context: &Context,
    args: &ImportArgs,
    run_id: &str,
    records: &[Record],
) -> Result<(PlanFile, Vec<String>)> {
    let named = match &args.plan {
        Some(path) => Some(path.clone()),
        None => document(context, records),
    };
    if let Some(path) = named {
        return Ok((PlanFile::read(context, &path, OFF)?, Vec::new()));
    }
    if records.iter().all(|r| r.lane == naming::NONE) {
        let message =
            format!("the records of {run_id} are about phases as a whole, not about lanes");
        return Err(CommandError::usage("no-run", message)
            .hint("name the phase document they are about with `--plan`"));
    }
    let path = context.run_dir(run_id).join(MADE);
    let failed = |e: std::io::Error| {
        CommandError::failed("world", format!("{}: {e}", path.display()))
            .hint("see that the folder is yours and has space left")
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&path, made(context, run_id, records)).map_err(failed)?;
    let remark = format!(
        "no phase document was found (name it with `--plan`): the work of its lanes is not known, \
         so they only go on to their tests and merges; lanes without a recorded test stay on their \
         branches, those that would have to begin are refused. The plan made from the records is {}",
        path.display()
    );
    Ok((PlanFile::read(context, &path, OFF)?, vec![remark]))
}

/// The document in the folder of plans whose phase is the one of the records.
fn document(context: &Context, records: &[Record]) -> Option<PathBuf> {
    let wanted = phase::plan_id(&records.first()?.phase);
    if records.iter().any(|r| phase::plan_id(&r.phase) != wanted) {
        return None;
    }
    let dir = context.project.root.join(PLANS_DIR);
    let entries = std::fs::read_dir(dir).ok()?.filter_map(std::result::Result::ok);
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    files.sort();
    let is_it = |path: &PathBuf| {
        let Ok(text) = read::text(path, PLAN_BYTES_MAX) else { return false };
        let name = path.display().to_string();
        phase::is_phase(&text)
            && phase::read(&name, &text).is_ok_and(|(p, _)| phase::plan_id(&p.id) == wanted)
    };
    files.into_iter().filter(|p| p.extension().is_some_and(|e| e == "md")).find(is_it)
}

/// A plan with the lanes of the records, whose work is done as far as anybody knows.
fn made(context: &Context, run_id: &str, records: &[Record]) -> String {
    let mut out = format!("title = {}\n", quoted(&format!("{run_id}, taken over")));
    let mut phases: Vec<String> = Vec::new();
    for record in records.iter().filter(|r| r.lane != naming::NONE) {
        let phase = phase::plan_id(&record.phase);
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    for phase in &phases {
        let _ = write!(out, "\n[[phase]]\nid = {}\n", quoted(phase));
        let mut lanes: Vec<LanePath> = Vec::new();
        for record in records.iter().filter(|r| r.lane != naming::NONE) {
            let lane = lane_of(record);
            if lane.phase != *phase || lanes.contains(&lane) {
                continue;
            }
            let own = || records.iter().filter(|r| lane_of(r) == lane);
            let test = own().find_map(|r| r.text("test_command").filter(|t| !t.is_empty()));
            let place = own().find_map(|r| r.text("worktree_path"));
            let root = place.is_some_and(|p| Path::new(&p) == context.project.root);
            let _ = write!(out, "\n[[phase.lane]]\nid = {}\n", quoted(&lane.lane));
            let _ = writeln!(out, "run = {}", quoted(&escaped(UNKNOWN_WORK)));
            lanes.push(lane);
            if root {
                continue;
            }
            out.push_str("isolation = \"worktree\"\n");
            match test {
                Some(test) => {
                    let _ = writeln!(out, "test = {}", quoted(&escaped(&test)));
                }
                None => out.push_str("merge = \"none\"\n"),
            }
        }
    }
    out
}

/// The lane of the plan that a record is about: other tools take names that no plan can have.
pub fn lane_of(record: &Record) -> LanePath {
    LanePath { phase: phase::plan_id(&record.phase), lane: phase::plan_id(&record.lane) }
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    // What JSON writes between quotes, TOML reads.
    serde_json::Value::from(text).to_string()
}

/// A command that must not be taken for a template.
fn escaped(text: &str) -> String {
    piton_formats::template::escape(text)
}
