//! Resources: the same views that `runs`, `show` and `brief` print.

use piton_view::At;
use piton_view::mcp::answers::{Points, Remark, Runs};
use piton_view::mcp::tools::LIST_MAX;
use piton_view::mcp::{Reply, Resource};
use piton_view::show::Point;

use crate::cli::BriefArgs;
use crate::commands::{brief, rewind, runs, show};
use crate::context::Context;
use crate::error::Result;

/// Runs that are listed as resources; older ones can still be read by their address.
const RUNS_LISTED_MAX: usize = 50;

/// The resources there are, each with its title.
pub fn list(context: &Context) -> Result<Vec<(Resource, String)>> {
    let (runs, _) = runs::listed(context, RUNS_LISTED_MAX)?;
    let of_run = |run: &piton_view::runs::Listed| {
        let id = &run.run_id;
        [
            (Resource::Run(id.clone()), format!("run {id}: {}, {}", run.title, run.status)),
            (Resource::Checkpoints(id.clone()), format!("checkpoints of {id}")),
            (Resource::Brief(id.clone()), format!("brief of {id}")),
        ]
    };
    let first = (Resource::Runs, "runs".to_owned());
    Ok(std::iter::once(first).chain(runs.iter().flat_map(of_run)).collect())
}

/// The text of a resource.
pub fn read(context: &Context, resource: &Resource) -> Result<String> {
    Ok(match resource {
        Resource::Runs => Reply::of(&listed(context, LIST_MAX)?).text,
        Resource::Checkpoints(run) => Reply::of(&points(context, Some(run), LIST_MAX)?).text,
        Resource::Brief(run) => {
            let args = BriefArgs::of(Some(run.clone()), None);
            let (run, brief) = brief::of(context, &args)?;
            brief.map_or_else(|| format!("run {run} has not started\n"), |brief| brief.text)
        }
        Resource::Run(run) => {
            let mut store = context.read_store()?;
            let row = Context::pick(&mut store, Some(run), |_| true, "run")?;
            let loaded = store.load_row(row)?;
            show::with_run(context, &mut store, &loaded, |full| Reply::of(full).text)?
        }
        Resource::Checkpoint(run, name) => {
            let mut store = context.read_store()?;
            let row = Context::pick(&mut store, Some(run), |_| true, "run")?;
            let loaded = store.load_row(row)?;
            let named = (name.as_str(), None);
            show::with_checkpoint(context, &mut store, &loaded, named, |one| Reply::of(one).text)?
        }
    })
}

/// The newest runs.
pub fn listed(context: &Context, limit: u64) -> Result<Runs> {
    let (runs, all) = runs::listed(context, usize::try_from(limit).unwrap_or(usize::MAX))?;
    Ok(Runs { runs, all })
}

/// The newest checkpoints of a run.
pub fn points(context: &Context, run: Option<&str>, limit: u64) -> Result<Points> {
    let mut store = context.read_store()?;
    let row = Context::pick(&mut store, run, |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let found: Vec<Point> = rewind::points(&mut store, &loaded)?;
    let (all, run_id) = (found.len(), loaded.row.run_id);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let asked_for = loaded.state.checkpoints.into_iter().rev().take(limit);
    let checkpoints =
        asked_for.map(|one| Remark { name: one.name, message: one.message, at: At(one.at) });
    let snapshots = found.into_iter().rev().take(limit).collect();
    Ok(Points { run_id, checkpoints: checkpoints.collect(), snapshots, all })
}
