//! `piton run DOCUMENT --lane FIX-P1-001`: the task that blocks a phase, as a lane.
//!
//! The protocol writes the task as a plan of its own, which lies beside the run reports. It is run like
//! any other plan; when it is merged, the run that it blocked continues and is validated again.

use std::path::PathBuf;

use piton_core::{Status, remedy};
use piton_engine::Loaded;

use super::next_phase::newest_run;
use crate::cli::{DriveArgs, ResumeArgs, RunArgs};
use crate::commands::resume;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::plan_file::PlanFile;
use crate::ui;
use piton_world::write;

/// A fix that is to be run.
pub struct Wanted {
    /// Its plan.
    path: PathBuf,
    /// The run that it blocks.
    blocked: String,
    /// What becomes of an earlier run of that plan.
    earlier: Earlier,
}

/// What becomes of an earlier run of a fix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// There is none, or it is complete and was not validated yet.
    Stays,
    /// It continues.
    Continues,
    /// The validation failed again since: what is to be fixed now is another thing.
    IsOver,
}

impl Earlier {
    /// Compares the run of a fix with the run that it is for; `same` if the fix has not changed.
    fn new(fix: Option<&Loaded>, blocked: &Loaded, same: bool) -> Self {
        let Some(fix) = fix else { return Self::Stays };
        let failed_since = blocked.state.last_at > fix.state.last_at;
        match fix.row.status == Status::Complete.as_str() {
            true if failed_since => Self::IsOver,
            true => Self::Stays,
            false if failed_since && !same => Self::IsOver,
            false => Self::Continues,
        }
    }
}

/// The fix that `--lane` names, if the plan has no lane of that name and its newest run is blocked by it.
pub fn wanted(context: &Context, plan: &PlanFile, args: &RunArgs) -> Result<Option<Wanted>> {
    let Some(lane) = args.drive.lane.as_deref() else { return Ok(None) };
    let mut lanes = plan.live.phases.iter().flat_map(|phase| &phase.lanes);
    if lanes.any(|known| known.id == lane) {
        return Ok(None);
    }
    let root = &context.project.root;
    let Some(blocked) = newest_run(context, &root.join(&plan.path)) else { return Ok(None) };
    let Some(fix) = plan.reader.fix(&blocked.state, lane) else { return Ok(None) };
    let folder = &context.settings.lanes.run_reports;
    let path = root.join(folder).join(fix.name);
    let typed = context.plan_argument(&format!(
        "{folder}/{}",
        path.file_name().unwrap_or_default().to_string_lossy()
    ));
    ui::say(
        remedy![Words "the task {lane} is described in {typed}; ", Piton "run {typed}", Words " runs it too"],
    );
    let same = std::fs::read(&path).is_ok_and(|text| text == fix.text.as_bytes());
    let earlier = Earlier::new(newest_run(context, &path).as_ref(), &blocked, same);
    let is_due = earlier == Earlier::IsOver || !path.exists();
    if !args.drive.dry_run && is_due {
        let failed = |e: std::io::Error| {
            CommandError::failed("world", format!("{}: {e}", path.display()))
                .hint("check that you own the folder and that the disk has space")
        };
        std::fs::create_dir_all(root.join(folder)).map_err(failed)?;
        write::replace(&path, fix.text.as_bytes()).map_err(failed)?;
    }
    Ok(Some(Wanted { path, blocked: blocked.row.run_id, earlier }))
}

/// Runs a fix, and continues the run that it blocked.
pub fn run(context: &Context, fix: Wanted, args: &RunArgs) -> Result<()> {
    if args.drive.dry_run {
        return Ok(());
    }
    let drive = DriveArgs { lane: None, phase: None, detach: false, ..args.drive.clone() };
    super::run_plan(
        context,
        RunArgs {
            plan: Some(fix.path),
            resume: fix.earlier == Earlier::Continues,
            fresh: fix.earlier == Earlier::IsOver,
            rollback: false,
            to: None,
            task_worktrees: args.task_worktrees,
            next_phase: None,
            start_phase: None,
            run_id: None,
            drive: drive.clone(),
        },
    )?;
    resume::run(context, ResumeArgs { at_boot: false, run: Some(fix.blocked), drive })
}
