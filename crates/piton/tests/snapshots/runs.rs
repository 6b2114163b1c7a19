//! Runs from their start to their end, and what is shown of them afterwards.

use super::common::{Signal, kill, wait_until};
use super::screen::{PLAN, Screen};

/// Lost: nobody would have read what an ordinary run says, and what is shown of it.
#[test]
fn an_ordinary_run() {
    let mut screen = Screen::with_plan(PLAN);
    screen.piton("run --dry-run").is("run-dry");
    screen.piton("run --jobs 1 --run-id nightly").is("run");
    screen.piton("status").is("status-complete");
    screen.piton("runs").is("runs");
    screen.piton("log").piton("log --lane web").is("log");
    screen.piton("show").is("show-run");
    screen.piton("show nightly/build").is("show-phase");
    screen.piton("show nightly/build/api").is("show-lane");
    screen.piton("show nightly/build/api/compile").is("show-step");
    screen.quietly("checkpoint nightly -m later");
    screen.piton("run").is("run-again");
    screen.piton("resume nightly").is("resume-complete");
}

/// Lost: what an agent is told when it takes over would be unread by people.
#[test]
fn a_brief_of_a_failed_run() {
    let plan = PLAN.replace("echo 41 tests passed", "echo test api::answers ... FAILED; exit 1");
    let mut screen = Screen::with_plan(&plan);
    screen.quietly("run --run-id nightly --jobs 1");
    screen.quietly("checkpoint -m \"the page is final\"");
    screen.piton("brief").piton("brief --tokens 200").piton("brief --tokens 5").is("brief");
}

/// Lost: the first thing a person sees in a project without runs would be unread.
#[test]
fn before_the_first_run() {
    let mut screen = Screen::new();
    screen.piton("runs").piton("status").piton("log").piton("show").piton("resume");
    screen
        .piton("run")
        .piton("gc --dry-run")
        .piton("undo")
        .piton("attach")
        .is("before-the-first-run");
    screen.piton("doctor").is("doctor-empty");
}

/// Lost: what failed, why, and what to do then would be unread.
#[test]
fn a_step_that_fails() {
    let plan = PLAN.replace("echo 41 tests passed", "echo 3 tests failed; exit 1");
    let mut screen = Screen::with_plan(&plan);
    screen.piton("run --jobs 1 --run-id nightly").is("run-failed");
    screen.piton("status").is("status-failed");
    screen.piton("show nightly/build/api/test").is("show-step-failed");
    screen.piton("resume").is("resume-failed");
    screen.piton("retry").is("retry");
    screen.piton("skip test").is("skip");
    screen.piton("abort").is("abort");
    screen.piton("abort --cancel -m 'not needed'").piton("status").is("abort-cancel");
}

/// Lost: a retry would be unread, and a failure that it did not help against.
#[test]
fn a_step_that_is_retried() {
    let plan = r#"
[defaults]
backoff = "1ms"

[[phase]]
id = "P1"
retries = 2
run = "test \"$PITON_ATTEMPT\" -ge 2 || { echo connection reset; exit 7; }"

[[phase]]
id = "P2"
retries = 1
run = "echo broken >&2; exit 3"
"#;
    let mut screen = Screen::with_plan(plan);
    screen.piton("run --run-id r1").piton("status").is("run-retried");
}

/// Lost: what a person reads after Ctrl-C and after a crash would be unread.
#[test]
fn a_run_that_is_interrupted_and_killed() {
    let plan = r#"
[[phase]]
id = "P1"

[[phase.lane]]
id = "main"
steps = [
  { id = "first", run = "echo first" },
  { id = "second", run = "touch started; while [ ! -e go ]; do sleep 0.02; done" },
  { id = "third", run = "echo third" },
]
"#;
    let mut screen = Screen::with_plan(plan);
    screen.piton("run --run-id r1 --detach").is("run-detached");
    screen.project.wait_for("started");
    screen.piton("status").is("status-running");
    screen.piton("runs").is("runs-running");
    screen.piton("resume").piton("run").piton("rollback").piton("restore before_lane_start README");
    screen.piton("gc --dry-run").is("run-driven");
    let pid = screen.project.status_json("")["driver"]["pid"].as_u64().unwrap();
    let pid = u32::try_from(pid).unwrap();
    kill(pid, Signal::KILL);
    wait_until("the driver is gone", || screen.project.processes().iter().all(|p| p.pid != pid));
    screen.note("the driver is killed").piton("status").is("status-driver-killed");
    screen.project.kill_all();
    screen.note("everything is killed").piton("status").is("status-killed");
    screen.project.write("go", "");
    screen.piton("resume").is("resume-killed");
}

/// Lost: what Ctrl-C says would be unread.
#[test]
fn a_run_that_is_interrupted() {
    let plan =
        "[[phase]]\nid = \"P1\"\nrun = \"touch started; while [ ! -e go ]; do sleep 0.02; done\"\n";
    let mut screen = Screen::with_plan(plan);
    screen.interrupted("run --run-id r1", "started").is("run-interrupted");
    screen.piton("status").is("status-interrupted");
    screen.project.write("go", "");
    screen.piton("resume").is("resume-interrupted");
}

/// Lost: what a person reads of replans, and where one is refused, would be unread.
#[test]
fn a_run_that_is_replanned() {
    let plan = r#"
[replan]
run = "sh revise.sh"

[[phase]]
id = "P1"
run = "echo no schema yet; exit 86"

[[phase]]
id = "P2"
complexity = 9
run = "echo done"
"#;
    let mut screen = Screen::with_plan(plan);
    let revise = "sed -i 's/echo no.*86/echo a schema/' \"$PITON_PLAN\"\n";
    screen.project.write("revise.sh", revise);
    screen.piton("run --run-id r1").is("run-replanned");
    screen.piton("status").piton("waiting").is("status-replanned");
    screen.piton("undo --list").piton("replan P1 --reason late").is("replan-refused");
    screen.piton("replan P2 --reason 'split it' --run r1").is("replan");
}
