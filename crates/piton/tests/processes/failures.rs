//! Failures have a class, and the class decides what follows.

use super::common::Project;
use super::{RUN, attempts, one_step, outcomes, run, shown};

/// Lost: a lost network for two seconds at night would end the run.
#[test]
fn a_lost_network_is_waited_for_without_using_retries() {
    let plan = one_step(
        "test \"$PITON_ATTEMPT\" -ge 2 && exit 0\n\
         echo 'fatal: unable to access: Could not resolve host: example.org' >&2\nexit 128",
        "retries = 0",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0).says("network: exit code 128; continues at");
    let attempts = attempts(&project);
    assert_eq!(attempts[0]["class"], "network");
    assert_eq!(attempts[1]["outcome"], "succeeded");
}

/// Lost: a rate limit would use up the retries, or be hammered.
#[test]
fn a_rate_limit_is_waited_for_until_the_reset_it_names() {
    let plan = one_step(
        "test \"$PITON_ATTEMPT\" -ge 2 && exit 0\n\
         echo 'HTTP 429: too many requests, retry after 1s' >&2\nexit 1",
        "retries = 0",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0).says("rate limit:");
    let attempts = attempts(&project);
    assert_eq!(attempts[0]["class"], "rate_limit");
    assert!(attempts[0]["next_at"].is_string(), "it says until when: {attempts:?}");
    assert_eq!(attempts[1]["outcome"], "succeeded");
}

/// Lost: nobody could see that a run is parked, and until when.
#[test]
fn a_parked_run_says_until_when() {
    let plan = one_step("echo 'rate limit reached, try again in 3 hours'; exit 1", "");
    let project = Project::with_plan(&plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    super::common::wait_until("parked", || {
        project.has(".git/piton/ledger.db")
            && project.piton(&["status", RUN, "--json"]).stdout.contains("\"parked\"")
    });
    let status = project.status_json(RUN);
    assert_eq!(status["status"], "parked");
    assert!(status["parked_until"].is_string(), "{status}");
    driver.signal(super::common::Signal::TERM);
    driver.wait().exits(143);
    // Whoever resumes it must not think that it hangs.
    let driver = project.spawn(&["resume", RUN]);
    super::common::wait_until("it says so", || driver.stderr().contains("waiting: P/L/s until "));
    driver.signal(super::common::Signal::TERM);
    driver.wait().exits(143).says("waiting: P/L/s until ");
    // Nor that it goes on when it was ended for good.
    project.piton(&["abort", RUN, "--cancel"]).exits(0);
    project.piton(&["status", RUN]).exits(0).says("s cancelled").silent_about("until");
    let step = project.piton(&["show", &format!("{RUN}/P/L/s")]).exits(0);
    step.says("P/L/s: cancelled");
    let status = project.status_json(RUN);
    assert!(status["parked_until"].is_null() && status["current"].is_null(), "{status}");
}

/// Lost: waiting for a network that never comes back would have no end.
#[test]
fn waiting_is_bounded() {
    let plan = one_step("echo 'connection refused'; exit 1", "");
    let plan = plan.replace("[[phase]]", "[budgets]\nnetwork_wait = \"1s\"\n[[phase]]");
    let project = Project::with_plan(&plan);
    run(&project).exits(1);
    assert_eq!(outcomes(&project), ["failed"]);
}

/// Lost: a failing test that prints of networks would be taken for a network.
#[test]
fn a_failing_test_is_a_test_failure_whatever_it_prints() {
    let plan = one_step(
        "touch worked",
        "test = \"test -e worked && echo 'connection refused' && exit 3\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("test: the test failed: exit code 3");
    assert_eq!(attempts(&project)[0]["class"], "test");
}

/// Lost: the test's failure would not reach the next attempt of the work.
#[test]
fn work_and_test_are_one_attempt() {
    let plan = one_step(
        "echo work $PITON_ATTEMPT >> ran.txt",
        "retries = 1\nbackoff = \"1ms\"\n\
         test = \"echo test $PITON_ATTEMPT >> ran.txt; test $PITON_ATTEMPT = 2\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    assert_eq!(project.lines("ran.txt"), ["work 1", "test 1", "work 2", "test 2"]);
}

/// Lost: a program that is not there would be tried again and again, or the reason be hidden.
#[test]
fn a_program_that_is_not_there_fails_at_once() {
    let plan = one_step("", "retries = 3\nbackoff = \"1ms\"")
        .replace("run = '''\n\n'''", "run = [\"no-such-program-here\", \"--flag\"]");
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("no-such-program-here");
    let attempts = attempts(&project);
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0]["class"], "input");
}

/// Lost: a shell that does not find a command would say less than a person needs.
#[test]
fn a_command_that_the_shell_does_not_find_is_named() {
    let project = Project::with_plan(&one_step("no-such-command-here", ""));
    run(&project).exits(1).says("command not found").says("no-such-command-here");
    assert_eq!(shown(&project)["exit_code"], 127);
}

/// Lost: a step would run in another folder than the plan says, or be tried for nothing.
#[test]
fn a_working_directory_that_is_not_there_fails_at_once() {
    let project = Project::with_plan(&one_step("touch wrong", "dir = \"not/here\"\nretries = 3"));
    run(&project).exits(1).says("not/here");
    assert!(!project.has("wrong"));
    let attempts = attempts(&project);
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0]["class"], "input");
}

/// Lost: a success without its artifact would be taken as done.
#[test]
fn a_missing_artifact_is_a_failure_that_can_be_retried() {
    let plan = one_step(
        "test \"$PITON_ATTEMPT\" -lt 2 || echo made > made.txt",
        "artifacts = [\"made.txt\"]\nretries = 1\nbackoff = \"1ms\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0).says("it succeeded, but artifact made.txt is missing");
    assert_eq!(attempts(&project)[0]["class"], "artifact");
    assert_eq!(outcomes(&project), ["failed", "succeeded"]);
}
