//! Task lists of spec-kit: a task a step, tasks with other files side by side, boxes as they finish.

use super::common::wait_until;
use super::scene::Scene;

/// The list.
const LIST: &str = "specs/001-login/tasks.md";
/// Its checkpoint.
const RECORD: &str = ".claude/data/checkpoints/implement_001_login.json";
const TEXT: &str = "# Tasks: Login\n\n## Phase 1: Setup\n\n- [x] T001 Create project\n- [ ] T002 Add linter\n\n\
    ## Phase 2: Story [US1]\n\n- [ ] T003 [P] [US1] Model in src/model.rs\n- [ ] T004 [P] [US1] View in src/view.rs\n\
    - [ ] T005 [US1] Join both in src/lib.rs\n\n**Checkpoint**: works\n- [ ] reviewed\n";

/// Lost: tasks run twice or out of order, or their boxes do not show it.
#[test]
fn each_task_is_a_step_and_its_box_is_ticked() {
    let scene = Scene::with(LIST, TEXT, "");
    // T003 and T004 wait for each other.
    scene.does("T003", "while ! grep -q T004 $log/ran.txt; do sleep 0.02; done");
    scene.does("T004", "while ! grep -q T003 $log/ran.txt; do sleep 0.02; done");
    scene.does("T005", "exit 1");
    scene.run().exits(1);
    assert_eq!(scene.times("T001"), 0);
    let mut ran = scene.ran();
    ran.sort();
    assert_eq!(ran, ["T002", "T003", "T004", "T005"]);
    let done = ["T002 Add", "T003 [P]", "T004 [P]"];
    let ticked = done.iter().fold(TEXT.to_owned(), |text, task| {
        text.replace(&format!("- [ ] {task}"), &format!("- [x] {task}"))
    });
    assert_eq!(scene.text(), ticked);
    let found: serde_json::Value = serde_json::from_str(&scene.project.read(RECORD)).unwrap();
    assert_eq!(
        (&found["current_phase"], &found["completed_phases"]),
        (&2.into(), &serde_json::json!([1]))
    );
    scene.does("T005", "");
    scene.run_with(&["--resume"]).exits(0).says("Resuming from Phase 2");
    assert_eq!(scene.text(), ticked.replace("- [ ] T005", "- [x] T005"));
    assert_eq!(scene.ran().len(), 5);
}

/// Lost: an agent is told of other tasks, or not of its own.
#[test]
fn a_task_is_given_its_own_text() {
    let scene = Scene::with(LIST, TEXT, "");
    scene.run().exits(0);
    let prompt = scene.prompt("T003", 1);
    assert!(prompt.contains("Do task T003 of specs/001-login/tasks.md, phase 2"), "{prompt}");
    assert!(prompt.contains("[US1] Model in src/model.rs"), "{prompt}");
    assert!(!prompt.contains("T004"), "{prompt}");
    let bad = TEXT.replace("T005", "T004");
    let scene = Scene::with(LIST, &bad, "");
    scene.run().exits(2).says("the task T004 is also on line");
}

/// Lost: a kill in the middle of a phase repeats its finished tasks.
#[test]
fn a_kill_repeats_no_finished_task() {
    let scene = Scene::with(LIST, TEXT, "");
    scene.hold("T005");
    let mut driver = scene.project.spawn(&["run", LIST]);
    scene.wait_at("T005");
    wait_until("ticks", || scene.text().contains("- [x] T004"));
    driver.kill();
    scene.project.kill_all();
    scene.release("T005");
    scene.run().exits(0);
    let once = |task: &str| scene.times(task) == 1;
    assert!(["T002", "T003", "T004"].iter().all(|task| once(task)), "{:?}", scene.ran());
}

/// Lost: a user cannot change what agents are told of a task.
#[test]
fn the_prompt_of_a_task_is_made_by_the_template_of_the_settings() {
    let template = "{{ step.id }} of {{ phase.id }}, {{ context.title }}: {{ context.section }}";
    let scene = Scene::with(LIST, TEXT, &format!("task_prompt = \"{template}\"\n"));
    scene.run().exits(0);
    let prompt = scene.prompt("T005", 1);
    assert!(prompt.starts_with("T005 of 2, "), "{prompt}");
    assert!(prompt.contains("Join both in src/lib.rs") && !prompt.contains("Do task"), "{prompt}");
}
