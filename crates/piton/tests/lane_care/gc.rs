//! `gc` and lanes: snapshots and worktrees of deleted runs go, nothing else does.

use std::fs;

use super::common::Project;

/// A lane that works in a worktree and is merged.
const MERGED: &str = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nrun = \"echo a >> a.txt\"\n";
/// The same, but its branch and worktree stay.
const KEPT: &str = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nmerge = \"none\"\nrun = \"echo b >> b.txt\"\n";

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.commit();
    project
}

fn refs(project: &Project) -> String {
    project.git(&["for-each-ref", "--format=%(refname)", "refs/piton/"])
}

/// Lost: snapshots of runs that are long gone would fill the disk, or those of a run that is kept
/// would be missing when it is rolled back.
#[test]
fn snapshots_go_with_their_run_and_not_before() {
    let project = project(MERGED);
    for id in ["r", "s"] {
        project.piton(&["run", "plan.toml", "--fresh", "--run-id", id]).exits(0);
    }
    let both = refs(&project);
    assert!(both.contains("refs/piton/r/lanes/P/main") && both.contains("refs/piton/s/"), "{both}");
    let dry = project.piton(&["gc", "--keep-runs", "0", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(dry["runs"][0]["run_id"], "r");
    assert!(dry["runs"][0]["snapshot_bytes"].as_u64().unwrap() > 0, "{dry}");
    assert_eq!(refs(&project), both, "a dry run deletes nothing");
    project.piton(&["gc", "--keep-runs", "0"]).exits(3).says("add `--yes`");
    assert_eq!(refs(&project), both, "nobody was asked");
    project.piton(&["gc", "--keep-runs", "0", "--yes"]).exits(0).says("bytes of snapshots");
    let rest = refs(&project);
    assert!(
        !rest.contains("refs/piton/r/") && rest.contains("refs/piton/s/lanes/P/main"),
        "{rest}"
    );
    project.piton(&["show", "s"]).exits(0);
}

/// Lost: worktrees of deleted runs would stay for ever, or a person's uncommitted work would go.
#[test]
fn worktrees_of_deleted_runs_go_unless_something_in_them_is_not_committed() {
    let project = project(KEPT);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    project.git(&["worktree", "add", "-q", "-b", "mine", "../mine"]);
    let tree = project.root().join(".worktrees/P/main");
    assert!(tree.join("b.txt").exists());
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "s"]).exits(0);
    fs::write(tree.join("unsaved"), "x").unwrap();
    let gc = ["gc", "--keep-runs", "0", "--yes"];
    project.piton(&gc).exits(0).says("is kept: it has uncommitted changes");
    assert!(tree.join("unsaved").exists());
    fs::remove_file(tree.join("unsaved")).unwrap();
    project.piton(&gc).exits(0).says("lane P/main of r; its branch stays");
    assert!(!tree.exists() && project.has("../mine/plan.toml"));
    project.git(&["rev-parse", "--verify", "lane/P/main"]);
    let list = project.git(&["worktree", "list"]);
    assert!(list.contains("mine") && list.contains("main-2"), "{list}");
    assert_eq!(project.piton(&["status", "s", "--json"]).exits(0).json()["status"], "complete");
}

/// Lost: what commands looked at would be held for ever, or a manual checkpoint would lose its files.
#[test]
fn old_looks_go_and_checkpoints_made_from_them_stay() {
    let plan = "[[phase]]\nid = \"P\"\nrun = \"exit 1\"\n";
    let project = project(plan);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project.write("new.txt", "1");
    project.piton(&["diff", "before_lane_start", "now"]).exits(0).says("new.txt");
    let look = "refs/piton/r/readers/root";
    assert!(refs(&project).contains(look));
    project.piton(&["gc", "--yes"]).exits(0);
    assert!(refs(&project).contains(look), "it is from today");
    // The same files, committed long ago.
    let tree = project.git(&["rev-parse", &format!("{look}^{{tree}}")]);
    let date = "2020-01-01T00:00:00Z";
    let line = format!("git commit-tree -m old {}", tree.trim());
    let old =
        project.finish(project.command("sh").args(["-c", &line]).env("GIT_COMMITTER_DATE", date));
    project.git(&["update-ref", look, old.exits(0).stdout.trim()]);
    project.piton(&["gc", "--dry-run"]).exits(0).says("temporary snapshots");
    project.piton(&["gc", "--yes"]).exits(0);
    assert!(!refs(&project).contains(look));
    project.piton(&["checkpoint", "-m", "here"]).exits(0);
    assert!(refs(&project).contains(look));
    let state = project.piton(&["show", "r", "--json"]).exits(0);
    assert!(state.stdout.contains("here"));
    project.piton(&["gc", "--yes"]).exits(0);
    assert!(refs(&project).contains(look));
}
