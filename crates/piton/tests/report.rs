//! `piton report`: the course of real runs, failed, approved, killed and resumed, as pages and as JSON.
//!
//! Not here: what is computed from durations (unit tests of the view tell whole stories), and how a page
//! looks in a browser (`cargo xtask report-check`).

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use std::fs;

use common::Project;
use serde_json::Value;

/// A lane that fails once, a gate, and a step that waits for a file.
const PLAN: &str = r#"
title = "Nightly <b>"

[[phase]]
id = "build"
[[phase.lane]]
id = "api"
steps = [
  { id = "make", run = "echo made > made.txt", artifacts = ["made.txt"] },
  { id = "test", run = "echo '<i>no</i> luck'; test $PITON_ATTEMPT -ge 2", retries = 1, backoff = "1ms" },
]
[[phase.lane]]
id = "web"
run = "echo page"

[[phase]]
id = "release"
gate = "Release approval"
run = "touch begun; while [ ! -e go ]; do sleep 0.02; done"
"#;

/// A run that failed once, was approved, killed with all its processes, and resumed.
#[track_caller]
fn eventful() -> Project {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.piton(&["approve", "r", "release", "--no-resume", "-m", "ship | it"]).exits(0);
    let mut driver = project.spawn(&["resume", "r"]);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    project
}

fn json(project: &Project, args: &[&str]) -> Value {
    let words = [&["report", "--json"], args].concat();
    serde_json::from_str(&project.piton(&words).exits(0).stdout).unwrap()
}

/// Lost: nobody could show afterwards what a run did, who let it, and what a crash cost.
#[test]
fn a_report_tells_the_course_of_a_run() {
    let project = eventful();
    let markdown = project.piton(&["report"]).exits(0).stdout;
    for words in [
        "# Nightly &lt;b>",
        "- status: **complete**",
        "### build/api/test, attempt 1",
        "<i>no</i> luck\n```",
        "| driver killed |",
        "| tester | approved | Release approval (release) | ship \\| it |",
        "| `made.txt` | build/api/make | `",
        "| Saved by resuming |",
    ] {
        assert!(markdown.contains(words), "no `{words}` in\n{markdown}");
    }
    let html = project.piton(&["report", "r", "--format", "html"]).exits(0).stdout;
    for words in ["<!doctype html>", "<svg class=\"line\"", "Nightly &lt;b&gt;", "driver killed"] {
        assert!(html.contains(words), "no `{words}` in\n{html}");
    }
    for words in ["<script", "<i>", "<b>", "http:", "https:"] {
        assert!(!html.contains(words), "`{words}` in\n{html}");
    }
}

/// Lost: a program would have to read prose.
#[test]
fn json_has_the_figures() {
    let project = eventful();
    let report = json(&project, &["r"]);
    assert_eq!(report["status"], "complete");
    assert_eq!(report["stops"][0]["cause"], "killed");
    assert_eq!(report["saved"]["continued"], 1);
    let saved = report["saved"]["saved_ms"].as_i64().unwrap();
    assert_eq!(saved, report["stops"][0]["kept_ms"].as_i64().unwrap());
    let attempts = &report["phases"][0]["lanes"][0]["steps"][1]["attempts"];
    assert_eq!(
        (&attempts[0]["outcome"], &attempts[1]["outcome"]),
        (&"failed".into(), &"succeeded".into())
    );
    let artifact = &report["artifacts"][0];
    assert_eq!(artifact["path"], "made.txt");
    let hash = project.sh("sha256sum made.txt").exits(0).stdout;
    assert_eq!(artifact["sha256"], hash.split(' ').next().unwrap());
    assert_eq!(report["decisions"][0]["by"], "tester");
    assert_eq!(report["waits"][0]["name"], "Release approval");
}

/// Lost: a report could be half written, or written where nobody asked for it.
#[test]
fn a_file_is_replaced_as_a_whole() {
    let project = eventful();
    let listed = || {
        let entries = fs::read_dir(project.root().join("my reports")).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    project.write("my reports/the run.html", "old");
    let said = project.piton(&["report", "-o", "my reports/the run.html"]).exits(0);
    assert_eq!(said.stdout, "");
    said.says("wrote the report of run r to my reports/the run.html");
    assert!(project.read("my reports/the run.html").starts_with("<!doctype html>"));
    assert_eq!(listed(), ["the run.html"]);
    project.piton(&["report", "-o", "my reports/the run.html", "--format", "md"]).exits(0);
    assert!(project.read("my reports/the run.html").starts_with("# Nightly"));
    let answer = json(&project, &["-o", "my reports/the run.html"]);
    assert_eq!((&answer["run_id"], &answer["format"]), (&"r".into(), &"html".into()));
    // A path is read from where the command was called.
    project.piton_in(&project.root().join("my reports"), &["report", "-o", "b.md"]).exits(0);
    assert!(project.read("my reports/b.md").starts_with("# Nightly"));
    project.piton(&["report", "-o", "none/a.md"]).exits(1).says("error[report-file]");
    project.piton(&["report", "-o", "my reports"]).exits(1).says("error[report-file]");
    assert_eq!(project.run_dirs().len(), 1);
}

/// Lost: a mistake would look like an empty report.
#[test]
fn what_cannot_be_reported_is_refused() {
    let project = eventful();
    project.piton(&["report", "other"]).exits(2).says("error[no-run]").says("piton runs");
    project.piton(&["report", "--format", "pdf"]).exits(2).says("md, html");
    Project::new().piton(&["report"]).exits(2).says("error[no-ledger]");
}

/// Lost: a reader that has seen enough would be answered with an error.
#[test]
fn a_reader_may_leave() {
    let project = eventful();
    let line = "(\"$PROGRAM\" report --format html 2>err; echo $? >code) | head -c 20 >/dev/null";
    project.sh(line).exits(0);
    assert_eq!((project.read("code").trim(), project.read("err").as_str()), ("0", ""));
}

/// Lost: only complete runs could be looked back at.
#[test]
fn a_report_can_be_made_at_any_time() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.piton(&["report"]).exits(0).says("**waiting**").says("still waiting");
    project.piton(&["approve", "r", "release", "--no-resume"]).exits(0);
    let mut driver = project.spawn(&["resume", "r"]);
    project.wait_for("begun");
    project.piton(&["report"]).exits(0).says("**running**").says("| running |");
    driver.kill();
    project.piton(&["report"]).exits(0).says("**interrupted**");
    project.piton(&["abort", "r"]).exits(0);
    project.piton(&["report"]).exits(0).says("**aborted**").says("aborted the run");
    project.write("go", "");
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "s"]).exits(3);
    project.piton(&["report", "r"]).exits(0).says("**archived**");
    project.piton(&["report"]).exits(0).says("- run: s");
    // Broken settings keep nobody from looking.
    project.write("piton.toml", "[[[");
    project.piton(&["report"]).exits(0).says("- run: s");

    let failed = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"echo no luck; exit 7\"\n");
    failed.piton(&["run", "plan.toml", "--run-id", "f"]).exits(1);
    let report = json(&failed, &[]);
    assert_eq!((&report["status"], &report["saved"]["continued"]), (&"failed".into(), &0.into()));
    assert_eq!(report["failures"][0]["lines"][0], "no luck");
}

/// Lost: a report that hides that the plan itself was changed on the way.
#[test]
fn a_report_tells_of_replans() {
    let project = Project::with_plan(
        "[replan]\nrun = \"sh revise.sh\"\n\n[[phase]]\nid = \"P1\"\nrun = \"true\"\n\n\
         [[phase]]\nid = \"P2\"\nrun = \"echo no schema; exit 86\"\n",
    );
    project.write("revise.sh", "sed -i 's/exit 86/true/' plan.toml\n");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    let report = json(&project, &["r"]);
    let replan = &report["replans"][0];
    assert_eq!((&replan["phase"], &replan["trigger"]), (&"P2".into(), &"requested".into()));
    assert_eq!(replan["outcome"], "replanned");
    assert!(replan["words"][0].as_str().unwrap().contains("exit 86"), "{replan}");
    assert_eq!(report["stops"][0]["cause"], "replan");
    let markdown = project.piton(&["report"]).exits(0).stdout;
    for words in ["## Replans", "| P2 | P2/main/work: it asks for a replan", "| replanned |"] {
        assert!(markdown.contains(words), "no `{words}` in\n{markdown}");
    }
    let html = project.piton(&["report", "--format", "html"]).exits(0).stdout;
    for words in ["<h2>Replans", "it asks for a replan"] {
        assert!(html.contains(words), "no `{words}` in\n{html}");
    }
}
