//! Steps as processes: what they find, how they end, what is kept of their output, what follows
//! when they fail. The real program, real children, real signals.
//!
//! Not here: what a killed driver costs (`resume.rs`) and who may drive (`one_driver.rs`).

#![expect(
    clippy::unwrap_used,
    reason = "a scene that can't be set up is a failed test"
)]

mod common;

#[path = "processes/daemons.rs"]
mod daemons;
#[path = "processes/environment.rs"]
mod environment;
#[path = "processes/failures.rs"]
mod failures;
#[path = "processes/limits.rs"]
mod limits;
#[path = "processes/output.rs"]
mod output;
#[path = "processes/signals.rs"]
mod signals;

use common::Project;
use serde_json::Value;

/// The run that most tests here make.
const RUN: &str = "r";

/// A plan of one step, `P/L/s`; `more` are further keys of the step.
fn one_step(run: &str, more: &str) -> String {
    format!(
        "title = \"One\"\n[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"L\"\n\
         [[phase.lane.step]]\nid = \"s\"\nrun = '''\n{run}\n'''\n{more}\n"
    )
}

/// A project whose `plan.toml` is this.
fn project(plan: &str) -> Project {
    let project = Project::new();
    project.write("plan.toml", plan);
    project
}

/// Runs `plan.toml` as [`RUN`]; gives exit code, stdout and stderr.
fn run(project: &Project) -> common::Output {
    project.piton(&["run", "plan.toml", "--run-id", RUN])
}

/// The step `P/L/s` as `piton show --json` tells it.
fn shown(project: &Project) -> Value {
    let output = project.piton(&["show", "r/P/L/s", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// The attempts of `P/L/s`, in order.
fn attempts(project: &Project) -> Vec<Value> {
    let shown = shown(project);
    let history = shown["history"].as_array().unwrap();
    history
        .iter()
        .filter(|h| h["what"] == "attempt")
        .cloned()
        .collect()
}
