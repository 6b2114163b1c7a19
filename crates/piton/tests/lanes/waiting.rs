//! Worktrees of lanes that wait for their pull request: what a person does there meanwhile stays.

use std::fs;

use super::pull_requests::{piton, scene};
use super::scene::{DOCUMENT, Scene};

/// A lane that waits for its pull request.
fn waiting() -> Scene {
    let scene = scene();
    piton(&scene, &["run", DOCUMENT, "--run-id", "r"]).exits(3);
    scene
}

#[track_caller]
fn in_workspace(scene: &Scene, args: &[&str]) {
    let workspace = scene.workspace("SL-1");
    scene.project.finish(scene.project.command("git").args(args).current_dir(workspace)).exits(0);
}

/// Somebody merges the request elsewhere, as another commit perhaps.
fn merged_elsewhere(scene: &Scene) {
    fs::write(scene.outside("gh/merged"), "").unwrap();
}

/// The worktree is there, and both the run and `status` say where and why.
#[track_caller]
fn stays(scene: &Scene, said: &str, what: &str) {
    let workspace = scene.workspace("SL-1");
    let path = workspace.display().to_string();
    assert!(workspace.is_dir(), "{said}");
    assert!(said.contains(&path) && said.contains(what), "{said}");
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    let status = piton(scene, &["status", "r"]).exits(0).stdout.replace("\n    ", " ");
    assert!(status.contains("left ") && status.contains(&path), "{status}");
    piton(scene, &["gc", "--yes"]).exits(0);
    assert!(workspace.is_dir());
}

/// Lost: files that a person wrote in the worktree while the request was open.
#[test]
fn files_that_nobody_committed_keep_the_worktree() {
    let scene = waiting();
    let workspace = scene.workspace("SL-1");
    fs::write(workspace.join("notes.txt"), "mine\n").unwrap();
    fs::write(workspace.join("README"), "edited\n").unwrap();
    piton(&scene, &["resume"]).exits(3).says("README, notes.txt").says("not in its pull request");
    merged_elsewhere(&scene);
    let said = piton(&scene, &["resume"]).exits(0).stderr;
    stays(&scene, &said, "README, notes.txt");
    assert_eq!(fs::read_to_string(workspace.join("notes.txt")).unwrap(), "mine\n");
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
    // Moved away, it goes as always.
    fs::remove_file(workspace.join("notes.txt")).unwrap();
    in_workspace(&scene, &["checkout", "--quiet", "--", "README"]);
    piton(&scene, &["gc", "--yes"]).exits(0);
    assert!(!workspace.exists());
    scene.project.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
    piton(&scene, &["gc", "--yes"]).exits(0);
    scene.nothing_left();
}

/// Lost: that a person went on in the worktree, and nobody has their commits.
#[test]
fn commits_that_base_does_not_have_keep_the_worktree() {
    let scene = waiting();
    fs::write(scene.workspace("SL-1").join("more.txt"), "more\n").unwrap();
    in_workspace(&scene, &["add", "more.txt"]);
    in_workspace(&scene, &["commit", "--quiet", "-m", "more"]);
    piton(&scene, &["resume"]).exits(3).says("commits").says("not in its pull request");
    merged_elsewhere(&scene);
    let said = piton(&scene, &["resume"]).exits(0).stderr;
    stays(&scene, &said, "commits");
    scene.project.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
    piton(&scene, &["gc", "--yes"]).exits(0);
    scene.nothing_left();
}

/// Lost: commits made after the branch was left, which no name leads to.
#[test]
fn commits_on_no_branch_keep_the_worktree() {
    let scene = waiting();
    in_workspace(&scene, &["checkout", "--quiet", "--detach"]);
    in_workspace(&scene, &["commit", "--quiet", "--allow-empty", "-m", "more"]);
    merged_elsewhere(&scene);
    let said = piton(&scene, &["resume"]).exits(0).stderr;
    stays(&scene, &said, "commits");
}

/// Kept for ever: a worktree whose further commits were merged with the request.
#[test]
fn commits_that_base_has_keep_nothing() {
    let scene = waiting();
    fs::write(scene.workspace("SL-1").join("more.txt"), "more\n").unwrap();
    in_workspace(&scene, &["add", "more.txt"]);
    in_workspace(&scene, &["commit", "--quiet", "-m", "more"]);
    scene.project.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
    piton(&scene, &["resume"]).exits(0);
    assert!(scene.project.has("more.txt"));
    scene.nothing_left();
}
