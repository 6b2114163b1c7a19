//! Checkpoints that other tools wrote: found by any of their names, taken over in the middle,
//! upgraded, or refused.

use serde_json::{Value, json};

use super::scene::{CHECKPOINT, FOLDER, PLAN, Scene};

/// The MD5 of the plan's path and a newline.
const HASHED: &str = ".claude/data/checkpoints/b7e0ab6d9eb4f0f4b0ca2ce4d6c1e0a4.json";

/// A checkpoint of the pattern, written now by somebody else.
fn pattern(scene: &Scene) -> Value {
    let now = scene.project.sh("date -u +%Y-%m-%dT%H:%M:%SZ").stdout.trim().to_owned();
    json!({
        "workflow_id": "implement_027_auth",
        "plan_path": PLAN,
        "current_phase": 2,
        "completed_phases": [1],
        "phase_metadata": { "1": {
            "status": "completed", "artifacts": ["notes.md"], "duration_minutes": 45,
            "timestamp": now, "by": "another tool",
        } },
        "replan_history": [{ "phase": 3, "reason": "complexity_exceeded", "timestamp": now }],
        "replan_count": { "3": 1 },
        "artifact_paths": {},
        "context_metadata": { "kept": true },
    })
}

fn put(scene: &Scene, path: &str, value: &Value) {
    scene.project.write(path, &serde_json::to_string_pretty(value).unwrap());
}

/// Lost: work that another tool did is done again, or its replans are forgotten.
#[test]
fn a_foreign_checkpoint_is_taken_over_in_the_middle() {
    let scene = Scene::new();
    let before = pattern(&scene);
    put(&scene, CHECKPOINT, &before);
    let said = scene.run().exits(0);
    said.says("Found existing checkpoint for this plan.\nCurrent phase: 2\nCompleted phases: 1\n")
        .says("Resuming from Phase 2")
        .says("Skipping Phase 1 (already completed)");
    assert_eq!(scene.ran(), ["2", "3"]);
    let found = scene.checkpoint();
    assert_eq!(found["phase_metadata"]["1"], before["phase_metadata"]["1"]);
    assert_eq!(found["completed_phases"], json!([1, 2, 3]));
    assert_eq!(
        (&found["replan_history"], &found["replan_count"]),
        (&before["replan_history"], &before["replan_count"])
    );
    assert_eq!(found["context_metadata"], json!({ "kept": true }));
    // What another tool completed is not marked by us.
    assert!(scene.text().contains("## Phase 1: Schema\n"), "{}", scene.text());
}

/// Lost: a checkpoint named after the hash of the plan's path is not found.
#[test]
fn a_checkpoint_is_found_by_the_hash_of_its_plan() {
    let scene = Scene::new();
    let name = scene.project.sh(&format!("echo {PLAN} | md5sum | cut -d' ' -f1")).stdout;
    let path = format!("{FOLDER}/{}.json", name.trim());
    assert_eq!(path.len(), HASHED.len());
    put(&scene, &path, &pattern(&scene));
    scene.run().exits(0).says("Found existing checkpoint for this plan.");
    assert_eq!(scene.ran(), ["2", "3"]);
    assert_eq!(scene.checkpoints().len(), 1);
}

/// Lost: a checkpoint of an older schema is overwritten without a backup, or is not understood.
#[test]
fn an_older_schema_is_upgraded_and_kept() {
    let scene = Scene::new();
    let path = format!("{FOLDER}/implement_auth_20251021_120000.json");
    let old = json!({
        "schema_version": "1.2", "checkpoint_id": "implement_auth_20251021_120000",
        "workflow_type": "implement", "project_name": "auth", "status": "in_progress",
        "current_phase": "2", "total_phases": "3", "completed_phases": ["1"],
        "workflow_state": { "plan_path": PLAN }, "last_error": null, "tests_passing": true,
        "replan_phase_counts": { "phase_2": 1 }, "replan_history": [], "own": [1, 2],
        "created_at": "2025-10-21T12:00:00Z", "updated_at": "2025-10-21T12:00:00Z",
    });
    put(&scene, &path, &old);
    scene.run().exits(4).says("days old (at most 7)");
    let said = scene.run_with(&["--resume"]).exits(0).says("Found existing checkpoint");
    said.says("Skipping Phase 1 (already completed)");
    assert_eq!(scene.ran(), ["2", "3"]);
    let backup: Value =
        serde_json::from_str(&scene.project.read(&format!("{path}.backup"))).unwrap();
    assert_eq!(backup, old);
    let names = ["implement_027_auth.json", "implement_auth_20251021_120000.json.backup"];
    assert_eq!(scene.checkpoints(), names);
    let found = scene.checkpoint();
    assert_eq!(found["schema_version"], json!("2.1"));
    assert_eq!(
        (&found["workflow_id"], &found["own"]),
        (&json!("implement_027_auth"), &json!([1, 2]))
    );
    assert_eq!(found["replan_count"], json!({ "2": 1 }));
    assert_eq!(found["completed_phases"], json!([1, 2, 3]));
    let seen = scene.project.piton(&["inspect", CHECKPOINT, "--json"]).exits(0).json();
    assert_eq!(seen["data"]["replans"], json!({ "2": 1 }));
}

/// Lost: the file of an older form is taken for the checkpoint again after a fresh start.
#[test]
fn a_fresh_start_archives_an_older_form() {
    let scene = Scene::new();
    let old = json!({
        "schema_version": "1.2", "status": "failed", "current_phase": 2, "completed_phases": [1],
        "plan_path": PLAN, "updated_at": "2025-10-21T12:00:00Z",
    });
    put(&scene, &format!("{FOLDER}/implement_auth_20251021_120000.json"), &old);
    scene.run_with(&["--fresh"]).exits(0);
    assert_eq!(scene.ran(), ["1", "2", "3"]);
    let names = scene.checkpoints();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(names[0], "implement_027_auth.json");
    assert!(names[1].starts_with("implement_auth_20251021_120000."), "{names:?}");
}

/// Lost: finished phases run again because their list is damaged.
#[test]
fn a_checkpoint_that_does_not_say_what_is_done_is_asked_about() {
    let scene = Scene::new();
    for (name, value) in [("completed_phases", json!("1,2")), ("current_phase", Value::Null)] {
        let mut found = pattern(&scene);
        found[name] = value;
        put(&scene, CHECKPOINT, &found);
        scene.run().exits(3).says("error[checkpoint-unclear]").says(name);
        scene.run_with(&["--resume"]).exits(3).says("error[checkpoint-unclear]");
    }
    assert_eq!(scene.ran(), [""; 0]);
}

/// Lost: fields that the pattern requires are missing for ever, with a warning after every phase.
#[test]
fn fields_that_are_missing_are_added() {
    let scene = Scene::new();
    let mut before = pattern(&scene);
    for name in ["replan_history", "artifact_paths", "context_metadata"] {
        before.as_object_mut().unwrap().remove(name);
    }
    put(&scene, CHECKPOINT, &before);
    let said = scene.run().exits(0).says("they are added");
    assert!(!said.stderr.contains("was not written"), "{}", said.stderr);
    let found = scene.checkpoint();
    assert!(found["artifact_paths"].is_object() && found["replan_history"].is_array());
    let backup = scene.project.read(&format!("{CHECKPOINT}.backup"));
    assert_eq!(serde_json::from_str::<Value>(&backup).unwrap(), before);
}

/// Lost: a checkpoint that nobody can read is overwritten, or taken for none.
#[test]
fn an_unreadable_foreign_checkpoint_is_refused_untouched() {
    let scene = Scene::new();
    scene.project.write(CHECKPOINT, "{ invalid json");
    scene
        .run()
        .exits(3)
        .says("error[checkpoint-unclear]")
        .says(&format!("piton inspect {CHECKPOINT}"));
    assert_eq!(scene.project.read(CHECKPOINT), "{ invalid json");
    assert_eq!(scene.ran(), [""; 0]);
    scene.run_with(&["--fresh"]).exits(0);
    assert_eq!(scene.ran(), ["1", "2", "3"]);
    assert_eq!(scene.checkpoints().len(), 2);
}

/// Lost: a finished workflow is done a second time because another tool finished it.
#[test]
fn a_complete_foreign_checkpoint_starts_nothing() {
    let scene = Scene::new();
    let mut found = pattern(&scene);
    found["completed_phases"] = json!([1, 2, 3]);
    found["current_phase"] = json!(4);
    put(&scene, CHECKPOINT, &found);
    found["status"] = json!("completed");
    put(&scene, CHECKPOINT, &found);
    scene.run().exits(0).says("Completed phases: 1,2,3").says("already complete").says("--fresh");
    assert_eq!(scene.ran(), [""; 0]);
}
