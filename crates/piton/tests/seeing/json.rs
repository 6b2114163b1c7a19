//! The same for programs: documented keys, one object per line, errors too.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::common::{Output, Project};
use super::{PLAN, complete, failed, waiting};

/// Every line of stdout as JSON; there is at least one.
#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    let parse = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in `{line}` of {output:?}"))
    };
    let values: Vec<Value> = output.stdout.lines().map(parse).collect();
    assert!(!values.is_empty(), "no JSON: {output:?}");
    values
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Lost: every program that reads `status --json` would break.
#[test]
fn status_has_the_documented_keys() {
    let project = complete();
    let status = project.status_json("r");
    let documented =
        ["run_id", "plan", "status", "current", "phases", "waiting_for", "rerun"].into();
    assert!(keys(&status).is_superset(&documented), "{status}");
    assert_eq!(status["run_id"], "r");
    assert_eq!(status["plan"], "plan.toml");
    assert_eq!(status["status"], "complete");
    assert_eq!(status["current"], Value::Null);
    assert_eq!((&status["waiting_for"], &status["rerun"]), (&json!([]), &json!([])));
    let phase = &status["phases"][0];
    assert!(keys(phase).is_superset(&["id", "status", "lanes"].into()));
    let lane = &phase["lanes"][0];
    assert!(keys(lane).is_superset(&["id", "status", "steps"].into()));
    let steps = &lane["steps"];
    let step_keys = ["id", "status", "attempts", "exit_code", "artifacts"].into();
    assert!(keys(&steps[0]).is_superset(&step_keys));
    assert_eq!(steps[0]["id"], "make");
    assert_eq!(steps[0]["status"], "complete");
    assert_eq!(steps[0]["artifacts"][0]["path"], "made.txt");
    assert_eq!((&steps[1]["attempts"], &steps[1]["exit_code"]), (&json!(2), &json!(0)));
}

/// Lost: a program could not tell what a run waits for.
#[test]
fn status_names_what_is_waited_for() {
    let status = waiting().status_json("r");
    assert_eq!(status["status"], "waiting");
    assert_eq!(status["waiting_for"][0]["gate"], "Q");
    assert_eq!(status["waiting_for"][0]["name"], "Go?");
    let status = failed().status_json("r");
    assert_eq!(status["status"], "failed");
    assert_eq!(status["phases"][0]["lanes"][0]["steps"][0]["exit_code"], 7);
}

/// Lost: a program that drives Piton could not follow a run.
#[test]
fn a_run_streams_its_events_and_ends_with_a_summary() {
    let project = Project::with_plan(PLAN);
    let output = project.piton(&["run", "plan.toml", "--run-id", "r", "--json"]).exits(0);
    let lines = lines(&output);
    let (summary, events) = lines.split_last().unwrap();
    assert_eq!(summary["summary"]["verdict"], "complete");
    let seqs: Vec<u64> = events.iter().filter_map(|e| e["seq"].as_u64()).collect();
    let all: Vec<u64> = (1..=seqs.len() as u64).collect();
    assert_eq!(seqs, all, "events come in order, each once");
    assert_eq!(seqs.len(), project.events("r").len());
    assert_eq!(events[0]["event"], "run.created");
    let finished = |e: &&Value| e["event"] == "step.finished";
    assert_eq!(events.iter().filter(finished).count(), 5);
}

/// Lost: the last word of a run that was resumed would not say what was saved.
#[test]
fn a_resumed_run_says_what_it_compared_and_saved() {
    let project = waiting();
    let output = project.piton(&["approve", "r", "Q", "--json"]).exits(0);
    lines(&output);
    let output = project.piton(&["resume", "r", "--json"]).exits(0);
    let lines = lines(&output);
    assert_eq!(lines[0]["resume"]["run_id"], "r");
    assert_eq!(lines[0]["resume"]["differences"], json!([]));
    let summary = &lines.last().unwrap()["summary"];
    assert_eq!(summary["finished_before"], 1, "{summary}");
}

/// Lost: a program would find words where it expects data.
#[test]
fn every_command_speaks_json() {
    let project = complete();
    for args in [
        &["status"][..],
        &["log", "r"],
        &["runs"],
        &["runs", "--all"],
        &["show", "r"],
        &["show", "r/P"],
        &["show", "r/P/A"],
        &["show", "r/P/A/bad"],
        &["run", "plan.toml"],
        &["run", "plan.toml", "--resume"],
        &["run", "plan.toml", "--dry-run", "--fresh"],
        &["resume", "r"],
        &["gc", "--dry-run"],
        &["gc", "--yes", "--keep-runs", "0"],
        &["doctor"],
        &["doctor", "--backup", "copy.db"],
        &["explain"],
        &["explain", "no-run"],
        &["schema", "plan"],
        &["schema", "settings"],
        &["completions", "bash"],
        &["--version"],
    ] {
        let output = project.piton(&[args, &["--json"]].concat()).exits(0);
        if args[0] == "schema" {
            output.json();
        } else {
            lines(&output);
        }
    }
    let project = waiting();
    for name in ["manual-1", "manual-2"] {
        let answer = project.piton(&["checkpoint", "-m", name, "--json"]).exits(0).json();
        assert_eq!((&answer["run_id"], &answer["checkpoint"]), (&json!("r"), &json!(name)));
    }
    lines(&project.piton(&["reject", "r", "Q", "--json"]).exits(0));
    let answer = project.piton(&["abort", "r", "--json"]).exits(0).json();
    assert_eq!((&answer["run_id"], &answer["answer"]), (&json!("r"), &json!("aborted the run")));
    let project = failed();
    for args in [&["retry", "r", "P/main/work"][..], &["skip", "r", "P/main/work"]] {
        lines(&project.piton(&[args, &["--json"]].concat()).exits(0));
    }
}

/// Lost: a program could not tell one error from another.
#[test]
fn errors_are_json_too() {
    let project = complete();
    project.write("bad.toml", "titel = \"x\"\n[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    for (args, exit, code) in [
        (&["status", "none"][..], 2, "no-run"),
        (&["show", "r/X"], 2, "no-step"),
        (&["log", "--step", "none"], 2, "no-step"),
        (&["abort", "r"], 2, "run-over"),
        (&["explain", "none-such-code"], 2, "unknown-code"),
        (&["run", "missing.toml"], 2, "plan-unreadable"),
        (&["-C", "/no/such/folder", "status"], 2, "directory"),
        (&["frobnicate"], 2, "usage"),
        (&["status", "--frobnicate"], 2, "usage"),
    ] {
        let output = project.piton(&[args, &["--json"]].concat()).exits(exit);
        let error = &output.json()["error"];
        assert_eq!(error["code"], code, "{args:?}: {output:?}");
        assert_eq!(error["exit_code"], exit);
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
        assert_eq!(output.stderr, "", "{args:?} says it twice");
    }
    let output = project.piton(&["run", "bad.toml", "--json"]).exits(2);
    lines(&output);
    assert!(output.stdout.contains("unknown-key"), "{output:?}");
    let empty = Project::new();
    let output = empty.piton(&["status", "--json"]).exits(2);
    assert_eq!(output.json()["error"]["code"], "no-ledger", "{output:?}");
}

/// Lost: a reader that looks at the first line only would make a failed run look complete.
#[test]
fn a_reader_that_leaves_changes_no_exit_code() {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"sleep 0.2; exit 1\"\n");
    project.sh("{ $PROGRAM run plan.toml --json; echo $? > code; } | head -n 1 > first");
    assert_eq!(project.read("code").trim(), "1");
    assert_eq!(project.status(""), "failed");
}

/// Lost: people would be offered what only Piton itself calls; an option would be dropped unsaid.
#[test]
fn wrong_command_lines_name_what_is_there() {
    let project = Project::with_plan(PLAN);
    let none = project.piton(&["--json"]).exits(2);
    assert_eq!(none.json()["error"]["code"], "usage");
    none.says("resume").silent_about("__keeper");
    project.piton(&["--yes"]).exits(2).says("resume").silent_about("__keeper");
    for more in [&[][..], &["--fresh"], &["--resume"]] {
        let args = [&["run", "plan.toml", "--to", "pre_pr"], more].concat();
        project.piton(&args).exits(2).says("--rollback");
    }
}
