//! `piton import`: runs that another tool recorded are taken over, as far as their records allow.

use serde_json::{Value, json};

use super::scene::{CHECKPOINTS, DOCUMENT, Scene, lane};

const RUN: &str = "P1-20251227-103000";

/// A record of another tool, with a field of its own.
fn record(lane: &str, stage: &str, status: &str, minute: u32, more: &Value) -> Value {
    let mut record = json!({
        "run_id": RUN, "phase": "P1", "lane": lane, "stage": stage, "status": status,
        "timestamp": format!("2025-12-27T10:{minute:02}:00Z"), "theirs": format!("{lane} {stage}"),
    });
    let (fields, more) = (record.as_object_mut().unwrap(), more.as_object().unwrap().clone());
    fields.extend(more);
    record
}

/// What another tool left: SL-1 tested in a worktree, SL-2 at work on a branch, SL-3 merged.
fn left_by_another_tool(document: bool) -> Scene {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2"), lane("SL-3")]);
    let project = &scene.project;
    if !document {
        project.git(&["rm", "-q", DOCUMENT]);
        project.git(&["commit", "-qm", "no document"]);
    }
    let base = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let tree = project.root().join(".worktrees/P1/SL-1");
    let path = tree.display().to_string();
    project.git(&["worktree", "add", "-q", "-b", "lane/P1/SL-1", &path]);
    std::fs::write(tree.join("SL-1-01.txt"), "by hand\n").unwrap();
    project.git(&["-C", &path, "add", "-A"]);
    project.git(&["-C", &path, "commit", "-qm", "SL-1: work"]);
    std::fs::write(tree.join("unsaved.txt"), "x").unwrap();
    project.git(&["branch", "lane/P1/SL-2", &base]);
    project.write("SL-3-01.txt", "merged\n");
    project.git(&["add", "SL-3-01.txt"]);
    project.git(&["commit", "-qm", "SL-3: work"]);
    let merged = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let at = json!({ "worktree_path": path, "base_branch": "main" });
    let tested = json!({
        "worktree_path": path, "base_branch": "main", "test_command": "test -e SL-1-01.txt",
        "exit_code": 0,
    });
    let base_sha = json!({ "base_branch": "main", "base_sha": base });
    let shas = json!({ "base_branch": "main", "base_sha": base, "head_sha": merged });
    let records = json!([
        record("SL-1", "before_lane_start", "ready", 1, &at),
        record("SL-1", "after_lane_start", "in_progress", 2, &at),
        record("SL-1", "after_scaffold", "complete", 3, &json!({})),
        record("SL-1", "after_lane_tests", "complete", 5, &tested),
        record("SL-2", "after_lane_start", "in_progress", 2, &base_sha),
        record("SL-3", "pre_pr", "complete", 9, &shas),
        record("-", "pre_pr", "in_progress", 10, &json!({})),
    ]);
    project.write(CHECKPOINTS, &serde_json::to_string_pretty(&records).unwrap());
    scene
}

fn lane_of<'s>(status: &'s Value, id: &str) -> &'s Value {
    let lanes = status["phases"][0]["lanes"].as_array().unwrap();
    lanes.iter().find(|l| l["id"] == id).unwrap()
}

/// Lost: a run of another tool could only be thrown away, with the work of its lanes.
#[test]
fn a_run_of_another_tool_is_taken_over_and_goes_on() {
    let scene = left_by_another_tool(true);
    let project = &scene.project;
    let before = project.read(CHECKPOINTS);
    let import = project.piton(&["import", CHECKPOINTS]).exits(0);
    let import = import.says("P1/SL-1: after_lane_tests; goes on with its tests");
    let import = import.says("P1/SL-2: after_lane_start; goes on with its tasks");
    let import = import.says("P1/SL-3: pre_pr; is done").says("not known: which of its tasks");
    import.says("not in the plan").says(&format!("next: piton resume {RUN}"));
    assert_eq!(project.read(CHECKPOINTS), before, "the file is only read");
    project.piton(&["runs"]).exits(0).says(RUN);
    let status = project.status_json(RUN);
    assert_eq!(status["plan"], DOCUMENT);
    let first = lane_of(&status, "SL-1");
    assert_eq!(
        (&first["stage"], &first["branch"]),
        (&json!("after_lane_tests"), &json!("lane/P1/SL-1"))
    );
    let stages = first["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 3, "{first:#}");
    assert_eq!(stages[2]["timestamp"], "2025-12-27T10:05:00Z");
    assert_eq!(stages[2]["exit_code"], 0);
    assert_eq!(lane_of(&status, "SL-3")["status"], "complete");
    // Its task would write another text: what was done is not done again.
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(project.read("SL-1-01.txt"), "by hand\n");
    assert!(project.has("unsaved.txt") && project.has("SL-2-01.txt"));
    let log = project.git(&["log", "--format=%s", "main"]);
    assert_eq!(log.matches("SL-3: work").count(), 1, "{log}");
    assert!(!project.has(".worktrees/P1/SL-1") && !project.has(".worktrees/P1/SL-2"));
    let records: Value = serde_json::from_str(&project.read(CHECKPOINTS)).unwrap();
    let all = records.as_array().unwrap();
    let of = |lane: &str, stage: &str| {
        all.iter().find(|r| r["lane"] == lane && r["stage"] == stage).cloned().unwrap_or_default()
    };
    assert_eq!(of("SL-1", "after_lane_tests")["theirs"], "SL-1 after_lane_tests");
    assert_eq!(of("SL-1", "after_scaffold")["theirs"], "SL-1 after_scaffold");
    assert_eq!(of("SL-1", "pre_pr")["status"], "complete");
    assert_eq!(of("SL-3", "pre_pr")["timestamp"], "2025-12-27T10:09:00.000Z");
    assert_eq!(of("-", "pre_pr")["theirs"], "- pre_pr");
}

/// Lost: what another tool began could not be taken back, or not be brought back again.
#[test]
fn a_run_of_another_tool_rolls_back_to_where_its_lanes_started() {
    let scene = left_by_another_tool(true);
    let project = &scene.project;
    project.piton(&["import", CHECKPOINTS]).exits(0);
    let tree = project.root().join(".worktrees/P1/SL-1");
    let lane = ["--lane", "SL-1", "--yes"];
    let back = project.piton(&[&["rollback", RUN][..], &lane].concat()).exits(0);
    back.says("rolled back to before_lane_start");
    assert!(!tree.join("SL-1-01.txt").exists() && !tree.join("unsaved.txt").exists());
    assert_eq!(project.git(&["rev-parse", "lane/P1/SL-1"]), project.git(&["rev-parse", "main~1"]));
    let records: Value = serde_json::from_str(&project.read(CHECKPOINTS)).unwrap();
    let rolled = records.as_array().unwrap().iter().filter(|r| r["status"] == "rolled_back");
    assert_eq!(rolled.count(), 2, "{records:#}");
    project.piton(&["undo", RUN, "--yes"]).exits(0);
    assert!(tree.join("SL-1-01.txt").exists() && tree.join("unsaved.txt").exists());
    project.piton(&["rollback", RUN, "--lane", "SL-3", "--yes"]).exits(0);
    assert!(!project.has("SL-3-01.txt"), "its merge is taken back by a commit");
}

/// Lost: what a lane of another tool had not committed would stay when it is taken back.
#[test]
fn a_lane_of_another_tool_that_just_started_rolls_back_whole() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    let tree = project.root().join(".worktrees/P1/SL-1");
    let path = tree.display().to_string();
    project.git(&["worktree", "add", "-q", "-b", "lane/P1/SL-1", &path]);
    std::fs::write(tree.join("unc.txt"), "x").unwrap();
    let at = json!({ "worktree_path": path, "base_branch": "main" });
    let records = json!([record("SL-1", "after_lane_start", "in_progress", 2, &at)]);
    project.write(CHECKPOINTS, &records.to_string());
    project.piton(&["import", CHECKPOINTS]).exits(0);
    project.piton(&["rollback", RUN, "--yes"]).exits(0);
    assert!(!tree.join("unc.txt").exists());
    project.piton(&["undo", RUN, "--yes"]).exits(0);
    assert!(tree.join("unc.txt").exists());
}

/// Lost: without its plan a run could not be taken over at all, or work would be merged untested.
#[test]
fn without_a_plan_lanes_go_on_to_tests_and_merges_only() {
    let scene = left_by_another_tool(false);
    let project = &scene.project;
    project.piton(&["import", CHECKPOINTS]).exits(0).says("no phase document was found");
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(project.read("SL-1-01.txt"), "by hand\n");
    let status = project.status_json(RUN);
    assert_eq!(lane_of(&status, "SL-1")["merged"]["by"], "queue");
    assert!(!lane_of(&status, "SL-2")["merged"].is_null());
    project.piton(&["import", CHECKPOINTS]).exits(2).says(&format!("piton resume {RUN}"));
    let twice = project.piton(&["import", CHECKPOINTS, "--run-id", RUN]).exits(0);
    twice.says(&format!("imported {RUN}-2"));
}

/// Lost: a broken or empty file would make a run of nothing.
#[test]
fn what_can_not_be_taken_over_is_refused() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    project.piton(&["import", "none.json"]).exits(2).says("error[unreadable-file]");
    project.write("bad.json", "[{");
    project.piton(&["import", "bad.json"]).exits(2).says("cut off");
    project.write("empty.json", "");
    project.piton(&["import", "empty.json"]).exits(2).says("has no run");
    let two = json!([
        { "run_id": "a", "phase": "P1", "lane": "SL-1", "stage": "pre_pr", "status": "failed",
          "timestamp": "2025-12-27T10:00:00Z" },
        { "run_id": "b", "phase": "P1", "lane": "SL-1", "stage": "pre_pr", "status": "failed",
          "timestamp": "2025-12-27T10:00:00Z" },
    ]);
    project.write("two.json", &two.to_string());
    project.piton(&["import", "two.json"]).exits(2).says("--run-id").says("a, b");
    let whole = json!([record("-", "pre_pr", "in_progress", 1, &json!({}))]);
    project.git(&["rm", "-q", DOCUMENT]);
    project.write("whole.json", &whole.to_string());
    project.piton(&["import", "whole.json"]).exits(2).says("phases as a whole").says("--plan");
    assert_eq!(project.piton(&["runs", "--json"]).exits(0).json(), json!([]));
}
