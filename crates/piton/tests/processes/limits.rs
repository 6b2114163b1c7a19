//! Limits that end a step: timeout, silence, grace, attempts, time. They hold without a driver.

use super::common::{Project, wait_until};
use super::{RUN, attempts, one_step, outcomes, run};

/// Lost: a hanging step would hold the run for ever, or could not tidy up before it is ended.
#[test]
fn a_timeout_asks_politely_first() {
    let plan = one_step(
        "trap 'echo asked > polite.txt; exit 0' TERM\nwhile :; do sleep 0.02; done",
        "timeout = \"300ms\"\ngrace = \"20s\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("it took longer than its timeout of");
    assert_eq!(project.read("polite.txt"), "asked\n");
    let attempt = &attempts(&project)[0];
    assert_eq!(attempt["class"], "timeout");
    assert_eq!(attempt["outcome"], "failed", "a polite exit 0 is no success");
    project.wait_quiet();
}

/// Lost: whoever looks for the timeout that ended a step would find none in the plan.
#[test]
fn a_budget_that_ends_a_step_is_named() {
    let plan = one_step("sleep 60", "grace = \"20s\"");
    let project = Project::with_plan(&format!("{plan}\n[budgets]\nstep_time = \"300ms\"\n"));
    run(&project).exits(1).says("it took longer than the budget `step_time` of 300ms");
    assert_eq!(attempts(&project)[0]["class"], "timeout");
}

/// Lost: what a step calls to tidy up would be ended with it, and a container or a lock file stay.
#[test]
fn what_a_step_starts_to_tidy_up_is_left_in_peace() {
    let plan = one_step(
        "trap 'sh -c \"sleep 0.5; echo tidy > tidy.txt\"; exit 0' TERM\n\
         while :; do sleep 0.02; done",
        "timeout = \"300ms\"\ngrace = \"20s\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("timeout");
    assert_eq!(project.lines("tidy.txt"), ["tidy"]);
    project.wait_quiet();
}

/// Lost: a step that ignores the polite signal, with all it started, would live on.
#[test]
fn what_ignores_the_polite_signal_is_killed_with_its_tree() {
    let plan = one_step(
        "trap 'echo asked > polite.txt' TERM\n\
         (trap '' TERM; setsid sleep 300) &\n\
         touch begun\nwhile :; do sleep 0.02; done",
        "timeout = \"400ms\"\ngrace = \"150ms\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("timeout");
    assert!(project.has("begun"));
    assert_eq!(project.read("polite.txt"), "asked\n");
    project.wait_quiet();
}

/// Lost: with a dead driver a hanging step would never end.
#[test]
fn a_timeout_holds_without_a_driver() {
    let plan = one_step(
        "trap 'touch asked; exit 3' TERM\ntouch begun\nwhile :; do sleep 0.02; done",
        "timeout = \"1500ms\"\ngrace = \"5s\"",
    );
    let project = Project::with_plan(&plan);
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun");
    driver.kill();
    assert!(!project.has("asked"), "the limit came before the kill");
    project.wait_for("asked");
    project.piton(&["resume", RUN]).exits(1).says("it took longer than its timeout of");
    assert_eq!(attempts(&project)[0]["class"], "timeout");
    project.wait_quiet();
}

/// Lost: a step that hangs in silence would take its whole timeout, or one that talks be ended.
#[test]
fn silence_ends_a_step_and_talk_does_not() {
    let plan = one_step(
        "for n in 1 2 3 4 5 6 7 8 9; do echo $n; sleep 0.1; done\nsleep 300",
        "idle_timeout = \"800ms\"\ngrace = \"5s\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("it was silent for");
    let attempt = &attempts(&project)[0];
    assert_eq!(attempt["class"], "timeout");
    let log = project.piton(&["log", RUN]).exits(0).stdout;
    assert_eq!(log.lines().count(), 9, "it was ended while it talked: {log}");
    project.wait_quiet();
}

/// Lost: retries, waits and restarts together could go on for ever.
#[test]
fn the_budget_of_attempts_ends_every_loop() {
    let plan = one_step("exit 1", "retries = 50\nbackoff = \"1ms\"");
    let project = Project::with_plan(&format!("[budgets]\nattempts = 3\n{}", titled(&plan)));
    run(&project).exits(1).says("the budget attempts is used up (3)");
    assert_eq!(outcomes(&project), ["failed", "failed", "failed"]);
}

/// Lost: a run could take more time than a person gave it.
#[test]
fn the_budget_of_time_ends_what_runs() {
    let plan = one_step("touch begun\nsleep 300", "grace = \"2s\"");
    let project =
        Project::with_plan(&format!("[budgets]\nrun_time = \"400ms\"\n{}", titled(&plan)));
    run(&project).exits(6).says("run_time");
    assert!(project.has("begun"));
    assert_eq!(outcomes(&project), ["interrupted"]);
    project.wait_quiet();
}

/// Lost: a retry would inherit the time its failed predecessor used, and fail for nothing.
#[test]
fn each_attempt_gets_its_own_timeout() {
    let plan = one_step(
        "if [ \"$PITON_ATTEMPT\" = 1 ]; then sleep 300; fi",
        "timeout = \"300ms\"\ngrace = \"2s\"\nretries = 1\nbackoff = \"1ms\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    assert_eq!(outcomes(&project), ["failed", "succeeded"]);
    wait_until("nothing of the first attempt", || project.processes().is_empty());
}

/// The plan without its title, to put a table before it.
fn titled(plan: &str) -> &str {
    plan.strip_prefix("title = \"One\"\n").unwrap()
}
