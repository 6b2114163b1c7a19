//! `piton import`: runs that another tool recorded are taken over, as far as their records allow.

use serde_json::{Value, json};

use super::scene::{CHECKPOINTS, DOCUMENT, Scene, document, lane};

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
fn left_by_another_tool() -> Scene {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2"), lane("SL-3")]);
    let project = &scene.project;
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
    let scene = left_by_another_tool();
    let project = &scene.project;
    let before = project.read(CHECKPOINTS);
    let import = project.piton(&["import", CHECKPOINTS]).exits(0);
    let import = import.says("P1/SL-1: after_lane_tests; continues with its tests");
    let import = import.says("P1/SL-2: after_lane_start; continues with its tasks");
    let import = import.says("P1/SL-3: pre_pr; is done").says("unknown: which of its tasks");
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

/// Not said twice: the facts that notes of a record have, when it is one that Piton wrote.
#[test]
fn a_run_whose_ledger_is_lost_is_taken_over_from_its_own_records() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    scene.agent("SL-1", "echo no; exit 1");
    scene.run(&["--run-id", RUN]).exits(1);
    let notes = |stage: &str| scene.record("SL-1", stage)["notes"].as_str().unwrap().to_owned();
    let stages = ["before_lane_start", "after_lane_start"];
    let before = stages.map(notes);
    // All that is left when a ledger is lost.
    std::fs::remove_dir_all(project.root().join(".git/piton")).unwrap();
    project.piton(&["doctor", "--new-ledger"]).exits(0);
    project.piton(&["import", CHECKPOINTS]).exits(0);
    project.piton(&["resume", RUN]).exits(1);
    assert_eq!(stages.map(notes), before);
}

/// Lost: a task that never ran would count as finished, and its work would be missing in base.
#[test]
fn a_failed_task_proves_no_other_when_the_ledger_is_lost() {
    let row = "`test -e SL-1-01.txt` |\n";
    let second = "| SL-1-02 | impl | SL-1-01 | SL-1-02.txt | - | `test -e SL-1-02.txt` |\n";
    let text = document("", &[lane("SL-1")], "").replace(row, &format!("{row}{second}"));
    // As it is recorded now, and as older versions and other tools did.
    for older in [false, true] {
        let scene = Scene::with(&text, "");
        let project = &scene.project;
        scene.agent("SL-1-01", "true");
        scene.run(&["--run-id", RUN]).exits(1);
        assert_eq!(scene.stage_status("SL-1", "after_lane_tests"), "", "they never ran");
        let failed = scene.record("SL-1", "after_lane_start");
        assert_eq!((&failed["status"], &failed["exit_code"]), (&json!("failed"), &json!(1)));
        assert_eq!(failed["test_command"], "test -e SL-1-01.txt", "{failed:#}");
        // Driven twice, the repository knows of a later driver than a new ledger does.
        scene.resume(&["--takeover"]).exits(1);
        if older {
            let mut records = scene.records();
            let mut tests = records.last().unwrap().clone();
            tests["stage"] = json!("after_lane_tests");
            records.push(tests);
            project.write(CHECKPOINTS, &json!(records).to_string());
        }
        for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
            let _ = std::fs::remove_file(project.state_dir().join(file));
        }
        project.piton(&["doctor", "--new-ledger"]).exits(0);
        project.piton(&["import", CHECKPOINTS]).exits(0).says("continues with its tasks");
        scene.usual_agent("SL-1-01");
        project.piton(&["resume", RUN]).exits(0);
        assert!(project.has("SL-1-01.txt") && project.has("SL-1-02.txt"), "{older}");
        scene.nothing_left();
    }
}

/// Lost: what another tool began could not be taken back, or not be brought back again.
#[test]
fn a_run_of_another_tool_rolls_back_to_where_its_lanes_started() {
    let scene = left_by_another_tool();
    let project = &scene.project;
    project.piton(&["import", CHECKPOINTS]).exits(0);
    let tree = project.root().join(".worktrees/P1/SL-1");
    let lane = ["--lane", "SL-1", "--yes"];
    let back = project.piton(&[&["rollback", RUN][..], &lane].concat()).exits(0);
    back.says("to before_lane_start");
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

/// Lost: work in a repository that was moved since, or recorded under names that no plan can have,
/// would be done again beside what is there.
#[test]
fn a_lane_is_found_by_its_branch_and_whatever_its_phase_is_called() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    project.write(DOCUMENT, &project.read(DOCUMENT).replace("# P1:", "# Phase 1:"));
    project.commit();
    let tree = project.root().join("elsewhere");
    let path = tree.display().to_string();
    project.git(&["worktree", "add", "-q", "-b", "lane/Phase-1/SL-1", &path]);
    std::fs::write(tree.join("SL-1-01.txt"), "by hand\n").unwrap();
    let more = json!({
        "phase": "Phase 1", "worktree_path": "/nowhere/of/another/machine",
        "base_branch": "main", "test_command": "test -e SL-1-01.txt",
    });
    let records = json!([record("SL-1", "after_lane_tests", "complete", 2, &more)]);
    project.write(CHECKPOINTS, &records.to_string());
    let import = project.piton(&["import", CHECKPOINTS]).exits(0);
    import.says("Phase-1/SL-1: after_lane_tests; continues with its tests");
    let status = project.status_json(RUN);
    assert_eq!(lane_of(&status, "SL-1")["worktree"], path, "{status:#}");
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(project.read("SL-1-01.txt"), "by hand\n");
    assert!(!tree.exists());
}

/// Lost: a file that was imported before would fail in the middle of taking lanes over, in words of
/// git.
#[test]
fn a_run_is_taken_over_once() {
    let scene = left_by_another_tool();
    let project = &scene.project;
    project.piton(&["import", CHECKPOINTS]).exits(0);
    let again = [&["import", CHECKPOINTS][..], &["import", CHECKPOINTS, "--run-id", RUN]];
    for import in again {
        let refused = project.piton(import).exits(2).says("error[run-exists]");
        let refused = refused.says(&format!("was already imported as {RUN}"));
        refused.says(&format!("piton resume {RUN}")).says(&format!("piton abort {RUN} --cancel"));
    }
    assert_eq!(project.piton(&["runs", "--json"]).exits(0).json().as_array().unwrap().len(), 1);
    project.piton(&["resume", RUN]).exits(0);
    project.piton(&["import", CHECKPOINTS]).exits(2).says("it is complete");
}

/// A repository whose lanes another tool recorded complete, with these heads.
fn recorded_complete(settings: &str, heads: &[(&'static str, Option<&str>)]) -> Scene {
    let lanes: Vec<_> = heads.iter().map(|(id, _)| lane(id)).collect();
    let scene = Scene::with(&super::scene::document("", &lanes, ""), settings);
    let of = |(lane, head): &(&str, Option<&str>)| {
        let head = head.map_or(json!({}), |sha| json!({ "head_sha": sha }));
        record(lane, "pre_pr", "complete", 9, &head)
    };
    let records: Vec<Value> = heads.iter().map(of).collect();
    scene.project.write(CHECKPOINTS, &json!(records).to_string());
    scene
}

/// Lost: work that never reached base would count as merged, and be forgotten.
#[test]
fn a_complete_lane_whose_commit_base_lacks_is_not_merged() {
    let scene = recorded_complete("", &[("SL-1", None)]);
    let project = &scene.project;
    project.git(&["switch", "-qc", "aside"]);
    project.write("SL-1-01.txt", "by hand\n");
    project.git(&["add", "SL-1-01.txt"]);
    project.git(&["commit", "-qm", "SL-1: work"]);
    let head = project.git(&["rev-parse", "HEAD"]).trim().to_owned();
    project.git(&["switch", "-q", "main"]);
    project.git(&["branch", "-qD", "aside"]);
    let shas = json!({ "head_sha": &head[..12], "base_branch": "main" });
    let records = json!([record("SL-1", "pre_pr", "complete", 9, &shas)]);
    project.write(CHECKPOINTS, &records.to_string());
    let import = project.piton(&["import", CHECKPOINTS]).exits(0);
    let import = import.says(&format!("main does not contain its commit {}", &head[..12]));
    import.says("continues with its tests").silent_about("is done");
    assert_eq!(lane_of(&project.status_json(RUN), "SL-1")["merged"], Value::Null);
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(project.read("SL-1-01.txt"), "by hand\n");
    assert_eq!(lane_of(&project.status_json(RUN), "SL-1")["merged"]["by"], "queue");
    scene.nothing_left();
}

/// Lost: a lane whose work is nowhere to be seen would count as merged, or be done a second time.
#[test]
fn a_complete_lane_whose_commit_is_not_here_waits_for_base() {
    let told = "[pull_request]\nmerged = \"test -e merged\"\n";
    let away = "0123456789012345678901234567890123456789";
    let scene = recorded_complete(told, &[("SL-1", Some(away)), ("SL-2", None)]);
    let project = &scene.project;
    let import = project.piton(&["import", CHECKPOINTS]).exits(0);
    let import = import.says(&format!("whether it was merged: its commit {away} is not in this"));
    let import = import.says("whether it was merged: it has neither a recorded commit");
    import.says("waits until main contains its commit").silent_about("is done");
    let status = project.status_json(RUN);
    assert_eq!(lane_of(&status, "SL-1")["status"], "waiting");
    project.piton(&["resume", RUN]).exits(3);
    assert!(!project.has("SL-1-01.txt") && !project.has("SL-2-01.txt"), "nothing is done again");
    let over = project.piton(&["rollback", RUN, "--lane", "SL-2", "--yes"]).exits(0);
    over.says("to before_lane_start");
    project.piton(&["resume", RUN]).exits(3);
    assert!(project.has("SL-2-01.txt"), "it started over");
    project.write("merged", "");
    project.piton(&["resume", RUN]).exits(0);
    assert_eq!(lane_of(&project.status_json(RUN), "SL-1")["merged"]["by"], "pr");
    assert!(!project.has("SL-1-01.txt"));
}

/// Lost: lanes would start from, and go to, a branch that the records do not mean.
#[test]
fn the_base_branch_of_the_records_is_the_base() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    let project = &scene.project;
    let at = json!({ "base_branch": "develop" });
    let records = json!([record("SL-1", "before_lane_start", "ready", 1, &at)]);
    project.write(CHECKPOINTS, &records.to_string());
    let none = project.piton(&["import", CHECKPOINTS]).exits(4).says("error[base-branch]");
    none.says("there is no branch develop").says("git branch -- develop COMMIT");
    assert_eq!(project.piton(&["runs", "--json"]).exits(0).json(), json!([]));
    project.git(&["branch", "develop"]);
    project.piton(&["import", CHECKPOINTS]).exits(0);
    project.piton(&["resume", RUN]).exits(0);
    let there = project.git(&["ls-tree", "--name-only", "develop"]);
    assert!(there.contains("SL-1-01.txt") && there.contains("SL-2-01.txt"), "{there}");
    assert!(!project.has("SL-1-01.txt"), "main is not what the records mean");
    let two = json!([
        record("SL-1", "before_lane_start", "ready", 1, &at),
        record("SL-2", "before_lane_start", "ready", 1, &json!({ "base_branch": "main" })),
    ]);
    project.write("two.json", &two.to_string().replace(RUN, "other"));
    project.piton(&["import", "two.json"]).exits(2).says("several base branches: develop, main");
}

/// Lost: a lane would be tried more often than its records allow, and be told what it did wrong in
/// words that it can't read.
#[test]
fn retries_of_another_tool_are_counted_on() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    let said = scene.outside("said");
    scene.agent("SL-1", &format!("cat >> {}; echo ===== >> {0}; exit 1", said.display()));
    project.git(&["branch", "lane/P1/SL-1"]);
    let context = ["Attempt 1: TypeError: no", "Test failed: register", "Attempt 2: it broke"];
    let retry = json!({ "retry_attempt": 2, "max_retries": 3, "failure_context": context });
    let records = json!([
        record("SL-1", "after_lane_start", "in_progress", 2, &json!({ "base_branch": "main" })),
        record("SL-1", "retry_attempt", "retrying", 3, &retry),
    ]);
    project.write(CHECKPOINTS, &records.to_string());
    project.piton(&["import", CHECKPOINTS]).exits(0);
    let status = project.status_json(RUN);
    let stages = lane_of(&status, "SL-1")["stages"].as_array().unwrap().clone();
    let names: Vec<_> = stages.iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert_eq!(names, ["after_lane_start", "retry_attempt"], "no record is made up");
    assert_eq!((&stages[1]["retry_attempt"], &stages[1]["max_retries"]), (&json!(2), &json!(3)));
    project.piton(&["resume", RUN]).exits(1);
    let said = std::fs::read_to_string(said).unwrap();
    assert_eq!(said.matches("=====").count(), 2, "the second retry, and the third: {said}");
    assert!(said.contains("Attempt 1: TypeError: no") && said.contains("Attempt 2: it broke"));
    assert!(!said.contains("Attempt 1: Attempt") && !said.contains("Attempt 2: Attempt"), "{said}");
    let last = scene.record("SL-1", "retry_attempt");
    assert_eq!((&last["status"], &last["retry_attempt"]), (&json!("failed"), &json!(3)), "{last}");
    assert_eq!(scene.stage_status("SL-1", "before_lane_start"), "", "nobody recorded it");
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
    project.git(&["rm", "-q", DOCUMENT]);
    let one = json!([record("SL-1", "pre_pr", "in_progress", 1, &json!({}))]);
    project.write("one.json", &one.to_string());
    project.piton(&["import", "one.json"]).exits(2).says("error[no-plan]").says("--plan");
    assert_eq!(project.piton(&["runs", "--json"]).exits(0).json(), json!([]));
}
