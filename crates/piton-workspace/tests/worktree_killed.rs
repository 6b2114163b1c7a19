//! A lane from its worktree to its merge, with the driver killed at each of its git commands.
//!
//! A `git` of the test's own counts the calls and kills whoever made the chosen one: before the
//! command runs, or while it goes on as an orphan. Then the same is called again. If this fails, a
//! kill can lose or repeat a lane's work, or leave something behind.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use piton_workspace::merge::{self, Advanced, Followed, Probe, Rebase};
use piton_workspace::refs::Fence;
use piton_workspace::worktree::{self, BranchEnd, Files, Identity, Spec};
use piton_workspace::{checks, refs};
use tree_support::{ALL, RUN, Repo, hermetic, tree, write};

/// Names the project that a process is to drive, instead of testing.
const DRIVE: &str = "PITON_TEST_DRIVE";

/// More calls than a lane makes; if it makes as many, this test does not see the end.
const CALLS_MAX: usize = 400;

const SHIM: &str = r#"#!/bin/sh
n=$(($(cat "$SHIM/count") + 1))
echo $n >"$SHIM/count"
if [ $n = "$KILL_AT" ]; then
  kill -9 $PPID
  [ $(((n + WAY) % 2)) = 0 ] && exit 1
fi
PATH=${PATH#*:}
exec git "$@"
"#;

#[test]
fn a_lane_ends_well_wherever_its_driver_is_killed() {
    if let Some(root) = std::env::var_os(DRIVE) {
        drive(Path::new(&root));
        return;
    }
    hermetic(|repo| {
        // Every call in both ways takes minutes; each third, in turn before and as an orphan, is
        // what a quick run does.
        let all = std::env::var_os(ALL).is_some();
        let (step, ways) = if all { (1, 0..2) } else { (3, 0..1) };
        for way in ways {
            let mut kill_at = 1;
            while !round(repo, kill_at, way) {
                kill_at += step;
                assert!(kill_at < CALLS_MAX, "it never ends");
            }
            assert!(kill_at > 30, "only {kill_at} calls were seen");
        }
    });
}

/// One kill, and what comes after it; tells whether there was no such call any more.
fn round(repo: &Repo, kill_at: usize, way: usize) -> bool {
    let repo = repo.fresh(&format!("round {kill_at} {way}"));
    let killed = !run(&repo, kill_at, way).success();
    assert_eq!(killed, !repo.root.join(".git/over").exists(), "round {kill_at}");
    if killed {
        assert!(run(&repo, 0, way).success(), "round {kill_at} does not end");
    }
    ended(&repo, kill_at);
    !killed
}

/// Drives the lane in a process of its own, which is killed at a call of git.
fn run(repo: &Repo, kill_at: usize, way: usize) -> ExitStatus {
    let shim = repo.root.with_extension("shim");
    fs::create_dir_all(&shim).unwrap();
    fs::write(shim.join("count"), "0").unwrap();
    fs::write(shim.join("git"), SHIM).unwrap();
    fs::set_permissions(shim.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", shim.display(), std::env::var("PATH").unwrap());
    Command::new(std::env::current_exe().unwrap())
        .args(["a_lane_ends_well_wherever_its_driver_is_killed", "--exact", "--nocapture"])
        .env(DRIVE, &repo.root)
        .env("SHIM", &shim)
        .env("KILL_AT", kill_at.to_string())
        .env("WAY", way.to_string())
        .env("PATH", path)
        .output()
        .unwrap()
        .status
}

/// What a driver does for a lane; the file stands for the ledger.
fn drive(root: &Path) {
    let ledger = root.join(".git/ledger");
    let fence = Fence::raise(root, RUN, 1).unwrap();
    let base = checks::base(root, None).unwrap();
    if let Ok(intent) = fs::read_to_string(&ledger) {
        let (old, new) = intent.split_once(' ').unwrap();
        match merge::probe(root, &base, old, new).unwrap() {
            Probe::NotDone => advance(root, &base, old, new, &fence),
            Probe::RefMoved => {
                assert_eq!(merge::follow(root, &base, old, new).unwrap(), Followed::Done);
            }
            Probe::Done => {}
            Probe::BaseMoved { found } => panic!("{found:?}"),
        }
    } else {
        let (old, new) = work(root, &base, &fence);
        fs::write(root.join(".git/ledger.new"), format!("{old} {new}")).unwrap();
        fs::rename(root.join(".git/ledger.new"), &ledger).unwrap();
        advance(root, &base, &old, &new, &fence);
    }
    let intent = fs::read_to_string(&ledger).unwrap();
    let head = intent.split_once(' ').unwrap().1;
    worktree::remove(root, Path::new(".worktrees/P1/SL-1"), &fence).unwrap();
    let end =
        worktree::delete_branch_if_contained(root, (RUN, "P1/SL-1"), head, "main", &fence).unwrap();
    assert_eq!(end, BranchEnd::Deleted);
    fs::write(root.join(".git/over"), "").unwrap();
}

/// The worktree, the work in it, its commit and its rebase.
fn work(root: &Path, base: &checks::Base, fence: &Fence) -> (String, String) {
    let spec = Spec {
        run_id: RUN.to_owned(),
        lane: "P1/SL-1".to_owned(),
        path: PathBuf::from(".worktrees/P1/SL-1"),
        branch: "lane/P1/SL-1".to_owned(),
        start: refs::value(root, "refs/tags/start").unwrap(),
        copy: Vec::new(),
        workers: 2,
    };
    let lane = worktree::add(root, &spec, fence).unwrap();
    write(&lane.path, "lane.txt", "lane\n");
    write(&lane.path, "dir/b.txt", "changed\n");
    let who = Identity::Configured;
    let done = worktree::commit(&lane.path, &tree(&lane.path), "lane", &who, fence).unwrap();
    let rebased = merge::rebase(root, &done.commit, &lane.start, &base.commit).unwrap();
    let commit = match rebased {
        Rebase::Clean { commit, .. } | Rebase::UpToDate { commit, .. } => commit,
        other => panic!("{other:?}"),
    };
    worktree::move_to(&lane.path, &commit, Files::Follow, fence).unwrap();
    merge::would_follow(base, &base.commit, &commit).unwrap();
    (base.commit.clone(), commit)
}

fn advance(root: &Path, base: &checks::Base, old: &str, new: &str, fence: &Fence) {
    let advanced = merge::advance(root, base, old, new, fence).unwrap();
    assert_eq!(advanced, Advanced::Done(Followed::Done));
}

/// Everything of the lane is there once, and nothing else.
fn ended(repo: &Repo, round: usize) {
    let log = repo.git(&["log", "--format=%s", "main"]);
    assert_eq!(log, "lane\nbase\nfirst", "round {round}");
    assert_eq!(repo.status(), " M a.txt", "round {round}");
    assert_eq!(repo.read("dir/b.txt"), "changed\n");
    assert!(repo.admins().is_empty(), "round {round}: {:?}", repo.admins());
    assert_eq!(repo.worktrees().matches("worktree ").count(), 1, "round {round}");
    let refs = repo.git(&["for-each-ref", "--format=%(refname)"]);
    let wanted = format!("refs/heads/main\nrefs/piton/{RUN}/epoch\nrefs/tags/start");
    assert_eq!(refs, wanted, "round {round}");
    assert!(!repo.root.join(".worktrees/P1").exists(), "round {round}");
    let left = repo.git(&["rev-parse", "--git-dir"]);
    let left = fs::read_dir(repo.root.join(left)).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> =
        left.filter(|name| name.starts_with("piton-") || name.contains(".lock")).collect();
    assert!(left.is_empty(), "round {round}: {left:?}");
}
