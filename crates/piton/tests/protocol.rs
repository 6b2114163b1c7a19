//! One protocol more, in a folder of its own (`examples/checklist`) and a line of the table: the real
//! program claims its file, runs it, is killed, goes on, writes it, and takes a person's tick.

mod common;

use std::path::{Path, PathBuf};

use common::{Driver, Output, Project};
use piton_core::event::Event;

const LIST: &str = "release.checklist";

/// The program with that protocol; `cargo test -p piton` builds it.
fn program() -> PathBuf {
    let deps = std::env::current_exe().unwrap_or_default();
    let target = deps.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let program = target.join("examples/checklist");
    assert!(program.is_file(), "`cargo build -p piton --example checklist` makes it");
    program
}

#[track_caller]
fn start(project: &Project, args: &[&str]) -> Driver {
    project.start(project.command(program()).args(args))
}

#[track_caller]
fn checklist(project: &Project, args: &[&str]) -> Output {
    start(project, args).wait()
}

fn project(build: &str) -> Project {
    let project = Project::new();
    let ship = "- [ ] ship? Is it good?\n- [ ] ship: echo shipped >> ran\n";
    project.write(LIST, &format!("# Release\n\n- [ ] build: {build}\n{ship}"));
    project
}

fn tick(project: &Project) {
    project.write(LIST, &project.read(LIST).replace("[ ] ship?", "[x] ship?"));
}

/// Lost: a protocol would need changes all over the program.
#[test]
fn a_protocol_of_its_own_is_run_killed_resumed_and_takes_a_tick() {
    let project = project("echo built >> ran; until test -e go; do sleep 0.01; done");
    let mut driver = start(&project, &["run", LIST]);
    project.wait_for("ran");
    driver.kill();
    project.write("go", "");
    // Its protocol lets a run go on without a question.
    checklist(&project, &["run", LIST]).exits(3).says("Is it good?");
    let status = project.status_json("");
    assert_eq!(status["protocol"]["id"], "checklist");
    let boxes = || project.lines(LIST).iter().filter(|line| line.contains("[x]")).count();
    assert!(project.read(LIST).contains("- [x] build") && boxes() == 1, "{}", project.read(LIST));
    tick(&project);
    checklist(&project, &["resume"]).exits(0);
    assert_eq!(boxes(), 3);
    // A box that is gone comes back with the next who writes it.
    project.write(LIST, &project.read(LIST).replace("[x] build", "[ ] build"));
    checklist(&project, &["resume"]).exits(0);
    assert_eq!(boxes(), 3);
    assert_eq!(project.lines("ran"), ["built", "shipped"]);
    let decided = |e: &Event| matches!(e, Event::GateDecided(e) if e.approved);
    assert_eq!(project.events("").iter().filter(|e| decided(e)).count(), 1);
}

/// Lost: a step would not learn what its protocol knows about the run.
#[test]
fn a_step_is_given_what_its_protocol_decides() {
    let project = Project::new();
    let print = "echo \"{{ context.done }}|$CHECKLIST_DONE\" >> ran";
    project
        .write(LIST, &format!("- [ ] build: {print}\n- [ ] test: {print}\n- [ ] ship: {print}\n"));
    checklist(&project, &["run", LIST, "--dry-run"]).exits(0);
    checklist(&project, &["run", LIST]).exits(0);
    assert_eq!(project.lines("ran"), ["|", "build|build", "build, test|build, test"]);
}

/// Lost: a step could approve what comes after it by ticking a box.
#[test]
fn a_tick_of_a_step_approves_nothing() {
    let project = project("sed -i 's/\\[ \\] ship?/[x] ship?/' release.checklist");
    checklist(&project, &["run", LIST]).exits(3).says("Is it good?");
    let waits = checklist(&project, &["run", LIST]).exits(3);
    waits.says("note: ship was ticked while steps may have been at work");
    checklist(&project, &["resume", "--accept-gates"]).exits(0);
    assert_eq!(project.lines("ran"), ["shipped"]);
}

/// Lost: a protocol could not keep a run from going on over files that say otherwise.
#[test]
fn what_its_files_say_is_checked_before_a_run_goes_on() {
    let project = project("true");
    checklist(&project, &["run", LIST]).exits(3);
    let list = project.read(LIST);
    project.write(LIST, &list.replace("[ ] ship:", "[x] ship:"));
    checklist(&project, &["resume"]).exits(4).says("ship is ticked and not done");
    project.write(LIST, &list.replace("[x] build", "[ ] build"));
    tick(&project);
    checklist(&project, &["resume"]).exits(0).says("build is done and not ticked");
}

/// Lost: a program without the protocol would continue with its run by rules of its own.
#[test]
fn a_program_that_does_not_know_the_protocol_does_not_go_on() {
    let project = project("true");
    checklist(&project, &["run", LIST]).exits(3);
    tick(&project);
    let refused = project.piton(&["resume"]).exits(4).says("error[unknown-protocol]");
    refused.says("follows the protocol `checklist` (version 1), which this Piton does not know");
    checklist(&project, &["resume"]).exits(0);
}
