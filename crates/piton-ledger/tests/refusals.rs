//! What is refused and left alone: damaged, newer and foreign files, writes through a reader.
//!
//! Also what a crash may leave behind at creation, and what the check and the backup say.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use piton_ledger::{
    Acquire, Append, DATABASE_FILE, Error, Ledger, Liveness, NewEvent, NewRun, Open, Owner, RunKey,
    Sqlite, accept, backup, check, unwritable,
};
use rusqlite::Connection;
use tempfile::TempDir;

fn scratch() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("deep/piton");
    (home, dir)
}

/// A ledger with a run of ten events.
fn filled(dir: &Path) -> (Sqlite, RunKey) {
    let mut ledger = Sqlite::open(dir, Open::ReadWrite).unwrap();
    let new = NewRun { run_id: "run", plan: "p", title: "t", root: "/", at: 1 };
    let run = ledger.create_run(&new, &Owner::current()).unwrap().run;
    let events = [NewEvent { at: 1, tag: "tag", version: 1, body: &[1; 900] }; 10];
    ledger.append(&Append::new(run, 1, 0, 1, &events)).unwrap();
    (ledger, run)
}

fn raw(dir: &Path, sql: &str) {
    let conn = Connection::open(dir.join(DATABASE_FILE)).unwrap();
    conn.execute_batch(sql).unwrap();
}

fn refused(dir: &Path, mode: Open) -> Error {
    Sqlite::open(dir, mode).map(|_| ()).unwrap_err()
}

#[test]
fn a_ledger_is_for_its_user_alone() {
    let (_home, dir) = scratch();
    let ledger = filled(&dir);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(ledger);
}

#[test]
fn a_reader_creates_nothing_and_writes_nothing() {
    let (_home, dir) = scratch();
    assert!(matches!(refused(&dir, Open::ReadOnly), Error::NoLedger { .. }));
    assert!(matches!(check(&dir), Err(Error::NoLedger { .. })));
    assert!(!dir.exists());
    let (_writer, run) = filled(&dir);
    let mut reader = Sqlite::open(&dir, Open::ReadOnly).unwrap();
    assert_eq!(reader.load(run).unwrap().1.len(), 10);
    assert!(matches!(reader.heartbeat(run, 1, 2), Err(Error::ReadOnly)));
    assert!(matches!(reader.put_blob("hash", b""), Err(Error::ReadOnly)));
}

/// Lost, whoever may not look would be told that there are no runs, and start them again.
#[test]
fn a_ledger_that_may_not_be_looked_at_is_not_a_missing_one() {
    let (home, dir) = scratch();
    // The folder's name leads to a file: nobody, not even root, can look below it.
    fs::create_dir_all(dir.parent().unwrap()).unwrap();
    fs::write(&dir, "").unwrap();
    assert!(matches!(refused(&dir, Open::ReadOnly), Error::Unreadable { .. }));
    assert!(matches!(check(&dir), Err(Error::Unreadable { .. })));

    let closed = home.path().join("closed");
    drop(filled(&closed));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&closed).is_err() {
        assert!(matches!(refused(&closed, Open::ReadOnly), Error::Unreadable { .. }));
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Lost, a person is told that the ledger failed, and not which file is in the way.
#[test]
fn what_cannot_be_written_is_named() {
    let (_home, dir) = scratch();
    drop(filled(&dir));
    assert!(unwritable(&dir).is_none());
    let modes = |file: u32, folder: u32| {
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set(&dir.join(DATABASE_FILE), file).unwrap();
        set(&dir, folder).unwrap();
    };
    for (file, folder, named) in [(0o400, 0o700, DATABASE_FILE), (0o600, 0o500, "")] {
        modes(file, folder);
        // Root may write everything.
        let refused = unwritable(&dir).map(|_| match Sqlite::open(&dir, Open::ReadWrite) {
            Ok(mut ledger) => ledger.put_blob("hash", b"").unwrap_err(),
            Err(error) => error,
        });
        modes(0o600, 0o700);
        if let Some(error) = refused {
            let Error::Unwritable { path, .. } = error else { panic!("{error}") };
            assert!(path.ends_with(dir.join(named)), "{}", path.display());
        }
    }
}

/// Lost, a driver that was taken over and wakes up carries the log of its successor over as it
/// ends.
#[test]
fn one_that_was_taken_over_leaves_the_files_as_they_are() {
    let (_home, dir) = scratch();
    let (mut old, run) = filled(&dir);
    for hash in ["1", "2", "3"] {
        old.put_blob(hash, b"").unwrap();
    }
    let mut new = Sqlite::open(&dir, Open::ReadWrite).unwrap();
    let dead = |_: &Owner| Liveness::Dead;
    let lease = new.acquire(run, &Owner::current(), 2, Acquire::Takeover, &dead).unwrap();
    let files = || {
        let wal = dir.join(format!("{DATABASE_FILE}-wal"));
        [dir.join(DATABASE_FILE), wal].map(|path| fs::read(path).unwrap())
    };
    drop(new);
    let before = files();
    drop(old);
    assert!(files() == before, "the log was carried over");

    // Given up, the lease leaves a database that is whole without its log.
    let mut next = Sqlite::open(&dir, Open::ReadWrite).unwrap();
    next.release(run, lease.epoch, 3).unwrap();
    drop(next);
    assert_eq!(files()[1], b"");
    raw(&dir, "SELECT 1");
    assert!(Sqlite::open(&dir, Open::ReadOnly).unwrap().blob("3").unwrap().is_some());
}

#[test]
fn a_path_that_is_too_long_for_sqlite_is_said_to_be() {
    let (home, _) = scratch();
    let name = "d".repeat(200);
    let dir = home.path().join(&name).join(&name).join(&name);
    let error = refused(&dir, Open::ReadWrite);
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
}

/// Lost, a crash in the first moments would leave a project that cannot be used.
#[test]
fn an_interrupted_creation_is_completed() {
    for (step, leave) in [
        ("the lock alone", None),
        ("an empty file", Some("")),
        ("the journal mode alone", Some("PRAGMA journal_mode = WAL")),
        ("a rolled back schema", Some("PRAGMA journal_mode = WAL; BEGIN; CREATE TABLE runs (id)")),
    ] {
        let (_home, dir) = scratch();
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("ledger.lock"), "").unwrap();
        if let Some(sql) = leave {
            fs::write(dir.join(DATABASE_FILE), "").unwrap();
            raw(&dir, sql);
        }
        assert!(matches!(refused(&dir, Open::ReadOnly), Error::NoLedger { .. }), "{step}");
        drop(filled(&dir));
        assert_eq!(check(&dir).unwrap(), [], "{step}");
    }
}

#[test]
fn a_newer_ledger_is_refused_and_not_touched() {
    let (_home, dir) = scratch();
    drop(filled(&dir));
    raw(&dir, "PRAGMA user_version = 99");
    let before = fs::read(dir.join(DATABASE_FILE)).unwrap();
    for mode in [Open::ReadOnly, Open::ReadWrite] {
        let error = refused(&dir, mode);
        assert!(matches!(error, Error::Newer { found: 99, known: 2 }), "{error}");
    }
    assert!(!check(&dir).unwrap().is_empty());
    assert_eq!(fs::read(dir.join(DATABASE_FILE)).unwrap(), before);
}

#[test]
fn what_is_no_ledger_is_refused_and_not_touched() {
    let (_home, dir) = scratch();
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(DATABASE_FILE);
    fs::write(&path, "certainly not a database, but long enough to look at".repeat(99)).unwrap();
    let text = fs::read(&path).unwrap();
    let both = [Open::ReadOnly, Open::ReadWrite];
    for mode in both {
        assert!(matches!(refused(&dir, mode), Error::Corrupt { .. }));
    }
    assert!(!check(&dir).unwrap().is_empty());
    assert_eq!(fs::read(&path).unwrap(), text);

    fs::remove_file(&path).unwrap();
    raw(&dir, "CREATE TABLE theirs (id)");
    let theirs = fs::read(&path).unwrap();
    for mode in both {
        assert!(matches!(refused(&dir, mode), Error::Corrupt { .. }));
    }
    assert_eq!(fs::read(&path).unwrap(), theirs);
}

#[test]
fn a_damaged_page_is_found_and_reported_as_damage() {
    let (_home, dir) = scratch();
    let (mut ledger, run) = filled(&dir);
    ledger.release(run, 1, 1).unwrap();
    drop(ledger);
    let path = dir.join(DATABASE_FILE);
    let mut bytes = fs::read(&path).unwrap();
    // Everything but the first page, which holds the header and the schema.
    bytes[4096..].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    assert!(!check(&dir).unwrap().is_empty());
    for mode in [Open::ReadOnly, Open::ReadWrite] {
        assert!(matches!(refused(&dir, mode), Error::Corrupt { .. }));
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// Fills one page in the middle of a ledger with nonsense; gives the bytes of the file as they are.
fn damage(dir: &Path) -> Vec<u8> {
    let path = dir.join(DATABASE_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let page = bytes.len() / 4096 / 2 * 4096;
    bytes[page..page + 4096].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    bytes
}

/// Lost, new work would be recorded in a ledger that may be beyond saving, and spoil what is left.
#[test]
fn a_damaged_ledger_is_not_opened_for_writing_wherever_the_damage_lies() {
    let (_home, dir) = scratch();
    let (mut ledger, run) = filled(&dir);
    let events = [NewEvent { at: 1, tag: "tag", version: 1, body: &[1; 900] }; 50];
    ledger.append(&Append::new(run, 1, 10, 1, &events)).unwrap();
    ledger.release(run, 1, 1).unwrap();
    drop(ledger);
    let bytes = damage(&dir);
    let error = refused(&dir, Open::ReadWrite);
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(fs::read(dir.join(DATABASE_FILE)).unwrap(), bytes);
}

/// Lost, a driver that meets damage in the middle of its work would go on writing around it.
#[test]
fn nothing_is_written_after_damage_was_met() {
    let (_home, dir) = scratch();
    let (mut ledger, run) = filled(&dir);
    let body = vec![7; 2 << 20];
    ledger.put_blob("large", &body).unwrap();
    ledger.release(run, 1, 1).unwrap();
    drop(ledger);
    let mut bytes = fs::read(dir.join(DATABASE_FILE)).unwrap();
    let leaf = bytes.windows(64).position(|w| w == [1; 64]).unwrap() / 4096 * 4096;
    bytes[leaf..leaf + 4096].fill(0x5a);
    fs::write(dir.join(DATABASE_FILE), &bytes).unwrap();
    // Too large to be looked through when it is opened.
    let mut ledger = Sqlite::open(&dir, Open::ReadWrite).unwrap();
    assert!(matches!(ledger.load(run), Err(Error::Corrupt { .. })));
    assert!(matches!(ledger.put_blob("more", b""), Err(Error::Corrupt { .. })));
    drop(ledger);
    assert_eq!(fs::read(dir.join(DATABASE_FILE)).unwrap(), bytes);
}

/// Lost, a run would go on from a history with a hole, and finished work would run again.
#[test]
fn a_run_with_a_gap_is_neither_loaded_nor_handed_over() {
    let cached = "INSERT INTO snapshots VALUES (1, 7, 1, x'')";
    for (sql, loads) in [
        ("DELETE FROM events WHERE seq = 5".to_owned(), false),
        ("DELETE FROM events WHERE seq = 10".to_owned(), false),
        ("DELETE FROM events".to_owned(), false),
        ("UPDATE runs SET seq = 9".to_owned(), false),
        (format!("{cached}; DELETE FROM events WHERE seq = 8"), false),
        // Behind the cached state only the one who takes the run over looks.
        (format!("{cached}; DELETE FROM events WHERE seq = 5"), true),
    ] {
        let (_home, dir) = scratch();
        let (mut ledger, run) = filled(&dir);
        ledger.release(run, 1, 1).unwrap();
        drop(ledger);
        raw(&dir, &sql);
        accept(&dir).unwrap();
        let mut ledger = Sqlite::open(&dir, Open::ReadWrite).unwrap();
        let me = Owner::current();
        let taken = ledger.acquire(run, &me, 2, Acquire::IfFree, &|_| Liveness::Dead);
        assert!(matches!(taken, Err(Error::Corrupt { .. })), "{sql}: {taken:?}");
        assert!(matches!(ledger.put_blob("hash", b""), Err(Error::Corrupt { .. })), "{sql}");
        let mut reader = Sqlite::open(&dir, Open::ReadOnly).unwrap();
        assert_eq!(reader.load(run).is_ok(), loads, "{sql}");
        assert_eq!(reader.run("run").unwrap().unwrap().epoch, 1, "{sql}");
    }
}

#[test]
fn the_check_names_gaps_and_strays() {
    for (sql, expected) in [
        ("DELETE FROM events WHERE seq = 5", "should have events 1 to 10, but has 9"),
        ("DELETE FROM events WHERE seq = 10", "should have events 1 to 10, but has 9"),
        ("UPDATE runs SET seq = 9", "should end at event 9, but has events up to 10"),
        ("INSERT INTO snapshots VALUES (1, 11, 1, x'')", "cached state at event 11"),
        (
            "INSERT INTO events VALUES ((7 << 40) + 1, 1, 'tag', 1, x'')",
            "1 events do not belong to a run",
        ),
        ("DELETE FROM run_info", "1 runs have no name"),
    ] {
        let (_home, dir) = scratch();
        drop(filled(&dir));
        assert_eq!(check(&dir).unwrap(), []);
        raw(&dir, sql);
        accept(&dir).unwrap();
        let findings = check(&dir).unwrap();
        assert_eq!(findings.len(), 1, "{sql}: {findings:?}");
        assert!(findings[0].what.contains(expected), "{sql}: {}", findings[0].what);
    }
}

#[test]
fn a_backup_of_a_live_ledger_opens_as_a_ledger() {
    let (home, dir) = scratch();
    let (mut ledger, run) = filled(&dir);
    let restored = home.path().join("restored");
    fs::create_dir(&restored).unwrap();
    let copy = restored.join(DATABASE_FILE);
    backup(&dir, &copy).unwrap();
    // What comes later is not in it, and a second copy does not replace it.
    ledger.append(&Append::new(run, 1, 10, 1, &[])).unwrap();
    ledger.put_blob("later", b"").unwrap();
    assert!(matches!(backup(&dir, &copy), Err(Error::Exists { .. })));
    assert_eq!(fs::read_dir(&restored).unwrap().count(), 1);
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(check(&restored).unwrap(), []);
    let mut reopened = Sqlite::open(&restored, Open::ReadWrite).unwrap();
    assert_eq!(reopened.events(run, 0, 100).unwrap(), ledger.events(run, 0, 100).unwrap());
    assert_eq!(reopened.blob("later").unwrap(), None);
    reopened.heartbeat(run, 1, 2).unwrap();
}
