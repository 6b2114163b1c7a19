//! Looking after a ledger: what `gc` deletes and never deletes, what `doctor` finds.

use std::fs;
use std::path::PathBuf;

use piton_core::event::Event;
use piton_ledger::{Ledger as _, Open, Sqlite};

use super::common::Project;
use super::{PLAN, complete};

fn ids(project: &Project) -> Vec<String> {
    let runs = project.piton(&["runs", "--all", "--json"]).exits(0).json();
    let id = |r: &serde_json::Value| r["run_id"].as_str().unwrap().to_owned();
    runs.as_array().unwrap().iter().map(id).collect()
}

/// Three complete runs of one plan, one that failed, one that was cancelled; the newest first.
fn many() -> Project {
    let project = complete();
    for id in ["s", "t"] {
        project.piton(&["run", "plan.toml", "--fresh", "--run-id", id]).exits(0);
    }
    project.write("fails.toml", "[[phase]]\nid = \"P\"\nrun = \"exit 1\"\n");
    project.piton(&["run", "fails.toml", "--run-id", "f"]).exits(1);
    project.write("other.toml", "[[phase]]\nid = \"P\"\nrun = \"exit 2\"\n");
    project.piton(&["run", "other.toml", "--run-id", "c"]).exits(1);
    project.piton(&["abort", "c", "--cancel"]).exits(0);
    project
}

/// Lost: a run that may still go on, or the last good one, would be deleted.
#[test]
fn gc_never_deletes_what_may_go_on_or_the_last_good() {
    let project = many();
    let dry = project.piton(&["gc", "--keep-runs", "0", "--dry-run"]).exits(0);
    dry.says("delete run s").says("delete run r").says("delete run c").silent_about("delete run t");
    assert_eq!(ids(&project), ["c", "f", "t", "s", "r"], "a dry run deletes nothing");
    project.piton(&["gc", "--keep-runs", "0"]).exits(3).says("error[not-confirmed]");
    assert_eq!(ids(&project).len(), 5, "nobody was asked, nothing was deleted");
    project.piton(&["gc", "--keep-runs", "0", "--yes"]).exits(0).says("deleted 3 runs");
    assert_eq!(ids(&project), ["f", "t"]);
    let idle = project.piton(&["gc", "--keep-runs", "0", "--yes", "--json"]).exits(0).json();
    assert_eq!((&idle["dry_run"], idle["runs"].as_array().unwrap().len()), (&false.into(), 0));
    let folder = |id: &str| project.state_dir().join("runs").join(id).exists();
    assert!(folder("t") && folder("f") && !folder("s") && !folder("r") && !folder("c"));
    project.piton(&["doctor"]).exits(0).says("no problems found");
    project.piton(&["resume", "f"]).exits(1);
}

/// Lost: a ledger would grow with every version of every plan there ever was.
#[test]
fn gc_deletes_plans_that_no_run_refers_to() {
    let project = many();
    let hash = |id: &str| match &project.events(id)[0] {
        Event::RunCreated(created) => created.plan_hash.0.clone(),
        other => panic!("{other:?}"),
    };
    let (gone, kept) = (hash("c"), [hash("f"), hash("t")]);
    project.piton(&["gc", "--keep-runs", "0", "--yes"]).exits(0);
    let mut ledger = Sqlite::open(&project.state_dir(), Open::ReadOnly).unwrap();
    assert_eq!(ledger.blob(&gone).unwrap(), None);
    assert!(kept.iter().all(|hash| ledger.blob(hash).unwrap().is_some()));
}

/// Lost: without a word of a person everything finished would go.
#[test]
fn gc_keeps_the_young_and_the_few() {
    let project = many();
    project.piton(&["gc", "--yes"]).exits(0);
    assert_eq!(ids(&project).len(), 5);
    project.piton(&["gc", "--yes", "--keep-days", "1"]).exits(0);
    assert_eq!(ids(&project).len(), 5);
    project.piton(&["gc", "--yes", "--keep-runs", "3"]).exits(0);
    assert_eq!(ids(&project), ["c", "f", "t", "s"]);
}

/// Lost: a healthy ledger would raise alarm, or nobody could trust a clean bill.
#[test]
fn doctor_finds_nothing_where_nothing_is_wrong() {
    Project::new().piton(&["doctor"]).exits(0).says("no ledger in");
    let project = complete();
    project.piton(&["doctor"]).exits(0).says("is sound").says("1 run").says("no problems found");
    let report = project.piton(&["doctor", "--json"]).exits(0).json();
    assert_eq!(report["clean"], true);
}

/// Lost: a ledger could not be copied while a run is driven.
#[test]
fn a_live_ledger_is_copied_consistently() {
    let plan =
        "[[phase]]\nid = \"P\"\nrun = \"touch begun; while [ ! -e go ]; do sleep 0.02; done\"\n";
    let project = Project::with_plan(plan);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    project.piton(&["doctor", "--backup", "copy.db"]).exits(0).says("copied the ledger");
    project.piton(&["doctor", "--backup", "copy.db"]).exits(2).says("error[backup-exists]");
    let said = project.piton(&["doctor", "--backup", "no/such/copy.db"]).exits(2);
    said.says("error[backup-folder]: cannot write ").says("no/such").says("a folder that exists");
    let said = project.piton(&["doctor", "--backup", "copy.db/within"]).exits(2);
    said.says("error[backup-folder]").says("copy.db/within").says("that you can write to");
    let other = Project::new();
    fs::create_dir_all(other.state_dir()).unwrap();
    fs::copy(project.root().join("copy.db"), other.state_dir().join("ledger.db")).unwrap();
    other.piton(&["doctor"]).exits(0).says("is sound");
    assert_eq!(other.status_json("r")["run_id"], "r");
    project.write("go", "");
    driver.wait().exits(0);
}

/// The ledger of a complete run, all in one file; its path.
fn settled() -> (Project, PathBuf) {
    let project = complete();
    project.wait_quiet();
    // A backup is one whole file, without a log beside it.
    project.piton(&["doctor", "--backup", "whole.db"]).exits(0);
    let ledger = project.state_dir().join("ledger.db");
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", ledger.display()));
    }
    fs::rename(project.root().join("whole.db"), &ledger).unwrap();
    (project, ledger)
}

/// Checks that a ledger is refused with exit 4 by every command that would touch it, unchanged.
#[track_caller]
fn refused(project: &Project, ledger: &std::path::Path, words: &str) {
    let before = fs::read(ledger).unwrap();
    project.piton(&["doctor"]).exits(4).says(words).says("next: ");
    for args in [&["run", "plan.toml"][..], &["resume"], &["status"], &["runs"], &["gc", "--yes"]] {
        project.piton(args).exits(4).says("error[ledger-");
    }
    assert!(fs::read(ledger).unwrap() == before, "the ledger was changed");
}

/// Lost: a damaged history would be written on, and with it the last chance to rescue it.
#[test]
fn a_corrupt_ledger_is_refused_and_not_rewritten() {
    let (project, ledger) = settled();
    let mut bytes = fs::read(&ledger).unwrap();
    bytes[..64].fill(0x5a);
    fs::write(&ledger, &bytes).unwrap();
    refused(&project, &ledger, "error: ");
}

/// Lost: damage in the middle would be found only by the one who needs it.
#[test]
fn doctor_finds_damage_inside() {
    let (project, ledger) = settled();
    let mut bytes = fs::read(&ledger).unwrap();
    let last = bytes.len() - 4096;
    bytes[4096..last].fill(0x5a);
    fs::write(&ledger, &bytes).unwrap();
    let before = fs::read(&ledger).unwrap();
    project.piton(&["doctor"]).exits(4).says("error: ").says("next: ");
    assert!(fs::read(&ledger).unwrap() == before, "the ledger was changed");
}

/// Lost: an older program would damage what a newer one wrote.
#[test]
fn a_newer_ledger_is_refused_and_not_rewritten() {
    let (project, ledger) = settled();
    let mut bytes = fs::read(&ledger).unwrap();
    // SQLite's header holds the format's version at byte 60.
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&ledger, &bytes).unwrap();
    refused(&project, &ledger, "newer");
}

/// Lost: a file that is no database of ours would be taken over.
#[test]
fn a_file_that_is_no_ledger_is_refused() {
    let project = Project::with_plan(PLAN);
    fs::create_dir_all(project.state_dir()).unwrap();
    let ledger = project.state_dir().join("ledger.db");
    fs::write(&ledger, "these are somebody's notes, not a database\n".repeat(40)).unwrap();
    refused(&project, &ledger, "error: ");
}
