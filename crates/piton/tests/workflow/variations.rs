//! The variations of the pattern that real plans and checkpoints have: markers, headings, ids and
//! dependencies in all their forms, every schema, every reason to ask.

use serde_json::json;

use super::scene::{CHECKPOINT, FOLDER, PLAN, Scene};

fn now(scene: &Scene) -> String {
    scene.project.sh("date -u +%Y-%m-%dT%H:%M:%SZ").stdout.trim().to_owned()
}

/// Lost: a phase that is done runs again, or one that is not is left out, because of its marker.
#[test]
fn each_marker_has_its_meaning() {
    let runs = ["NOT STARTED", "IN PROGRESS", "PARTIAL", "BLOCKED", "INCOMPLETE"];
    let rests = ["COMPLETED", "COMPLETE", "DONE", "VERIFIED", "SKIPPED", "DEFERRED"];
    // A marker beats the boxes: those that run are all ticked, the others are not.
    let boxed = |marker: &&str| if runs.contains(marker) { "- [x] a" } else { "- [ ] a" };
    let phase = |(number, marker): (usize, &&str)| {
        format!("## Phase {}: P [{marker}]\n{}\n\n", number + 1, boxed(marker))
    };
    let phases = runs.iter().chain(&rests).enumerate().map(phase);
    let text = format!("# Markers\n\n{}", phases.collect::<String>());
    let scene = Scene::with_plan(&text);
    scene.run().exits(0);
    assert_eq!(scene.ran(), ["1", "2", "3", "4", "5"]);
    let done = scene.checkpoint()["completed_phases"].clone();
    let mut done: Vec<u64> = serde_json::from_value(done).unwrap();
    done.sort_unstable();
    assert_eq!(done, (1..=9).collect::<Vec<u64>>());
    for marker in rests {
        assert!(scene.text().contains(&format!("[{marker}]")), "{}", scene.text());
    }
}

/// Lost: prose about a phase is executed, or a phase is not seen because of its heading.
#[test]
fn headings_ids_and_dependencies_are_read_in_every_form() {
    let text = "# Forms\r\n\r\n## Phase 1: A\r\n- [ ] a\r\n\r\n### Phase 2A: B\r\n\
                **Dependencies**: [1]\r\n- [ ] b\r\n\r\n#### Phase 2B: C\r\ndepends_on: [phase_1]\r\n\
                - [ ] c\r\n\r\n### Phase 3 (OPTIONAL): D\r\n**Depends on**: 2A, 2B\r\n- [ ] d\r\n\r\n\
                ## Phase 4: E\r\n**Dependencies**: None\r\n- [ ] e\r\n\r\n## Phase 1 Risks\r\n- [ ] risk";
    let scene = Scene::with_plan(&format!("\u{feff}{text}"));
    let found = scene.project.piton(&["inspect", PLAN, "--json"]).exits(0).json();
    let waves = json!([["1", "4"], ["2A", "2B"], ["3"]]);
    assert_eq!(found["data"]["waves"], waves, "{found}");
    scene.run().exits(0);
    let mut ran = scene.ran();
    assert_eq!(ran.len(), 5);
    let at = |id: &str| ran.iter().position(|ran| ran == id);
    assert!(at("1") < at("2A") && at("2A") < at("3") && at("2B") < at("3"), "{ran:?}");
    ran.sort();
    assert_eq!(ran, ["1", "2A", "2B", "3", "4"]);
    let after = scene.text();
    assert!(after.starts_with('\u{feff}') && after.ends_with("## Phase 1 Risks\r\n- [ ] risk"));
    assert_eq!(after.matches("[COMPLETED]\r\n").count(), 5, "{after}");
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, "2A", "2B", 3, 4]));
}

/// Lost: a checkpoint of some version is not understood, and what it tells is done again.
#[test]
fn every_schema_is_taken_over() {
    for version in
        [None, Some("1.0"), Some("1.1"), Some("1.2"), Some("1.3"), Some("2.0"), Some("2.1")]
    {
        let scene = Scene::new();
        let path = format!("{FOLDER}/implement_auth_20251021_120000.json");
        let at = now(&scene);
        let mut old = json!({
            "checkpoint_id": "implement_auth_20251021_120000", "workflow_type": "implement",
            "project_name": "auth", "status": "in_progress", "current_phase": 2, "total_phases": 3,
            "completed_phases": [1, 1], "workflow_state": { "plan_path": PLAN }, "last_error": null,
            "tests_passing": true, "created_at": at, "updated_at": at, "replanning_count": 3,
            "last_replan_reason": "complexity", "replan_phase_counts": { "phase_3": 1 },
            "replan_phase_3_count": "2",
            "replan_history": [{ "phase": 3, "reason": "complexity", "timestamp": at }],
        });
        if let Some(version) = version {
            old["schema_version"] = version.into();
        }
        let text = serde_json::to_string_pretty(&old).unwrap();
        scene.project.write(&path, &text);
        let seen = scene.project.piton(&["inspect", &path, "--json"]).exits(0).json();
        assert_eq!(seen["data"]["schema"], version.unwrap_or("1.0"));
        // Completed phases are a set, and of several counters the largest counts.
        assert_eq!(seen["data"]["completed_phases"], json!([1]), "{seen}");
        assert_eq!(seen["data"]["replans"], json!({ "3": 2 }));
        assert_eq!(seen["data"]["auto_resume"]["safe"], true, "{seen}");
        scene.run().exits(0).says("Found existing checkpoint").says("Skipping Phase 1");
        assert_eq!(scene.ran(), ["2", "3"], "{version:?}");
        assert_eq!(scene.project.read(&format!("{path}.backup")), text);
        let now = scene.checkpoint();
        assert_eq!(now["replan_count"], json!({ "3": 2 }), "{version:?}");
    }
}

/// Lost: a workflow that somebody stopped, or whose plan they changed, resumes without a question.
#[test]
fn each_reason_to_ask_is_named() {
    let healthy = |scene: &Scene| {
        json!({
            "schema_version": "1.3", "workflow_type": "implement", "project_name": "auth",
            "status": "in_progress", "current_phase": 2, "total_phases": 3, "completed_phases": [1],
            "workflow_state": { "plan_path": PLAN }, "last_error": null, "tests_passing": true,
            "created_at": now(scene), "updated_at": now(scene),
        })
    };
    for (key, value, words) in [
        ("tests_passing", json!(false), "Tests failing"),
        ("last_error", json!("disk full"), "Last error: disk full"),
        ("status", json!("paused"), "Status is paused, not in_progress"),
        ("updated_at", json!("2025-10-21T12:00:00Z"), "days old (at most 7)"),
        ("plan_modification_time", json!(1_000_000_000), "Plan changed since the checkpoint"),
    ] {
        let scene = Scene::new();
        let mut found = healthy(&scene);
        found[key] = value;
        if key == "updated_at" {
            found["created_at"] = found[key].clone();
        }
        let text = found.to_string();
        let path = format!("{FOLDER}/implement_auth_20251021_120000.json");
        scene.project.write(&path, &text);
        scene.run().exits(4).says(words).says("--resume").says("--fresh");
        assert_eq!((scene.ran().len(), scene.project.read(&path)), (0, text), "{key}");
    }
    // All at once: the first of them.
    let scene = Scene::new();
    let mut all = healthy(&scene);
    (all["tests_passing"], all["last_error"]) = (json!(false), json!("disk full"));
    scene.project.write(&format!("{FOLDER}/implement_auth_20251021_120000.json"), &all.to_string());
    scene.run().exits(4).says("Tests failing").silent_about("disk full");
    // One of ours that a person stopped.
    let scene = Scene::new();
    scene.hold("2");
    let driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("2");
    scene.project.piton(&["abort", "--yes"]).exits(0);
    driver.wait();
    scene.release("2");
    scene.run().exits(4).says("Status is aborted, not in_progress");
    scene.run_with(&["--resume"]).exits(0).says("Resuming from Phase 2");
    assert_eq!(scene.times("1"), 1);
}

/// Lost: a plan without a numbered folder has no checkpoint that another tool would find.
#[test]
fn without_a_topic_the_checkpoint_is_named_by_the_hash() {
    let plan = "todo/plan_a.md";
    let scene = Scene::with(plan, "# A\n\n## Phase 1: A\n- [ ] a\n", "");
    scene.run().exits(0);
    let hash = scene.project.sh(&format!("echo {plan} | md5sum | cut -d' ' -f1")).stdout;
    assert_eq!(scene.checkpoints(), [format!("{}.json", hash.trim())]);
    assert!(!scene.project.has(CHECKPOINT));
}
