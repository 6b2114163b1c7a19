//! A ledger that is damaged, has a hole, or may not be looked at: it is said, and left as it is.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use std::fs;

use common::Project;
use piton_core::hash::Sha;
use piton_ledger::DATABASE_FILE;
use rusqlite::Connection;

/// A plan whose second step fails.
const PLAN: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [{ id = "one", run = "echo one >> ran.txt" }, { id = "two", run = "false" }]
"#;

fn failed_run() -> Project {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project
}

/// What changes a ledger, or could.
const WRITERS: &[&[&str]] = &[
    &["resume", "r"],
    &["retry", "r", "two"],
    &["skip", "r", "two"],
    &["checkpoint", "r", "-m", "x"],
    &["abort", "r"],
    &["run", "plan.toml", "--resume"],
    &["run", "plan.toml", "--fresh"],
];

/// Lost: what a person does next would be written into a ledger that may be beyond saving.
#[test]
fn a_damaged_ledger_is_refused_by_whatever_writes_and_left_as_it_is() {
    let project = failed_run();
    let path = project.state_dir().join(DATABASE_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 4096 / 2 * 4096;
    bytes[middle..middle + 8192].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    project.piton(&["doctor"]).exits(4);
    for command in WRITERS {
        project.piton(command).exits(4).says("ledger-corrupt").says("restore a backup");
        assert_eq!(fs::read(&path).unwrap(), bytes, "{command:?}");
    }
    assert_eq!(project.lines("ran.txt"), ["one"]);
}

/// Lost: a run whose history has a hole would go on as if what is missing had never been.
#[test]
fn a_run_with_a_hole_in_its_history_is_not_gone_on_with() {
    let project = failed_run();
    let change = |sql: &str| {
        Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap().execute_batch(sql)
    };
    let history = || {
        let conn = Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap();
        let sql = "SELECT seq || ':' || epoch FROM runs";
        conn.query_row(sql, (), |row| row.get::<_, String>(0)).unwrap()
    };
    let before = history();
    change("DELETE FROM events WHERE seq = 4").unwrap();
    for command in WRITERS {
        project.piton(command).exits(4).says("ledger-corrupt");
        assert_eq!(history(), before, "{command:?}");
    }
    // Without the cached state everybody sees it.
    change("DELETE FROM snapshots").unwrap();
    project.piton(&["status", "r"]).exits(4).says("event 4 of a run is missing");
    project.piton(&["runs"]).exits(0).says("warning: run r cannot be read");
    project.piton(&["resume", "r", "--dry-run"]).exits(4);
    assert_eq!(project.lines("ran.txt"), ["one"]);
}

/// Lost: one damaged run would hide where the others stand.
#[test]
fn a_damaged_run_does_not_hide_the_others() {
    let project = failed_run();
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "s"]).exits(1);
    let ledger = Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap();
    let newest = "(SELECT max(id) FROM runs)";
    let damage = format!("DELETE FROM events WHERE seq = 4 AND run = {newest}");
    ledger.execute_batch(&format!("DELETE FROM snapshots; {damage}")).unwrap();
    let said = project.piton(&["status"]).exits(0).says("warning: run s cannot be read");
    assert!(said.stdout.contains("run      r "), "{}", said.stdout);
    project.piton(&["status", "s"]).exits(4).says("is missing");
}

/// Lost: a program would add to a run whose last events it does not understand, because a cached
/// state stands for them.
#[test]
fn a_run_whose_events_cannot_be_read_is_not_gone_on_with() {
    for (damage, code, next) in [
        ("tag = 'step.dreamt'", "ledger-newer", "next: use the newer Piton"),
        ("version = 9", "ledger-newer", "next: use the newer Piton"),
        (
            r#"tag = 'driver.left', body = CAST('{"verdict":"enlightened"}' AS BLOB)"#,
            "ledger-newer",
            "next: use the newer Piton",
        ),
        ("body = x'7b'", "ledger-content", "restore the last backup"),
    ] {
        let project = failed_run();
        project.wait_quiet();
        let path = project.state_dir().join(DATABASE_FILE);
        let sql = format!("UPDATE events SET {damage} WHERE seq = 4");
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        let bytes = fs::read(&path).unwrap();
        for command in WRITERS {
            project.piton(command).exits(4).says(code);
            assert!(fs::read(&path).unwrap() == bytes, "{damage} {command:?}");
        }
        let said = project.piton(&["doctor"]).exits(4).says("event 4").says(next);
        assert!(!said.stdout.contains("is sound"), "{}", said.stdout);
        assert_eq!(project.lines("ran.txt"), ["one"]);
    }
}

/// A plan whose third step waits.
const HELD: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = "echo one >> ran.txt" },
  { id = "two", run = "echo two >> ran.txt" },
  { id = "three", run = "touch begun; while [ ! -e go ]; do sleep 0.02; done" },
]
"#;

/// What reads a ledger, and what changes it.
const ALL: &[&[&str]] = &[
    &["status", "r"],
    &["status"],
    &["runs"],
    &["log", "r"],
    &["show", "r"],
    &["resume", "r"],
    &["resume", "r", "--takeover"],
    &["retry", "r", "two"],
    &["checkpoint", "r", "-m", "x"],
    &["abort", "r"],
    &["rollback", "r", "--yes"],
    &["run", "held.toml", "--resume"],
    &["run", "held.toml", "--fresh"],
    &["gc", "--yes"],
    &["doctor", "--backup", "../copy.db"],
];

/// A run whose driver was killed in its third step: all of its history is in the WAL.
fn killed_run() -> Project {
    let project = Project::new();
    project.write("held.toml", HELD);
    project.commit();
    let mut driver = project.spawn(&["run", "held.toml", "--run-id", "r"]);
    project.wait_for("begun");
    driver.kill();
    project
}

/// Lost: SQLite passes over all of a WAL behind a frame that is damaged, an older history would be
/// gone on with, and finished steps would run again.
#[test]
fn damage_in_the_used_part_of_the_wal_is_refused_by_every_command() {
    let project = killed_run();
    let files = ["ledger.db", "ledger.db-wal"].map(|name| project.state_dir().join(name));
    let read = || files.each_ref().map(|file| fs::read(file).unwrap());
    let [database, wal] = read();
    let frame = 24 + 4096;
    let used = wal[32..].chunks(frame).take_while(|f| f.get(8..16) == Some(&wal[16..24])).count();
    assert!(used > 20, "{used}");
    for at in (0..used).step_by(used / 6).chain([used - 1]) {
        let mut bytes = wal.clone();
        bytes[32 + at * frame + 700] ^= 0x10;
        fs::write(&files[1], &bytes).unwrap();
        for command in ALL {
            let said = project.piton(command).exits(4);
            assert!(
                said.stderr.contains("error[ledger-"),
                "frame {at} of {used}, {command:?}: {}",
                said.stderr
            );
        }
        let said = project.piton(&["doctor"]).exits(4).says("backup").says("--new-ledger");
        said.silent_about("is sound");
        assert!(read() == [database.clone(), bytes], "frame {at}: something was changed");
        assert!(!project.outside().join("copy.db").exists());
    }
    let one = project.piton(&["resume", "r"]).exits(4);
    one.says("error[ledger-behind]").says("run r is at event").says("--restored");
    fs::write(&files[1], &wal).unwrap();
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
}

/// Lost: the folder of the ledger put back from somebody's own backup would run finished steps again;
/// a person who means it could not go on, and an agent could.
#[test]
fn an_older_ledger_is_gone_on_with_only_where_a_person_says_so() {
    let project = killed_run();
    let state = project.state_dir();
    let names = ["ledger.db", "ledger.db-wal", "ledger.lock"];
    let older = names.map(|name| fs::read(state.join(name)).unwrap());
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    project.wait_quiet();
    // The note of the last commit is older too: only repository and run know.
    fs::remove_file(state.join("ledger.db-shm")).unwrap();
    for (name, bytes) in names.iter().zip(&older) {
        fs::write(state.join(name), bytes).unwrap();
    }
    for command in [&["resume", "r"][..], &["abort", "r"], &["checkpoint", "r", "-m", "x"]] {
        project.piton(command).exits(4).says("error[ledger-behind]").says("run r is at event");
    }
    project
        .piton(&["doctor"])
        .exits(4)
        .says("the ledger is older than it was")
        .silent_about("is sound");
    project.write("inner.toml", "[[phase]]\nid = \"P\"\nrun = \"$PROGRAM doctor --restored\"\n");
    let inner = project.piton(&["run", "inner.toml", "--run-id", "inner"]).exits(1);
    inner.says("inside-a-step");
    project.piton(&["doctor", "--restored"]).exits(0).says("counts as never done");
    project.piton(&["doctor", "--restored"]).exits(0).says("nothing was changed");
    project.piton(&["doctor"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    project.piton(&["doctor"]).exits(0);
}

/// Lost: a snapshot, which is synced, knows how far the record was, and nobody would ask it.
#[test]
fn a_snapshot_knows_how_far_the_record_was() {
    let project = killed_run();
    let said = project.git(&["log", "-1", "--format=%B", "refs/piton/r/root"]);
    let line = said.lines().find(|l| l.starts_with("Piton-Recorded: 1 ")).unwrap().to_owned();
    let tree = project.git(&["rev-parse", "refs/piton/r/root^{tree}"]);
    let message = said.replace(&line, "Piton-Recorded: 1 9999");
    let commit = project.git(&["commit-tree", "-m", &message, tree.trim()]);
    project.git(&["update-ref", "refs/piton/r/root", commit.trim()]);
    let refused = project.piton(&["resume", "r"]).exits(4);
    refused.says("error[ledger-behind]").says("a snapshot was taken after event 9999");
    project.piton(&["doctor"]).exits(4).says("9999");
}

/// Lost: zeros would be read for what was cut off, and nobody would be told what to do.
#[test]
fn a_ledger_that_was_cut_is_damaged_for_every_command() {
    let project = failed_run();
    project.wait_quiet();
    project.write("held.toml", HELD);
    let path = project.state_dir().join(DATABASE_FILE);
    let whole = fs::read(&path).unwrap();
    for less in [1, 3000, 4096, 5000] {
        let cut = &whole[..whole.len() - less];
        fs::write(&path, cut).unwrap();
        for command in ALL {
            let said = project.piton(command).exits(4).says("ledger-corrupt");
            said.says("restore a backup").says("--new-ledger");
            assert!(fs::read(&path).unwrap() == cut, "{less} {command:?}");
        }
        project.piton(&["doctor"]).exits(4).says("--new-ledger").silent_about("is sound");
    }
    assert!(!project.outside().join("copy.db").exists());
}

/// Lost: somebody who may not look would be told that there is nothing.
#[test]
fn a_ledger_that_may_not_be_read_is_said_to_be_that() {
    let project = Project::with_plan(PLAN);
    fs::write(project.state_dir(), "in the way").unwrap();
    for command in [&["status"][..], &["runs"], &["log"], &["run", "plan.toml", "--dry-run"]] {
        project.piton(command).exits(4).says("state-unreadable").says("cannot read");
    }
    project.piton(&["doctor"]).exits(4).says("cannot read");
}

/// Lost: a run whose recorded plan is gone would continue with another, or could not be replaced.
#[test]
fn a_recorded_plan_that_was_lost_is_named_and_nothing_runs() {
    for damage in ["DELETE FROM blobs", "UPDATE blobs SET body = x'7b7d'"] {
        let project = failed_run();
        project.wait_quiet();
        let conn = Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap();
        conn.execute_batch(damage).unwrap();
        drop(conn);
        let lost = "the recorded plan of run r is missing or damaged";
        project.piton(&["doctor"]).exits(1).says(lost).says("run plan.toml --fresh");
        project.piton(&["resume", "r"]).exits(4).says(lost);
        project.piton(&["run", "plan.toml", "--fresh"]).exits(1);
    }
}

/// Lost: an older program would take the plan of a newer one for damaged, and replace it.
#[test]
fn a_plan_that_a_newer_program_recorded_is_left_as_it_is() {
    let project = failed_run();
    project.wait_quiet();
    let conn = Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap();
    let recorded = || {
        let of = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        conn.query_row("SELECT hash, CAST(body AS TEXT) FROM blobs", (), of).unwrap()
    };
    let (old, body): (String, String) = recorded();
    let body = body.replace(r#""on_failure":"stop""#, r#""on_failure":"improvise""#);
    let new = Sha::of(body.as_bytes()).0;
    conn.execute("UPDATE blobs SET hash = ?1, body = CAST(?2 AS BLOB)", (&new, &body)).unwrap();
    for table in ["events", "snapshots"] {
        let sql = "SET body = CAST(replace(CAST(body AS TEXT), ?1, ?2) AS BLOB)";
        conn.execute(&format!("UPDATE {table} {sql}"), (&old, &new)).unwrap();
    }
    for command in [&["resume", "r"][..], &["abort", "r"], &["run", "plan.toml", "--resume"]] {
        let said = project.piton(command).exits(4).says("ledger-newer");
        said.says("run r: the recorded plan says `improvise`");
    }
    project.piton(&["status", "r"]).exits(0).says("1/2 steps");
    project.piton(&["doctor"]).exits(1).says("next: use the newer Piton");
    assert_eq!(recorded(), (new, body));
}
