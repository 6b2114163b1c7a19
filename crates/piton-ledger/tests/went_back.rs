//! A ledger that lost its last commits is refused, wherever it lost them, and so is a cut file.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

use piton_ledger::{
    Append, DATABASE_FILE, Error, LOCK_FILE, Ledger, Liveness, NewEvent, NewRun, Open, Owner,
    Sqlite, accept, backup, check,
};
use tempfile::TempDir;

const WAL_FILE: &str = "ledger.db-wal";
/// A frame of the WAL: a page and what is said of it.
const FRAME_BYTES: usize = 24 + 4096;

fn new_run(ledger: &mut Sqlite, run_id: &str) -> piton_ledger::RunRow {
    let new = NewRun { run_id, plan: "p", title: "t", root: "/", at: 1 };
    ledger.create_run(&new, &Owner::current()).unwrap()
}

/// A ledger as a killed driver leaves it: one run that is over and in the database, and two others
/// whose history is in the WAL.
fn killed() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
    let over = new_run(&mut ledger, "over").run;
    ledger.release(over, 1, 1).unwrap();
    let event = [NewEvent { at: 1, tag: "tag", version: 1, body: &[1; 900] }];
    for run_id in ["first", "second"] {
        let run = new_run(&mut ledger, run_id).run;
        for seq in 0..4 {
            ledger.append(&Append::new(run, 1, seq, 1, &event)).unwrap();
        }
    }
    home
}

fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in [DATABASE_FILE, WAL_FILE, LOCK_FILE] {
        fs::copy(from.join(file), to.path().join(file)).unwrap();
    }
    to
}

fn contents(dir: &Path) -> Vec<Vec<u8>> {
    [DATABASE_FILE, WAL_FILE].map(|file| fs::read(dir.join(file)).unwrap_or_default()).into()
}

/// That nobody goes on with the ledger, and nothing of it changes.
fn assert_refused(dir: &Path, what: &str, is_right: impl Fn(&Error) -> bool) {
    let before = contents(dir);
    for mode in [Open::ReadOnly, Open::ReadWrite] {
        let error = Sqlite::open(dir, mode).map(drop).expect_err(what);
        assert!(is_right(&error), "{what}: {error}");
    }
    assert!(!check(dir).unwrap().is_empty(), "{what}");
    let to = dir.join("copy.db");
    assert!(backup(dir, &to).is_err() && !to.exists(), "{what}");
    assert!(contents(dir) == before, "{what}");
}

/// Lost, a driver would go on from an older history, and finished steps would run again.
#[test]
fn damage_anywhere_in_the_used_part_of_the_wal_is_refused() {
    let home = killed();
    let wal = fs::read(home.path().join(WAL_FILE)).unwrap();
    let frames = (wal.len() - 32) / FRAME_BYTES;
    assert!(frames > 8, "{frames}");
    let behind = |error: &Error| matches!(error, Error::Behind { .. } | Error::Corrupt { .. });
    // A prime number: heads, checksums and pages of the frames are all met.
    for at in (0..wal.len()).step_by(1009) {
        let damaged = copy(home.path());
        let mut bytes = wal.clone();
        bytes[at] ^= 0x10;
        fs::write(damaged.path().join(WAL_FILE), bytes).unwrap();
        assert_refused(damaged.path(), &format!("byte {at}"), behind);
    }
    fs::write(home.path().join(WAL_FILE), &wal[..wal.len() - FRAME_BYTES]).unwrap();
    assert_refused(home.path(), "cut", behind);
    fs::remove_file(home.path().join(WAL_FILE)).unwrap();
    assert_refused(home.path(), "deleted", behind);
    // Only a person knows whether that is what they wanted.
    assert!(accept(home.path()).unwrap());
    let runs = Sqlite::open(home.path(), Open::ReadWrite).unwrap().runs().unwrap();
    assert_eq!(runs.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["over"]);
}

/// Lost, deleting old runs or a note that is torn would lock a person out of a sound ledger.
#[test]
fn what_is_gone_on_purpose_and_a_torn_note_are_no_damage() {
    let home = killed();
    let opens = || drop(Sqlite::open(home.path(), Open::ReadOnly).unwrap());
    let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
    let second = ledger.run("second").unwrap().unwrap().run;
    ledger.delete_run(second, 1, &|_| Liveness::Dead).unwrap();
    opens();
    let last = new_run(&mut ledger, "last").run;
    let lock = home.path().join(LOCK_FILE);
    let note = fs::read_to_string(&lock).unwrap();
    ledger.release(last, 1, 2).unwrap();
    for torn in [note.replacen("1 0", "9 9", 1), note[..100].to_owned(), "\0".repeat(200)] {
        fs::write(&lock, torn).unwrap();
        opens();
    }
    fs::write(&lock, note.replace("1 0", "9 9")).unwrap();
    assert!(matches!(Sqlite::open(home.path(), Open::ReadOnly), Err(Error::Behind { .. })));
}

/// Lost, zeros would be read for what was cut off, and a backup would hand them on.
#[test]
fn a_file_that_was_cut_is_damaged() {
    let home = killed();
    let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
    new_run(&mut ledger, "closed");
    let closed = ledger.run("closed").unwrap().unwrap().run;
    ledger.release(closed, 1, 2).unwrap();
    drop(ledger);
    let path: PathBuf = home.path().join(DATABASE_FILE);
    let whole = fs::read(&path).unwrap();
    for less in [1, 100, 2048, 4095, 4096, 5000, 8192, whole.len() - 4096] {
        fs::write(&path, &whole[..whole.len() - less]).unwrap();
        let corrupt = |error: &Error| matches!(error, Error::Corrupt { .. });
        assert_refused(home.path(), &format!("{less} bytes less"), corrupt);
    }
}
