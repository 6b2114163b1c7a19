//! What `status` and `show` tell of lanes.

use serde_json::json;

use super::common::Project;

const PLAN: &str = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nmerge = \"none\"\n\
                    run = \"echo b > b.txt; mkfifo pipe\"\ntest = \"test -f b.txt\"\n";

/// Lost: nobody would see where a lane works, how far it is, and what no checkpoint of it holds.
#[test]
fn a_lane_is_told_with_its_workspace_stages_and_what_is_not_captured() {
    let project = Project::with_plan(PLAN);
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    let status = project.status_json("r");
    let lane = &status["phases"][0]["lanes"][0];
    assert_eq!(lane["isolation"], "worktree", "{lane:#}");
    assert_eq!(lane["branch"], "lane/P/main");
    assert_eq!(lane["worktree"], json!(project.root().join(".worktrees/P/main")));
    assert_eq!(lane["merged"]["by"], "none");
    assert_eq!((&lane["pull_request"], &lane["blocked"]), (&json!(null), &json!(null)));
    let stages = lane["stages"].as_array().unwrap();
    let named: Vec<&str> = stages.iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert!(named.starts_with(&["before_lane_start", "after_lane_start"]), "{named:?}");
    assert!(stages[1]["snapshot"].is_string() && stages[1]["timestamp"].is_string(), "{lane:#}");
    assert_eq!(lane["degraded"][0]["path"], "pipe");
    let text = project.piton(&["status", "r"]).exits(0);
    text.says("kept on lane/P/main").says("not in its checkpoints: pipe");
    project.piton(&["show", "r"]).exits(0).says("snapshots take");
    assert!(project.piton(&["show", "r", "--json"]).json()["snapshot_costs"]["bytes"].is_u64());
}

/// Lost: a run would stop without a word about what to change.
#[test]
fn a_lane_that_is_held_up_says_by_what_and_how_to_go_on() {
    let project = Project::with_plan(PLAN);
    project.commit();
    project.write("dirt.txt", "x");
    let run = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(4);
    let run = run.says(": 1 lane needs you");
    let run = run.says("P/main is blocked:").says("dirt.txt").says("next: commit or stash them");
    run.says(", then piton resume r\n").says("or: piton resume r --seed-dirty\n");
    let status = project.piton(&["status", "r"]).exits(0).says("blocked: ").says("dirt.txt");
    status.says("next     commit or stash them");
    let lane = &project.status_json("r")["phases"][0]["lanes"][0];
    assert!(lane["blocked"]["cause"].as_str().unwrap().contains("dirt.txt"), "{lane:#}");
    assert!(lane["blocked"]["remedies"][0].as_str().unwrap().contains("commit"), "{lane:#}");
    project.remove("dirt.txt");
    project.piton(&["resume", "r"]).exits(0);
}
