//! `piton runs`: the runs of this project, the newest first.

use piton_core::Timestamp;
use piton_core::remedy;
use piton_core::summary::{progress, run_status};
use piton_engine::Store;
use piton_ledger::RunRow;
use piton_view::At;
use piton_view::runs::{Listed, table};
use piton_view::text::count;

use crate::cli::RunsArgs;
use crate::context::Context;
use crate::error::Result;
use crate::ui;

/// Most runs whose state is loaded; of older ones the list shows what their row says, since the
/// list must stay quick after years.
const RUNS_LOADED_MAX: usize = 200;
/// Runs that a person is shown unasked: about a screen.
const RUNS_SHOWN_MAX: usize = 40;

/// Lists the runs.
pub fn run(context: &Context, args: &RunsArgs) -> Result<()> {
    // Programs get all there is.
    let shown = if args.all || context.json { usize::MAX } else { RUNS_SHOWN_MAX };
    let (listed, all) = listed(context, shown)?;
    print(context, &listed, all - listed.len())
}

/// The newest runs, and how many there are.
pub fn listed(context: &Context, shown: usize) -> Result<(Vec<Listed>, usize)> {
    let mut store = match context.read_store() {
        Ok(store) => store,
        // A project without a ledger has no runs, which is no error.
        Err(error) if error.code == "no-ledger" => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let rows = store.runs()?;
    let all = rows.len();
    let rows = rows.into_iter().take(shown).enumerate();
    Ok((rows.map(|(index, row)| list(&mut store, row, index < RUNS_LOADED_MAX)).collect(), all))
}

fn list(store: &mut Store, row: RunRow, load: bool) -> Listed {
    let lives = Context::driver_lives(&row);
    let driver = row.owner.as_ref().filter(|_| lives).map(|lease| lease.owner.to_string());
    // A run that cannot be read is still listed, with what is wrong with it.
    let loaded = load.then(|| store.load_row(row.clone())).transpose();
    let problem = loaded.as_ref().err().map(ToString::to_string);
    let loaded = loaded.ok().flatten();
    let steps = loaded.as_ref().map(|l| progress(&l.state));
    Listed {
        protocol: loaded.as_ref().filter(|l| l.seq > 0).map(|l| l.state.protocol.clone()),
        status: loaded.map_or(row.status, |l| run_status(&l.state, lives).to_string()),
        steps_done: steps.map(|(done, _)| done),
        steps_total: steps.map(|(_, total)| total),
        run_id: row.run_id,
        plan: row.plan,
        title: row.title,
        root: row.root,
        driver,
        problem,
        created_at: At(Timestamp(row.created_at)),
        updated_at: At(Timestamp(row.updated_at)),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "ends the command")]
fn print(context: &Context, runs: &[Listed], hidden: usize) -> Result<()> {
    if context.json {
        ui::data_json(&runs);
        return Ok(());
    }
    if runs.is_empty() {
        ui::say(remedy![Words "no runs here yet; start one with ", Piton "run PLAN"]);
    } else {
        ui::data(table(runs, ui::place()).trim_end());
    }
    for run in runs {
        if let Some(problem) = &run.problem {
            ui::say(format!("warning: run {} cannot be read: {problem}", run.run_id));
        }
    }
    if hidden > 0 {
        let hidden = count(hidden, "older run");
        ui::say(remedy![Words "{hidden} not shown; ", Piton "runs --all", Words " shows all runs"]);
    }
    Ok(())
}
