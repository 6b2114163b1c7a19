//! The resume decision: what is found, when it resumes by itself, and what a person may choose.

use serde_json::json;

use super::common::terminal::Terminal;
use super::scene::{CHECKPOINT, PLAN, Scene, THREE};

/// A workflow whose second phase failed.
fn failed() -> Scene {
    let scene = Scene::new();
    scene.does("2", "exit 1");
    scene.run().exits(1);
    scene.does("2", "");
    scene
}

/// Lost: an interrupted workflow starts over, or asks although nothing is in doubt.
#[test]
fn an_interrupted_workflow_resumes_by_itself() {
    let scene = Scene::new();
    scene.hold("2");
    let mut driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("2");
    driver.kill();
    scene.project.kill_all();
    scene.release("2");
    let said = scene.run().exits(0);
    said.says("Found existing checkpoint for this plan.\nCurrent phase: 2\nCompleted phases: 1\n")
        .says("Resuming from Phase 2\nSkipping Phase 1 (already completed)\n");
    assert_eq!(scene.ran(), ["1", "2", "2", "3"]);
}

/// Lost: a failed workflow goes on unasked, or the refusal does not say how to go on.
#[test]
fn without_a_terminal_a_failed_workflow_is_refused_with_the_flags() {
    let scene = failed();
    let said = scene.run().exits(4).says("error[run-unfinished]");
    said.says("Last error: exit code 1")
        .says(&format!("piton run {PLAN} --resume"))
        .says(&format!("piton run {PLAN} --fresh"))
        .says(&format!("piton inspect {CHECKPOINT}"));
    let found = "Found existing checkpoint for this plan.\nCurrent phase: 2\nCompleted phases: 1\n";
    scene.run_with(&["--resume"]).exits(0).says(found).says("Resuming from Phase 2");
    assert_eq!(scene.ran(), ["1", "2", "2", "3"]);
    scene.run_with(&["--resume"]).exits(0).silent_about("Found existing");
    let scene = failed();
    let said = scene.run_with(&["--yes"]).exits(0).says(found);
    said.says("Last error: exit code 1; resuming anyway because of --yes")
        .says("Resuming from Phase 2");
}

/// Lost: the first failing reason is not the one that is shown.
#[test]
fn failing_tests_are_the_first_reason() {
    let scene = Scene::new();
    scene.does("1", "exit 0");
    scene.run().exits(1);
    scene.run().exits(4).says("Tests failing");
    assert_eq!(scene.checkpoint()["tests_passing"], json!(false));
    let seen = scene.project.piton(&["inspect", CHECKPOINT, "--json"]).exits(0).json();
    assert_eq!(seen["data"]["auto_resume"], json!({ "safe": false, "reason": "Tests failing" }));
}

/// Lost: a plan that somebody changed goes on as if nothing had happened.
#[test]
fn a_changed_plan_is_asked_about() {
    let scene = Scene::new();
    scene.hold("2");
    let mut driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("2");
    driver.kill();
    scene.project.kill_all();
    scene.release("2");
    scene.project.write(PLAN, &scene.text().replace("- [ ] send", "- [ ] send all"));
    scene.run().exits(4).says("Plan changed since the checkpoint");
    scene.run_with(&["--resume"]).exits(0);
    assert_eq!(scene.times("1"), 1);
}

/// Lost: starting fresh destroys the old checkpoint, or does not start with the first phase.
#[test]
fn a_fresh_start_archives_the_checkpoint() {
    let scene = failed();
    let old = scene.project.read(CHECKPOINT);
    scene.run_with(&["--fresh"]).exits(0);
    assert_eq!(scene.ran(), ["1", "2", "1", "2", "3"]);
    let names = scene.checkpoints();
    assert_eq!(names.len(), 2, "{names:?}");
    let archived = names.iter().find(|name| name.starts_with("implement_027_auth.20")).unwrap();
    assert_eq!(scene.project.read(&format!("{}/{archived}", super::scene::FOLDER)), old);
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 2, 3]));
}

/// Lost: a person at a terminal cannot look before they choose, or a choice does something else.
#[test]
fn a_person_chooses_at_a_terminal() {
    let scene = failed();
    let Some(mut terminal) = Terminal::start(&scene.project, &format!("run {PLAN}")) else {
        return;
    };
    terminal.answer("Resume from checkpoint?", "v\r");
    terminal.answer("\"workflow_id\": \"implement_027_auth\"", "c\r");
    let said = terminal.ends(3);
    assert!(said.contains("nothing was changed") && !said.contains("error["), "{said}");
    for words in ["Found existing checkpoint for this plan.", "Last error: exit code 1"] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(scene.ran(), ["1", "2"]);
    let Some(mut terminal) = Terminal::start(&scene.project, &format!("run {PLAN}")) else {
        return;
    };
    terminal.answer("Resume from checkpoint? (Y/n)", "y\r");
    terminal.ends(0);
    assert_eq!(scene.ran(), ["1", "2", "2", "3"]);
}

/// Lost: declining does not archive, or deleting leaves nothing to come back to.
#[test]
fn declining_archives_and_deleting_keeps_a_copy() {
    let scene = failed();
    let Some(mut terminal) = Terminal::start(&scene.project, &format!("run {PLAN}")) else {
        return;
    };
    terminal.answer("Resume from checkpoint?", "d\r");
    let said = terminal.ends(3);
    assert!(said.contains("deleted "), "{said}");
    assert_eq!(scene.checkpoints(), [""; 0]);
    let copies = std::fs::read_dir(scene.project.state_dir().join("deleted")).unwrap();
    assert_eq!(copies.count(), 1);
    assert_eq!(scene.ran(), ["1", "2"]);
    let scene = failed();
    let Some(mut terminal) = Terminal::start(&scene.project, &format!("run {PLAN}")) else {
        return;
    };
    terminal.answer("Resume from checkpoint?", "n\r");
    terminal.ends(0);
    assert_eq!(scene.ran(), ["1", "2", "1", "2", "3"]);
    assert_eq!(scene.checkpoints().len(), 2);
}

/// Lost: retry, skip and abort are not offered when a phase fails.
#[test]
fn a_failed_phase_is_asked_about() {
    let scene = Scene::new();
    scene.does("2", "exit 1");
    let Some(mut terminal) = Terminal::start(&scene.project, &format!("run {PLAN}")) else {
        return;
    };
    terminal.answer("[r]etry, [s]kip, [a]bort", "s\r");
    let said = terminal.ends(0);
    assert!(said.contains("Retry phase, Skip phase, or Abort workflow?"), "{said}");
    assert_eq!(scene.ran(), ["1", "2", "3"]);
    assert_eq!(scene.checkpoint()["phase_metadata"]["2"]["status"], "skipped");
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 3]));
    scene.shows("## Phase 2: Login [SKIPPED]");
    scene.shows("- [ ] form");
}

/// Lost: a failure that passes by itself stops a workflow until a person comes.
#[test]
fn a_transient_failure_resumes_by_itself() {
    let scene = Scene::new();
    scene.does("2", "if [ $n = 1 ]; then echo 'connect: Connection refused' >&2; exit 1; fi");
    scene.run().exits(0);
    assert_eq!(scene.ran(), ["1", "2", "2", "3"]);
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 2, 3]));
}

/// Lost: an unfinished workflow is not found by somebody who does not know its plan.
#[test]
fn run_without_arguments_continues_the_workflow() {
    let scene = Scene::new();
    scene.hold("2");
    let mut driver = scene.project.spawn(&["run", PLAN]);
    scene.wait_at("2");
    driver.kill();
    scene.project.kill_all();
    scene.release("2");
    let said = scene.project.piton(&["run"]).exits(0);
    said.says("continuing implement_027_auth (Phase 2, in_progress, ");
    assert_eq!(scene.ran(), ["1", "2", "2", "3"]);
    scene.project.piton(&["run"]).silent_about("continuing");
}

/// Lost: a phase that was rolled back counts as done in checkpoint and plan.
#[test]
fn a_rollback_is_seen_in_checkpoint_and_plan() {
    let scene = Scene::new();
    scene.does("3", "exit 1");
    scene.run().exits(1);
    scene.project.piton(&["rollback", "--to", "2/main@before_lane_start", "--yes"]).exits(0);
    let found = scene.checkpoint();
    assert_eq!((&found["current_phase"], &found["completed_phases"]), (&json!(2), &json!([1])));
    scene.does("3", "");
    scene.run_with(&["--resume"]).exits(0);
    assert_eq!(scene.checkpoint()["completed_phases"], json!([1, 2, 3]));
    assert_eq!(scene.times("2"), 2);
    assert_eq!(scene.text().matches("[COMPLETED]").count(), THREE.matches("## Phase").count());
}
