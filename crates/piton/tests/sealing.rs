//! Recording artifacts on the real program: trouble of the driver is not the step's, and large files
//! hold up nobody.

mod common;

use std::process::Command;

use common::{PITON, Project, Signal, wait_until};

const MAKES: &str = r#"
[[phase]]
id = "P"
retries = 3
[[phase.lane]]
id = "L"
steps = [
  { id = "make", run = "echo make >> ran.txt; echo 7 > made.txt", artifacts = ["made.txt"] },
  { id = "use", run = "echo use >> ran.txt" },
]
"#;

/// Lost: a moment without file descriptors, or a bad sector, runs a step again that succeeded.
#[test]
fn an_artifact_that_the_driver_can_not_open_runs_no_step_again() {
    if Command::new("strace").arg("-V").output().is_err() {
        // There is nobody to inject errors; `cargo xtask test` names the missing tool.
        return;
    }
    for error in ["EMFILE", "EIO"] {
        for project in [Project::new(), Project::without_git("plain")] {
            project.write("plan.toml", MAKES);
            let inject = format!("inject=openat:error={error}");
            let mut traced = project.command("strace");
            traced.args(["-qq", "-o", "/dev/null", "-e", "trace=openat", "-e", &inject, "-P"]);
            traced.arg(project.root().join("made.txt"));
            traced.args([PITON, "run", "plan.toml", "--run-id", "r"]);
            project.finish(&mut traced).exits(4).says("make succeeded and does not run again, but");
            assert_eq!(project.step_status("P/L/make"), "blocked");
            project.wait_quiet();
            project.piton(&["resume", "r"]).exits(0);
            assert_eq!(project.lines("ran.txt"), ["make", "use"], "{error}");
            assert_eq!(project.step("P/L/make")["attempts"], 1);
        }
    }
}

/// A file that takes minutes to hash, and a lane beside it.
const LARGE: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "make", run = "echo make >> ran.txt; truncate -s 300GB big.bin", artifacts = ["big.bin"] },
  { id = "use", run = "echo use >> ran.txt", inputs = ["big.bin"] },
]
[[phase.lane]]
id = "M"
steps = [
  { id = "one", run = "while [ ! -e go ]; do sleep 0.02; done" },
  { id = "two", run = "echo two >> beside.txt" },
]
"#;

/// Lost: one huge artifact stalls every lane and Ctrl-C, and the step that made it runs again.
#[test]
fn a_huge_artifact_stalls_neither_lanes_nor_ctrl_c() {
    let project = Project::with_plan(LARGE);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    wait_until("it is being hashed", || driver.stderr().contains("P/L/make: hashing"));
    project.write("go", "");
    wait_until("the other lane is done", || driver.stderr().contains("P/M/two finished"));
    driver.signal(Signal::INT);
    let said = driver.wait().exits(130).says("of 300.0 GB");
    said.silent_about("P/L/make finished");
    project.wait_quiet();
    // What was made is recorded as it is found; a resume that hashes it can be interrupted too.
    let resumed = project.spawn(&["resume", "r"]);
    wait_until("it is being hashed again", || resumed.stderr().contains("P/L/make: hashing"));
    resumed.signal(Signal::TERM);
    resumed.wait().exits(143);
    project.sh("truncate -s 1 big.bin").exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["make", "use"]);
    assert_eq!(project.lines("beside.txt"), ["two"]);
    assert_eq!(project.step("P/L/make")["attempts"], 1);
}

/// Lost: an abort waits for minutes until a file is hashed that nobody needs any more.
#[test]
fn a_run_that_hashes_a_huge_artifact_can_be_aborted() {
    let project = Project::with_plan(LARGE);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    wait_until("it is being hashed", || driver.stderr().contains("P/L/make: hashing"));
    project.piton(&["abort", "r"]).exits(0);
    driver.wait().exits(1).silent_about("P/L/make finished");
    assert_eq!(project.status("r"), "aborted");
    assert_ne!(project.step_status("P/L/make"), "running");
    project.wait_quiet();
}
