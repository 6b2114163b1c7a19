//! Lanes in worktrees of their own: branch and files go back, merges are taken back, removals too.

use std::fs;
use std::path::PathBuf;

use crate::common::Project;
use crate::tree::{Tree, same, tree};

/// One lane: two steps, and a test that passes once it is told to.
const ONE: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "A"
isolation = "worktree"
steps = [
  { id = "one", run = "echo one > one.txt; chmod +x tool.sh; rm gone.txt; mkdir empty" },
  { id = "two", run = "echo two > 'zwei ü.txt'; ln -s one.txt link", test = "test -e $HOME/ok" },
]
"#;

/// Two lanes that both get to base.
const TWO: &str = r#"
[[phase]]
id = "P"
lane = [
  { id = "A", isolation = "worktree", run = "echo a > a.txt; echo more >> shared.txt" },
  { id = "B", isolation = "worktree", needs = ["A"], run = "echo b > b.txt" },
]
"#;

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    for file in ["tool.sh", "gone.txt", "shared.txt"] {
        project.write(file, "first\n");
    }
    project.commit();
    project
}

fn ok(project: &Project) {
    fs::write(project.outside().join("home/ok"), "").unwrap();
}

fn workspace(project: &Project, lane: &str) -> PathBuf {
    project.root().join(".worktrees/P").join(lane)
}

fn files(project: &Project, lane: &str) -> Tree {
    let mut all = tree(&workspace(project, lane));
    all.remove(&PathBuf::from(".git"));
    all
}

fn head(project: &Project, branch: &str) -> String {
    project.git(&["rev-parse", branch]).trim().to_owned()
}

fn subjects(project: &Project) -> Vec<String> {
    let text = project.git(&["log", "--format=%s", "main", "--"]);
    text.lines().map(str::to_owned).collect()
}

fn clean(project: &Project) {
    let dirt = project.git(&["status", "--porcelain", "--", ".", ":!.claude"]);
    assert_eq!(dirt.trim(), "", "base follows");
}

/// If this fails, a lane's worktree is not what its checkpoint says, or its branch is elsewhere.
#[test]
fn a_lane_goes_back_to_each_stage_and_forth_again() {
    let project = project(ONE);
    let base = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(1);
    let (failed, at) = (files(&project, "A"), head(&project, "lane/P/A"));
    let main = head(&project, "main");
    for to in ["before_lane_start", "after_lane_start", "after_lane_tests", "P/A/one#1"] {
        let said = project.piton(&["rollback", "--to", to, "--lane", "A", "--yes"]).exits(0);
        match to {
            "P/A/one#1" => {
                said.says("delete  zwei ü.txt");
                assert!(!workspace(&project, "A").join("link").exists());
                assert!(workspace(&project, "A").join("one.txt").exists());
            }
            "after_lane_tests" => same(&files(&project, "A"), &failed),
            _ => {
                said.says("restore gone.txt").says("branch  lane/P/A");
                same(&files(&project, "A"), &base);
                assert_eq!(head(&project, "lane/P/A"), main);
            }
        }
        let git = |args: &[&str]| {
            let workspace = workspace(&project, "A");
            project.finish(project.command("git").args(args).current_dir(workspace)).exits(0).stdout
        };
        assert_eq!(git(&["symbolic-ref", "--short", "HEAD"]).trim(), "lane/P/A");
        project.piton(&["undo", "--yes"]).exits(0);
        same(&files(&project, "A"), &failed);
        assert_eq!(head(&project, "lane/P/A"), at, "{to}");
    }
    project.piton(&["rollback", "--yes"]).exits(0);
    ok(&project);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.read("one.txt"), "one\n");
    assert!(project.has("zwei ü.txt") && !project.has("gone.txt"));
    clean(&project);
}

/// If this fails, work that base already has can't be taken back, or only by hand.
#[test]
fn a_merged_lane_goes_back_by_a_commit_on_base() {
    let project = project(TWO);
    project.piton(&["run", "plan.toml"]).exits(0);
    let (merged, at) = (tree(project.root()), head(&project, "main"));
    let said = project.piton(&["rollback", "--lane", "A"]).exits(3);
    said.says("a commit on main takes back").says("delete  a.txt").says("change  shared.txt");
    let plan = project.piton(&["rollback", "--lane", "A", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(plan["base"][0]["deleted"], serde_json::json!(["a.txt"]));
    assert_eq!(plan["base"][0]["restored"], serde_json::json!(["shared.txt"]));
    assert_eq!(head(&project, "main"), at, "nothing without a yes");
    let said = project.piton(&["rollback", "--lane", "A", "--yes"]).exits(0);
    // What it merged is not the checkpoint it went back to.
    said.says("to before_lane_start");
    assert_eq!(subjects(&project)[0], "Revert P/A");
    assert!(!project.has("a.txt") && project.has("b.txt"), "only what the lane did goes");
    assert_eq!(project.read("shared.txt"), "first\n");
    clean(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(head(&project, "main"), at, "nobody built on the revert");
    same(&tree(project.root()), &merged);
    clean(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    assert!(!project.has("a.txt"));
    project.piton(&["resume"]).exits(0);
    same(&tree(project.root()), &merged);
    clean(&project);
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}

/// If this fails, one revert is made and the next fails, with base in between.
#[test]
fn several_merged_lanes_go_back_together() {
    let project = project(TWO);
    let start = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(0);
    let merged = tree(project.root());
    project.piton(&["rollback", "--yes"]).exits(0);
    assert_eq!(subjects(&project)[..2], ["Revert P/A", "Revert P/B"]);
    same(&tree(project.root()), &start);
    clean(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &merged);
    clean(&project);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &start);
    project.piton(&["resume"]).exits(0);
    same(&tree(project.root()), &merged);
}

/// If this fails, a revert overwrites what a person did on top of a merge.
#[test]
fn a_revert_that_would_conflict_is_refused_and_changes_nothing() {
    let project = project(TWO);
    project.piton(&["run", "plan.toml"]).exits(0);
    project.write("a.txt", "mine now\n");
    project.commit();
    let (before, at) = (tree(project.root()), head(&project, "main"));
    let said = project.piton(&["rollback", "--yes"]).exits(1);
    said.says("a.txt").says("nothing was changed").says("git revert");
    same(&tree(project.root()), &before);
    assert_eq!(head(&project, "main"), at);
    // Uncommitted work in the way is no different.
    project.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    project.write("b.txt", "uncommitted\n");
    let before = tree(project.root());
    project.piton(&["rollback", "--yes"]).exits(1).says("b.txt").says("nothing was changed");
    same(&tree(project.root()), &before);
}

/// If this fails, a worktree that was removed is gone for good, or goes again behind one's back.
#[test]
fn a_removed_worktree_comes_back_and_stays() {
    let project = project(TWO);
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(!workspace(&project, "B").exists());
    let at = head(&project, "main");
    project.piton(&["undo", "--yes"]).exits(0).says("removal of the worktree of P/B");
    assert_eq!(fs::read_to_string(workspace(&project, "B").join("b.txt")).unwrap(), "b\n");
    assert_eq!(head(&project, "lane/P/B"), at);
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 2);
    project.piton(&["resume"]);
    assert!(workspace(&project, "B").exists(), "it stays");
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(head(&project, "main"), at);
    assert!(!workspace(&project, "B").exists(), "it goes again");
    assert_eq!(project.status(""), "complete");
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(workspace(&project, "B").join("b.txt")).unwrap(), "b\n");
    project.piton(&["undo", "--yes"]).exits(0);
    assert!(!workspace(&project, "B").exists(), "and again");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
}

/// If this fails, a step left out by mistake stays left out.
#[test]
fn a_skip_can_be_undone() {
    let project = project(&ONE.replace("mkdir empty", "test -e $HOME/ok"));
    project.piton(&["run", "plan.toml"]).exits(1);
    project.piton(&["skip", "P/A/one"]).exits(0);
    assert_eq!(project.step_status("P/A/one"), "skipped");
    project.piton(&["undo", "--yes"]).exits(0).says("skip");
    assert_ne!(project.step_status("P/A/one"), "skipped");
    ok(&project);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.step_status("P/A/one"), "complete");
    assert!(project.has("one.txt"));
}

/// The test of the first lane fails once the second, which is merged first, is under it.
const REBASED: &str = r#"
[[phase]]
id = "P"
lane = [
  { id = "A", isolation = "worktree", run = "echo a > a.txt; while [ ! -e $HOME/go ]; do sleep 0.02; done", test = "test ! -e by-hand.txt || test -e $HOME/ok" },
]
"#;

/// If this fails, a lane that goes back to its start takes the was rebased after's files away.
#[test]
fn a_lane_that_was_put_on_a_newer_base_goes_back_with_its_branch() {
    let project = project(REBASED);
    let (start, old) = (tree(project.root()), head(&project, "main"));
    let driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for(".worktrees/P/A/a.txt");
    project.write("by-hand.txt", "of the user");
    project.commit();
    fs::write(project.outside().join("home/go"), "").unwrap();
    driver.wait().exits(1);
    assert!(
        workspace(&project, "A").join("by-hand.txt").exists(),
        "it was put on the was rebased after"
    );
    let failed = files(&project, "A");
    project.piton(&["rollback", "--to", "P/A/work#1", "--yes"]).exits(2).says("was rebased after");
    project.piton(&["rollback", "--yes"]).exits(0);
    same(&files(&project, "A"), &start);
    assert_eq!(head(&project, "lane/P/A"), old);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&files(&project, "A"), &failed);
    project.piton(&["rollback", "--yes"]).exits(0);
    ok(&project);
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.read("by-hand.txt"), "of the user");
    assert_eq!(project.read("a.txt"), "a\n");
    clean(&project);
}

/// If this fails, a lane that was taken back is said to stand where it does not, with files that its next
/// attempt does not find.
#[test]
fn a_lane_does_not_go_to_a_point_that_it_was_taken_back_behind() {
    for (plan, steps) in [(ONE, "one"), (TWO, "work")] {
        let project = project(plan);
        project.piton(&["run", "plan.toml"]);
        project.piton(&["rollback", "--lane", "A", "--yes"]).exits(0);
        let present = || workspace(&project, "A").exists().then(|| files(&project, "A"));
        let stands = present();
        for to in ["after_lane_tests", &format!("P/A/{steps}#1")] {
            let at = ["rollback", "--lane", "A", "--to", to, "--yes"];
            let refused = project.piton(&at).exits(2).says("error[no-checkpoint]");
            let behind = format!("already rolled back behind `{to}`, to before_lane_start");
            let hints = refused.says(&behind).says("continues from there").stderr;
            assert!(present() == stands, "{to}: files changed");
            let undo =
                hints.lines().find_map(|l| l.split('`').find(|w| w.starts_with("piton undo")));
            let undo: Vec<&str> = undo.unwrap().split(' ').skip(1).collect();
            project.piton(&[&undo[..], &["--yes"]].concat()).exits(0);
            assert_ne!(project.step_status(&format!("P/A/{steps}")), "pending");
            project.piton(&["rollback", "--lane", "A", "--yes"]).exits(0);
        }
    }
}

/// If this fails, a merged lane that starts over is said, and shown, to be somewhere else.
#[test]
fn a_merged_lane_goes_to_its_start_whatever_is_named_and_that_is_said() {
    for to in ["after_lane_tests", "pre_pr", "P/A/work#1"] {
        let project = project(&format!("protocol = \"lanes\"\n{TWO}"));
        project.piton(&["run", "plan.toml"]).exits(0);
        let at = ["rollback", "--lane", "A", "--to", to];
        let said = project.piton(&[&at[..], &["--dry-run"]].concat()).exits(0);
        said.says("P/A: it is merged, so it goes back to before_lane_start");
        let plan = project.piton(&[&at[..], &["--dry-run", "--json"]].concat()).exits(0).json();
        assert_eq!(plan["to"], "before_lane_start", "{to}");
        let said = project.piton(&[&at[..], &["--yes"]].concat()).exits(0);
        said.says("rolled back P/A to ").says("current stage: P/A before_lane_start");
        assert_eq!(project.step_status("P/A/work"), "pending", "{to}");
        let records = project.read(".claude/ai-dev-kit/run-logs/checkpoints.json");
        let records: Vec<serde_json::Value> = serde_json::from_str(&records).unwrap();
        for stage in ["after_lane_start", "after_lane_tests", "pre_pr"] {
            let its = |r: &&serde_json::Value| r["lane"] == "A" && r["stage"] == stage;
            let record = records.iter().find(its).unwrap();
            assert_eq!(record["status"], "rolled_back", "{to}: {record}");
        }
        project.piton(&["resume"]).exits(0);
        assert_eq!(project.read("a.txt"), "a\n");
    }
}
