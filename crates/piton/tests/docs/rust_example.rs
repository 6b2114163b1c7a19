//! The example of `docs/rust.md`: compiled and run here, shown there.
//!
//! What stands below the next line is copied into the page, so it must read well without the rest.

// docs/rust.md
use std::error::Error;
use std::path::Path;

use piton_core::summary::{progress, run_status};
use piton_engine::Store;
use piton_formats::{Input, Settings, read_plan};
use piton_ledger::{Open, Sqlite};
use piton_workspace::Project;

/// Gives the status of every run of a project: `nightly: complete, 6 of 6 steps`.
pub fn standing(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let project = Project::discover(folder)?;
    let ledger = Sqlite::open(&project.state_dir, Open::ReadOnly)?;
    let mut store = Store::new(Box::new(ledger));
    let mut lines = Vec::new();
    for row in store.runs()? {
        let run = store.load_row(row)?;
        // Whether a driver lives is for the caller to find out; here none does.
        let status = run_status(&run.state, false);
        let (over, all) = progress(&run.state);
        lines.push(format!("{}: {status}, {over} of {all} steps", run.row.run_id));
    }
    Ok(lines)
}

/// Reads a plan: its steps in the order of the document, or all that is wrong with it.
pub fn steps(text: &str) -> Result<Vec<String>, Vec<String>> {
    let input = Input {
        file: "plan.toml",
        text,
        settings: &Settings::default(),
        git: false,
        read: &|path| std::fs::read_to_string(path),
    };
    match read_plan(&input) {
        Ok((plan, _warnings)) => Ok(plan.steps().map(|(path, _)| path.to_string()).collect()),
        Err(problems) => Err(problems.into_iter().map(|p| p.message).collect()),
    }
}
