//! Steps as processes: what they find, how they end, what is kept of their output, what follows
//! when they fail. The real program, real children, real signals.
//!
//! Not here: what a killed driver costs (`resume.rs`) and who may drive (`one_driver.rs`).

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "processes/cgroups.rs"]
mod cgroups;
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
#[path = "processes/trees.rs"]
mod trees;

use common::{Output, Project};
use serde_json::Value;

/// The run that every test here makes.
const RUN: &str = "r";

/// Waits in a step until the test says go.
const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.02; done";

/// A plan of one step, `P/L/s`; `more` are further keys of the step.
fn one_step(run: &str, more: &str) -> String {
    format!(
        "title = \"One\"\n[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"L\"\n\
         [[phase.lane.step]]\nid = \"s\"\nrun = '''\n{run}\n'''\n{more}\n"
    )
}

/// A plan of two steps, `P/L/s` and then `P/L/after`, which adds a line to `ran.txt`.
fn two_steps(run: &str, more: &str) -> String {
    let after = "[[phase.lane.step]]\nid = \"after\"\nrun = 'echo after >> ran.txt'\n";
    one_step(run, more) + after
}

/// Runs `plan.toml` as [`RUN`].
#[track_caller]
fn run(project: &Project) -> Output {
    project.piton(&["run", "plan.toml", "--run-id", RUN])
}

/// The step `P/L/s` as `piton show --json` tells it.
#[track_caller]
fn shown(project: &Project) -> Value {
    project.piton(&["show", "r/P/L/s", "--json"]).exits(0).json()
}

/// The attempts of `P/L/s`, in order.
#[track_caller]
fn attempts(project: &Project) -> Vec<Value> {
    let shown = shown(project);
    let history = shown["history"].as_array().unwrap().iter();
    history.filter(|h| h["what"] == "attempt").cloned().collect()
}

/// What became of the attempts of `P/L/s`, in order.
#[track_caller]
fn outcomes(project: &Project) -> Vec<String> {
    attempts(project).iter().map(|a| a["outcome"].as_str().unwrap().to_owned()).collect()
}
