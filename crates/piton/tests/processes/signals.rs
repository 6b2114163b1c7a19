//! Signals to the driver: what finishes, what is ended, what is said, which exit code.

use piton_core::Event;

use super::common::terminal::Terminal;
use super::common::{Project, Signal, kill, wait_until};
use super::{RUN, UNTIL_GO, attempts, outcomes, two_steps};

fn waiting_step() -> String {
    two_steps(
        &format!("touch begun-$PITON_ATTEMPT\n{UNTIL_GO}\necho s >> ran.txt"),
        "grace = \"2s\"",
    )
}

/// Lost: one Ctrl-C would throw away hours of a step's work, or the run would not stop.
#[test]
fn ctrl_c_once_lets_running_steps_finish() {
    let project = Project::with_plan(&waiting_step());
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    driver.signal(Signal::INT);
    wait_until("it says so", || driver.stderr().contains("waiting for 1 running step"));
    project.write("go", "");
    driver.wait().exits(130).says("next: piton resume r");
    assert_eq!(project.lines("ran.txt"), ["s"], "the step finished, nothing new started");
    assert_eq!(project.status(RUN), "interrupted");
    project.wait_quiet();
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["s", "after"]);
}

/// Lost: an impatient person could only use SIGKILL.
#[test]
fn ctrl_c_twice_ends_the_steps() {
    let project = Project::with_plan(&waiting_step());
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    driver.signal(Signal::INT);
    wait_until("the first is taken", || driver.stderr().contains("waiting for 1 running step"));
    driver.signal(Signal::INT);
    driver.wait().exits(130).says("next: piton resume r");
    assert_eq!(outcomes(&project), ["interrupted"]);
    assert_eq!(project.step_status("P/L/s"), "interrupted");
    project.wait_quiet();
    project.write("go", "");
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(outcomes(&project), ["interrupted", "succeeded"]);
    assert_eq!(project.lines("ran.txt"), ["s", "after"]);
}

/// Lost: a service manager would leave steps behind or lose the reason; so would a closed terminal where
/// the settings say that it stops the run.
#[test]
fn sigterm_and_sighup_that_stops_end_the_steps_and_have_their_codes() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let project = Project::with_plan(&waiting_step());
        project.write("piton.toml", "on_hangup = \"stop\"\n");
        let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
        project.wait_for("begun-1");
        driver.signal(signal);
        driver.wait().exits(code).says("next: piton resume r");
        assert_eq!(outcomes(&project), ["interrupted"]);
        assert!(attempts(&project)[0]["error"].as_str().unwrap().contains("signal"));
        assert_eq!(project.status(RUN), "interrupted");
        project.wait_quiet();
    }
}

/// Lost: a night's work would end with the terminal that it was started from.
#[test]
fn a_hangup_ends_neither_the_steps_nor_the_run() {
    let project = Project::with_plan(&waiting_step());
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    driver.signal(Signal::HUP);
    wait_until("it says so", || driver.stderr().contains("continues in the background"));
    project.write("go", "");
    driver.wait().exits(0);
    assert_eq!(outcomes(&project), ["succeeded"], "the attempt was not repeated");
    assert_eq!(project.lines("ran.txt"), ["s", "after"]);
    assert_eq!(project.status(RUN), "complete");
}

/// Lost: closing a real terminal would end the run, or nobody would learn what happened meanwhile.
#[test]
fn a_closed_terminal_leaves_the_run_to_the_background_and_the_next_one_tells() {
    let project = Project::with_plan(&waiting_step());
    let Some(terminal) = Terminal::start(&project, &format!("run plan.toml --run-id {RUN}")) else {
        return;
    };
    project.wait_for("begun-1");
    // The end of `script` closes its terminal: the system sends SIGHUP to the driver.
    terminal.program.signal(Signal::KILL);
    let closed = || project.sh("find . -name terminal-closed").stdout.contains("terminal-closed");
    wait_until("the driver sees that", closed);
    project.write("go", "");
    wait_until("the run is complete", || project.status(RUN) == "complete");
    assert_eq!(outcomes(&project), ["succeeded"], "the attempt was not repeated");
    assert_eq!(project.lines("ran.txt"), ["s", "after"]);
    let Some(next) = Terminal::start(&project, &format!("status {RUN}")) else { return };
    let told = next.ends(0);
    assert!(told.contains("was closed at") && told.contains("the run continued"), "{told}");
    let Some(later) = Terminal::start(&project, &format!("status {RUN}")) else { return };
    assert!(!later.ends(0).contains("was closed at"), "it is told once");
}

/// Lost: a run whose last step was let finish would be called interrupted.
#[test]
fn a_run_that_completes_while_it_stops_is_complete() {
    let plan = waiting_step().replace("echo after >> ran.txt", "true");
    let only = plan.split("[[phase.lane.step]]\nid = \"after\"").next().unwrap();
    let project = Project::with_plan(only);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    driver.signal(Signal::INT);
    wait_until("it says so", || driver.stderr().contains("waiting for 1 running step"));
    project.write("go", "");
    driver.wait().exits(0);
    assert_eq!(project.status(RUN), "complete");
}

/// Lost: Ctrl-C on a terminal goes to the whole foreground group; steps must not die of it.
#[test]
fn steps_are_not_in_the_group_of_the_driver() {
    let plan = waiting_step().replace("touch begun", "echo $$ > pid\ntouch begun");
    let project = Project::with_plan(&plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    let (own, step) = (group(&driver.pid().to_string()), group(project.read("pid").trim()));
    assert!(own.0 != step.0 && own.1 != step.1, "{own:?} {step:?}");
    project.write("go", "");
    driver.wait().exits(0);
}

/// The process group and the session of a process.
fn group(pid: &str) -> (String, String) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    (fields[2].to_owned(), fields[3].to_owned())
}

/// Lost: a driver that waits for a former keeper's steps to end could only be killed.
#[test]
fn ctrl_c_ends_the_waiting_for_a_keeper_on_its_way_out() {
    let step = format!("trap '' TERM\necho $PPID > keeper\ntouch begun-$PITON_ATTEMPT\n{UNTIL_GO}");
    let project = Project::with_plan(&two_steps(&step, "grace = \"1h\""));
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    driver.kill();
    kill(project.read("keeper").trim().parse().unwrap(), Signal::TERM);
    let log = project.state_dir().join("runs").join(RUN).join("keeper.log");
    let told =
        || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("received a signal"));
    wait_until("the keeper is on its way out", told);
    let waiting = project.spawn(&["resume", RUN]);
    let attached = |event: &Event| matches!(event, Event::DriverAttached(_));
    wait_until("it drives", || project.events(RUN).iter().filter(|e| attached(e)).count() == 2);
    waiting.signal(Signal::INT);
    waiting.wait().exits(130).says("error[interrupted]").says("piton resume");
    project.write("go", "");
    project.wait_quiet();
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["after"]);
}

/// Lost: a machine that shuts down tells steps and driver to go, one after the other; the step that
/// heard it first would have failed, and have used up a retry.
#[test]
fn a_step_told_to_go_just_before_its_driver_is_interrupted() {
    let plan = waiting_step().replace("touch begun", "echo $$ > pid\ntouch begun");
    let project = Project::with_plan(&plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    let step = project.read("pid").trim().parse().unwrap();
    kill(step, Signal::TERM);
    wait_until("the step is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{step}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z")
    });
    driver.signal(Signal::TERM);
    driver.wait().exits(143).says("next: piton resume r");
    assert_eq!(outcomes(&project), ["interrupted"]);
    project.wait_quiet();
    project.write("go", "");
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(outcomes(&project), ["interrupted", "succeeded"]);
}

/// Lost: a step that somebody ended alone would run again and again, and nobody would hear of it.
#[test]
fn a_step_told_to_go_alone_has_failed() {
    let plan = waiting_step().replace("touch begun", "echo $$ > pid\ntouch begun");
    let project = Project::with_plan(&plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    project.wait_for("begun-1");
    kill(project.read("pid").trim().parse().unwrap(), Signal::TERM);
    driver.wait().exits(1).says("ended by signal 15");
    assert_eq!(outcomes(&project), ["failed"]);
}
