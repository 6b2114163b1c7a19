//! What only a cgroup gives away: daemons without environment, session and parents, when driver and
//! keeper were killed. Skipped, with the reason on standard error, where cgroups are not writable.

use std::fs;

use piton_process::cgroup;

use super::common::{Project, Signal, kill, wait_until};
use super::{RUN, UNTIL_GO, one_step, run};

/// A daemon that works on in the first attempt and hides as well as it can.
const HIDDEN: &str = "(env -i setsid sh -c 'echo $$ > hidden.tmp; mv hidden.tmp hidden; \
                      exec sleep 300' </dev/null >/dev/null 2>&1 &)";

fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

fn hidden(project: &Project) -> u32 {
    project.wait_for("hidden");
    project.read("hidden").trim().parse().unwrap()
}

/// Whether keepers here have no cgroup; says why.
fn without_cgroups() -> bool {
    let project = Project::with_plan(&one_step("true", ""));
    run(&project).exits(0);
    let dir = project.state_dir().join("runs").join(RUN);
    let Err(reason) = cgroup::used(&dir).unwrap() else {
        project.piton(&["doctor"]).exits(0).says("cgroups: used");
        return false;
    };
    project.piton(&["doctor"]).exits(0).says("cgroups: not used: ").says(&reason.to_string());
    #[expect(clippy::print_stderr, reason = "whoever reads the results must know")]
    {
        eprintln!("skipped, keepers have no cgroup here: {reason}");
    }
    true
}

/// Lost: a daemon of the first attempt would work on beside the second, unseen.
#[test]
fn a_daemon_that_hides_is_ended_when_driver_and_keeper_were_killed() {
    if without_cgroups() {
        return;
    }
    let step = format!("if [ $PITON_ATTEMPT = 1 ]; then {HIDDEN}; {UNTIL_GO}; fi");
    let project = Project::with_plan(&one_step(&step, ""));
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", RUN]);
    let pid = hidden(&project);
    assert_eq!(project.cgroups().len(), 1);
    driver.kill();
    let keeper = project.keepers()[0].pid;
    kill(keeper, Signal::KILL);
    wait_until("the keeper is dead", || !lives(keeper));
    assert!(lives(pid));
    project.piton(&["doctor"]).exits(0).says(&format!("left process {pid} (sleep)"));
    project.piton(&["resume"]).exits(0).says(&format!("sleep ({pid})"));
    assert!(!lives(pid));
    assert!(project.cgroups().is_empty());
    project.wait_quiet();
}

/// Lost: a database that a person wants to stay would be ended; or what is left of it would stay
/// until the machine restarts.
#[test]
fn a_kept_daemon_that_hides_stays_and_gc_removes_its_group() {
    if without_cgroups() {
        return;
    }
    let gate = "[[phase]]\nid = \"Q\"\ngate = \"Go\"\nrun = \"echo on > on.txt\"\n";
    let project = Project::with_plan(&(one_step(HIDDEN, "keep = [\"sleep\"]") + gate));
    run(&project).exits(3);
    let pid = hidden(&project);
    project.piton(&["approve", "Q"]).exits(0);
    project.piton(&["resume"]).exits(0).silent_about("sleep");
    assert!(lives(pid) && project.has("on.txt"));
    project.piton(&["doctor"]).exits(0).says("no problems found");
    assert_eq!(project.cgroups().len(), 1);
    kill(pid, Signal::KILL);
    wait_until("it is dead", || !lives(pid));
    project.piton(&["gc", "--dry-run"]).exits(0);
    assert_eq!(project.cgroups().len(), 1, "a dry run changes nothing");
    project.piton(&["gc", "--yes"]).exits(0);
    assert!(project.cgroups().is_empty());
}

/// Lost: an agent could leave a program behind that approves for it, with an empty environment.
#[test]
fn a_kept_daemon_that_hides_can_not_approve() {
    if without_cgroups() {
        return;
    }
    let step = "(env -i P=\"$PROGRAM\" PATH=\"$PATH\" HOME=\"$HOME\" setsid sh daemon.sh \
                </dev/null >/dev/null 2>&1 &)";
    let gate = "[[phase]]\nid = \"Q\"\ngate = \"Go\"\nrun = \"true\"\n";
    let project = Project::with_plan(&(one_step(step, "keep = [\"sh\"]") + gate));
    project.write(
        "daemon.sh",
        "while [ ! -e go ]; do sleep 0.02; done\n\"$P\" approve Q 2> said.txt\n\
         echo $? > code.tmp; mv code.tmp code\n",
    );
    run(&project).exits(3);
    wait_until("the keeper has gone", || project.keepers().is_empty());
    project.write("go", "");
    project.wait_for("code");
    assert_eq!(project.lines("code"), ["4"], "{}", project.read("said.txt"));
    project.piton(&["approve", "Q"]).exits(0);
}

/// Lost: a run inside a step would be ended with what the run around it left, or leave a cgroup.
#[test]
fn a_run_inside_a_step_leaves_nothing_either() {
    if without_cgroups() {
        return;
    }
    let inner = "mkdir inner && cd inner && git init --quiet && cp ../inner.toml plan.toml && \
                 $PROGRAM run plan.toml --run-id inner && cat log.txt";
    let project = Project::with_plan(&one_step(inner, ""));
    project.write("inner.toml", &one_step("cat /proc/self/cgroup > log.txt", ""));
    run(&project).exits(0);
    let place = project.read("inner/log.txt");
    let place = place.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    assert_eq!(place.matches("/piton-").count(), 2, "{place}");
    // With the outer one the inner one is gone, which was within.
    assert!(project.cgroups().is_empty());
    project.wait_quiet();
}
