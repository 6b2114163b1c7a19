//! Attempts that are made ready while their intent is being made durable: nothing of them runs
//! before the word, and nothing of them is left without it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use piton_process::{Event, Keeper, Request, Start, State, keeper_alive};

use crate::support::{Run, event, exit, lives, run, start, until};

const SCRIPT: &str = "echo ran; echo $$ > pid";

fn prepare(keeper: &mut Keeper, step: &Start) {
    keeper.send(&[Request::Prepare(Box::new(step.clone()))]).unwrap();
}

fn go(keeper: &mut Keeper, key: &str) {
    keeper.send(&[Request::Go { key: key.into() }]).unwrap();
}

/// What the keeper knows of an attempt; it has by then done all that was asked before.
fn known(keeper: &mut Keeper, key: &str) -> State {
    keeper.send(&[Request::Probe { key: key.into() }]).unwrap();
    event(keeper, |event| match event {
        Event::Known { state, .. } => Some(state),
        _ => None,
    })
}

/// The processes whose parent is the keeper.
fn children(test: &Run) -> Vec<u32> {
    let keeper = keeper_alive(test.dir()).unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |pid: &u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    pids.filter(|pid| parent(pid) == Some(keeper) && lives(*pid)).collect()
}

fn one_child(test: &Run) -> u32 {
    let found = children(test);
    assert_eq!(found.len(), 1, "one process waits");
    found[0]
}

/// Lost, a step would begin before the ledger knows of it.
#[test]
fn what_is_ready_runs_only_at_the_word() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    prepare(&mut keeper, &test.step("a", SCRIPT));
    assert_eq!(known(&mut keeper, "a"), State::NotStarted);
    let waiting = one_child(&test);
    assert_eq!((test.read("out"), test.read("pid")), (String::new(), String::new()));
    go(&mut keeper, "a");
    let exit = exit(&mut keeper);
    assert!(exit.success());
    assert_eq!((test.read("out"), test.pid("pid")), ("ran\n".to_owned(), waiting));
    // The word comes once: who says it again finds out by asking anew.
    go(&mut keeper, "a");
    event(&mut keeper, |event| matches!(event, Event::Gone).then_some(()));
    assert_eq!(test.read("out"), "ran\n");
    assert_eq!(test.keeper(2).welcome().finished.len(), 1);
}

/// Lost, a driver that dies before its commit would leave a process behind, or a step that runs
/// without being recorded.
#[test]
fn without_its_driver_nothing_of_it_is_left() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    prepare(&mut keeper, &test.step("a", SCRIPT));
    known(&mut keeper, "a");
    let waiting = one_child(&test);
    drop(keeper);
    until("the process is gone", || !lives(waiting));
    let mut keeper = test.keeper(2);
    assert_eq!(known(&mut keeper, "a"), State::NotStarted);
    assert_eq!(test.read("out"), "");
    assert!(run(&mut keeper, test.step("a", SCRIPT)).success());
    assert_eq!(test.read("out"), "ran\n");
}

/// Lost, a driver that was overtaken between its commit and its word would start what its successor
/// starts too.
#[test]
fn an_overtaken_driver_has_no_word() {
    let test = Run::new();
    let mut old = test.keeper(1);
    prepare(&mut old, &test.step("a", SCRIPT));
    known(&mut old, "a");
    let waiting = one_child(&test);
    let mut new = test.keeper(2);
    assert!(!lives(waiting), "it was ended before the successor heard of anything");
    let _ = old.send(&[Request::Go { key: "a".into() }]);
    assert_eq!(known(&mut new, "a"), State::NotStarted);
    assert_eq!((children(&test), test.read("out")), (Vec::new(), String::new()));
}

/// Lost, a killed keeper would leave processes that wait for ever.
#[test]
fn a_dead_keeper_leaves_nothing_that_waits() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    prepare(&mut keeper, &test.step("a", SCRIPT));
    known(&mut keeper, "a");
    let waiting = one_child(&test);
    test.kill_keeper();
    until("the process is gone", || !lives(waiting));
    assert_eq!(test.read("out"), "");
}

/// A step that was let go must outlive its keeper as any other does.
#[test]
fn what_was_let_go_does_not_die_with_its_keeper() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo done > over";
    prepare(&mut keeper, &test.step("a", script));
    go(&mut keeper, "a");
    let pid = test.pid("pid");
    let keeper_pid = keeper_alive(test.dir()).unwrap();
    crate::support::signal(keeper_pid, rustix::process::Signal::KILL);
    until("the keeper is dead", || keeper_alive(test.dir()).is_none());
    assert!(lives(pid));
    fs::write(test.path("go"), "").unwrap();
    until("it went on to its end", || test.read("over") == "done\n");
}

/// What cannot be executed is said as for any start, and a script without an interpreter runs.
#[test]
fn what_cannot_be_executed_is_found_out_at_the_word() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let script = test.path("script");
    fs::write(&script, "echo from a shell\n").unwrap();
    let program = |key: &str, path: &std::path::Path| {
        let mut step = test.step(key, "");
        step.parts[0].argv = vec![path.to_str().unwrap().to_owned()];
        step
    };
    prepare(&mut keeper, &program("a", &script));
    go(&mut keeper, "a");
    let refused = event(&mut keeper, |event| match event {
        Event::NotStarted(not) => Some(not),
        _ => None,
    });
    assert!(refused.error.contains("chmod +x"), "{refused:?}");
    assert_eq!(known(&mut keeper, "a"), State::NotStarted);

    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    prepare(&mut keeper, &program("b", &script));
    go(&mut keeper, "b");
    assert!(exit(&mut keeper).success());
    assert_eq!(test.read("out"), "from a shell\n");

    let mut nowhere = test.step("c", SCRIPT);
    nowhere.dir = test.path("no such folder");
    prepare(&mut keeper, &nowhere);
    go(&mut keeper, "c");
    let refused = event(&mut keeper, |event| match event {
        Event::NotStarted(not) => Some(not),
        _ => None,
    });
    assert!(refused.error.contains("working directory"), "{refused:?}");
}

/// Something else may come instead: a changed mind costs nothing.
#[test]
fn what_is_asked_instead_takes_its_place() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    prepare(&mut keeper, &test.step("a", SCRIPT));
    prepare(&mut keeper, &test.step("b", "echo b"));
    known(&mut keeper, "b");
    let waiting = one_child(&test);
    assert!(run(&mut keeper, test.step("c", "echo c")).success());
    assert!(!lives(waiting));
    assert_eq!(test.read("out"), "c\n");
    // One that something else ended meanwhile is an attempt that was killed.
    prepare(&mut keeper, &test.step("d", "echo d"));
    known(&mut keeper, "d");
    let waiting = one_child(&test);
    crate::support::signal(waiting, rustix::process::Signal::KILL);
    until("it is dead", || !lives(waiting));
    go(&mut keeper, "d");
    let killed_or_run = exit(&mut keeper);
    assert!(killed_or_run.signal == Some(9) || killed_or_run.success());
}

/// A keeper that is told to end just before the word is no failure of the step.
#[test]
fn a_word_that_comes_too_late_is_no_failure() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    // It keeps the keeper from ending at once.
    let script = "trap 'echo > told' TERM; echo > up; while [ ! -e go ]; do sleep 0.01; done";
    start(&mut keeper, test.step("long", script));
    until("it runs", || test.path("up").exists());
    prepare(&mut keeper, &test.step("a", SCRIPT));
    known(&mut keeper, "a");
    crate::support::signal(keeper.welcome().pid, rustix::process::Signal::TERM);
    until("the keeper is on its way out", || test.path("told").exists());
    let _ = keeper.send(&[Request::Go { key: "a".into() }]);
    let failed = event(&mut keeper, |event| match event {
        Event::Gone => Some(false),
        Event::NotStarted(_) => Some(true),
        _ => None,
    });
    assert!(!failed);
    drop(keeper);
    fs::write(test.path("go"), "").unwrap();
    let mut keeper = test.keeper(2);
    assert!(run(&mut keeper, test.step("a", SCRIPT)).success());
    assert_eq!(test.read("out"), "ran\n");
}

/// A process that is stopped while it waits must not stop its keeper.
#[test]
fn a_stopped_process_that_waits_can_be_ended() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    prepare(&mut keeper, &test.step("a", SCRIPT));
    known(&mut keeper, "a");
    let waiting = one_child(&test);
    crate::support::signal(waiting, rustix::process::Signal::STOP);
    assert!(run(&mut keeper, test.step("b", "true")).success());
    assert!(!lives(waiting));
    assert_eq!(test.read("out"), "");
}
