//! Many processes on one ledger, some of them killed.
//!
//! The children are this test binary again, told by an environment variable what to do. Counts
//! are a sample; `PITON_TEST_EVENTS` raises the number of events per process.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use piton_ledger::{
    Acquire, Append, DATABASE_FILE, Error, LOCK_FILE, Ledger, NewEvent, NewRequest, NewRun, Open,
    Owner, Sqlite, check, owner_liveness,
};

const ROLE: &str = "PITON_TEST_ROLE";
const DIR: &str = "PITON_TEST_DIR";
const NAME: &str = "PITON_TEST_NAME";
const EVENTS: &str = "PITON_TEST_EVENTS";

/// As many as the requirement names.
const PROCESSES: usize = 64;
/// Events per process: a sample that takes seconds.
const EVENTS_SAMPLE: u64 = 20;
/// Kills of an appending process.
const KILLS: u64 = 8;
/// What the WAL may take at most: the size at which it is emptied, and what one interval between
/// two looks can add.
const WAL_BYTES_MAX: u64 = 20 << 20;

fn events_per_process() -> u64 {
    env::var(EVENTS).ok().and_then(|text| text.parse().ok()).unwrap_or(EVENTS_SAMPLE)
}

/// Starts this binary again in a role.
fn start(role: &str, dir: &Path, name: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(DIR, dir)
        .env(NAME, name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The entry of children; does nothing in an ordinary run of the tests.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    let dir = env::var_os(DIR).unwrap();
    let (dir, name) = (Path::new(&dir), env::var(NAME).unwrap());
    match &*role {
        "crowd" => crowd(dir, &name),
        "append-for-ever" => append_for_ever(dir),
        "stop-while-holding" => stop_while_holding(dir),
        other => panic!("unknown role {other}"),
    }
}

fn event(body: &[u8]) -> NewEvent<'_> {
    NewEvent { at: 1, tag: "tag", version: 1, body }
}

/// Creates the ledger together with all others, then drives its own run, leaves requests in the
/// common one and reads everybody's.
fn crowd(dir: &Path, name: &str) {
    let mut ledger = Sqlite::open(dir, Open::ReadWrite).unwrap();
    let new = NewRun { run_id: name, plan: "p", title: "t", root: "/", at: 1 };
    let run = ledger.create_run(&new, &Owner::current()).unwrap();
    for seq in 0..events_per_process() {
        let body = format!("{name} {seq}");
        let events = [event(body.as_bytes())];
        let append = Append::new(run.run, run.epoch, seq, 1, &events);
        assert_eq!(ledger.append(&append).unwrap(), seq + 1);
        let all = Sqlite::open(dir, Open::ReadOnly).unwrap().runs().unwrap();
        let request =
            NewRequest { key: &body, at: 1, from: name, tag: "tag", version: 1, body: b"" };
        ledger.request(all.last().unwrap().run, &request).unwrap();
        assert_eq!(ledger.load(run.run).unwrap().1.len() as u64, seq + 1);
        ledger.changed().unwrap();
    }
}

/// Lost, somebody's approval or somebody's step would vanish, or "database is locked" appear.
#[test]
fn a_crowd_of_processes_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("piton");
    let children: Vec<Child> =
        (0..PROCESSES).map(|number| start("crowd", &dir, &format!("run-{number}"))).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut ledger = Sqlite::open(&dir, Open::ReadWrite).unwrap();
    let runs = ledger.runs().unwrap();
    assert_eq!(runs.len(), PROCESSES);
    for row in &runs {
        let events = ledger.events(row.run, 0, usize::MAX).unwrap();
        assert_eq!(events.len() as u64, events_per_process());
        for (event, seq) in events.iter().zip(0..) {
            assert_eq!(event.body, format!("{} {seq}", row.run_id).into_bytes());
        }
    }
    let requests = ledger.requests(runs.last().unwrap().run).unwrap();
    assert_eq!(requests.len() as u64, PROCESSES as u64 * events_per_process());
    assert_eq!(check(&dir).unwrap(), []);
}

/// Takes the run over from its dead predecessor and appends, saying each acknowledged number.
fn append_for_ever(dir: &Path) {
    let mut ledger = Sqlite::open(dir, Open::ReadWrite).unwrap();
    let row = ledger.run("run").unwrap().unwrap();
    let me = Owner::current();
    let lease = ledger.acquire(row.run, &me, 1, Acquire::IfFree, &owner_liveness).unwrap();
    let mut seq = row.seq;
    let state = vec![7; 50_000];
    let mut out = std::io::stdout();
    loop {
        let snapshot = seq.is_multiple_of(8).then_some((1, &state[..]));
        let events = [event(&[1; 400]), event(&[2; 100])];
        let append = Append { snapshot, ..Append::new(row.run, lease.epoch, seq, 1, &events) };
        seq = ledger.append(&append).unwrap();
        if writeln!(out, "acknowledged {seq}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// Lost, a kill would cost acknowledged steps, or the run would stay locked by the dead.
#[test]
fn killed_appenders_lose_nothing_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("piton");
    let new = NewRun { run_id: "run", plan: "p", title: "t", root: "/", at: 1 };
    let mut ledger = Sqlite::open(&dir, Open::ReadWrite).unwrap();
    let run = ledger.create_run(&new, &Owner::current()).unwrap();
    ledger.release(run.run, run.epoch, 1).unwrap();
    drop(ledger);
    for round in 0..KILLS {
        let mut child = start("append-for-ever", &dir, "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        let mut number = |line: String| {
            if let Some((_, text)) = line.rsplit_once("acknowledged ") {
                acknowledged = text.parse().unwrap();
            }
        };
        // A different moment each time; the pipe still holds what was said before the kill.
        lines
            .by_ref()
            .take(40 + 17 * usize::try_from(round).unwrap())
            .flatten()
            .for_each(&mut number);
        child.kill().unwrap();
        lines.map_while(Result::ok).for_each(&mut number);
        child.wait().unwrap();

        let wal = dir.join(format!("{DATABASE_FILE}-wal"));
        assert!(std::fs::metadata(&wal).unwrap().len() <= WAL_BYTES_MAX);
        let mut reader = Sqlite::open(&dir, Open::ReadOnly).unwrap();
        let row = reader.run("run").unwrap().unwrap();
        assert!(acknowledged > 0, "the child never got to work");
        assert!(row.seq == acknowledged || row.seq == acknowledged + 2, "{row:?} {acknowledged}");
        let (snapshot, tail) = reader.load(row.run).unwrap();
        assert_eq!(tail.last().map_or(snapshot.unwrap().seq, |event| event.seq), row.seq);
        assert_eq!(row.epoch, round + 2);
        assert_eq!(check(&dir).unwrap(), []);
    }
}

/// Holds the lock as a writer would, and stops.
fn stop_while_holding(dir: &Path) {
    let file = std::fs::File::open(dir.join(LOCK_FILE)).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "holding").unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)
        .unwrap();
    // The signal may stop another thread a moment earlier than this one.
    loop {
        std::thread::park();
    }
}

/// Lost, a takeover from a stopped driver would hang without a word.
#[cfg(target_os = "linux")]
#[test]
fn a_writer_stopped_in_mid_write_is_named() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("piton");
    let mut ledger = Sqlite::open(&dir, Open::ReadWrite).unwrap();
    let mut child = start("stop-while-holding", &dir, "");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("holding")));
    let refused = ledger.put_blob("hash", b"");
    child.kill().unwrap();
    child.wait().unwrap();
    let error = refused.unwrap_err();
    assert!(matches!(error, Error::HolderStopped { pid, .. } if pid == child.id()), "{error}");
    ledger.put_blob("hash", b"").unwrap();
}
