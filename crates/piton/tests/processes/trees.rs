//! What steps leave running: daemons are ended and named when the run ends, unless they are kept.

use super::common::{Process, Project, Signal, kill, wait_until};
use super::{RUN, attempts, one_step, outcomes, run, two_steps};

/// A daemon as they are made: two forks, a session of its own, no output.
const DAEMON: &str = "(setsid sleep 300 </dev/null >/dev/null 2>&1 &)";

fn daemons(project: &Project) -> Vec<Process> {
    let daemon = |p: &Process| p.command.trim() == "sleep 300";
    project.processes().into_iter().filter(daemon).collect()
}

/// Lost: every run would leave daemons behind, and nobody would know.
#[test]
fn a_daemon_lives_for_the_steps_after_it_and_is_ended_with_the_run() {
    let daemon = "(setsid sh -c \"echo \\$\\$ > pid; exec sleep 300\" </dev/null >/dev/null 2>&1 &)\n\
                  while [ ! -s pid ]; do sleep 0.02; done";
    let after = "kill -0 $(cat pid) && echo there >> ran.txt";
    let plan = two_steps(daemon, "").replace("echo after >> ran.txt", after);
    let project = Project::with_plan(&plan);
    run(&project).exits(0).says("ended processes that steps left running: sleep (");
    assert_eq!(project.lines("ran.txt"), ["there"]);
    project.wait_quiet();
}

/// Lost: a database that a person wants to stay would be ended.
#[test]
fn a_daemon_that_is_kept_stays() {
    let project = Project::with_plan(&one_step(DAEMON, "keep = [\"sleep\"]"));
    run(&project).exits(0).silent_about("left running");
    wait_until("the keeper is gone", || project.keepers().is_empty());
    let left = daemons(&project);
    assert_eq!(left.len(), 1, "{left:?}");
    project.piton(&["doctor"]).exits(0).says("no problems found");
    kill(left[0].pid, Signal::KILL);
    project.wait_quiet();
}

/// Lost: a database that a person wants to stay would be ended when the run goes on after a gate.
#[test]
fn a_daemon_that_is_kept_outlives_a_resume() {
    let gate = "[[phase]]\nid = \"Q\"\ngate = \"Go\"\nrun = \"echo on > on.txt\"\n";
    let project = Project::with_plan(&(one_step(DAEMON, "keep = [\"sleep\"]") + gate));
    run(&project).exits(3);
    let pid = daemons(&project)[0].pid;
    project.piton(&["approve", "Q"]).exits(0);
    project.piton(&["resume"]).exits(0).silent_about("sleep");
    assert!(project.has("on.txt"));
    assert_eq!(daemons(&project).iter().map(|d| d.pid).collect::<Vec<_>>(), [pid]);
    kill(pid, Signal::KILL);
}

/// Lost: a step that hides in a session of its own would survive its end.
#[test]
fn ending_a_step_ends_sessions_and_daemons_of_it() {
    let plan = one_step(
        &format!(
            "{DAEMON}\nsetsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' &\ntouch begun\nsleep 300"
        ),
        "grace = \"300ms\"",
    );
    let project = Project::with_plan(&plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun");
    wait_until("the daemon", || !daemons(&project).is_empty());
    driver.signal(Signal::TERM);
    driver.wait().exits(143);
    project.wait_quiet();
    assert_eq!(outcomes(&project), ["interrupted"]);
}

/// Lost: a step killed by a person or the kernel would count as its own failure.
#[test]
fn a_step_killed_from_outside_was_interrupted_and_runs_again() {
    let plan = one_step(
        "echo $$ > pid.tmp && mv pid.tmp pid-$PITON_ATTEMPT\n\
         test \"$PITON_ATTEMPT\" -ge 2 || sleep 300",
        "",
    );
    let project = Project::with_plan(&plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("pid-1");
    kill(project.read("pid-1").trim().parse().unwrap(), Signal::KILL);
    driver.wait().exits(0).says("killed from outside");
    assert_eq!(outcomes(&project), ["interrupted", "succeeded"]);
    assert_eq!(attempts(&project)[0]["signal"], 9);
    project.wait_quiet();
}

/// Lost: a step that is killed each time would run for ever.
#[test]
fn restarts_of_a_killed_step_are_bounded() {
    let plan = one_step("echo x >> ran.txt; kill -KILL $$", "");
    let plan = plan.replace("[[phase]]", "[budgets]\nrestarts = 2\n[[phase]]");
    let project = Project::with_plan(&plan);
    run(&project).exits(1).says("the budget restarts is used up (2)");
    assert_eq!(project.lines("ran.txt").len(), 3);
    assert_eq!(attempts(&project)[2]["class"], "budget");
}
