//! Each act that can be undone: undone, and the undo undone; and acts that are not the last.

use std::fs;
use std::path::PathBuf;

use crate::common::Project;
use crate::tree::{mine, same, tree};

/// Two lanes that get to base, the second on top of the first.
const PLAN: &str = r#"
[[phase]]
id = "P"
lane = [
  { id = "A", isolation = "worktree", run = "echo a > a.txt" },
  { id = "B", isolation = "worktree", needs = ["A"], run = "echo b > b.txt" },
]
"#;

/// One lane in place that fails until told otherwise.
const IN_PLACE: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = "echo one > one.txt" },
  { id = "two", run = "echo two > two.txt; test -e $HOME/ok" },
]
"#;

fn merged() -> Project {
    let project = Project::with_plan(PLAN);
    project.write("README", "first\n");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    project
}

fn main(project: &Project) -> String {
    project.git(&["rev-parse", "main"]).trim().to_owned()
}

fn workspace(project: &Project, lane: &str) -> PathBuf {
    project.root().join(".worktrees/P").join(lane)
}

/// The number of the newest act with these words.
#[track_caller]
fn act(project: &Project, words: &str) -> String {
    let all = project.piton(&["undo", "--list", "--json"]).exits(0).json();
    let acts = all["acts"].as_array().unwrap().clone();
    let found = acts.iter().find(|a| a["what"] == words);
    found.unwrap_or_else(|| panic!("no {words} in {all:#}"))["act"].to_string()
}

#[track_caller]
fn clean(project: &Project) {
    let dirt = project.git(&["status", "--porcelain", "--", ".", ":!.claude"]);
    assert_eq!(dirt.trim(), "", "the work tree of base follows");
}

/// If this fails, a merge can't be taken back without a trace, or not brought back.
#[test]
fn a_merge_nobody_built_on_goes_back_to_the_commit_before() {
    let project = merged();
    let (after, before) = (main(&project), project.git(&["rev-parse", "main~1"]));
    let files = tree(project.root());
    let merge = act(&project, "merge of P/B");
    let said = project.piton(&["undo", "--act", &merge, "--yes"]).exits(2);
    said.says("removal of the worktree of P/B came later").says("undo that first");
    project.piton(&["undo", "--yes"]).exits(0).says("removal of the worktree of P/B");
    for round in 0..2 {
        let merge = act(&project, "merge of P/B");
        project.piton(&["undo", "--act", &merge, "--dry-run"]).exits(0);
        assert_eq!(main(&project), after);
        project.piton(&["undo", "--act", &merge, "--yes"]).exits(0).says("merge of P/B");
        assert_eq!(main(&project), before.trim(), "round {round}");
        assert!(project.has("a.txt") && !project.has("b.txt"));
        clean(&project);
        let resumed = project.piton(&["resume"]);
        assert_ne!(resumed.code, 0, "the lane waits for a word: {resumed:?}");
        assert_eq!(main(&project), before.trim());
        project.piton(&["undo", "--yes"]).exits(0).says("undo of the merge of P/B");
        assert_eq!(main(&project), after, "the very commit comes back");
        same(&tree(project.root()), &files);
        clean(&project);
    }
    assert_eq!(project.status(""), "complete");
}

/// If this fails, an undo takes commits away that others rest on.
#[test]
fn a_merge_somebody_built_on_is_reverted() {
    let project = merged();
    project
        .piton(&["undo", "--act", &act(&project, "removal of the worktree of P/A"), "--yes"])
        .exits(0);
    let (tip, files) = (main(&project), tree(project.root()));
    let merge = act(&project, "merge of P/A");
    project.piton(&["undo", "--act", &merge, "--yes"]).exits(0);
    assert_eq!(project.git(&["rev-parse", "main~1"]).trim(), tip, "the second lane stays under it");
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Revert P/A");
    assert!(!project.has("a.txt") && project.has("b.txt"));
    clean(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &files);
    assert_eq!(main(&project), tip, "nobody built on the revert");
    clean(&project);
    // Once it was published it stays.
    project.git(&["update-ref", "refs/remotes/origin/main", "main"]);
    project
        .piton(&["undo", "--act", &act(&project, "removal of the worktree of P/B"), "--yes"])
        .exits(0);
    project.piton(&["undo", "--act", &act(&project, "merge of P/B"), "--yes"]).exits(0);
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Revert P/B");
    assert!(project.has("a.txt") && !project.has("b.txt"));
    clean(&project);
}

/// If this fails, an undo overwrites what a person has not committed in base.
#[test]
fn own_changes_in_the_way_of_an_undone_merge_stop_it() {
    let project = merged();
    project.piton(&["undo", "--yes"]).exits(0);
    let at = main(&project);
    project.write("b.txt", "mine\n");
    let args = ["undo", "--act", &act(&project, "merge of P/B"), "--yes"];
    project.piton(&args).exits(1).says("b.txt").says("nothing was changed");
    assert_eq!((main(&project), project.read("b.txt")), (at, "mine\n".to_owned()));
}

/// If this fails, one of rollback, restore, skip and removal can't be undone, or its undo can't.
#[test]
fn the_other_acts_go_back_and_forth() {
    let project = Project::with_plan(IN_PLACE);
    project.write("README", "first\n");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(1);
    let (own, failed) = (mine(&project), tree(project.root()));
    let acts: [(&str, &[&str]); 3] = [
        ("skip of P/L/two", &["skip", "P/L/two"]),
        ("restore to P/L/one#1", &["restore", "P/L/one#1", "--exact"]),
        ("rollback to before_lane_start", &["rollback"]),
    ];
    for (words, args) in acts {
        let stands = (tree(project.root()), project.step_status("P/L/two"));
        project.piton(&[args, &["--yes"]].concat()).exits(0);
        let acted = (tree(project.root()), project.step_status("P/L/two"));
        assert_ne!(stands, acted, "{words}");
        for _ in 0..2 {
            project.piton(&["undo", "--yes"]).exits(0).says(words);
            assert_eq!((tree(project.root()), project.step_status("P/L/two")), stands, "{words}");
            let back = format!("undo of the {words}");
            project.piton(&["undo", "--yes"]).exits(0).says(&back);
            assert_eq!((tree(project.root()), project.step_status("P/L/two")), acted, "{words}");
        }
        project.piton(&["undo", "--yes"]).exits(0);
        let gone = project.piton(&["undo", "--act", &act(&project, words), "--yes"]).exits(2);
        gone.says("undone already").says("brings it back");
    }
    same(&tree(project.root()), &failed);
    assert_eq!(mine(&project), own);
    project.piton(&["undo", "--act", "7777", "--yes"]).exits(2).says("--list");
    project
        .piton(&["undo", "--list"])
        .exits(0)
        .says("rollback to before_lane_start, of P/L (undone)");
    fs::write(project.outside().join("home/ok"), "").unwrap();
    project.piton(&["retry", "P/L/two"]).exits(0);
    project.piton(&["resume"]).exits(0);
    let project = merged();
    for _ in 0..2 {
        project.piton(&["undo", "--yes"]).exits(0).says("removal of the worktree of P/B");
        assert!(workspace(&project, "B").join("b.txt").exists());
        project.piton(&["undo", "--yes"]).exits(0);
        assert!(!workspace(&project, "B").exists(), "it goes at once");
        assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    }
}
