//! Steps that are ended: limits, politeness, force, and everything they started.

use piton_process::{Cause, Event, Exit, Keeper, Leftover, Request, Start};

use crate::support::{Run, event, exit, lives, run, start, until};

fn end(keeper: &mut Keeper, step: Start, key: &str, ready: impl FnMut() -> bool) -> Exit {
    start(keeper, step);
    until("the step is ready", ready);
    keeper.send(&[Request::End { key: key.into() }]).unwrap();
    exit(keeper)
}

/// A step that hangs must end by itself, and be known as timed out.
#[test]
fn timeouts_end_a_step() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut step = test.step("t", "while :; do echo x; sleep 0.05; done");
    step.timeout_ms = 200;
    let exit = run(&mut keeper, step);
    assert_eq!((exit.cause, exit.signal), (Cause::Timeout, Some(15)));
    assert!(exit.duration_ms >= 200);
}

/// A step that goes quiet ends; one that keeps writing does not.
#[test]
fn idle_timeouts_end_only_the_quiet() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut step = test.step("quiet", "echo x; sleep 1000");
    step.idle_timeout_ms = Some(300);
    assert_eq!(run(&mut keeper, step).cause, Cause::IdleTimeout);
    let script = "i=0; while [ $i -lt 12 ]; do echo x >&2; sleep 0.1; i=$((i+1)); done";
    let mut step = test.step("busy", script);
    step.idle_timeout_ms = Some(1000);
    assert!(run(&mut keeper, step).success());
}

/// A step that handles the polite signal gets its time; the exit says that it was ended.
#[test]
fn ending_is_polite_first() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let exit = end(&mut keeper, test.step("a", script), "a", || test.read("out") == "ready\n");
    assert_eq!((exit.cause, exit.code), (Cause::Ended, Some(7)));
    assert_eq!(test.read("out"), "ready\nbye\n");
}

/// A step that ignores the polite signal ends all the same.
#[test]
fn ending_is_by_force_after_the_grace() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut step = test.step("a", "trap '' TERM; echo ready; while :; do sleep 0.01; done");
    step.grace_ms = 50;
    let exit = end(&mut keeper, step, "a", || test.read("out") == "ready\n");
    assert_eq!((exit.cause, exit.signal), (Cause::Ended, Some(9)));
}

/// Ways by which a process leaves its parent; each writes its pid to `pid` and stays for ever.
const STAY: &str = "trap '' TERM HUP; echo $$ > pid; while :; do sleep 0.05; done";

fn escapes(test: &Run, script: &str) {
    let mut keeper = test.keeper(1);
    let mut step = test.step("esc", script);
    step.grace_ms = 50;
    step.env = vec![("STAY".into(), STAY.into())];
    let exit = end(&mut keeper, step, "esc", || test.read("pid").ends_with('\n'));
    let pid = test.pid("pid");
    assert_eq!(exit.cause, Cause::Ended);
    assert!(!lives(pid), "{pid} escaped");
}

/// A child in its own session.
#[test]
fn a_session_of_its_own_does_not_escape() {
    escapes(&Run::new(), "setsid sh -c \"$STAY\" & wait");
}

/// A classic daemon: forked twice, own session, streams closed, parent gone.
#[test]
fn a_daemon_does_not_escape() {
    escapes(&Run::new(), "(setsid sh -c \"$STAY\" </dev/null >/dev/null 2>&1 &); sleep 1000");
}

/// A daemon that also forgot where it came from.
#[test]
fn a_daemon_without_environment_does_not_escape() {
    let script = "(env -i PATH=\"$PATH\" setsid sh -c \"$STAY\" >/dev/null 2>&1 &); sleep 1000";
    escapes(&Run::new(), script);
}

/// A stopped process cannot hear the polite signal, but must end.
#[test]
fn a_stopped_process_does_not_escape() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let step = test.step("a", "echo $$ > pid; kill -STOP $$; sleep 1000");
    let exit = end(&mut keeper, step, "a", || test.read("pid").ends_with('\n'));
    assert_eq!(exit.signal, Some(15));
}

/// Ending one step must not touch its neighbour.
#[test]
fn neighbours_are_left_alone() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let daemon = "(setsid sh -c 'echo $$ > NAME; while :; do sleep 0.05; done' &); sleep 1000";
    start(&mut keeper, test.step("one", &daemon.replace("NAME", "one")));
    let mut step = test.step("two", &daemon.replace("NAME", "two"));
    // A process that its shell starts just then is left alone until the kill.
    step.grace_ms = 500;
    let other = || test.read("one").ends_with('\n') && test.read("two").ends_with('\n');
    let exit = end(&mut keeper, step, "two", other);
    assert_eq!(exit.key, "two");
    assert!(lives(test.pid("one")) && !lives(test.pid("two")));
    keeper.send(&[Request::EndAll]).unwrap();
    assert_eq!(self::exit(&mut keeper).key, "one");
    assert!(!lives(test.pid("one")));
}

/// What a step left for those after it must not end with a neighbour that times out, however well
/// it hides.
#[test]
fn what_a_neighbour_left_is_left_alone() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    start(&mut keeper, test.step("long", "echo ready; sleep 1000"));
    until("the first step runs", || test.read("out") == "ready\n");
    let hidden = "(env -i PATH=\"$PATH\" setsid sh -c \"$STAY\" >/dev/null 2>&1 &); \
                  while [ ! -s pid ]; do sleep 0.01; done";
    let mut step = test.step("short", hidden);
    step.env = vec![("STAY".into(), STAY.into())];
    assert!(run(&mut keeper, step).success());
    keeper.send(&[Request::End { key: "long".into() }]).unwrap();
    assert_eq!(exit(&mut keeper).key, "long");
    assert!(lives(test.pid("pid")));
}

/// What a step leaves behind lives until the run is over, then it is ended and named, except what
/// the plan keeps.
#[test]
fn leftovers_are_named_and_kept_ones_stay() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let bash = |name: &str| {
        format!("(setsid bash -c 'exec -a {name} sleep 1000' & echo $! > {name}) >/dev/null 2>&1")
    };
    let script = format!("{}; {}", bash("server"), bash("database"));
    let mut step = test.step("left", &script);
    step.keep = vec!["database".into()];
    assert!(run(&mut keeper, step).success());
    let (server, database) = (test.pid("server"), test.pid("database"));
    let named = |pid: u32, name: &str| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(name.as_bytes())
    };
    until("both daemons run", || named(server, "server") && named(database, "database"));
    keeper.send(&[Request::Shutdown]).unwrap();
    let list = event(&mut keeper, |event| match event {
        Event::Leftovers(list) => Some(list),
        _ => None,
    });
    let expected = Leftover { pid: server, name: "sleep".into(), key: Some("left".into()) };
    assert_eq!(list, [expected]);
    assert!(!lives(server) && lives(database));
}
