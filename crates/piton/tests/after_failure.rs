//! After a failure, and choosing what runs: retry, skip, abort, policies, selections.

mod common;

use common::{Project, Signal, wait_until};
use piton_core::event::{Event, Outcome};

/// The middle step fails until `mended` is there; a lane and a phase need it.
const PLAN: &str = r#"
[[phase]]
id = "P1"

[[phase.lane]]
id = "A"
steps = [
  { id = "one", run = "echo one >> ran.txt" },
  { id = "two", run = "echo two >> ran.txt; test -e mended" },
  { id = "three", run = "echo three >> ran.txt" },
]

[[phase.lane]]
id = "B"
needs = ["A"]
run = "echo needs >> ran.txt"

[[phase]]
id = "P2"
needs = ["P1"]
run = "echo last >> ran.txt"
"#;

fn failed() -> Project {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(1);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    project.remove("ran.txt");
    project
}

/// If this fails, a failed step is a dead end, or a resume repeats it unasked.
#[test]
fn a_failed_step_is_tried_again_on_request() {
    let project = failed();
    project
        .piton(&["resume"])
        .exits(1)
        .says("piton log r1 --step P1/A/two")
        .says("next: fix this, then piton retry r1");
    assert!(project.lines("ran.txt").is_empty(), "nobody asked for it");
    project.piton(&["retry", "P1/A/one"]).exits(2).says("--again");
    project.piton(&["retry", "nonsense"]).exits(2).says("hint: ");
    project.write("mended", "");
    project.piton(&["retry"]).exits(0).says("P1/A/two").says("piton resume r1");
    project.piton(&["status"]).exits(0).says("interrupted").says("piton resume r1");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["two", "three", "needs", "last"]);
    assert_eq!(project.step("P1/A/two")["attempts"], 2);
}

/// If this fails, a person is told that steps will run which do not, or not why nothing does.
#[test]
fn what_a_resume_says_will_run_is_what_runs() {
    let project = failed();
    let looked = project.piton(&["resume", "--dry-run"]).exits(0);
    looked.says("failed P1/A/two").silent_about("wave 1");
    project.piton(&["resume", "--dry-run", "--json"]).exits(0).says(r#""failed":["P1/A/two"]"#);
    project.piton(&["resume"]).exits(1).says("failed: P1/A/two");
    assert!(project.lines("ran.txt").is_empty());
    project.piton(&["retry", "P1/A/one", "--again"]).exits(0);
    // The step before the failed one runs: it was asked for, and says so.
    let looked = project.piton(&["resume", "--dry-run"]).exits(0);
    looked.says("runs again: P1/A/one: ").says("wave 1\n  P1/A/one");
    let json = project.piton(&["resume", "--json"]).exits(1);
    json.says(r#""rerun":[{"step":"P1/A/one","reason":"#);
    assert_eq!(project.lines("ran.txt"), ["one"]);
}

/// If this fails, a person's retries are bounded by nothing, or a used-up budget has no way on.
#[test]
fn a_retry_beyond_the_budget_waits_until_it_is_raised() {
    let plan = "[[phase]]\nid = \"P\"\nrun = \"echo x >> ran.txt; false\"\nretries = 5\n\
                backoff = \"1ms\"\n[budgets]\nattempts = 2\n";
    let project = Project::with_plan(plan);
    let said = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    said.says("the budget attempts is used up (2)")
        .says("next: raise `attempts` in the plan, then piton retry r");
    project.piton(&["retry", "r"]).exits(0);
    let said = project.piton(&["resume", "r"]).exits(6);
    said.says("budget attempts is used up (2 of 2)")
        .says("next: raise `attempts` in the plan, then piton resume r");
    assert_eq!(project.lines("ran.txt").len(), 2);
    project.write("plan.toml", &plan.replace("attempts = 2", "attempts = 3"));
    project.piton(&["resume", "r"]).exits(1).says("the budget attempts is used up (3)");
    assert_eq!(project.lines("ran.txt").len(), 3);
}

/// If this fails, a step that was left out is said to be finished.
#[test]
fn what_was_skipped_is_not_said_to_be_finished() {
    let project = failed();
    project.piton(&["skip", "r1", "P1/A/two", "--satisfy"]).exits(0);
    project.piton(&["resume", "r1", "--dry-run"]).exits(0).says("1 of 5 steps finished, 1 skipped");
}

/// If this fails, a run that is over is sent on to a budget and a resume that change nothing.
#[test]
fn a_complete_run_gets_no_advice_about_its_budget() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"cat cost > $PITON_OUTPUT\"\n[budgets]\nmoney = \"1.00\"\n",
    );
    project.write("cost", "{\"cost_usd\": 2}");
    let said = project.piton(&["run", "plan.toml"]).exits(0);
    said.says("budget money is used up ($2.00 of $1.00)").silent_about("raise it");
}

/// If this fails, lost evidence is said to be made again while a failure in another lane stops all,
/// or is forgotten until then.
#[test]
fn lost_evidence_behind_a_failure_is_named_and_waits() {
    let project = Project::with_plan(
        r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "A"
steps = [{ id = "make", run = "echo made >> ran.txt; echo x > art", artifacts = ["art"] }]
[[phase.lane]]
id = "B"
needs = ["A"]
run = "test -e mended"
"#,
    );
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project.remove("art");
    project.piton(&["resume"]).exits(1).says("runs again: P/A/make: artifact art is missing");
    // It was recorded that it is to run again, and why; that is still said.
    project.piton(&["resume", "--dry-run"]).exits(0).says("P/A/make: artifact art is missing");
    assert_eq!(project.lines("ran.txt"), ["made"]);
    project.piton(&["resume", "--keep-going"]).exits(1).says("runs again: P/A/make");
    assert_eq!(project.lines("ran.txt"), ["made", "made"]);
}

/// If this fails, work runs that needs what was left out, or nobody is told what waits.
#[test]
fn a_skipped_step_blocks_what_needs_it() {
    let project = failed();
    project
        .piton(&["skip", "one"])
        .exits(2)
        .says("retry r1 P1/A/one --again")
        .silent_about("depend");
    let skipped = project.piton(&["skip", "two", "--json"]).exits(0).says("--satisfy");
    skipped.says(r#""dependents":["P1/B","P2"]"#);
    project.piton(&["resume"]).exits(4).says("--satisfy");
    let left = "skipped P1/B/work: it needs P1/A/two, which was skipped without --satisfy";
    project.piton(&["resume", "--dry-run"]).exits(0).says(left);
    assert_eq!(project.lines("ran.txt"), ["three"], "the lane itself goes on");
    assert_eq!(project.status(""), "blocked");
    assert_eq!(project.step_status("P1/A/two"), "skipped");
    project.piton(&["skip", "two", "--satisfy"]).exits(0);
    project.piton(&["resume"]).exits(0).says("1 skipped");
    assert_eq!(project.lines("ran.txt"), ["three", "needs", "last"]);
}

/// If this fails, a person can't say "go on as if it were done".
#[test]
fn a_skipped_step_may_satisfy_what_needs_it() {
    let project = failed();
    project.piton(&["skip", "r1", "P1/A/two", "--satisfy"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["three", "needs", "last"]);
    assert_eq!(project.status(""), "complete");
    let by = project.events("").into_iter().find_map(|e| match e {
        Event::StepSkipped(e) => Some((e.by, e.satisfy)),
        _ => None,
    });
    assert_eq!(by, Some(("tester".to_owned(), true)));
}

/// If this fails, finished work can't be done again on purpose, or takes too much with it.
#[test]
fn finished_work_runs_again_on_purpose() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    project.piton(&["run", "plan.toml"]).exits(0);
    project.remove("ran.txt");
    project.piton(&["retry", "P1/A/two"]).exits(2);
    project.piton(&["retry", "P1/A/two", "--again"]).exits(0).says("will run again");
    project.piton(&["resume"]).exits(0).says("tester asked to run it again");
    assert_eq!(project.lines("ran.txt"), ["two"]);
    project.remove("ran.txt");
    project.piton(&["retry", "P1/A/two", "--again", "--downstream"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["two", "three", "needs", "last"]);
    project.piton(&["retry", "--again"]).exits(2);
    project.piton(&["retry", "P1/A/two", "--downstream"]).exits(2);
}

/// Two lanes at work that only a file ends.
const BUSY: &str = r#"
[defaults]
grace = "200ms"

[[phase]]
id = "P1"
[[phase.lane]]
id = "A"
run = "echo $PITON_ATTEMPT >> a.txt; while [ ! -e go ]; do sleep 0.02; done; touch survived"
[[phase.lane]]
id = "B"
run = "echo $PITON_ATTEMPT >> b.txt; trap '' TERM; while [ ! -e go ]; do sleep 0.02; done; touch survived"

[[phase]]
id = "P2"
run = "echo later >> ran.txt"
"#;

fn busy(project: &Project) -> common::Driver {
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r1"]);
    wait_until("both lanes", || project.has("a.txt") && project.has("b.txt"));
    driver
}

/// If this fails, an aborted run goes on working behind the person's back.
#[test]
fn an_abort_ends_the_steps_of_a_driven_run() {
    let project = Project::with_plan(BUSY);
    let driver = busy(&project);
    project.piton(&["abort", "-m", "wrong way"]).exits(0);
    driver.wait().exits(1).says("aborted by tester").says("wrong way");
    project.wait_quiet();
    project.write("go", "");
    assert_eq!(project.status(""), "aborted");
    assert!(!project.has("survived") && !project.has("ran.txt"));
    // An abort is not for good.
    project.piton(&["resume", "r1"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["later"]);
    assert_eq!(project.lines("a.txt"), ["1", "2"]);
}

/// If this fails, steps of a run whose driver died can't be stopped but by hand.
#[test]
fn an_abort_ends_the_steps_of_a_run_without_a_driver() {
    let project = Project::with_plan(BUSY);
    let mut driver = busy(&project);
    driver.kill();
    assert!(!project.keepers().is_empty(), "its keeper holds the steps");
    project.piton(&["abort", "r1"]).exits(0);
    project.wait_quiet();
    project.write("go", "");
    assert_eq!(project.status("r1"), "aborted");
    assert!(!project.has("survived"));
    let interrupted = project.events("").into_iter().filter(
        |e| matches!(e, Event::StepFinished(e) if matches!(e.outcome, Outcome::Interrupted { .. })),
    );
    assert_eq!(interrupted.count(), 2, "both attempts have an end in the ledger");
}

/// If this fails, a person is told to wait for a step that ended long ago, or to abort its run.
#[test]
fn a_step_that_ended_without_a_driver_is_not_called_running() {
    let project = Project::with_plan(BUSY);
    let mut driver = busy(&project);
    driver.kill();
    project.piton(&["skip", "r1", "P1/A/work"]).exits(2).says("is running");
    project.write("go", "");
    wait_until("it ends", || project.step("P1/A/work")["exit_code"] == 0);
    for command in ["skip", "retry"] {
        let refused = project.piton(&[command, "r1", "P1/A/work"]).exits(2);
        refused.says("has finished").says("piton resume r1").silent_about("is running");
    }
}

/// If this fails, a person who ends a run waits a minute for a driver that stands still.
#[test]
fn an_abort_does_not_wait_for_a_driver_that_is_stopped() {
    let project = Project::with_plan(BUSY);
    let driver = busy(&project);
    driver.stop_at_rest();
    wait_until("it is stopped", || {
        project.piton(&["doctor"]).exits(0).stdout.contains("which is stopped")
    });
    let said = project.piton(&["abort", "r1"]).exits(1);
    said.says("error[no-answer]").says("is stopped").says("kill -CONT").says("--takeover");
    driver.signal(Signal::CONT);
    driver.wait().exits(1).says("aborted by tester");
    project.wait_quiet();
}

/// If this fails, whoever ends a run in the moment it is resumed is told to take it over instead.
#[test]
fn an_abort_that_meets_a_driver_that_just_came_is_for_that_driver() {
    let project = failed();
    for round in 0..5 {
        let driver = project.spawn(&["resume", "r1"]);
        let ended = project.piton(&["abort", "r1"]);
        assert_ne!(ended.code, 5, "round {round}: {ended:?}");
        driver.wait();
    }
}

/// If this fails, what was ended for good comes back.
#[test]
fn a_cancelled_run_can_not_be_resumed() {
    let project = failed();
    project.piton(&["abort"]).exits(0);
    // What was ended is found without its name where it is to be ended for good.
    project.piton(&["abort", "--cancel"]).exits(0);
    assert_eq!(project.status("r1"), "cancelled");
    project.piton(&["resume", "r1"]).exits(2).says("cancelled").says("--fresh");
    project.piton(&["retry", "r1"]).exits(2).says("cancelled").silent_about("piton resume");
    project.piton(&["resume"]).exits(2);
    project.piton(&["abort", "r1"]).exits(2);
    project.piton(&["retry", "r1", "P1/A/two"]).exits(2);
    // The plan itself is free again.
    project.write("mended", "");
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.lines("ran.txt").len(), 5);
}

/// If this fails, a cancelled run with a living driver goes on.
#[test]
fn a_driven_run_is_cancelled() {
    let project = Project::with_plan(BUSY);
    let driver = busy(&project);
    project.piton(&["abort", "r1", "--cancel"]).exits(0);
    driver.wait().exits(1).says("cancelled by tester");
    project.wait_quiet();
    assert_eq!(project.status("r1"), "cancelled");
    project.piton(&["resume", "r1"]).exits(2);
}

/// A lane that fails beside work that does not depend on it.
const APART: &str = r#"
[[phase]]
id = "P1"
[[phase.lane]]
id = "A"
run = "exit 7"
[[phase.lane]]
id = "B"
steps = [
  { id = "one", run = "while [ ! -e go ]; do sleep 0.02; done; echo one >> ran.txt" },
  { id = "two", run = "echo two >> ran.txt" },
]

[[phase]]
id = "P2"
needs = ["P1"]
run = "echo never >> ran.txt"

[[phase]]
id = "P3"
needs = []
run = "while [ ! -e go ]; do sleep 0.02; done; echo apart >> ran.txt"
"#;

/// Runs it; the other steps go on when the failure is recorded.
fn run_apart(plan: &str, args: &[&str]) -> Vec<String> {
    let project = Project::with_plan(plan);
    let driver = project.spawn(&[&["run", "plan.toml"], args].concat());
    wait_until("the failure", || driver.stderr().contains("P1/A/work failed"));
    project.write("go", "");
    driver.wait().exits(1).says("exit code 7");
    assert_eq!(project.status(""), "failed");
    let mut lines = project.lines("ran.txt");
    lines.sort();
    lines
}

/// If this fails, a failure stops too little or too much.
#[test]
fn the_failure_policy_decides_what_still_runs() {
    assert_eq!(run_apart(APART, &[]), ["apart", "one"], "running steps finish, nothing starts");
    assert_eq!(run_apart(APART, &["--keep-going"]), ["apart", "one", "two"]);
    let plan = format!("on_failure = \"continue\"\n{APART}");
    assert_eq!(run_apart(&plan, &[]), ["apart", "one", "two"]);
}

/// If this fails, a person can't try one part of a plan first.
#[test]
fn a_selection_runs_and_the_rest_follows_later() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    project.piton(&["run", "plan.toml", "--lane", "P1/A"]).exits(0).says("piton resume");
    assert_eq!(project.lines("ran.txt"), ["one", "two", "three"]);
    assert_ne!(project.status(""), "complete");
    project.piton(&["resume", "--phase", "P1"]).exits(0);
    assert_eq!(project.lines("ran.txt").last().map(String::as_str), Some("needs"));
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.status(""), "complete");
    // What does not exist is not silently nothing.
    project.piton(&["resume", "--lane", "P1/A", "--phase", "P2"]).exits(2).says("P1/A");
    project.piton(&["run", "plan.toml", "--fresh", "--lane", "P9/A"]).exits(2).says("P9");
    for (option, name) in [("--lane", "Z"), ("--phase", "P9")] {
        project.piton(&["run", "plan.toml", "--fresh", option, name]).exits(2).says(name);
    }
    assert_eq!(project.lines("ran.txt").len(), 5);
}

/// If this fails, `--jobs` does not bound how much runs at once.
#[test]
fn jobs_bound_what_runs_at_once() {
    let lane = |n: u32| {
        let work = "mkdir one-at-a-time && sleep 0.03 && rmdir one-at-a-time";
        format!("[[phase.lane]]\nid = \"L{n}\"\nrun = \"{work}\"\n")
    };
    let lanes = [0, 1, 2, 3].map(lane).concat();
    let project = Project::with_plan(&format!("[[phase]]\nid = \"P1\"\n{lanes}"));
    project.piton(&["run", "plan.toml", "--jobs", "1"]).exits(0);
    project.piton(&["run", "plan.toml", "--jobs", "0"]).exits(2);
    // With room for all, all are at work together.
    let meet = lanes.replace(
        "mkdir one-at-a-time && sleep 0.03 && rmdir one-at-a-time",
        "touch here.$PITON_LANE; while [ $(ls here.* | wc -l) -lt 4 ]; do sleep 0.02; done",
    );
    project.write("meet.toml", &format!("[[phase]]\nid = \"P1\"\n{meet}"));
    project.piton(&["run", "meet.toml", "--jobs", "4"]).exits(0);
}

/// If this fails, `--retries` does not reach the steps.
#[test]
fn retries_may_be_given_on_the_command_line() {
    let plan = "[[phase]]\nid = \"P1\"\nbackoff = \"1ms\"\nrun = \"echo $PITON_ATTEMPT >> ran.txt; exit 1\"\n";
    let project = Project::with_plan(plan);
    project.piton(&["run", "plan.toml", "--retries", "2"]).exits(1).says("2 retries");
    assert_eq!(project.lines("ran.txt"), ["1", "2", "3"]);
}

/// If this fails, a run that was told to go on after failures stops at them when it is resumed.
#[test]
fn going_on_after_failures_is_remembered() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"A\"\nrun = \"false\"\n\
         [[phase.lane]]\nid = \"B\"\ngate = \"Go\"\nrun = \"echo b >> ran.txt\"\n",
    );
    project.piton(&["run", "plan.toml", "--run-id", "r", "--keep-going"]).exits(1);
    project.piton(&["approve", "r", "P/B"]).exits(0);
    project.piton(&["resume", "r"]).exits(1);
    assert_eq!(project.lines("ran.txt"), ["b"]);
}
