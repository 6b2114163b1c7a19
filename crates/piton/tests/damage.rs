//! A ledger that is damaged, has a hole, or may not be looked at: it is said, and left as it is.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

use std::fs;

use common::Project;
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
    project.piton(&["runs"]).exits(0).says("warning: run r can't be read");
    project.piton(&["resume", "r", "--dry-run"]).exits(4);
    assert_eq!(project.lines("ran.txt"), ["one"]);
}

/// Lost: a program would add to a run whose last events it does not understand, because a cached
/// state stands for them.
#[test]
fn a_run_whose_events_cannot_be_read_is_not_gone_on_with() {
    for (damage, code, next) in [
        ("tag = 'step.dreamt'", "ledger-newer", "next: use the newer Piton"),
        ("version = 9", "ledger-newer", "next: use the newer Piton"),
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

/// Lost: a run whose recorded plan is gone could neither go on nor be found out about.
#[test]
fn a_recorded_plan_that_was_lost_is_named_and_put_back_from_its_file() {
    for damage in [
        "DELETE FROM blobs",
        "UPDATE blobs SET body = x'7b7d'",
        "UPDATE blobs SET body = CAST(replace(CAST(body AS TEXT), 'false', 'true ') AS BLOB)",
    ] {
        let project = failed_run();
        project.wait_quiet();
        let change = |sql: &str| {
            let conn = Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap();
            conn.execute_batch(sql).unwrap();
        };
        change(damage);
        project.piton(&["doctor"]).exits(1).says("run r: the plan on record").says("resume r");
        let other = PLAN.replace("echo one", "echo other");
        project.write("plan.toml", &other);
        project.piton(&["resume", "r"]).exits(4).says("put plan.toml back");
        project.write("plan.toml", PLAN);
        project.piton(&["resume", "r"]).exits(1).says("takes its place");
        project.piton(&["doctor"]).exits(0);
        assert_eq!(project.lines("ran.txt"), ["one"]);
        change(damage);
        project.piton(&["run", "plan.toml", "--fresh"]).exits(1);
    }
}

/// Lost: steps of a run whose recorded plan is gone could only be ended by hand.
#[test]
fn a_run_whose_recorded_plan_was_lost_can_be_ended() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"touch begun; while [ ! -e go ]; do sleep 0.02; done\"\n",
    );
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    driver.kill();
    project.remove("plan.toml");
    let conn = Connection::open(project.state_dir().join(DATABASE_FILE)).unwrap();
    conn.execute_batch("DELETE FROM blobs").unwrap();
    drop(conn);
    project.piton(&["abort", "r"]).exits(0).says("the plan on record of run r is missing");
    assert_eq!(project.status("r"), "aborted");
    project.wait_quiet();
}
