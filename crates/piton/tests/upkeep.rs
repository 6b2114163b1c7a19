//! What happens around runs over the weeks: git comes to a project, ledgers are lost and restored,
//! the program is upgraded, folders and terminals go. The real program.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{PITON, Project, Signal, wait_until};
use piton_core::Event;

const GATED: &str = r#"
[[phase]]
id = "P1"
run = "echo one >> ran.txt"

[[phase]]
id = "P2"
gate = "Go"
run = "echo two >> ran.txt"
"#;

/// One step that waits for `go`, and one after it.
const HELD: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo one >> ran.txt" },
  { id = "two", run = "echo two >> ran.txt" },
]
"#;

/// Lost: a `git init`, by a person or a step, would make all runs of a project disappear.
#[test]
fn a_project_that_becomes_a_repository_keeps_its_runs() {
    let project = Project::without_git("plain");
    project.write("plan.toml", &GATED.replace("echo one", "git init --quiet; echo one"));
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    assert!(project.has(".git/HEAD") && !project.has(".git/piton"));
    project.piton(&["run", "plan.toml"]).exits(4).says("--resume");
    project.piton(&["approve", "r", "P2"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    project.git(&["add", "--all"]);
    let staged = project.git(&["diff", "--cached", "--name-only"]);
    assert!(!staged.contains(".piton"), "{staged}");
    project.piton(&["doctor"]).exits(0).says("before this was a git repository").says("mv ");
    // Moved as doctor says, it is found where it lies in any repository.
    fs::rename(project.root().join(".piton"), project.root().join(".git/piton")).unwrap();
    assert_eq!(project.status("r"), "complete");
    project.piton(&["doctor"]).exits(0).says("no problems found");
}

/// A run that waits, its ledger in one file, a copy of that, and the file's path.
fn waiting() -> (Project, PathBuf, PathBuf) {
    let project = Project::with_plan(GATED);
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.wait_quiet();
    project.piton(&["doctor", "--backup", "../copy.db"]).exits(0);
    let (ledger, copy) = (project.state_dir().join("ledger.db"), project.outside().join("copy.db"));
    (project, ledger, copy)
}

fn lose(ledger: &std::path::Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", ledger.display()));
    }
}

/// Lost: an emptied ledger would be taken for a new one, what ran would run again, and `gc` would
/// delete the snapshots of all runs.
#[test]
fn a_ledger_that_was_lost_is_refused_and_what_belongs_to_it_stays() {
    let (project, ledger, copy) = waiting();
    let refs = project.git(&["for-each-ref", "refs/piton"]);
    assert!(refs.contains("refs/piton/r/"), "{refs}");
    let all = [&["run", "plan.toml"][..], &["resume"], &["status"], &["runs"], &["gc", "--yes"]];
    for (empty, folders) in [(true, true), (false, true), (false, false)] {
        lose(&ledger);
        if empty {
            fs::write(&ledger, "").unwrap();
        }
        if !folders {
            fs::remove_dir_all(project.state_dir().join("runs")).unwrap();
        }
        project.piton(&["doctor"]).exits(4).says("traces of runs: r").says("--new-ledger");
        for args in all {
            project.piton(args).exits(4).says("error[ledger-lost]").says("copy a backup to");
        }
        assert_eq!(ledger.exists(), empty, "nothing was made in its place");
    }
    project.piton(&["doctor", "--new-ledger"]).exits(0).says("a new ledger");
    project.piton(&["doctor", "--new-ledger"]).exits(2).says("error[ledger-sound]");
    let kept = project.piton(&["gc", "--yes"]).exits(0);
    kept.says("are not in the ledger").says("the snapshots of 1 run");
    assert_eq!(project.git(&["for-each-ref", "refs/piton"]), refs);
    fs::copy(&copy, &ledger).unwrap();
    project.piton(&["approve", "r", "P2"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    lose(&ledger);
    project.piton(&["doctor", "--new-ledger"]).exits(0);
    project.piton(&["gc", "--yes", "--unknown"]).exits(0).says("delete snapshots of r");
    assert_eq!(project.git(&["for-each-ref", "refs/piton"]), "");
}

/// Lost: a run killed while it made the very first ledger could never go on.
#[test]
fn a_ledger_that_never_was_finished_is_begun_again() {
    let project = Project::with_plan(GATED);
    fs::create_dir(project.state_dir()).unwrap();
    project.write(".git/piton/ledger.db", "");
    project.piton(&["doctor"]).exits(0);
    project.piton(&["run", "plan.toml"]).exits(3);
}

/// Lost: whoever restores a backup, as told, would have to call `resume` once for each driver since.
#[test]
fn a_restored_ledger_is_gone_on_with_once_a_person_says_so() {
    let (project, ledger, copy) = waiting();
    for _ in 0..3 {
        project.piton(&["resume", "r"]).exits(3);
    }
    lose(&ledger);
    fs::copy(&copy, &ledger).unwrap();
    project.piton(&["resume", "r"]).exits(4).says("error[ledger-behind]").says("--restored");
    project.piton(&["doctor", "--restored"]).exits(0);
    project.piton(&["resume", "r"]).exits(3);
    // A new run of the same name in a new ledger meets the traces of the old one.
    lose(&ledger);
    project.piton(&["doctor", "--new-ledger"]).exits(0);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.piton(&["approve", "r", "P2"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "one", "two"]);
}

/// Lost: a run whose driver is killed again and again would outlive every budget of time.
#[test]
fn the_time_of_a_killed_driver_is_known_to_the_next() {
    let project = Project::with_plan(HELD);
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    let known = |event: &Event| match event {
        Event::DriverAttached(attached) => Some(attached.driven_until.is_some()),
        _ => None,
    };
    let found: Vec<bool> = project.events("r").iter().filter_map(known).collect();
    assert_eq!(found, [false, true]);
}

/// Lost: the same, where a person asks something of the run before the next driver comes.
#[test]
fn the_time_of_a_killed_driver_counts_though_somebody_took_its_lease() {
    let project = Project::with_plan(HELD);
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    driver.kill();
    project.piton(&["checkpoint", "r", "-m", "looked"]).exits(0);
    let known = |event: &Event| match event {
        Event::DriverLeft(left) => Some((left.verdict, left.driven_until.is_some())),
        _ => None,
    };
    let found: Vec<_> = project.events("r").iter().filter_map(known).collect();
    assert_eq!(found, [(piton_core::event::Verdict::Interrupted, true)]);
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// Lost: `nohup piton run` would end with the terminal, as would a background job of a script with
/// the Ctrl-C of its shell.
#[test]
fn what_was_to_be_ignored_is_ignored() {
    let project = Project::with_plan(HELD);
    let line = "trap '' HUP INT; exec \"$PROGRAM\" run plan.toml --run-id r";
    let driver = project.start(project.command("sh").args(["-c", line]));
    project.wait_for("begun");
    driver.signal(Signal::HUP);
    driver.signal(Signal::INT);
    project.write("go", "");
    driver.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// Lost: a run could not go on once the folder that it was started in, or the program, was replaced.
#[test]
fn a_keeper_starts_though_folder_and_program_are_gone() {
    let project = Project::with_plan(HELD);
    let program = project.outside().join("program");
    fs::copy(PITON, &program).unwrap();
    let deep = project.root().join("deep");
    fs::create_dir(&deep).unwrap();
    let args = ["run", "../plan.toml", "--run-id", "r"];
    let driver = project.start(project.command(&program).args(args).current_dir(&deep));
    project.wait_for("begun");
    fs::remove_dir(&deep).unwrap();
    fs::remove_file(&program).unwrap();
    fs::write(&program, "not a program").unwrap();
    common::kill(project.keepers()[0].pid, Signal::KILL);
    wait_until("the step again", || {
        project.keepers().len() == 1 && project.status("r") == "running"
    });
    project.write("go", "");
    driver.wait().exits(0);
    assert!(project.lines("ran.txt").ends_with(&["one".to_owned(), "two".to_owned()]));
}

/// Lost: a machine that shuts down would leave steps behind as failed.
#[test]
fn a_step_that_went_with_its_keeper_did_not_fail() {
    for steps_first in [true, false] {
        let project = Project::with_plan(HELD);
        let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
        project.wait_for("begun");
        driver.kill();
        let keeper = project.keepers()[0].pid;
        let steps = || project.processes().into_iter().filter(|p| p.pid != keeper);
        if steps_first {
            wait_until("the step is gone", || {
                steps().for_each(|p| common::kill(p.pid, Signal::TERM));
                steps().next().is_none()
            });
        }
        common::kill(keeper, Signal::TERM);
        project.wait_quiet();
        project.write("go", "");
        project.piton(&["resume", "r"]).exits(0).silent_about("former driver");
        assert_eq!(project.lines("ran.txt"), ["one", "two"]);
        let interrupted = |event: &&Event| {
            use piton_core::event::Outcome;
            matches!(event, Event::StepFinished(e) if matches!(e.outcome, Outcome::Interrupted { .. }))
        };
        assert_eq!(project.events("r").iter().filter(interrupted).count(), 1);
    }
}

/// Lost: a file that comes back as it was would make everything below run again.
#[test]
fn what_reads_a_lost_file_is_judged_when_it_is_back() {
    let plan = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "gen", run = "echo gen >> ran.txt; cat src > mid.txt", artifacts = ["mid.txt"] },
  { id = "use", run = "echo use >> ran.txt; cat mid.txt > final.txt", inputs = ["mid.txt"], artifacts = ["final.txt"] },
]
"#;
    let project = Project::with_plan(plan);
    project.write("src", "1");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    project.remove("mid.txt");
    project.piton(&["resume", "r"]).exits(0).says("mid.txt is missing");
    assert_eq!(project.lines("ran.txt"), ["gen", "use", "gen"]);
    project.write("src", "2");
    project.remove("mid.txt");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["gen", "use", "gen", "gen", "use"]);
}

/// Lost: a driver could only be killed where its keeper was stopped.
#[test]
fn a_driver_does_not_wait_for_ever_for_a_stopped_keeper() {
    let project = Project::with_plan(HELD);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    let keeper = project.keepers()[0].pid;
    common::kill(keeper, Signal::STOP);
    driver.signal(Signal::TERM);
    driver.wait().exits(1).says("is stopped").says("kill -CONT");
    common::kill(keeper, Signal::CONT);
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
}

/// Lost: a step whose driver died could set its own run aside and start it anew, beside itself.
#[test]
fn a_step_does_not_start_its_own_plan_anew() {
    let plan = r#"
[[phase]]
id = "P"
run = '''
touch begun; while [ ! -e go ]; do sleep 0.02; done
"$PROGRAM" run plan.toml --fresh; echo $? > code; touch done
'''
"#;
    let project = Project::with_plan(plan);
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    project.wait_for("done");
    assert_eq!(project.lines("code"), ["4"]);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.status("r"), "complete");
}

/// Lost: of several who start a plan anew at once, those who come late would not learn who does it.
#[test]
fn plans_started_anew_at_once_are_one_run() {
    let project = Project::with_plan(HELD);
    let mut first = project.spawn(&["run", "plan.toml", "--run-id", "old"]);
    project.wait_for("begun");
    first.kill();
    project.kill_all();
    let all: Vec<_> = (0..4).map(|_| project.spawn(&["run", "plan.toml", "--fresh"])).collect();
    wait_until("one drives", || project.status("") == "running");
    let late = |said: &common::Driver| said.stderr().contains("is driven by");
    wait_until("the others know", || all.iter().filter(|driver| late(driver)).count() == 3);
    project.write("go", "");
    let codes: Vec<i32> = all.into_iter().map(|driver| driver.wait().code).collect();
    let count = |code: i32| codes.iter().filter(|c| **c == code).count();
    assert_eq!((count(0), count(5)), (1, 3), "{codes:?}");
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// Lost: a project that cannot be written would look healthy until the first agent fails.
#[test]
fn doctor_says_that_the_folder_cannot_be_written() {
    let project = Project::with_plan(GATED);
    let is_root = project.sh("id -u").stdout.trim() == "0";
    if is_root && project.sh("command -v setpriv").code != 0 {
        return;
    }
    project.sh("chmod 555 .").exits(0);
    // Root may write anywhere.
    let other = if is_root { "setpriv --reuid=65534 --clear-groups" } else { "" };
    let said = project.sh(&format!("{other} {PITON} doctor; chmod 755 ."));
    if said.stderr.contains("Permission denied") && !said.stdout.contains("cannot write") {
        return;
    }
    said.says("cannot write to the project's folder");
}
