//! `piton runs`: the runs of this project, the newest first.

use std::fmt::Write as _;

use piton_core::Timestamp;
use piton_core::event::ProtocolRef;
use piton_core::summary::{progress, run_status};
use piton_engine::Store;
use piton_ledger::RunRow;
use serde::Serialize;

use crate::cli::RunsArgs;
use crate::context::Context;
use crate::error::Result;
use crate::ui;

/// Most runs whose state is loaded; of older ones the list shows what their row says, since the
/// list must stay quick after years.
const RUNS_LOADED_MAX: usize = 200;
/// Runs that a person is shown unasked: about a screen.
const RUNS_SHOWN_MAX: usize = 40;

/// A run as listed.
#[derive(Debug, Serialize)]
struct Listed {
    run_id: String,
    status: String,
    steps_done: Option<usize>,
    steps_total: Option<usize>,
    plan: String,
    protocol: Option<ProtocolRef>,
    title: String,
    root: String,
    driver: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    created_at: String,
    updated_at: String,
    #[serde(skip)]
    updated: Timestamp,
}

/// Lists the runs.
pub fn run(context: &Context, args: &RunsArgs) -> Result<()> {
    let mut store = match context.read_store() {
        Ok(store) => store,
        // A project without a ledger has no runs, which is no error.
        Err(error) if error.code == "no-ledger" => return print(context, &[], 0),
        Err(error) => return Err(error),
    };
    let rows = store.runs()?;
    let all = rows.len();
    // Programs get all there is.
    let shown = if args.all || context.json { all } else { RUNS_SHOWN_MAX };
    let listed: Vec<Listed> = rows
        .into_iter()
        .take(shown)
        .enumerate()
        .map(|(index, row)| list(&mut store, row, index < RUNS_LOADED_MAX))
        .collect();
    print(context, &listed, all - listed.len())
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
        created_at: ui::time::rfc3339(Timestamp(row.created_at)),
        updated_at: ui::time::rfc3339(Timestamp(row.updated_at)),
        updated: Timestamp(row.updated_at),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "ends the command")]
fn print(context: &Context, runs: &[Listed], hidden: usize) -> Result<()> {
    if context.json {
        ui::data_json(&runs);
        return Ok(());
    }
    if runs.is_empty() {
        ui::say("there are no runs here; `piton run PLAN` starts one");
    } else {
        ui::data(table(runs).trim_end());
    }
    for run in runs {
        if let Some(problem) = &run.problem {
            ui::say(&format!("warning: run {} can't be read: {problem}", run.run_id));
        }
    }
    if hidden > 0 {
        ui::say(&format!(
            "{} not shown; `piton runs --all` does",
            ui::text::count(hidden, "older run")
        ));
    }
    Ok(())
}

fn table(runs: &[Listed]) -> String {
    let wide = |of: fn(&Listed) -> usize, title: &str| {
        runs.iter().map(of).max().unwrap_or(0).max(title.len())
    };
    let id = wide(|r| r.run_id.len(), "RUN");
    let status = wide(|r| r.status.len(), "STATUS");
    let steps = wide(|r| steps(r).len(), "STEPS");
    let mut out = format!(
        "{:id$}  {:status$}  {:>steps$}  {:19}  {}\n",
        "RUN", "STATUS", "STEPS", "UPDATED", "PLAN"
    );
    for run in runs {
        let _ = writeln!(
            out,
            "{:id$}  {:status$}  {:>steps$}  {:19}  {}",
            run.run_id,
            run.status,
            self::steps(run),
            ui::time::local(run.updated),
            ui::text::sanitize(&run.plan),
        );
    }
    out
}

fn steps(run: &Listed) -> String {
    match (run.steps_done, run.steps_total) {
        (Some(done), Some(total)) => format!("{done}/{total}"),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let run = |id: &str, done| Listed {
            run_id: id.to_owned(),
            status: "complete".to_owned(),
            steps_done: Some(done),
            steps_total: Some(12),
            plan: "plan.toml".to_owned(),
            protocol: None,
            title: String::new(),
            root: String::new(),
            driver: None,
            problem: None,
            created_at: String::new(),
            updated_at: String::new(),
            updated: Timestamp(0),
        };
        let text = table(&[run("a", 3), run("long-name", 12)]);
        let at: Vec<Option<usize>> =
            text.lines().map(|l| l.find("plan.toml").or(l.find("PLAN"))).collect();
        assert!(at[0].is_some() && at.iter().all(|a| *a == at[0]), "{text}");
        assert!(text.contains(" 3/12"), "{text}");
    }
}
