//! What git wrote is synced before a ref relies on it: objects of a step's own, and the files of base.
//!
//! Shown by counting syncs with `strace`; without it nothing is shown here.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::path::{Path, PathBuf};
use std::process::Command;

use piton_workspace::snapshot::{Missed, Why};
use piton_workspace::{checks, merge, missed, worktree};
use tree_support::{Repo, commit, git, hermetic, tree};

/// The objects that are synced as single files while a function of this program runs.
fn synced(repo: &Repo, dir: &Path, function: &str) -> Option<String> {
    let log = repo.root.join("../syncs");
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,rename", "-o"])
        .args([log.as_os_str(), std::env::current_exe().unwrap().as_os_str()])
        .args(["--exact", "--ignored", function])
        .env("PITON_TEST_DIR", dir)
        .output()
        .ok()?;
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stdout));
    Some(std::fs::read_to_string(log).unwrap())
}

fn assert_synced(log: &str, ids: &[String]) {
    for id in ids {
        let place = format!("objects/{}/{}>", &id[..2], &id[2..]);
        assert!(log.contains(&place), "{id} was not synced:\n{log}");
    }
}

fn traced_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("PITON_TEST_DIR").unwrap())
}

#[test]
fn commits_of_a_step_are_synced_before_its_lane_stands_on_them() {
    hermetic(|repo| {
        let dir = repo.lane("SL-1").path;
        tree_support::write(&dir, "own.txt", "one\n");
        let first = commit(&dir, "first of a step");
        tree_support::write(&dir, "own.txt", "two\n");
        let second = commit(&dir, "second of a step");
        let blob = git(&dir, &["rev-parse", "HEAD^:own.txt"]);
        let Some(log) = synced(repo, &dir, "commit_for_the_trace") else { return };
        assert_synced(&log, &[first, second, blob]);
    });
}

/// Not a test: the process that the test above traces.
#[test]
#[ignore = "run by the test above"]
fn commit_for_the_trace() {
    let dir = traced_dir();
    let fence = piton_workspace::refs::Fence::raise(&dir, tree_support::RUN, 1).unwrap();
    let identity = worktree::Identity::Configured;
    worktree::commit(&dir, &tree(&dir), "lane", &identity, &fence).unwrap();
}

#[test]
fn a_large_file_that_a_step_added_before_is_synced() {
    hermetic(|repo| {
        let dir = repo.lane("SL-1").path;
        tree_support::write(&dir, "dir/large.bin", "large\n");
        let blob = git(&dir, &["hash-object", "-w", "dir/large.bin"]);
        let Some(log) = synced(repo, &dir, "whole_for_the_trace") else { return };
        assert_synced(&log, &[blob]);
    });
}

/// Not a test: the process that the test above traces.
#[test]
#[ignore = "run by the test above"]
fn whole_for_the_trace() {
    let dir = traced_dir();
    let missed = Missed { path: b"dir/large.bin".to_vec(), why: Why::TooLarge };
    missed::complete(&dir, &git(&dir, &["rev-parse", "HEAD^{tree}"]), &[missed]).unwrap();
}

#[test]
fn files_of_base_are_synced_before_base_moves() {
    hermetic(|repo| {
        repo.write("gone/old.txt", "old\n");
        repo.commit("second");
        repo.git(&["checkout", "-q", "-b", "next"]);
        repo.write("new folder/new.txt", "new\n");
        std::fs::remove_dir_all(repo.root.join("gone")).unwrap();
        repo.commit("third");
        repo.git(&["checkout", "-q", "main"]);
        let Some(log) = synced(repo, &repo.root, "advance_for_the_trace") else { return };
        let at = |what: &str| {
            let found = log.lines().position(|line| line.contains(what));
            found.unwrap_or_else(|| panic!("no {what}:\n{log}"))
        };
        let root = repo.root.display();
        let moved = log.lines().position(|l| l.contains("rename") && l.contains("refs/heads/main"));
        for path in ["/new folder/new.txt>", "/new folder>", ">"] {
            assert!(Some(at(&format!("{root}{path}"))) < moved, "{path}:\n{log}");
        }
    });
}

/// Not a test: the process that the test above traces.
#[test]
#[ignore = "run by the test above"]
fn advance_for_the_trace() {
    let dir = traced_dir();
    let fence = piton_workspace::refs::Fence::raise(&dir, tree_support::RUN, 1).unwrap();
    let base = checks::find_base(&dir, "main").unwrap();
    let (old, new) = (git(&dir, &["rev-parse", "main"]), git(&dir, &["rev-parse", "next"]));
    merge::advance(&dir, &base, &old, &new, &fence).unwrap();
}
