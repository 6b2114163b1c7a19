//! The files of the lanes protocol: without git too, back with all runs, and true when pasted.

use std::fs;

use serde_json::Value;

use super::common::Project;
use super::scene::{CHECKPOINTS, Scene, lane};

const ON: &str = "[lanes]\nviews = \"on\"\n";

fn records(project: &Project) -> Vec<Value> {
    serde_json::from_str(&project.read(CHECKPOINTS)).unwrap()
}

/// Lost: a project without git would have no checkpoints, no log and no report, though asked for.
#[test]
fn without_git_the_views_are_written_too() {
    let project = Project::without_git("plain");
    project.write("piton.toml", ON);
    project.write("plan.toml", "[[phase]]\nid = \"P\"\nrun = \"test -e ready\"\n");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    let found = records(&project);
    let stage = |name: &str| found.iter().find(|r| r["stage"] == name).unwrap().clone();
    assert_eq!(stage("before_lane_start")["status"], "ready", "{found:#?}");
    assert_eq!(stage("after_lane_start")["status"], "failed", "{found:#?}");
    assert_eq!(stage("after_lane_start")["worktree_path"], project.root().display().to_string());
    assert!(project.read(".claude/run-logs/r.jsonl").lines().count() > 3);
    assert!(project.read(".claude/run-reports/r.md").contains("failed"));
    // Deleted, they come back.
    fs::remove_dir_all(project.root().join(".claude")).unwrap();
    project.write("ready", "");
    project.piton(&["retry", "--again", "r", "P"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert!(records(&project).len() >= 2);
    assert!(project.read(".claude/run-logs/r.jsonl").lines().count() > 6);
    assert!(project.read(".claude/run-reports/r.md").contains("complete"));
    // Nothing can be taken back without snapshots, and that is said.
    project.piton(&["rollback", "r", "--yes"]).says("git");
}

/// Without the setting nothing is written into a folder without git.
#[test]
fn without_git_there_are_no_views_unless_asked_for() {
    let project = Project::without_git("plain");
    project.write("plan.toml", "[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(!project.has(".claude"));
}

/// Lost: the records of runs before, with the file that held them.
#[test]
fn a_file_that_was_deleted_comes_back_with_all_runs() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.run(&["--run-id", "one"]).exits(0);
    scene.agent("SL-1", "echo two > SL-1-01.txt");
    scene.run(&["--run-id", "two", "--fresh"]).exits(0);
    scene.agent("SL-1", "echo three > SL-1-01.txt; exit 1");
    scene.run(&["--run-id", "three", "--fresh"]).exits(1);
    let before = scene.project.read(CHECKPOINTS);
    scene.project.remove(CHECKPOINTS);
    // Whoever is the next to write it.
    scene.resume(&["two"]).exits(0);
    assert_eq!(scene.project.read(CHECKPOINTS), before);
    // One that makes no sense any more is set aside, and written again the same.
    scene.project.write(CHECKPOINTS, "[{\"run_id\": ");
    scene.resume(&["two"]).exits(0);
    assert_eq!(scene.project.read(CHECKPOINTS), before);
    // While a run goes on, too.
    let path = scene.project.root().join(CHECKPOINTS).display().to_string();
    scene.agent("SL-1", &format!("rm {path}; echo four > SL-1-01.txt"));
    scene.run(&["--run-id", "four", "--fresh"]).exits(0);
    let runs: Vec<String> =
        scene.records().iter().map(|r| r["run_id"].as_str().unwrap().to_owned()).collect();
    for run in ["one", "two", "three", "four"] {
        assert!(runs.iter().any(|r| r == run), "{run} is not in {runs:?}");
    }
}

/// Lost: the views of a run that is over, unless one knows its name.
#[test]
fn the_views_of_a_complete_run_come_back_without_its_name() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.run(&["--run-id", "one"]).exits(0);
    let views = [CHECKPOINTS, ".claude/run-logs/one.jsonl", ".claude/run-reports/one.md"];
    let before = views.map(|view| scene.project.read(view));
    std::fs::remove_dir_all(scene.project.root().join(".claude")).unwrap();
    scene.resume(&[]).exits(0).says("is already complete");
    assert_eq!(views.map(|view| scene.project.read(view)), before);
}

/// Lost: what happened before a run log was deleted, although the run goes on and writes it.
#[test]
fn a_run_log_that_is_deleted_while_the_run_goes_on_comes_back_whole() {
    let scene = Scene::of(&[lane("SL-1")]);
    let log = ".claude/run-logs/one.jsonl";
    let path = scene.project.root().join(log).display().to_string();
    scene.agent("SL-1", &format!("rm {path}; echo one > SL-1-01.txt"));
    scene.run(&["--run-id", "one"]).exits(0);
    let ours = scene.project.read(log);
    scene.project.remove(log);
    scene.resume(&["one"]).exits(0);
    assert_eq!(ours, scene.project.read(log));
    assert!(ours.contains("\"phase_start\"") && ours.contains("\"run_complete\""), "{ours}");
}

/// Not true when pasted: commands that are joined as they are mean something else together.
#[test]
fn the_tests_on_record_can_be_pasted() {
    let scene = Scene::planned(
        "title = \"T\"\n[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"SL-1\"\nisolation = \"worktree\"\n\
         steps = [\n\
         { id = \"a\", run = \"echo > a\", test = \"false || test -e a # fine\" },\n\
         { id = \"b\", run = \"echo > b\", test = \"cd /; test -d tmp\" },\n\
         { id = \"c\", run = \"echo > c\", test = \"false\\ntest -e c\" },\n\
         { id = \"d\", run = \"echo > d\", test = \"test -e d\" },\n]\n",
    );
    scene.project.piton(&["run", "plan.toml"]).exits(0);
    let command =
        scene.record("SL-1", "after_lane_tests")["test_command"].as_str().unwrap().to_owned();
    let pasted = || scene.project.sh(&command);
    pasted().exits(0);
    for name in ["a", "c", "d"] {
        scene.project.remove(name);
        assert_ne!(pasted().code, 0, "{name} is missing: {command}");
        scene.project.write(name, "");
    }
}

/// Lost: a link that came with the repository has Piton write over any file of the user, or work in
/// any folder.
#[test]
fn links_of_the_repository_lead_nothing_of_ours_out_of_it() {
    let scene = Scene::of(&[lane("SL-1")]);
    let at = |name: &str| scene.project.outside().join(name);
    let links = [CHECKPOINTS, ".claude/run-logs/r.jsonl", ".claude/run-reports", ".worktrees/P1"];
    fs::write(at("mine"), "mine\n").unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (link, target) in links.iter().zip(["mine", "mine", "folder", "folder"]) {
        let link = scene.project.root().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(at(target), link).unwrap();
    }
    scene.project.git(&["add", "--force", "--all"]);
    scene.project.commit();
    let said = scene.run(&["--run-id", "r"]);
    assert_eq!(fs::read_to_string(at("mine")).unwrap(), "mine\n");
    assert_eq!(fs::read_dir(at("folder")).unwrap().count(), 0);
    said.exits(4).says("[link-leads-out]").says(".worktrees/P1");
    for link in links {
        fs::remove_file(scene.project.root().join(link)).unwrap();
    }
    scene.project.commit();
    scene.resume(&["r"]).exits(0);
    assert!(scene.project.has("SL-1-01.txt") && !records(&scene.project).is_empty());
}
