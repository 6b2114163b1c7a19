//! Which runs are of the same plan, and whether the work of others that a plan depends on is done.
//!
//! Both are the words of the plan's protocol. Whether something is done is told by its newest run here.

use piton_core::Status;
use piton_core::remedy;
use piton_engine::Store;
use piton_ledger::RunRow;
use piton_protocols::protocol::Start;

use crate::cli::DriveArgs;
use crate::commands::request::is_given_up;
use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::PlanFile;
use crate::ui;

/// The newest run of this plan that is unfinished or complete. The plan of another work tree is
/// another plan, though its path below the root may be the same.
pub fn earlier_run(
    context: &Context,
    store: &mut Store,
    runs: Vec<RunRow>,
    plan: &PlanFile,
) -> Option<RunRow> {
    let here = |r: &RunRow| {
        let root = std::path::Path::new(&r.root);
        root == context.project.root || !root.is_dir()
    };
    for row in runs.into_iter().filter(|r| r.plan == plan.path && !is_given_up(r) && here(r)) {
        // What can't be read is told by who goes on with it.
        let Ok(loaded) = store.load(&row.run_id) else { return Some(row) };
        let Start::Other(of) = plan.reader.start(&plan.recorded, &loaded.state, now()) else {
            return Some(row);
        };
        if row.status != Status::Complete.as_str() {
            let (run, status) = (&row.run_id, &row.status);
            let shown = remedy![Piton "status {run}", Words " shows it"];
            ui::say(format!("note: run {run} of {of}, is {status}: {shown}"));
        }
    }
    None
}

/// Refuses to begin lanes that depend on work whose newest run here is not complete, unless a person
/// says that it is done.
pub fn check_needed(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &DriveArgs,
) -> Result<()> {
    let meant = |lane: &str| args.lane.as_ref().is_none_or(|l| l == lane);
    let mut seen: Vec<&str> = Vec::new();
    for need in plan.needs.iter().filter(|need| meant(&need.lane.lane)) {
        if seen.contains(&need.name.as_str()) {
            continue;
        }
        seen.push(&need.name);
        let Some(row) = newest_of(store, plan, &need.name)? else { continue };
        if row.status == Status::Complete.as_str() {
            continue;
        }
        let (run, status) = (&row.run_id, &row.status);
        let (lane, shown) = (&need.lane, piton_view::text::sanitize(&need.name));
        let question = format!("{lane} depends on {shown}, and run {run} of it is {status}");
        if context.yes || context.confirms(&format!("{question}. Is it done anyway?")) {
            ui::say(format!("{question}: treated as done"));
            continue;
        }
        return Err(CommandError::new(Kind::Blocked, "phase-unfinished", question)
            .hint(remedy![Words "finish it first with ", Piton "resume {run}"])
            .hint("if it is done anyway, add `--yes`"));
    }
    Ok(())
}

/// The newest run of what a plan needs: one whose plan the same protocol reads.
fn newest_of(store: &mut Store, plan: &PlanFile, need: &str) -> Result<Option<RunRow>> {
    for row in store.runs()?.into_iter().filter(|row| !is_given_up(row)) {
        let state = store.load(&row.run_id)?.state;
        let is_like = state.protocol.reader == plan.reader.id();
        if is_like && plan.reader.is_needed(&state, need) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}
