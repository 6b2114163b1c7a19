//! What a newcomer tries first: the demo and the quickstart plan.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use std::fs;
use std::path::Path;

use common::Project;

/// Lost: the first thing a newcomer runs would not show what Piton is for.
#[test]
fn the_demo_shows_that_a_killed_driver_costs_nothing() {
    let project = Project::new();
    let output = project.piton(&["demo"]).exits(0).says("How often each step ran");
    let output = output.silent_about("piton -C").silent_about("piton show");
    let rows: Vec<Vec<&str>> = output
        .stderr
        .lines()
        .skip_while(|l| !l.contains("driver killed"))
        .map(|l| l.split_whitespace().collect())
        .filter(|words: &Vec<&str>| words.len() == 3 && words[1].ends_with('x'))
        .collect();
    assert_eq!(rows.len(), 5, "{}", output.stderr);
    for row in &rows {
        assert_eq!(row[1], "1x", "{row:?}: a killed driver costs nothing");
        assert!(["1x", "2x"].contains(&row[2]), "{row:?}: at most the step in flight");
    }
    let again = rows.iter().filter(|row| row[2] == "2x").count();
    assert!(again >= 1, "the step in flight ran again: {rows:?}");
    project.wait_quiet();
    let left: Vec<_> = fs::read_dir(project.outside().join("tmp"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains("demo"))
        .collect();
    assert!(left.is_empty(), "it left {left:?}");
}

/// Lost: the README's first command would fail.
#[test]
fn the_quickstart_runs_and_can_be_run_again() {
    let project = Project::new();
    let examples =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart/plan.toml");
    let plan = fs::read_to_string(examples).unwrap();
    project.write("examples/quickstart/plan.toml", &plan);
    let run = &["run", "examples/quickstart/plan.toml"][..];
    project.piton(run).exits(0).says("is complete").says("1 retry");
    let report = project.read("target/quickstart/report.txt");
    assert!(report.contains("Quickstart, run quickstart-") && report.contains("bolt"), "{report}");
    project.piton(run).exits(0).says("already complete");
    // As its last comment promises: only the report is made again.
    project.remove("target/quickstart/report.txt");
    let again = project.piton(run).exits(0).says("report/main/work");
    again.silent_about("build/words/sort started");
    assert!(project.has("target/quickstart/report.txt"));
}
