//! Kills: an agent outlives its driver, a whole machine falls, somebody reads all the while.

use serde_json::json;

use super::common::wait_until;
use super::scene::{CHECKPOINT, PLAN, Scene};

/// Lost: an agent that outlived its driver is asked again for what it has done.
#[test]
fn an_agent_outlives_its_driver_and_ran_once() {
    let scene = Scene::new();
    scene.hold("2");
    let mut driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("2");
    driver.kill();
    scene.release("2");
    wait_until("its output", || scene.project.has("made/2"));
    scene.run().exits(0).says("Resuming from Phase 2");
    assert_eq!(scene.ran(), ["1", "2", "3"]);
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 2, 3]));
}

/// Lost: without checkpoints eight phases start over after the sixth failed (the first anti-pattern).
#[test]
fn a_late_failure_costs_only_its_own_phase() {
    let phases = (1..=8).map(|n| format!("## Phase {n}: P{n}\n- [ ] t\n\n"));
    let scene = Scene::with_plan(&format!("# Eight\n\n{}", phases.collect::<String>()));
    scene.does("6", "exit 1");
    scene.run().exits(1);
    scene.project.kill_all();
    scene.does("6", "");
    scene.run_with(&["--resume"]).exits(0);
    assert_eq!(scene.ran(), ["1", "2", "3", "4", "5", "6", "6", "7", "8"]);
}

/// Lost: a reader sees a half-written checkpoint, or one without its fields.
#[test]
fn the_checkpoint_is_valid_whenever_it_is_read() {
    let scene = Scene::new();
    let mut driver = scene.project.spawn(&["run", PLAN]);
    let mut seen = 0;
    while !driver.ended() {
        let Ok(text) = std::fs::read_to_string(scene.project.root().join(CHECKPOINT)) else {
            continue;
        };
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        for field in ["workflow_id", "plan_path", "current_phase", "completed_phases"] {
            assert!(found.get(field).is_some(), "{text}");
        }
        seen += 1;
    }
    assert!(seen > 0);
    driver.wait().exits(0);
}
