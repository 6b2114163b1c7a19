//! Checkpoint creation and integrity, and how often it is written.

use serde_json::json;

use super::common::wait_until;
use super::scene::{CHECKPOINT, PLAN, Scene};

/// Lost: another tool that reads the checkpoint misses a field of the pattern.
#[test]
fn a_checkpoint_has_every_field_of_the_pattern() {
    let scene = Scene::new();
    scene.does("1", "echo 1 > made/1; printf '{\"artifacts\": \"made/1\"}' >> $PITON_OUTPUT");
    scene.run().exits(0);
    let found = scene.checkpoint();
    assert_eq!(found["workflow_id"], "implement_027_auth");
    assert_eq!(found["plan_path"], PLAN);
    assert_eq!(found["current_phase"], 4);
    assert_eq!(found["completed_phases"], json!([1, 2, 3]));
    let one = &found["phase_metadata"]["1"];
    assert_eq!((&one["status"], &one["artifacts"]), (&json!("completed"), &json!(["made/1"])));
    assert_eq!((&one["duration_minutes"], &one["key_results"]), (&json!(0), &json!("Did 1.")));
    assert!(one["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&found["replan_history"], &found["replan_count"]), (&json!([]), &json!({})));
    let paths = json!({
        "implementation_dir": "specs/027_auth/implementation/",
        "test_results": "specs/027_auth/test_results/",
    });
    assert_eq!(found["artifact_paths"], paths);
    let context = json!({
        "research_reports": ["001_oauth.md"],
        "plan_metadata": { "title": "Auth", "total_phases": 3 },
    });
    assert_eq!(found["context_metadata"], context);
    assert_eq!((&found["status"], &found["last_error"]), (&json!("completed"), &json!(null)));
    let seen = scene.project.piton(&["inspect", CHECKPOINT, "--json"]).exits(0).json();
    assert_eq!((&seen["format"], &seen["valid"]), (&json!("workflow/checkpoint"), &json!(true)));
    assert_eq!(seen["problems"], json!([]));
}

/// Lost: key results are an agent's whole speech.
#[test]
fn key_results_are_at_most_fifty_words() {
    let scene = Scene::new();
    scene.does("2", "seq 1 80 | tr '\\n' ' '; echo; exit 0");
    scene.run().exits(0);
    let words = scene.checkpoint()["phase_metadata"]["2"]["key_results"].clone();
    assert_eq!(words.as_str().unwrap().split(' ').count(), 50);
}

/// Lost: a failed phase advances the workflow, or nobody knows why it failed.
#[test]
fn a_failed_phase_stores_its_error_and_does_not_advance() {
    let scene = Scene::new();
    scene.does("2", "echo 'no such table'; exit 3");
    scene.run().exits(1);
    let found = scene.checkpoint();
    assert_eq!((&found["current_phase"], &found["completed_phases"]), (&json!(2), &json!([1])));
    let two = &found["phase_metadata"]["2"];
    assert_eq!(
        (&two["status"], &two["error"]),
        (&json!("failed"), &json!("exit code 3: no such table"))
    );
    assert_eq!((&found["status"], &found["tests_passing"]), (&json!("failed"), &json!(true)));
    scene.shows("## Phase 2: Login [IN PROGRESS]");
    scene.shows("- [ ] form");
    scene.does("2", "");
    scene.run_with(&["--resume"]).exits(0);
    let found = scene.checkpoint();
    assert_eq!(found["phase_metadata"]["2"].get("error"), None);
    assert_eq!(found["last_error"], json!(null));
}

/// Lost: the file is written at every event, so that readers and disks have no rest.
#[test]
fn it_is_written_per_phase_and_not_more_often() {
    let scene = Scene::new();
    scene.hold("2");
    let driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("2");
    wait_until("phase 1", || scene.checkpoint()["completed_phases"] == json!([1]));
    let before = scene.project.read(CHECKPOINT);
    // Requests of others are events, too.
    scene.project.piton(&["checkpoint", "-m", "by hand"]).exits(0);
    wait_until("the checkpoint", || {
        scene.project.piton(&["show", "manual-1"]).stdout.contains("by hand")
    });
    assert_eq!(scene.project.read(CHECKPOINT), before);
    scene.release("2");
    driver.wait().exits(0);
}

/// Lost: what another tool keeps in the file is gone after the next phase.
#[test]
fn fields_of_others_stay_byte_for_byte() {
    let scene = Scene::new();
    scene.does("2", "exit 1");
    scene.run().exits(1);
    let text = scene.project.read(CHECKPOINT);
    let odd = "\"odd\":  {\"x\" : 1.50, \"y\":[ ]}";
    scene.project.write(CHECKPOINT, &text.replacen('{', &format!("{{\n  {odd},"), 1));
    scene.does("2", "");
    scene.run_with(&["--resume"]).exits(0);
    let after = scene.project.read(CHECKPOINT);
    assert!(after.contains(odd), "{after}");
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 2, 3]));
}

/// Lost: a damaged or deleted checkpoint takes the workflow with it.
#[test]
fn a_damaged_or_deleted_checkpoint_comes_back() {
    let scene = Scene::new();
    scene.does("3", "exit 1");
    scene.run().exits(1);
    scene.project.write(CHECKPOINT, "{ invalid json");
    scene.run_with(&["--resume"]).exits(1).says("cannot be read");
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 2]));
    let kept = scene.checkpoints().into_iter().find(|name| name.contains("corrupt")).unwrap();
    let folder = super::scene::FOLDER;
    assert_eq!(scene.project.read(&format!("{folder}/{kept}")), "{ invalid json");
    let whole = scene.project.read(CHECKPOINT);
    scene.project.remove(CHECKPOINT);
    scene.does("3", "");
    scene.run_with(&["--resume"]).exits(0);
    let records = |text: &str| {
        let found: serde_json::Value = serde_json::from_str(text).unwrap();
        (found["phase_metadata"]["1"].clone(), found["phase_metadata"]["2"].clone())
    };
    assert_eq!(records(&scene.project.read(CHECKPOINT)), records(&whole));
    assert_eq!(scene.ran(), ["1", "2", "3", "3", "3"]);
}

/// Lost: the checkpoint of another plan of the same topic is overwritten.
#[test]
fn two_plans_of_a_topic_have_a_checkpoint_each() {
    let scene = Scene::new();
    scene.run().exits(0);
    let first = scene.project.read(CHECKPOINT);
    let other = "specs/027_auth/plans/002_more.md";
    scene.project.write(other, "# More\n\n## Phase 1: A\n- [ ] a\n");
    scene.project.piton(&["run", other]).exits(0);
    assert_eq!(scene.project.read(CHECKPOINT), first);
    assert_eq!(scene.checkpoints().len(), 2);
}

/// Lost: nobody can tell from the checkpoint what a phase made, or the next commit takes the checkpoint.
#[test]
fn a_phase_lists_what_it_changed_and_git_ignores_the_checkpoint() {
    let scene = Scene::new();
    scene.does("2", "rm made/1; echo x > 'notes ä.txt'");
    scene.run().exits(0);
    let found = scene.checkpoint();
    let made = |phase: &str| found["phase_metadata"][phase]["artifacts"].clone();
    assert_eq!(made("1"), json!(["made/1"]));
    assert_eq!(made("2"), json!(["made/2", "notes ä.txt"]));
    let status = scene.project.git(&["status", "--porcelain", "--untracked-files=all"]);
    assert!(!status.contains(".claude"), "{status}");
}

/// Lost: another tool goes on with a phase whose dependencies are not there yet.
#[test]
fn the_current_phase_is_the_first_in_the_order_of_dependencies() {
    let plan = "# P\n\n## Phase 1: A\n**Dependencies**: [2]\n- [ ] a\n\n\
                ## Phase 2: B\n**Dependencies**: []\n- [ ] b\n";
    let scene = Scene::with_plan(plan);
    scene.does("2", "exit 1");
    scene.run().exits(1);
    let found = scene.checkpoint();
    assert_eq!((&found["current_phase"], &found["completed_phases"]), (&json!(2), &json!([])));
    scene.does("2", "");
    scene.does("1", "exit 1");
    scene.run_with(&["--resume"]).exits(1);
    let found = scene.checkpoint();
    assert_eq!((&found["current_phase"], &found["completed_phases"]), (&json!(1), &json!([2])));
    assert_eq!(scene.ran(), ["2", "2", "1"]);
}
