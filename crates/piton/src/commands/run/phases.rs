//! Which runs are of the same plan, and whether the phases that a document depends on are done.
//!
//! A document is a plan of the phase that it holds: with another phase in its first heading it is
//! another plan, though its path stays. Whether a phase is done is told by its newest run here.

use piton_core::{RunState, Status};
use piton_engine::Store;
use piton_ledger::RunRow;
use piton_protocols::lanes::phase;

use crate::cli::DriveArgs;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::plan_file::PlanFile;
use crate::ui;

/// The newest run of this plan that is unfinished or complete. The plan of another work tree is
/// another plan, though its path below the root may be the same; so is the document of another phase.
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
        if plan.phase.is_none() {
            return Some(row);
        }
        // What can't be read is told by who goes on with it.
        let Ok(loaded) = store.load(&row.run_id) else { return Some(row) };
        let state = loaded.state;
        let wanted = plan.live.phases.first().map_or("", |p| p.id.as_str());
        // One that never began has no phase yet: the document is all there is of it.
        if state.phases.is_empty() || holds(&state, wanted) {
            return Some(row);
        }
        if row.status != Status::Complete.as_str() {
            let (run, was) = (&row.run_id, state.phases[0].id.as_str());
            ui::say(&format!(
                "note: run {run} of phase {was}, which this document held before, is {}: `piton \
                 status {run}` shows it",
                row.status
            ));
        }
    }
    None
}

fn is_given_up(row: &RunRow) -> bool {
    [Status::Cancelled, Status::Archived].iter().any(|s| s.as_str() == row.status)
}

fn holds(state: &RunState, phase: &str) -> bool {
    state.phases.iter().any(|p| p.id == phase)
}

/// Refuses to begin lanes that depend on a phase whose newest run here is not complete, unless a
/// person says that it is done.
pub fn check_needed(
    context: &Context,
    store: &mut Store,
    plan: &PlanFile,
    args: &DriveArgs,
) -> Result<()> {
    let meant = |lane: &str| args.lane.as_ref().is_none_or(|l| l == lane);
    let mut seen: Vec<&str> = Vec::new();
    for (lane, name) in plan.needed_phases.iter().filter(|(lane, _)| meant(&lane.lane)) {
        if seen.contains(&name.as_str()) {
            continue;
        }
        seen.push(name);
        let Some(row) = newest_of(store, name)? else { continue };
        if row.status == Status::Complete.as_str() {
            continue;
        }
        let (run, status) = (&row.run_id, &row.status);
        let shown = ui::text::sanitize(name);
        let question = format!("{lane} depends on {shown}, and run {run} of it is {status}");
        if context.yes || is_done(context, &question) {
            ui::say(&format!("{question}: taken for done"));
            continue;
        }
        return Err(CommandError::new(Kind::Blocked, "phase-unfinished", question)
            .hint(format!("finish it first: `piton resume {run}`"))
            .hint("if it is done all the same, say `--yes`"));
    }
    Ok(())
}

fn is_done(context: &Context, question: &str) -> bool {
    if !context.interactive || context.json {
        return false;
    }
    let question = format!("{question}. Is it done all the same?");
    ui::ask(&question, &[('y', "yes"), ('n', "no")], Some('n'), &mut || false) == Some('y')
}

/// The newest run that holds a phase, as `P1`, `Phase 1` or `P1/SL-1` name it.
fn newest_of(store: &mut Store, name: &str) -> Result<Option<RunRow>> {
    let name = short(name);
    let phase_of = |state: &RunState| {
        let named = |id: &str| {
            let rest = name.strip_prefix(short(id).as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
        };
        state.phases.iter().any(|p| named(&p.id))
    };
    for row in store.runs()?.into_iter().filter(|row| !is_given_up(row)) {
        let of_document = std::path::Path::new(&row.plan).extension().is_some_and(|e| e == "md");
        if of_document && phase_of(&store.load(&row.run_id)?.state) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The name of a phase as all its spellings have it in common: `Phase 1` and `P1` are one.
fn short(name: &str) -> String {
    let id = phase::plan_id(name).to_ascii_lowercase();
    let number = id.strip_prefix("phase-").filter(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    number.map_or_else(|| id.clone(), |number| format!("p{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_known_by_each_of_its_names() {
        for name in ["P1", "p1", "Phase 1", "phase-1", "PHASE 1"] {
            assert_eq!(short(name), "p1", "{name}");
        }
        assert_eq!(short("P1/SL-1"), "p1-sl-1");
        assert_eq!(short("Phase P1"), "phase-p1");
        assert_eq!(short("OTHERPHASE"), "otherphase");
    }
}
