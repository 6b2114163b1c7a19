//! Drivers and keepers that die, race or are stale.

use std::fs;
use std::time::Duration;

use piton_process::{Cause, Error, Event, Fact, Journal, Keeper, Request, keeper_alive, strays};
use rustix::process::Signal;

use crate::support::{Run, entry, env, event, exit, lives, run, signal, start, until};

const WAIT: &str = "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo done";

/// A driver's death must cost nothing: its steps go on and the next driver learns how they ended.
#[test]
fn a_dead_driver_costs_nothing() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    run(&mut keeper, test.step("before", "exit 5"));
    start(&mut keeper, test.step("running", WAIT));
    let pid = test.pid("pid");
    drop(keeper);
    let mut keeper = test.keeper(2);
    let welcome = keeper.welcome();
    assert_eq!(welcome.finished.len(), 1);
    assert_eq!((welcome.finished[0].key.as_str(), welcome.finished[0].code), ("before", Some(5)));
    assert_eq!((welcome.children[0].key.as_str(), welcome.children[0].pid), ("running", pid));
    keeper.send(&[Request::Ack { key: "before".into() }]).unwrap();
    drop(keeper);
    fs::write(test.path("go"), "").unwrap();
    until("it is over", || !lives(pid));
    let mut keeper = Keeper::connect(test.dir(), 3, &env()).unwrap().unwrap();
    let found = keeper.welcome().finished.first().cloned();
    let exit = found.unwrap_or_else(|| exit(&mut keeper));
    assert!(exit.key == "running" && exit.success());
    assert!(keeper.welcome().children.is_empty() || keeper.welcome().finished.is_empty());
}

/// Limits must hold when nobody watches.
#[test]
fn limits_hold_without_a_driver() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut step = test.step("a", "echo $$ > pid; sleep 1000");
    step.timeout_ms = 400;
    start(&mut keeper, step);
    let pid = test.pid("pid");
    drop(keeper);
    until("the limit was enforced", || !lives(pid));
    let facts = || Journal::read(test.dir()).unwrap().fact("a");
    until("the journal says so", || matches!(facts(), Fact::Finished(_)));
    let Fact::Finished(exit) = facts() else { panic!("not finished") };
    assert_eq!(exit.cause, Cause::Timeout);
}

/// A driver that was overtaken must not start anything, ever.
#[test]
fn a_higher_epoch_takes_over() {
    let test = Run::new();
    let mut old = test.keeper(4);
    let same = Keeper::connect(test.dir(), 4, &env());
    assert!(matches!(same, Err(Error::Refused { highest: 4 })));
    let mut new = test.keeper(5);
    let _ = old.send(&[Request::Start(Box::new(test.step("old", "echo old")))]);
    event(&mut old, |event| (event == Event::Refused { highest: 5 }).then_some(()));
    event(&mut old, |event| (event == Event::Gone).then_some(()));
    assert!(old.send(&[Request::EndAll]).is_err());
    let stale = Keeper::connect(test.dir(), 4, &env());
    assert!(matches!(stale, Err(Error::Refused { highest: 5 })));
    assert!(run(&mut new, test.step("new", "echo new")).success());
    assert_eq!(test.read("out"), "new\n");
    // Also through the death of the keeper, and without touching its journal.
    test.kill_keeper();
    assert!(matches!(test.try_keeper(4), Err(Error::Refused { highest: 5 })));
    assert!(matches!(Journal::read(test.dir()).unwrap().fact("new"), Fact::Finished(_)));
    drop(new);
    test.keeper(5);
}

/// When keeper and driver are both dead, what ended is known and what runs is found and ended.
#[test]
fn a_dead_keeper_leaves_facts_and_findable_strays() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let finished = run(&mut keeper, test.step("finished", "exit 2"));
    let daemon =
        "(setsid sh -c 'echo $$ > daemon; while :; do sleep 0.05; done' >/dev/null 2>&1 &)";
    start(&mut keeper, test.step("running", &format!("{daemon}; {WAIT}")));
    let (pid, daemon) = (test.pid("pid"), test.pid("daemon"));
    assert!(strays::find(&test.mark, keeper_alive(test.dir()), &[]).is_empty());
    test.kill_keeper();
    event(&mut keeper, |event| (event == Event::Gone).then_some(()));
    assert!(Keeper::connect(test.dir(), 1, &env()).unwrap().is_none());
    let facts = Journal::read(test.dir()).unwrap();
    assert_eq!(facts.header.as_ref().unwrap().mark, test.mark);
    assert_eq!(facts.fact("finished"), Fact::Finished(finished));
    assert!(matches!(facts.fact("running"), Fact::Started { pid: started, .. } if started == pid));
    assert_eq!(facts.fact("never"), Fact::NotStarted);
    let found = strays::find(&test.mark, None, &[]);
    let of_daemon = found.iter().find(|stray| stray.pid == daemon);
    assert_eq!(of_daemon.and_then(|stray| stray.key.as_deref()), Some("running"));
    // One that is just being executed, or over, has no environment to tell.
    assert!(found.iter().all(|stray| stray.key.as_deref().is_none_or(|key| key == "running")));
    assert!(strays::end_recorded(&facts).contains(&pid));
    assert!(!lives(pid) && lives(daemon));
    assert!(strays::sweep(&test.mark, None, &[]).unwrap().iter().any(|stray| stray.pid == daemon));
    assert!(!lives(daemon) && strays::find(&test.mark, None, &[]).is_empty());
    // A stale socket is in the way of nobody; the new journal begins empty.
    let keeper = test.keeper(2);
    assert!(keeper.welcome().finished.is_empty());
    assert_eq!(Journal::read(test.dir()).unwrap().fact("finished"), Fact::NotStarted);
}

/// Drivers that start a keeper at once must end up with one.
#[test]
fn racing_starts_share_one_keeper() {
    let test = Run::new();
    let pids: Vec<Option<u32>> = std::thread::scope(|scope| {
        let start = |epoch| {
            let test = &test;
            scope.spawn(move || test.try_keeper(epoch).ok().map(|keeper| keeper.welcome().pid))
        };
        let threads: Vec<_> = (1..=4).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let alive = keeper_alive(test.dir());
    assert!(alive.is_some());
    // The highest epoch always gets through; others may have been overtaken.
    assert_eq!(pids[3], alive);
    assert!(pids.iter().flatten().all(|pid| Some(*pid) == alive));
}

/// A driver that dies in the middle of a request must not leave half of it.
#[test]
fn garbage_and_half_frames_are_dropped() {
    use std::io::Write;
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut stranger = std::os::unix::net::UnixStream::connect(test.path("keeper.sock")).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut half = std::os::unix::net::UnixStream::connect(test.path("keeper.sock")).unwrap();
    half.write_all(&[200, 0, 0, 0, b'{']).unwrap();
    drop(half);
    assert!(run(&mut keeper, test.step("a", "true")).success());
}

/// Ending the keeper by hand ends its steps and writes down how.
#[test]
fn a_terminated_keeper_ends_its_steps() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    start(&mut keeper, test.step("a", "echo $$ > pid; sleep 1000"));
    let pid = test.pid("pid");
    for ignored in [Signal::HUP, Signal::INT] {
        signal(keeper.welcome().pid, ignored);
    }
    signal(keeper.welcome().pid, Signal::TERM);
    assert_eq!(exit(&mut keeper).cause, Cause::Ended);
    event(&mut keeper, |event| (event == Event::Gone).then_some(()));
    assert!(!lives(pid));
    assert!(matches!(Journal::read(test.dir()).unwrap().fact("a"), Fact::Finished(_)));
    assert!(matches!(keeper.receive(Some(Duration::ZERO)).unwrap()[..], [Event::Gone]));
}

/// A driver that comes while the keeper ends must get a keeper that works, not the dying one.
#[test]
fn a_driver_that_comes_at_the_end_gets_a_new_keeper() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let script = "trap 'while [ ! -e go ]; do sleep 0.01; done; exit' TERM; echo $$ > pid; \
                  while :; do sleep 0.01; done";
    start(&mut keeper, test.step("slow", script));
    let pid = test.pid("pid");
    let dying = keeper.welcome().pid;
    keeper.send(&[Request::Shutdown]).unwrap();
    // Once it ends it starts nothing more: it hangs up, and lives on until its steps are over.
    keeper.send(&[Request::Start(Box::new(test.step("late", "true")))]).unwrap();
    event(&mut keeper, |event| (event == Event::Gone).then_some(()));
    assert!(lives(dying));
    assert_eq!(Journal::read(test.dir()).unwrap().fact("late"), Fact::NotStarted);
    drop(keeper);
    let new = std::thread::scope(|scope| {
        let connecting = scope.spawn(|| test.keeper(2).welcome().pid);
        fs::write(test.path("go"), "").unwrap();
        connecting.join().unwrap()
    });
    assert!(new != dying && !lives(pid) && !lives(dying));
}

/// Deep directories are longer than a socket's name may be.
#[test]
fn long_directories_work() {
    let test = Run::new();
    let dir = test.path(&"d".repeat(120)).join("e".repeat(120));
    fs::create_dir_all(&dir).unwrap();
    let mut keeper = test.keeper_in(&dir, 1).unwrap();
    assert!(run(&mut keeper, test.step("a", "true")).success());
    keeper.send(&[Request::Shutdown]).unwrap();
    event(&mut keeper, |event| matches!(event, Event::Leftovers(_)).then_some(()));
    keeper.farewell(&dir);
    assert!(keeper_alive(&dir).is_none());
}

/// An agent must be recognisable as such, however it is started, to be refused.
#[test]
fn a_step_knows_that_it_is_inside() {
    let test = Run::new();
    assert!(strays::keepers_above(&[test.dir()]).is_empty());
    let mut keeper = test.keeper(1);
    let mut step = test.step("a", "");
    let exe = std::env::current_exe().unwrap();
    let dir = test.dir().to_str().unwrap().to_owned();
    step.parts[0].argv = [exe.to_str().unwrap().to_owned()]
        .into_iter()
        .chain(entry("support::inside_entry"))
        .chain([dir])
        .collect();
    assert!(run(&mut keeper, step).success());
    assert_eq!(test.read("inside"), "true");
}
