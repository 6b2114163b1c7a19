//! Drivers that are killed at a chosen point of a lane's way: the next one continues from there.
//!
//! A `git` first in the PATH counts the calls of its caller that match a pattern. At the chosen one
//! it kills the caller, before or after git has done it. So each point is met exactly, every time. It
//! refuses to stay for several moves of refs, so that each has a call of its own that says what for.

use super::common::Output;
use super::scene::{DOCUMENT, Scene, lane};

/// Kills its parent once, at the call that the files of its folder describe. `REAL` is git itself.
const GIT: &str = r#"#!/bin/sh
at=${0%/*}/../kill
read -r caller < /proc/$PPID/comm
[ "$caller" = piton ] || exec REAL "$@"
case "$*" in *" update-ref "*) [ -z "$GIT_DIR" ] || exit 1;; esac
echo "$*" >> "$at/calls"
read -r pattern < "$at/pattern"
case "$*" in
*$pattern*)
  if mkdir "$at/done" 2>/dev/null; then
    if [ -e "$at/after" ]; then REAL "$@" > /dev/null; fi
    kill -9 $PPID
    exit 1
  fi;;
esac
exec REAL "$@"
"#;

/// Where git is.
fn real_git() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
    found.unwrap().display().to_string()
}

/// Two lanes and a `git` that kills at a pattern.
fn armed(pattern: &str, after: bool) -> Scene {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    arm(&scene, pattern, after);
    scene
}

/// Gives a scene a `git` that kills at a pattern.
pub fn arm(scene: &Scene, pattern: &str, after: bool) {
    std::fs::create_dir_all(scene.outside("kill")).unwrap();
    std::fs::write(scene.outside("kill/pattern"), format!("{pattern}\n")).unwrap();
    if after {
        std::fs::write(scene.outside("kill/after"), "").unwrap();
    }
    scene.program("git", &GIT.replace("REAL", &real_git()));
}

/// The calls of git so far.
pub fn calls(scene: &Scene) -> String {
    scene.told("kill/calls").join("\n")
}

fn piton(scene: &Scene, args: &[&str]) -> Output {
    scene.project.finish(scene.command(super::common::PITON).args(args))
}

/// Kills the driver at a point, resumes, and checks that nothing is lost, doubled or left over.
#[track_caller]
fn survives(pattern: &str, after: bool) {
    survives_in(&armed(pattern, after), pattern);
}

#[track_caller]
fn survives_in(scene: &Scene, pattern: &str) {
    let first = piton(scene, &["run", DOCUMENT]);
    let calls = calls(scene);
    assert_eq!(first.code, 137, "no call like `{pattern}`:\n{calls}\n{}", first.stderr);
    piton(scene, &["resume"]).exits(0);
    assert_eq!(scene.subjects("main").len(), 3, "each lane once: {:?}", scene.subjects("main"));
    assert!(scene.project.has("SL-1-01.txt") && scene.project.has("SL-2-01.txt"));
    for name in ["SL-1", "SL-2"] {
        assert_eq!(scene.stage_status(name, "pre_pr"), "complete");
        assert_eq!(scene.stage_status(name, "after_lane_tests"), "complete");
    }
    scene.nothing_left();
    scene.project.git(&["fsck", "--no-dangling"]);
    assert_eq!(scene.project.git(&["stash", "list"]), "");
}

/// Lost: a half-made worktree or a branch without one would stop the lane.
#[test]
fn a_driver_killed_while_it_makes_a_worktree() {
    survives("piton: lane --stdin", false);
    survives("piton: lane --stdin", true);
    survives("read-tree --reset -u --no-recurse-submodules", false);
    survives("read-tree --reset -u --no-recurse-submodules", true);
    // Where settings ask for more than we do, worktrees are made by git.
    for after in [false, true] {
        let scene = armed("worktree add", after);
        scene.project.git(&["config", "worktree.useRelativePaths", "false"]);
        survives_in(&scene, "worktree add");
    }
}

/// Lost: a snapshot that nobody recorded would stand in the way of the next.
#[test]
fn a_driver_killed_while_it_takes_a_snapshot() {
    survives("piton: snapshot --stdin", false);
    survives("piton: snapshot --stdin", true);
}

/// Lost: a lane's work would be committed twice, or not at all.
#[test]
fn a_driver_killed_while_it_commits_a_lane() {
    survives("commit-tree", false);
    survives("piton: commit lane", false);
    survives("piton: commit lane", true);
    survives("read-tree --reset", false);
}

/// Lost: the second lane would lose its place on base.
#[test]
fn a_driver_killed_while_it_rebases() {
    survives("merge-tree", false);
    survives("piton: move lane", false);
    survives("piton: move lane", true);
}

/// Lost: what a person edits in the worktree of a lane that is committed and waits for its turn, while
/// nobody drives. The new file stayed, the edit of a file that the lane had went without a word.
#[test]
fn edits_after_a_lanes_commit_go_to_base_with_it() {
    edits_go_to_base("merge-tree");
}

/// Lost: the same, without a snapshot, where the driver was killed while it moved the lane.
#[test]
fn edits_in_the_middle_of_a_lanes_move_go_to_base_with_it() {
    edits_go_to_base("piton: move lane");
}

fn edits_go_to_base(pattern: &str) {
    let scene = armed(pattern, false);
    assert_eq!(piton(&scene, &["run", DOCUMENT]).code, 137, "{}", calls(&scene));
    let workspace = ["SL-1", "SL-2"]
        .map(|name| scene.workspace(name))
        .into_iter()
        .find(|workspace| workspace.is_dir());
    let workspace = workspace.unwrap();
    std::fs::write(workspace.join("README"), "edited\n").unwrap();
    std::fs::write(workspace.join("new.txt"), "new\n").unwrap();
    piton(&scene, &["resume"]).exits(0);
    assert_eq!(scene.project.read("README"), "edited\n", "{:?}", scene.subjects("main"));
    assert_eq!(scene.project.read("new.txt"), "new\n");
    scene.nothing_left();
}

/// Lost: base would move twice, or its work tree would stay behind.
#[test]
fn a_driver_killed_while_it_moves_base() {
    survives("piton: merge lane", false);
    survives("piton: merge lane", true);
    survives("read-tree -m -u [0-9a-f]", false);
    survives("read-tree -m -u [0-9a-f]", true);
}

/// Lost: a merged lane would leave its branch or worktree for ever.
#[test]
fn a_driver_killed_while_it_cleans_up() {
    survives("piton: lane merged", false);
    survives("piton: lane merged", true);
}

/// Lost: a lane that began anew would get the files it had begun with long ago, and its next commit
/// would take back what other lanes brought to base since.
#[test]
fn a_lane_killed_while_it_begins_anew_is_taken_back_to_no_files_of_before() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    piton(&scene, &["run", DOCUMENT]).exits(0);
    piton(&scene, &["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    arm(&scene, "piton: lane --stdin", true);
    let killed = piton(&scene, &["resume"]);
    assert_eq!(killed.code, 137, "{}", calls(&scene));
    piton(&scene, &["rollback", "--yes"]).exits(0);
    piton(&scene, &["undo", "--yes"]).exits(0);
    piton(&scene, &["resume"]).exits(0);
    let has = |name: &str| scene.project.has(name);
    assert!(has("SL-1-01.txt") && has("SL-2-01.txt"), "{:?}", scene.subjects("main"));
    scene.nothing_left();
}

/// Lost: whoever is told that nothing was changed would not look at a base that has moved.
#[test]
fn a_rollback_that_first_finishes_a_merge_says_that_base_moved() {
    let scene = Scene::of(&[lane("SL-1")]);
    arm(&scene, "piton: merge lane", true);
    assert_eq!(piton(&scene, &["run", DOCUMENT]).code, 137, "{}", calls(&scene));
    let said = piton(&scene, &["rollback", "--lane", "SL-1", "--yes"]).exits(1);
    said.says("nothing was rolled back")
        .says("was finished first")
        .silent_about("nothing was changed")
        .silent_about("everything is as before");
    assert!(scene.project.has("SL-1-01.txt"));
    piton(&scene, &["rollback", "--lane", "SL-1", "--yes"]).exits(0);
    assert!(!scene.project.has("SL-1-01.txt"));
}

/// Lost: disk space and names of folders, one kill after the other.
#[test]
fn the_next_driver_removes_what_a_killed_one_left_half_made() {
    use std::fs;
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1-01", "exit 1");
    scene.run(&["--run-id", "r1"]).exits(1);
    scene.usual_agent("SL-1-01");
    let root = scene.project.root();
    let half = [
        ".git/objects/pack/tmp_pack_piton_1_2",
        ".git/objects/pack/tmp_idx_piton_1_3",
        ".git/objects/pack/pack-0123.keep",
        ".git/objects/tmp_obj_piton_1_4",
        ".git/worktrees/SL-9/locked.new.r1",
        ".worktrees/P1",
    ];
    let theirs = [".git/objects/pack/tmp_pack_Xyz", ".git/objects/pack/pack-4567.keep"];
    for name in half.iter().chain(&theirs).filter(|name| !name.ends_with("P1")) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = if name.contains("0123") { "PACK" } else { "piton: run r1, lane P1/SL-9\n" };
        fs::write(path, text).unwrap();
    }
    scene.resume(&[]).exits(0);
    // As by a driver that was killed in front of its first worktree.
    fs::create_dir_all(root.join(".worktrees/P1")).unwrap();
    scene.project.piton(&["rollback", "r1", "--yes"]).exits(0);
    let left: Vec<&str> = half.into_iter().filter(|name| root.join(name).exists()).collect();
    assert_eq!(left, [""; 0]);
    assert!(theirs.iter().all(|name| root.join(name).exists()));
}
