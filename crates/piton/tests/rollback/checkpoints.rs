//! Looking at checkpoints: restore of single paths and into folders, diff, show, runs without any.

use std::fs;

use serde_json::Value;

use crate::common::Project;
use crate::tree::{mine, same, tree};

const PLAN: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = "echo one > src/one.txt; chmod +x src/tool.sh; mkdir src/empty" },
  { id = "two", run = "echo two > src/two.txt; rm src/old.txt; exit 1" },
]
"#;

fn project() -> Project {
    let project = Project::with_plan(PLAN);
    project.write("src/tool.sh", "tool\n");
    project.write("src/old.txt", "old\n");
    project.write("other.txt", "other\n");
    project.commit();
    project
}

/// If this fails, one lost file costs a rollback.
#[test]
fn single_paths_are_restored_and_the_rest_stays() {
    let project = project();
    let own = mine(&project);
    project.piton(&["run", "plan.toml"]).exits(1);
    project.write("src/one.txt", "edited by hand\n");
    project.write("other.txt", "edited too\n");
    let before = tree(project.root());
    let args = ["restore", "P/L/one#1", "./src/one.txt", "src/old.txt"];
    project.piton(&args).exits(3).says("change  src/one.txt").says("restore src/old.txt");
    same(&tree(project.root()), &before);
    project.piton(&[&args[..], &["--dry-run"]].concat()).exits(0);
    same(&tree(project.root()), &before);
    project.piton(&[&args[..], &["--yes"]].concat()).exits(0).says("piton undo");
    assert_eq!(project.read("src/one.txt"), "one\n");
    assert_eq!(project.read("src/old.txt"), "old\n");
    assert_eq!(project.read("other.txt"), "edited too\n");
    assert!(project.has("src/two.txt"));
    let restored = tree(project.root());
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &before);
    project.piton(&["undo", "--yes"]).exits(0);
    same(&tree(project.root()), &restored);
    let again = project.piton(&[&args[..], &["--yes"]].concat()).exits(0);
    again.says("nothing to restore");
    assert_eq!(mine(&project), own);
    assert_eq!(project.step_status("P/L/one"), "complete", "steps stay");
}

/// If this fails, restoring a folder deletes what was made in it since.
#[test]
fn a_folder_is_restored_without_deleting_unless_asked() {
    let project = project();
    project.piton(&["run", "plan.toml"]).exits(1);
    project.write("src/new.txt", "new\n");
    let point = "P/L/one#1.before";
    project.piton(&["restore", point, "src", "--yes"]).exits(0).says("stays   src/new.txt");
    assert!(project.has("src/old.txt") && project.has("src/new.txt") && project.has("src/two.txt"));
    project.piton(&["restore", point, "src/", "--exact", "--yes"]).exits(0);
    assert!(!project.has("src/new.txt") && !project.has("src/two.txt"));
    assert!(!project.has("src/empty"), "folders too");
}

/// If this fails, a person can't look at old files without giving up the new ones.
#[test]
fn a_checkpoint_is_written_into_another_folder() {
    let project = project();
    let start = tree(project.root());
    project.piton(&["run", "plan.toml"]).exits(1);
    let before = tree(project.root());
    let out = project.outside().join("copy");
    let to = out.to_str().unwrap();
    project.piton(&["restore", "before_lane_start", "--to", to]).exits(0);
    same(&tree(&out), &start);
    same(&tree(project.root()), &before);
    let part = project.outside().join("part");
    let to = part.to_str().unwrap();
    project.piton(&["restore", "P/L/one#1", "src/one.txt", "--to", to]).exits(0);
    assert_eq!(fs::read_to_string(part.join("src/one.txt")).unwrap(), "one\n");
    assert!(!part.join("other.txt").exists());
    project.piton(&["undo", "--yes"]).exits(2).says("nothing to undo");
    project.piton(&["restore", "no-such", "--to", to]).exits(2).says("no-checkpoint");
    project.piton(&["restore", "manual-1", "../out", "--yes"]).exits(2);
}

fn kinds(value: &Value) -> Vec<(String, String)> {
    let all = value["changes"].as_array().cloned().unwrap_or_default();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    all.iter().map(|c| (text(&c["path"]), text(&c["kind"]))).collect()
}

/// If this fails, nobody sees what a step did.
#[test]
fn differences_are_shown_between_checkpoints_now_and_base() {
    let project = project();
    project.piton(&["run", "plan.toml"]).exits(1);
    project.piton(&["checkpoint", "-m", "here"]).exits(0);
    let said = project.piton(&["diff", "P/L/two#1.before", "P/L/two#1"]).exits(0);
    said.says("+two").says("-old").silent_about("+one");
    let json = |args: &[&str]| {
        let all = [&["diff"], args, &["--json"]].concat();
        kinds(&project.piton(&all).exits(0).json())
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let one = json(&["P/L/one#1.before", "P/L/one#1"]);
    let wanted =
        [pair("src/empty", "added"), pair("src/one.txt", "added"), pair("src/tool.sh", "mode")];
    assert_eq!(one, wanted);
    let said = project.piton(&["diff", "P/L/one#1.before", "P/L/one#1"]).exits(0);
    said.says("+one").says("git does not show 1 difference");
    assert_eq!(json(&["manual-1"]), []);
    let same = project.piton(&["diff", "manual-1"]).exits(0).says("no differences");
    assert_eq!(same.stdout, "");
    project.write("src/two.txt", "changed\n");
    assert_eq!(json(&["manual-1", "now"]), [pair("src/two.txt", "modified")]);
    assert_eq!(json(&["now", "manual-1"]), [pair("src/two.txt", "modified")]);
    assert_eq!(json(&["before_lane_start", "P/L@before_lane_start"]), []);
    project.piton(&["diff", "base", "now"]).exits(0).says("+changed").says("-old");
    project.piton(&["diff", "base", "manual-1", "--stat"]).exits(0).says("src/two.txt");
    assert!(!json(&["base", "now"]).is_empty(), "base is data too");
    project.piton(&["diff", "manual-7"]).exits(2).says("no-checkpoint");
}

/// If this fails, a person does not know where they could go back to, or what is not there.
#[test]
fn checkpoints_are_listed_and_shown_with_what_they_miss() {
    let project = project();
    project.write("piton.toml", "[snapshots]\nfile_max = \"1KB\"\n");
    project.write("big.bin", &"x".repeat(5000));
    project.write(".gitignore", "");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project.piton(&["checkpoint", "-m", "by hand"]).exits(0);
    let said = project.piton(&["show", "r"]).exits(0);
    let said = said.says("P/L@before_lane_start").says("P/L/two#1");
    said.says("manual-1").says("degraded");
    let all = project.piton(&["show", "r", "--json"]).exits(0).json();
    let points = all["snapshots"].as_array().unwrap();
    assert!(points.len() >= 6, "{points:?}");
    let commit = points[0]["commit"].as_str().unwrap();
    for name in ["manual-1", "r/manual-1", "P/L/one#1", "r/P/L/one#1.before", &commit[..8]] {
        let said = project.piton(&["show", name]).exits(0);
        said.says("not in it: big.bin").says("piton restore").says("piton diff");
        let json = project.piton(&["show", name, "--json"]).exits(0).json();
        assert_eq!(json["snapshots"][0]["degraded"][0]["path"], "big.bin", "{name}");
    }
    assert_eq!(project.piton(&["show", "manual-1", "--json"]).json()["message"], "by hand");
    project.piton(&["status"]).exits(0).says("big.bin");
    project.piton(&["show", "manual-9"]).exits(2);
    project.piton(&["show", "deadbeef"]).exits(2);
    // What is not in a checkpoint stays as it is, and is named.
    project.write("big.bin", &"y".repeat(6000));
    let said = project.piton(&["rollback", "--exact", "--yes"]).exits(0);
    said.says("stays   big.bin").says("not in the checkpoint");
    assert_eq!(project.read("big.bin").len(), 6000);
    for name in project.git(&["for-each-ref", "--format=%(refname)", "refs/piton"]).lines() {
        project.git(&["update-ref", "-d", name]);
    }
    project.git(&["reflog", "expire", "--expire=now", "--all"]);
    project.git(&["gc", "--quiet", "--prune=now"]);
    project.piton(&["show", "manual-1"]).exits(0).says("gone: its ref").silent_about("restore ");
    let json = project.piton(&["show", "manual-1", "--json"]).exits(0).json();
    assert_eq!(json["snapshots"][0]["gone"], true);
}

/// If this fails, a project that can't be snapshotted can't be worked on at all.
#[test]
fn runs_in_place_need_no_checkpoints_when_they_are_switched_off() {
    let project = project();
    project.write("piton.toml", "[snapshots]\nenabled = false\n");
    project.piton(&["run", "plan.toml"]).exits(1);
    assert_eq!(project.git(&["for-each-ref", "refs/piton"]), "");
    let said = project.piton(&["rollback", "--yes"]);
    assert_ne!(said.code, 0);
    said.says("snapshots.enabled");
    project.piton(&["checkpoint", "-m", "still works"]).exits(0);
    project.piton(&["diff", "now"]).exits(2).says("snapshots.enabled");
}

/// If this fails, lanes in worktrees run without the snapshots that their merges rest on.
#[test]
fn lanes_in_worktrees_keep_their_checkpoints() {
    let plan = "[[phase]]\nid = \"P\"\nlane = [{ id = \"A\", isolation = \"worktree\", run = \"echo a > a.txt\" }]\n";
    let project = Project::with_plan(plan);
    project.write("piton.toml", "[snapshots]\nenabled = false\n");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.read("a.txt"), "a\n");
    assert_ne!(project.git(&["for-each-ref", "refs/piton"]), "");
}
