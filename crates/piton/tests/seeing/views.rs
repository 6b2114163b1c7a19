//! Status, runs, show and log in words.

use super::common::{Project, wait_until};
use super::{PLAN, complete, failed, waiting};

/// Lost: nobody could see where a run stands.
#[test]
fn status_tells_of_every_step() {
    let project = complete();
    let status = project.piton(&["status", "r"]).exits(0).stdout;
    for word in ["r", "complete", "P", "A", "make", "bad", "B", "Q"] {
        assert!(status.contains(word), "no {word} in\n{status}");
    }
    let newest = project.piton(&["status"]).exits(0).stdout;
    assert_eq!(newest.lines().next(), status.lines().next(), "without a name the newest is meant");
    let prefixed = Project::with_plan(PLAN);
    prefixed.piton(&["run", "plan.toml", "--run-id", "long-name"]).exits(0);
    prefixed.piton(&["status", "long"]).exits(0).says("long-name");
    prefixed.piton(&["status", "other"]).exits(2).says("error[no-run]").says("piton runs");
}

/// Lost: a failed or waiting run would not say what to do.
#[test]
fn status_says_why_it_stands_still() {
    waiting().piton(&["status"]).exits(0).says("waiting").says("Go?");
    failed().piton(&["status"]).exits(0).says("failed").says("exit code 7");
}

/// Lost: a run whose driver was killed would look as if it went on.
#[test]
fn a_run_without_its_driver_is_interrupted() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"touch begun; while [ ! -e go ]; do sleep 0.02; done\"\n",
    );
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    project.piton(&["status"]).exits(0).says("running");
    driver.kill();
    project.piton(&["status"]).exits(0).says("interrupted");
    project.piton(&["runs"]).exits(0).says("interrupted");
    project.write("go", "");
    project.piton(&["resume"]).exits(0);
    project.piton(&["status"]).exits(0).says("complete");
}

/// Lost: a person who watches would not see the end, or watch for ever.
#[test]
fn watching_the_status_ends_with_the_run() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"touch begun; while [ ! -e go ]; do sleep 0.02; done\"\n",
    );
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    let watcher = project.spawn(&["status", "--watch"]);
    wait_until("it shows the run", || watcher.stdout().contains("running"));
    project.write("go", "");
    driver.wait().exits(0);
    watcher.wait().exits(0).says("complete");
}

/// Lost: runs of the past could not be found again.
#[test]
fn runs_are_listed_newest_first() {
    let project = complete();
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "second"]).exits(0);
    let list = project.piton(&["runs"]).exits(0).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3, "{list}");
    assert!(lines[0].starts_with("RUN") && lines[1].starts_with("second"), "{list}");
    assert!(lines[2].starts_with("r ") && lines[2].contains("4/4"), "{list}");
    Project::new().piton(&["runs"]).exits(0).says("no runs here yet");
}

/// Lost: what a run, phase, lane or step did could not be looked up.
#[test]
fn show_tells_of_a_run_and_of_each_part() {
    let project = complete();
    project.piton(&["show", "r"]).exits(0).says("plan.toml (sha256").says("budgets used");
    let phase = project.piton(&["show", "r/P"]).exits(0).says("make").stdout;
    assert!(!phase.contains('Q'), "{phase}");
    let lane = project.piton(&["show", "r/P/A"]).exits(0).says("bad").stdout;
    assert!(!lane.contains('B'), "{lane}");
    let step = project.piton(&["show", "r/P/A/bad"]).exits(0);
    step.says("attempt 1: failed, exit 1").says("attempt 2: succeeded").says("1 retry");
    project.piton(&["show", "r/P/A/make"]).exits(0).says("made.txt");
    project.piton(&["show", "r/P/A/none"]).exits(2).says("error[no-step]");
}

/// Lost: output of a step could not be found among that of others.
#[test]
fn log_shows_what_was_asked_for() {
    let project = complete();
    let log = |args: &[&str]| {
        let all: Vec<&str> = [&["log", "r"], args].concat();
        project.piton(&all).exits(0).stdout
    };
    let all = log(&[]);
    for line in ["making", "careful", "try 1", "try 2", "from B", "last"] {
        assert!(all.lines().any(|l| l == line), "no `{line}` in\n{all}");
    }
    assert!(all.contains("== P/A/bad attempt 1 (failed) =="), "{all}");
    assert_eq!(log(&["--lane", "B"]), "from B\n");
    assert_eq!(log(&["--lane", "P/B"]), "from B\n");
    assert_eq!(log(&["--step", "bad", "--attempt", "2"]), "try 2\n");
    assert_eq!(log(&["--step", "P/A/make", "--stream", "stderr"]), "careful\n");
    assert_eq!(log(&["--step", "P/A/make", "--stream", "stdout"]), "making\n");
    project.piton(&["log", "r", "--step", "nope"]).exits(2).says("error[no-step]");
}

/// Lost: a person could not follow the output of a running step.
#[test]
fn log_follows_until_the_run_ends() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"echo early; touch begun; while [ ! -e go ]; do sleep 0.02; done; echo late\"\n",
    );
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    let follower = project.spawn(&["log", "r", "--follow"]);
    wait_until("the early line", || follower.stdout().contains("early"));
    assert!(!follower.stdout().contains("late"));
    project.write("go", "");
    driver.wait().exits(0);
    follower.wait().exits(0).says("late");
}

/// Lost: a run in a script or CI log would be silent, or full of escapes.
#[test]
fn without_a_terminal_each_event_is_a_plain_line() {
    let project = Project::with_plan(PLAN);
    let output = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    assert_eq!(output.stdout, "", "stdout is for data");
    for words in [
        "run r (Sights): 4 steps",
        "P/A/make started",
        "P/A/make finished in",
        "P/A/bad failed: exit code 1; retry",
        "P/A/bad started (attempt 2)",
        "run r is complete",
        "4 steps run",
    ] {
        let found = output.stderr.lines().filter(|l| l.contains(words)).count();
        assert!(found >= 1, "no `{words}` in\n{}", output.stderr);
    }
    assert!(!output.stderr.contains('\u{1b}') && !output.stderr.contains('\r'));
}

/// Lost: an error would leave a person alone with its name.
#[test]
fn every_code_is_explained() {
    let project = Project::new();
    let list = project.piton(&["explain"]).exits(0).stdout;
    assert!(list.lines().count() > 30, "{list}");
    for line in list.lines() {
        let code = line.split_whitespace().next().unwrap();
        project.piton(&["explain", code]).exits(0).says("next: ");
    }
    project.piton(&["explain", "error[no-run]:"]).exits(0).says("no-run:");
    project.piton(&["explain", "no-rum"]).exits(2).says("did you mean `no-run`?");
}

/// Lost: shells would not complete commands.
#[test]
fn completions_for_three_shells() {
    let project = Project::new();
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef piton"), ("fish", "complete -c piton")]
    {
        let script = project.piton(&["completions", shell]).exits(0).says(sign).stdout;
        assert!(script.contains("takeover") && !script.contains("__keeper"), "{shell}");
    }
    project.piton(&["completions", "tcsh"]).exits(2);
}
