//! Steps that start, run and exit by themselves.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use piton_process::logs::{self, AttemptLog, Piece, Selection, Stream};
use piton_process::{Cause, Event, NewFile, NotStarted, Part, Request, Spawn, Start, State};

use crate::support::{Run, env, event, exit, run, start, until};

fn part(script: &str, stdin: Option<&str>) -> Part {
    Part { argv: ["sh", "-c", script].map(str::to_owned).into(), stdin: stdin.map(str::to_owned) }
}

fn not_started(keeper: &mut piton_process::Keeper) -> NotStarted {
    event(keeper, |event| match event {
        Event::NotStarted(not) => Some(not),
        _ => None,
    })
}

fn known(keeper: &mut piton_process::Keeper, key: &str) -> State {
    keeper.send(&[Request::Probe { key: key.into() }]).unwrap();
    event(keeper, |event| match event {
        Event::Known { state, .. } => Some(state),
        _ => None,
    })
}

/// Without this nothing else matters: what a step did is known exactly, and until acknowledged.
#[test]
fn a_step_runs_and_its_exit_is_kept_until_acknowledged() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    assert_eq!(known(&mut keeper, "a#1"), State::NotStarted);
    fs::write(test.path("out"), "before\n").unwrap();
    let exit = run(&mut keeper, test.step("a#1", "echo hi; echo oh >&2; exit 3"));
    assert_eq!((exit.code, exit.signal, exit.cause), (Some(3), None, Cause::Exited));
    assert_eq!((exit.stdout.start, exit.stdout.end), (7, 10));
    assert_eq!((exit.stderr.start, exit.stderr.end), (0, 3));
    assert_eq!(test.read("out"), "before\nhi\n");
    assert_eq!(known(&mut keeper, "a#1"), State::Finished(exit));
    keeper.send(&[Request::Ack { key: "a#1".into() }]).unwrap();
    assert_eq!(known(&mut keeper, "a#1"), State::Acknowledged);
    // A second start of the same attempt would run it twice.
    start(&mut keeper, test.step("a#1", "echo again"));
    assert!(not_started(&mut keeper).error.contains("already started"));
    assert_eq!(test.read("out"), "before\nhi\n");
}

/// A test command must not run after the build it tests has failed.
#[test]
fn parts_run_in_order_and_stop_at_the_first_failure() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut step = test.step("a", "");
    step.parts = vec![
        part("cat", Some("one\n")),
        part("cat; echo two; exit 4", None),
        part("echo three", None),
    ];
    let exit = run(&mut keeper, step.clone());
    assert_eq!((exit.part, exit.code), (1, Some(4)));
    assert_eq!(test.read("out"), "one\ntwo\n");
    step.key = "b".into();
    step.parts = vec![part("true", None), Part { argv: vec!["no-such-tool".into()], stdin: None }];
    let exit = run(&mut keeper, step);
    assert_eq!((exit.part, exit.cause, exit.success()), (1, Cause::NotStarted, false));
    assert!(exit.error.unwrap().contains("no-such-tool"));
}

/// A step sees the driver's environment as the plan changed it, its mark, and its files.
#[test]
fn a_step_finds_its_surroundings() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let script = "echo \"$BASE ${GONE-unset} $MORE $PITON_MARK $PITON_ATTEMPT_KEY\"; cat sub/note; \
                  cat; kill -HUP $$";
    let mut step = test.step("P1/A#2", script);
    step.env = vec![("MORE".into(), "lost".into()), ("MORE".into(), "more".into())];
    step.unset = vec!["GONE".into()];
    step.files = vec![NewFile { path: test.path("sub/note"), content: "note\n".into() }];
    let exit = run(&mut keeper, step);
    let mark = &test.mark;
    assert_eq!(test.read("out"), format!("base unset more {mark} P1/A#2\nnote\n"));
    // The keeper ignores SIGHUP, its children must not.
    assert_eq!(exit.signal, Some(1));
    let mode = fs::metadata(test.path("sub/note")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Lost: whoever can write beside the folder of an attempt has the keeper overwrite any file.
#[test]
fn the_files_of_an_attempt_are_new_ones_in_a_folder_of_its_own() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    fs::create_dir_all(test.path("scratch/b")).unwrap();
    fs::create_dir(test.path("elsewhere")).unwrap();
    fs::write(test.path("mine"), "mine").unwrap();
    symlink(test.path("elsewhere"), test.path("scratch/a")).unwrap();
    symlink(test.path("mine"), test.path("scratch/b/note")).unwrap();
    let step = |key: &str| {
        let path = test.path(&format!("scratch/{key}/note"));
        let script = format!("cat {}", path.display());
        Start { files: vec![NewFile { path, content: key.into() }], ..test.step(key, &script) }
    };
    start(&mut keeper, step("a"));
    let refused = not_started(&mut keeper);
    assert!(refused.error.contains("scratch/a"), "{}", refused.error);
    assert_eq!(fs::read_dir(test.path("elsewhere")).unwrap().count(), 0);
    run(&mut keeper, step("b"));
    run(&mut keeper, step("c"));
    assert_eq!(test.read("out"), "bc");
    assert_eq!(test.read("mine"), "mine");
    let mode = |name| fs::metadata(test.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("scratch/c"), mode("scratch/c/note")), (0o700, 0o600));
}

/// A keeper that stays beside its driver for a moment must not confine what it starts, nor pass on
/// how it treats signals: a build would use one CPU of many, a trap would never fire.
#[test]
fn a_step_has_all_cpus_and_plain_signals() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let allowed = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed:"));
        line.unwrap().to_owned()
    };
    let own = allowed(&fs::read_to_string("/proc/thread-self/status").unwrap());
    // 32 and 33 are the C library's own, which it leaves ignored where it starts a program.
    let signals = |status: &str, name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(value.trim(), 16).unwrap() & !(0b11 << 31)
    };
    // How a process is scheduled is the 41st field, the 39th after its name; ours is the usual way.
    let policy =
        |stat: &str| stat.rsplit_once(')').unwrap().1.split_whitespace().nth(38).map(str::to_owned);
    let look =
        |name: &str| format!("cat /proc/self/status >{name}; cat /proc/self/stat >{name}.stat");
    let here = rustix::thread::sched_getcpu();
    let may = rustix::thread::sched_getaffinity(None).unwrap();
    // A driver may have moved meanwhile, and its keeper follows.
    let there = (0..64).find(|&cpu| cpu != here && may.is_set(cpu)).unwrap_or(here);
    let cases = [
        ("free", None, false),
        ("held", Some(here), false),
        ("moved", Some(there), false),
        ("ready", Some(here), true),
        ("let go", None, false),
    ];
    for (key, near, ready) in cases {
        let mut step = test.step(key, &look("first"));
        // The second part starts while the keeper is held already.
        step.parts.push(part(&look("second"), None));
        step.near = near;
        if ready {
            keeper
                .send(&[Request::Prepare(Box::new(step)), Request::Go { key: key.into() }])
                .unwrap();
            assert!(exit(&mut keeper).success());
        } else {
            assert!(run(&mut keeper, step).success());
        }
        for name in ["first", "second"] {
            let status = test.read(name);
            assert_eq!(allowed(&status), own);
            assert_eq!((signals(&status, "SigBlk:"), signals(&status, "SigIgn:")), (0, 0));
            assert_eq!(policy(&test.read(&format!("{name}.stat"))).as_deref(), Some("0"));
        }
    }
    // A CPU that there is not must not keep a step from running.
    let mut step = test.step("nowhere", "true");
    step.near = Some(usize::MAX);
    assert!(run(&mut keeper, step).success());
}

/// Each failure to start says what to do, and nothing of the attempt counts as run.
#[test]
fn what_cannot_start_says_why() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let mut step = test.step("missing", "");
    step.parts[0].argv = vec!["no-such-tool".into()];
    start(&mut keeper, step);
    let reply = not_started(&mut keeper);
    assert!(reply.command_not_found && reply.error.contains("no-such-tool"), "{reply:?}");
    let mut step = test.step("nowhere", "true");
    step.dir = test.path("nowhere");
    start(&mut keeper, step);
    let reply = not_started(&mut keeper);
    assert!(!reply.command_not_found && reply.error.contains("working directory"), "{reply:?}");
    start(&mut keeper, test.step("long", &"#".repeat(200_000)));
    assert!(not_started(&mut keeper).error.contains("too long"));
    let mut step = test.step("empty", "");
    step.parts.clear();
    start(&mut keeper, step);
    assert!(not_started(&mut keeper).error.contains("no command"));
    assert_eq!(known(&mut keeper, "long"), State::NotStarted);
    // A script without an interpreter line runs, as in a shell.
    fs::write(test.path("script"), "echo \"script $1\"\n").unwrap();
    fs::set_permissions(test.path("script"), fs::Permissions::from_mode(0o700)).unwrap();
    let mut step = test.step("script", "");
    step.parts[0].argv = vec!["./script".into(), "argument".into()];
    assert!(run(&mut keeper, step).success());
    assert_eq!(test.read("out"), "script argument\n");
}

/// Many steps, one after the other and at once, each exactly once.
#[test]
fn hundreds_of_quick_steps() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    for number in 0..300 {
        let key = format!("s{number}");
        let exit = run(&mut keeper, test.step(&key, "echo x"));
        assert!(exit.success() && exit.stdout.len() == 2);
        keeper.send(&[Request::Ack { key }]).unwrap();
    }
    let batch: Vec<Request> = (0..50)
        .map(|number| {
            let mut step = test.step(&format!("b{number}"), "echo x");
            step.stdout = test.path(&format!("out{}", number % 5));
            Request::Start(Box::new(step))
        })
        .collect();
    keeper.send(&batch).unwrap();
    let mut seen = BTreeSet::new();
    while seen.len() < 50 {
        for event in keeper.receive(None).unwrap() {
            if let Event::Exited(exit) = event {
                assert!(exit.success() && seen.insert(exit.key));
            }
        }
    }
    assert_eq!(test.read("out").len(), 600);
}

/// The output of an attempt that ended.
fn log_of(test: &Run, exit: &piton_process::Exit) -> AttemptLog {
    AttemptLog {
        stdout: test.path("out"),
        stderr: test.path("err"),
        stdout_range: exit.stdout,
        stderr_range: exit.stderr,
        dropped: exit.dropped,
    }
}

/// The lines at the end of a log.
fn last_lines(log: &AttemptLog, selection: Selection) -> Vec<String> {
    let pieces = logs::near_end(log, selection, 1000).unwrap().pieces.map(Result::unwrap);
    let text = |piece| match piece {
        Piece::Line { bytes, .. } => Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        Piece::Dropped { .. } => None,
    };
    pieces.filter_map(text).collect()
}

/// A noisy step must not fill the disk, and its first and last words must stay.
#[test]
fn logs_are_bounded() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let script = "echo first; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo last";
    let mut step = test.step("noisy", script);
    step.log_bytes_max = 400_000;
    let exit = run(&mut keeper, step);
    let dropped = exit.dropped.stdout.unwrap();
    assert!(exit.stdout.len() > 8_000_000 && exit.stdout.len() - dropped.len() < 450_000);
    let on_disk = fs::metadata(test.path("out")).unwrap().blocks() * 512;
    assert!(on_disk < 1_000_000, "{on_disk}");
    let log = log_of(&test, &exit);
    let pieces: Vec<Piece> =
        logs::read(&log, Selection::Both).unwrap().map(Result::unwrap).collect();
    let first = Piece::Line { stream: Stream::Stdout, bytes: b"first\n".to_vec(), more: false };
    assert_eq!(pieces[0], first);
    assert!(pieces.contains(&Piece::Dropped { stream: Stream::Stdout, bytes: dropped.len() }));
    assert_eq!(last_lines(&log, Selection::Both).pop().as_deref(), Some("last"));
}

/// Who reads a log must see the error after the output that led to it.
#[test]
fn streams_are_seen_in_order() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let wait = "while [ ! -e $F ]; do sleep 0.01; done";
    let script = format!("echo E >&2; F=go1; {wait}; echo O; F=go2; {wait}; echo E2 >&2");
    start(&mut keeper, test.step("a", &script));
    let marks = || fs::metadata(logs::marks_path(&test.path("out"))).map_or(0, |m| m.len());
    until("the first mark is there", || marks() >= 24);
    fs::write(test.path("go1"), "").unwrap();
    until("the second mark is there", || marks() >= 48);
    fs::write(test.path("go2"), "").unwrap();
    let exit = exit(&mut keeper);
    let log = log_of(&test, &exit);
    assert_eq!(last_lines(&log, Selection::Both), ["E", "O", "E2"]);
    assert_eq!(last_lines(&log, Selection::Stdout), ["O"]);
}

/// The last notification of a run must get through although the run is over.
#[test]
fn helpers_finish_before_the_keeper_goes() {
    let test = Run::new();
    let mut keeper = test.keeper(1);
    let helper = Spawn {
        argv: ["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo told $BASE"]
            .map(str::to_owned)
            .into(),
        env: Vec::new(),
        dir: test.dir().to_owned(),
        log: test.path("helper"),
        timeout_ms: 0,
        tell: false,
    };
    keeper.send(&[Request::Spawn(helper), Request::Shutdown]).unwrap();
    let leftovers = event(&mut keeper, |event| match event {
        Event::Leftovers(list) => Some(list),
        _ => None,
    });
    assert_eq!(leftovers, []);
    fs::write(test.path("go"), "").unwrap();
    event(&mut keeper, |event| (event == Event::Gone).then_some(()));
    assert_eq!(test.read("helper"), "told base\n");
    until("the lock is free", || piton_process::keeper_alive(test.dir()).is_none());
    assert!(piton_process::Keeper::connect(test.dir(), 1, &env()).unwrap().is_none());
}
