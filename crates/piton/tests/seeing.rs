//! What people and programs see: status, logs, history, JSON, notifications; that secrets are not
//! among it; and how a ledger is looked after.
//!
//! Not here: how a live picture is drawn (unit tests of the program draw frames), beyond a narrow
//! terminal.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "seeing/brief.rs"]
mod brief;
#[path = "seeing/care.rs"]
mod care;
#[path = "seeing/inspect.rs"]
mod inspect;
#[path = "seeing/json.rs"]
mod json;
#[path = "seeing/notify.rs"]
mod notify;
#[path = "seeing/secrets.rs"]
mod secrets;
#[path = "seeing/terminal.rs"]
mod terminal;
#[path = "seeing/views.rs"]
mod views;

use common::Project;

/// Two lanes and a phase behind them; `A/bad` fails on its first attempt.
const PLAN: &str = r#"
title = "Sights"
[[phase]]
id = "P"
[[phase.lane]]
id = "A"
steps = [
  { id = "make", run = "echo making; echo careful >&2; echo made > made.txt", artifacts = ["made.txt"] },
  { id = "bad", run = "echo try $PITON_ATTEMPT; test $PITON_ATTEMPT -ge 2", retries = 1, backoff = "1ms" },
]
[[phase.lane]]
id = "B"
run = "echo from B"
[[phase]]
id = "Q"
run = "echo last"
"#;

/// A project with a complete run `r` of [`PLAN`].
#[track_caller]
fn complete() -> Project {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    project
}

/// A project with a run `r` that waits for a gate.
#[track_caller]
fn waiting() -> Project {
    let plan = "title = \"Gate\"\n[[phase]]\nid = \"P\"\nrun = \"echo first\"\n\
                [[phase]]\nid = \"Q\"\ngate = \"Go?\"\nrun = \"echo second\"\n";
    let project = Project::with_plan(plan);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project
}

/// A project with a run `r` that failed at `P/main/work`.
#[track_caller]
fn failed() -> Project {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"echo no luck; exit 7\"\n");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project
}
