//! At most one process advances a run: refusals, take-over, dead owners, and driving in the
//! background. The real program, stopped and killed for real.
//!
//! Not here: what a killed driver costs its steps (`resume.rs`).

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use common::{Driver, Output, PITON, Project, Signal, wait_until};
use piton_core::Event;

/// Two steps: the first ends when `go` is there, the second when `go-on` is.
const TWO: &str = r#"
title = "Two"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = "echo one >> ran.txt; while [ ! -e go ]; do sleep 0.02; done" },
  { id = "two", run = "echo two >> ran.txt; while [ ! -e go-on ]; do sleep 0.02; done" },
]
"#;

/// Starts the plan and waits until its first step runs.
#[track_caller]
fn driven(project: &Project) -> Driver {
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    wait_until("the first step", || project.lines("ran.txt") == ["one"]);
    driver
}

fn let_go(project: &Project) {
    project.write("go", "");
    project.write("go-on", "");
}

fn attached(project: &Project) -> Vec<(u32, u64, bool)> {
    let of = |event: &Event| match event {
        Event::DriverAttached(e) => Some((e.pid, e.epoch, e.takeover)),
        _ => None,
    };
    project.events("r").iter().filter_map(of).collect()
}

/// Lost: two drivers would run every step twice.
#[test]
fn a_second_driver_is_refused_and_told_of_the_first() {
    let project = Project::with_plan(TWO);
    let first = driven(&project);
    let pid = first.pid().to_string();
    for args in [
        &["resume", "r"][..],
        &["run", "plan.toml", "--resume"],
        &["run", "plan.toml"],
        &["run", "plan.toml", "--fresh"],
        &["run", "plan.toml", "--run-id", "other"],
        &["run"],
    ] {
        let before = project.events("r").len();
        project.piton(args).exits(5).says("error[run-driven]").says("hint:").says(&pid);
        assert_eq!(project.events("r").len(), before, "{args:?} added an event");
    }
    let error = project.piton(&["resume", "r", "--json"]).exits(5).json();
    assert_eq!(error["error"]["code"], "run-driven");
    let_go(&project);
    first.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// Lost: a driver that was stopped and forgotten would wake up and act on a run it lost.
#[test]
fn a_stopped_driver_that_was_taken_over_adds_nothing() {
    let project = Project::with_plan(TWO);
    let old = driven(&project);
    old.stop_at_rest();
    wait_until("the doctor's word", || {
        project.piton(&["doctor"]).exits(0).stdout.contains("which is stopped")
    });
    let go_on = format!("kill -CONT {}", old.pid());
    for (args, code) in
        [(&["status"][..], 0), (&["resume", "r"], 5), (&["run", "plan.toml", "--resume"], 5)]
    {
        let said = project.piton(args).exits(code);
        said.says("which is stopped").says(&go_on).says("--takeover").silent_about("attach");
    }
    assert_eq!(project.status_json("r")["driver"]["stopped"], true);
    // Its first step ends while it cannot see it, so that it has something to record on waking.
    project.write("go", "");
    let new = project.spawn(&["resume", "r", "--takeover"]);
    wait_until("the new one goes on", || project.lines("ran.txt") == ["one", "two"]);
    // A keeper writes down that a step began when it has let it begin.
    let journal = project.state_dir().join("runs/r/keeper.journal");
    wait_until("the start on record", || {
        let text = std::fs::read_to_string(&journal).unwrap();
        text.matches("{\"started\":").count() == 2
    });
    let before = (project.events("r"), files(&project));
    old.signal(Signal::CONT);
    old.wait().exits(5).says("error[run-taken-over]").says("piton attach");
    assert_eq!((project.events("r"), files(&project)), before, "the old one left a trace");
    assert_eq!(project.keepers().len(), 1, "the old one started a process");
    project.write("go-on", "");
    new.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    let attached = attached(&project);
    assert_eq!(attached.len(), 2);
    assert!(attached[1].1 > attached[0].1 && attached[1].2, "{attached:?}");
    project.wait_quiet();
    project.piton(&["doctor"]).exits(0).says("no problems found");
}

/// The files of the run, by name and size.
fn files(project: &Project) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![project.state_dir().join("runs/r")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push((entry.path().display().to_string(), entry.metadata().unwrap().len()));
            }
        }
    }
    found.sort();
    found
}

/// Lost: a driver that lives but lost its run would keep two hands on it.
#[test]
fn a_driver_at_work_that_is_taken_over_leaves() {
    let project = Project::with_plan(TWO);
    let old = driven(&project);
    // What is taken over is gone on with.
    let new = project.spawn(&["run", "plan.toml", "--takeover"]);
    wait_until("the new one drives", || attached(&project).len() == 2);
    old.wait().exits(5).says("error[run-taken-over]").says("piton attach");
    let_go(&project);
    new.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// Lost: after a crash a person would have to wait for the lease to run out.
#[test]
fn a_dead_owner_is_recognised_at_once() {
    let project = Project::with_plan(TWO);
    let mut driver = driven(&project);
    let status = project.status_json("r");
    assert_eq!(status["status"], "running");
    assert_eq!(status["driver"]["pid"], driver.pid());
    assert_eq!(status["driver"]["alive"], true);
    driver.kill();
    let expires = lease_expires(&project);
    let status = project.status_json("r");
    assert_eq!(status["status"], "interrupted");
    assert_eq!(status["driver"]["alive"], false);
    let_go(&project);
    project.piton(&["resume", "r"]).exits(0);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    assert!(now < expires, "it waited for the lease");
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// When the lease of the run would run out by itself.
fn lease_expires(project: &Project) -> u128 {
    use piton_ledger::{Ledger as _, Open, Sqlite};
    let mut ledger = Sqlite::open(&project.state_dir(), Open::ReadOnly).unwrap();
    let row = ledger.run("r").unwrap().unwrap();
    u128::try_from(row.owner.unwrap().expires_at).unwrap()
}

/// Lost: a run could not outlive the terminal it was started in, or nobody could watch it.
#[test]
fn a_detached_run_goes_on_and_can_be_watched() {
    let project = Project::with_plan(TWO);
    let start = project.piton(&["run", "plan.toml", "--run-id", "r", "--detach"]).exits(0);
    start.says("continues in the background").says("piton attach r");
    wait_until("the first step", || project.lines("ran.txt") == ["one"]);
    assert_eq!(project.status("r"), "running");
    project.piton(&["resume", "r"]).exits(5);
    let watcher = project.spawn(&["attach", "r"]);
    wait_until("it watches", || watcher.stderr().contains("watching run r"));
    let json = project.spawn(&["attach", "--json"]);
    let_go(&project);
    watcher.wait().exits(0).says("P/L/two finished").says("run r is complete");
    json.wait().exits(0);
    assert_eq!(project.status("r"), "complete");
    project.wait_quiet();
    // Also who comes too late.
    for args in [["attach"].as_slice(), &["attach", "r"]] {
        project.piton(args).exits(0).says("run r is complete");
    }
    assert_eq!(project.piton(&["attach", "--json"]).exits(0).json()["status"], "complete");
}

/// Lost: closing the terminal would end a run that was sent to the background.
#[test]
fn a_detached_run_outlives_its_terminal() {
    let project = Project::with_plan(TWO);
    if project.sh("command -v script").code != 0 {
        return; // Nothing here can make a terminal.
    }
    let line = format!("'{PITON}' run plan.toml --run-id r --detach");
    let mut terminal = project.command("script");
    project.finish(terminal.args(["-qec", &line, "/dev/null"])).exits(0).says("in the background");
    wait_until("the first step", || project.lines("ran.txt") == ["one"]);
    let_go(&project);
    wait_until("it completes", || project.status("r") == "complete");
    project.wait_quiet();
}

/// Lost: who watches a run from a script would take a failed one for a good one.
#[test]
fn watching_ends_with_the_exit_code_of_the_run() {
    let plan = TWO.replace("echo two >> ran.txt", "exit 9");
    let project = Project::with_plan(&plan);
    project.piton(&["run", "plan.toml", "--run-id", "r", "--detach", "--json"]).exits(0).json();
    wait_until("the first step", || project.lines("ran.txt") == ["one"]);
    let watcher = project.spawn(&["attach"]);
    wait_until("it watches", || watcher.stderr().contains("watching run r"));
    let_go(&project);
    watcher.wait().exits(1).says("run r failed");
    project.wait_quiet();
    let said = project.piton(&["attach", "r"]).exits(1).says("no process drives run r");
    said.says("hint: next: fix this, then piton retry r");
    let error = project.piton(&["attach", "--json"]).exits(1).json();
    assert_eq!(error["error"]["code"], "not-driven");
}

/// Lost: whoever would watch a run that waits for them is sent to a command that only waits again.
#[test]
fn what_is_not_driven_is_told_with_what_it_waits_for() {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\ngate = \"Go\"\nrun = \"true\"\n");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    let said = project.piton(&["attach", "r"]).exits(3);
    said.says("hint: next: piton approve r P");
    project.piton(&["approve", "r", "P"]).exits(0);
    project.piton(&["attach", "r"]).exits(4).says("hint: next: piton resume r");
}

/// Lost: a watcher would take the end of an earlier driver for the end of the one it watches.
#[test]
fn a_watcher_of_a_resumed_run_sees_this_driver() {
    let project = Project::with_plan(TWO);
    let first = driven(&project);
    first.signal(Signal::TERM);
    first.wait().exits(143);
    project.piton(&["resume", "r", "--detach"]).exits(0);
    let watcher = project.spawn(&["attach", "r"]);
    wait_until("it watches", || watcher.stderr().contains("watching run r"));
    let_go(&project);
    watcher.wait().exits(0).says("run r is complete");
    assert_eq!(project.lines("ran.txt"), ["one", "one", "two"]);
}

/// Lost: a mistyped name, or a difference that stops, would be told to a log file only.
#[test]
fn what_keeps_a_background_driver_from_beginning_is_said_here() {
    let project = Project::with_plan(&format!("spec = \"spec.md\"\n{TWO}"));
    project.write("spec.md", "wanted");
    let first = driven(&project);
    first.signal(Signal::TERM);
    first.wait().exits(143);
    let typo = project.piton(&["resume", "r", "--detach", "--lane", "mian"]).exits(2);
    typo.says("the plan has no lane `mian`").silent_about("continues in the background");
    project.write("spec.md", "something else");
    project.piton(&["resume", "r", "--detach"]).exits(4).says("--accept-spec");
}

/// Lost: looking away would end the run.
#[test]
fn ctrl_c_on_a_watcher_leaves_the_run_alone() {
    let project = Project::with_plan(TWO);
    let driver = driven(&project);
    let watcher = project.spawn(&["attach", "r"]);
    wait_until("it watches", || watcher.stderr().contains("watching run r"));
    watcher.signal(Signal::INT);
    watcher.wait().exits(130).says("run r continues");
    assert_eq!(project.status("r"), "running");
    let_go(&project);
    driver.wait().exits(0);
}

/// Lost: a watcher would hang when the driver it watches is killed.
#[test]
fn a_watcher_notices_that_the_driver_is_gone() {
    let project = Project::with_plan(TWO);
    let mut driver = driven(&project);
    let watcher = project.spawn(&["attach", "r"]);
    wait_until("it watches", || watcher.stderr().contains("watching run r"));
    driver.kill();
    watcher.wait().exits(1).says("error[driver-gone]").says("piton resume r");
    let_go(&project);
    project.piton(&["resume", "r"]).exits(0);
}

/// Lost: two people (or a person and a script) who start the same plan at once would run it twice.
#[test]
fn two_runs_of_a_plan_started_at_once_are_one_run() {
    for _ in 0..5 {
        let project = Project::with_plan(TWO);
        let both = [(); 2].map(|()| project.spawn(&["run", "plan.toml"]));
        let codes = finished(&project, both);
        assert!(codes[0].code == 0 && [4, 5].contains(&codes[1].code), "{codes:?}");
        assert_eq!(project.lines("ran.txt"), ["one", "two"], "{codes:?}");
        project.wait_quiet();
    }
}

/// Lost: two drivers started on one run at the same moment would both advance it.
#[test]
fn two_resumes_at_once_are_one_driver() {
    for _ in 0..5 {
        let project = Project::with_plan(TWO);
        driven(&project).kill();
        let both = [(); 2].map(|()| project.spawn(&["resume", "r"]));
        let codes = finished(&project, both);
        assert_eq!((codes[0].code, codes[1].code), (0, 5), "{codes:?}");
        assert_eq!(project.lines("ran.txt"), ["one", "two"]);
        project.wait_quiet();
    }
}

/// Lets one of two go on after the other was refused; the one that succeeded first.
fn finished(project: &Project, both: [Driver; 2]) -> Vec<Output> {
    let mut both = Vec::from(both);
    wait_until("one of them is refused", || both.iter_mut().any(Driver::ended));
    let_go(project);
    let mut outputs: Vec<Output> = both.into_iter().map(Driver::wait).collect();
    outputs.sort_by_key(|o| o.code);
    outputs
}

/// Lost: a name given to two runs would mix them.
#[test]
fn a_run_id_is_given_once() {
    let project = Project::with_plan(
        &TWO.replace("while [ ! -e go", "while false; do :; done; while [ -e go"),
    );
    project.write("other.toml", "[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    project.piton(&["run", "other.toml", "--run-id", "r"]).exits(0);
    project
        .piton(&["run", "other.toml", "--run-id", "r", "--fresh"])
        .exits(2)
        .says("run r already exists");
    // From a linked worktree and from a subdirectory it is the same ledger, so the same refusal.
    std::fs::create_dir(project.root().join("sub")).unwrap();
    let mut command = project.command(PITON);
    command.current_dir(project.root().join("sub"));
    command.args(["run", "../other.toml", "--run-id", "r", "--fresh"]);
    project.finish(&mut command).exits(2).says("run r already exists");
}
