//! Ledgers of released versions open for ever: every run, event, plan and request in them is read, and
//! people see their runs.
//!
//! `golden/VERSION.db` is a ledger as that version wrote it. It is never changed once the version is
//! released. Until then `PITON_UPDATE_GOLDEN=1 cargo test -p piton --test golden` writes it anew.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;
#[path = "../../piton-formats/tests/samples/mod.rs"]
mod samples;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::Project;
use piton_core::request::Request;
use piton_core::summary::run_status;
use piton_core::{RunState, Timestamp, apply};
use piton_engine::Store;
use piton_engine::store::Commit;
use piton_formats::codec;
use piton_ledger::{DATABASE_FILE, NewRequest, NewRun, Open, Owner, Sqlite, backup, check};
use samples::runs::{RUN_STATUSES, Run, runs};
use serde_json::Value;

/// Set to write the ledger of this version anew.
const UPDATE_VARIABLE: &str = "PITON_UPDATE_GOLDEN";
/// When the runs began: 2026-01-02T03:04:05Z.
const BEGAN: i64 = 1_767_323_045_000;
/// Largest ledger that is kept in the project.
const BYTES_MAX: u64 = 200_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Writes a ledger with a run in each status and all that is stored.
fn write(path: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Sqlite::open(dir.path(), Open::ReadWrite).unwrap();
    let mut store = Store::new(Box::new(ledger));
    for run in runs() {
        record(&mut store, &run);
    }
    let run = store.ledger().run("running").unwrap().unwrap().run;
    for (at, request) in (BEGAN..).zip(samples::requests()) {
        let (key, body) = (request.key("running", 1), serde_json::to_vec(&request).unwrap());
        let (tag, version) = (Request::TAG, Request::VERSION);
        let new = NewRequest { key: &key, at, from: "ada", tag, version, body: &body };
        store.ledger().request(run, &new).unwrap();
    }
    drop(store);
    let copy = dir.path().join("copy");
    backup(dir.path(), &copy).unwrap();
    rusqlite::Connection::open(&copy).unwrap().execute_batch("VACUUM").unwrap();
    // In its place at once: tests run side by side.
    let part = tempfile::NamedTempFile::new_in(folder()).unwrap();
    fs::copy(copy, part.path()).unwrap();
    part.persist(path).unwrap();
}

fn record(store: &mut Store, run: &Run) {
    // Of another machine, which nobody sees.
    let owner = Owner {
        host: "golden.invalid".to_owned(),
        pid: 7,
        process_start: 7,
        boot_id: "golden".to_owned(),
        pid_namespace: 7,
    };
    let (title, root) = (run.plan.title.as_str(), "/project");
    let new = NewRun { run_id: run.id, plan: "plan.toml", title, root, at: BEGAN };
    let row = store.create(&new, &run.plan, &owner).unwrap();
    let mut state = RunState::default();
    for (seq, event) in (0..).zip(&run.events) {
        let at = Timestamp(BEGAN + i64::try_from(seq).unwrap() * 1_000);
        apply(&mut state, at, event).unwrap();
        let last = seq + 1 == run.events.len() as u64;
        let commit = Commit {
            row: &row,
            epoch: row.epoch,
            expected_seq: seq,
            at,
            events: std::slice::from_ref(event),
            state: &state,
            answered: &[],
            release: last && !run.is_driven(),
        };
        store.append(&commit).unwrap();
    }
}

/// The ledgers that are kept, this version's written anew where that is asked for.
fn kept() -> Vec<PathBuf> {
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        write(&folder().join(concat!(env!("CARGO_PKG_VERSION"), ".db")));
    }
    let all = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "db")).collect()
}

/// A project whose ledger is a copy of one that is kept.
fn project(of: &Path) -> Project {
    assert!(fs::metadata(of).unwrap().len() <= BYTES_MAX, "{} is too large", of.display());
    let project = Project::without_git("project");
    fs::create_dir(project.state_dir()).unwrap();
    fs::copy(of, project.state_dir().join(DATABASE_FILE)).unwrap();
    project
}

/// Lost: an upgrade would end all runs there are.
#[test]
fn ledgers_of_all_versions_are_read() {
    let mut tags = BTreeSet::new();
    for file in kept() {
        let project = project(&file);
        assert_eq!(check(&project.state_dir()).unwrap(), []);
        let ledger = Sqlite::open(&project.state_dir(), Open::ReadOnly).unwrap();
        let mut store = Store::new(Box::new(ledger));
        let (mut statuses, mut requests) = (BTreeSet::new(), 0);
        for row in store.runs().unwrap() {
            let loaded = store.load_row(row.clone()).unwrap();
            let mut state = RunState::default();
            for stored in store.ledger().events(row.run, 0, usize::MAX).unwrap() {
                let event = codec::decode(&stored.tag, stored.version, &stored.body).unwrap();
                let value = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap();
                let again = value(&codec::encode(&event).body);
                assert_eq!(again, value(&stored.body), "all that was said is understood");
                apply(&mut state, Timestamp(stored.at), &event).unwrap();
                tags.insert(stored.tag);
            }
            if loaded.seq > 0 {
                assert_eq!(state, loaded.state, "{}", row.run_id);
                store.plan(&state).unwrap();
            }
            // The status is in the name.
            let driven = row.owner.is_some();
            let status = run_status(&loaded.state, driven && row.seq > 0).as_str();
            assert_eq!(row.run_id.split('-').next(), Some(status));
            statuses.insert(status);
            for asked in store.ledger().requests(row.run).unwrap() {
                codec::decode_request(&asked.tag, asked.version, &asked.body).unwrap();
                requests += 1;
            }
        }
        let all = RUN_STATUSES.iter().map(|status| status.as_str());
        assert_eq!(statuses, all.collect());
        assert_eq!(requests, samples::requests().len());
    }
    // What is new since a version is in the ledger of a later one.
    assert_eq!(tags, codec::TAGS.iter().map(|(tag, _)| (*tag).to_owned()).collect());
}

/// Lost: what people see of runs of an older version.
#[test]
fn people_see_the_runs_of_all_versions_and_go_on() {
    for file in kept() {
        let project = project(&file);
        let listed = project.piton(&["runs", "--json"]).exits(0).json();
        for run in listed.as_array().unwrap() {
            assert_eq!(run["problem"], Value::Null, "{run}");
            let id = run["run_id"].as_str().unwrap();
            let named = id.split('-').next().unwrap();
            // Nobody drives it any more.
            let driven = ["running", "retrying", "parked"].contains(&named);
            let status = if driven { "interrupted" } else { named };
            assert_eq!(run["status"], status, "{run}");
            assert_eq!(project.status(id), status);
            project.piton(&["show", id]).exits(0);
            project.piton(&["log", id]).exits(0);
        }
        project.piton(&["skip", "failed", "P1/A/work"]).exits(0);
        assert_eq!(project.status("failed"), "complete");
    }
}
