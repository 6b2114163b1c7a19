//! A session is a run like any other: it is listed, shown, rolled back and undone.

use serde_json::{Value, json};

use super::scene::{BOARD, Scene};

fn status(scene: &Scene) -> Value {
    let output = scene.project.piton(&["status", "--json"]).exits(0);
    serde_json::from_str(&output.stdout).expect("JSON")
}

/// Lost: the work of a session could not be taken back.
#[test]
fn a_session_is_rolled_back_to_a_checkpoint_and_undone() {
    let scene = Scene::new();
    scene.session("task start T003 --session a").exits(0);
    scene.project.write("projectConfig.md", "---\nSTACK_ID: \"fastapi\"\n---\nearly\n");
    scene.answer("checkpoint --session a -m early");
    let early = scene.project.read(BOARD);
    scene.project.write("projectConfig.md", "---\nSTACK_ID: \"fastapi\"\n---\nlate\n");
    scene.answer("task finish T003 --session a");
    let late = scene.project.read(BOARD);
    assert_eq!(status(&scene)["status"], "running");
    scene.project.piton(&["rollback", "--to", "session-1", "--yes"]).exits(0);
    assert!(scene.project.read("projectConfig.md").contains("early"));
    assert_eq!(scene.project.read(BOARD), early);
    assert_eq!(status(&scene)["status"], "rolled_back");
    scene.project.piton(&["undo", "--yes"]).exits(0);
    assert!(scene.project.read("projectConfig.md").contains("late"));
    assert_eq!(scene.project.read(BOARD), late);
}

/// Lost: the files are back at a checkpoint, and the session says that it is at a later one.
#[test]
fn an_undo_of_the_undo_of_a_rollback_takes_the_session_back_too() {
    let scene = Scene::new();
    scene.answer("task start T001 --session a");
    scene.answer("checkpoint --session a");
    scene.answer("task finish T001 --session a");
    scene.answer("task start T002 --session a");
    scene.answer("checkpoint --session a");
    let now = |scene: &Scene| {
        let session = status(scene)["session"].clone();
        let latest = scene.latest()["state"]["inProgress"].clone();
        (scene.board()["in_progress"].clone(), session["task"].clone(), latest)
    };
    let (early, late) = ((json!(["T001"]), json!("T001"), json!("T001")), now(&scene));
    assert_eq!(late, (json!(["T002"]), json!("T002"), json!("T002")));
    scene.piton("rollback --to session-1 --yes").exits(0);
    assert_eq!(now(&scene), early);
    for wanted in [&late, &early, &late] {
        scene.piton("undo --yes").exits(0);
        assert_eq!(&now(&scene), wanted);
    }
}

/// Lost: a person would not see that a session stopped, or that it is over.
#[test]
fn a_session_has_a_status_and_no_steps_to_run() {
    let scene = Scene::new();
    scene.session("task start T003 --session a").exits(0);
    let view = status(&scene);
    assert_eq!((&view["status"], &view["session"]["task"]), (&json!("running"), &json!("T003")));
    let run = view["run_id"].as_str().expect("a name").to_owned();
    scene.project.piton(&["resume"]).exits(2).says("no unfinished run");
    scene.project.piton(&["resume", &run]).exits(2).says("session start");
    scene.answer("checkpoint --session a --tokens 181000");
    assert_eq!(status(&scene)["status"], "interrupted");
    scene.answer("start --session b");
    assert_eq!(status(&scene)["session"]["session"], "b");
    scene.answer("task finish T003 --session b");
    scene.answer("end --session b");
    assert_eq!(status(&scene)["status"], "complete");
    scene.project.piton(&["runs"]).exits(0).says("session-");
}

/// Lost: two agents in one repository would be taken for one.
#[test]
fn two_sessions_have_runs_of_their_own() {
    let scene = Scene::new();
    let one = scene.answer("task start T001 --session a")["run_id"].clone();
    let two = scene.answer("task start T003 --session b")["run_id"].clone();
    assert_ne!(one, two);
    assert_eq!(scene.answer("task finish T001 --session a")["run_id"], one);
    assert_eq!(scene.board()["in_progress"], json!(["T003"]));
}

/// Lost: a session in a folder without git could not be recorded.
#[test]
fn a_session_works_without_git() {
    let scene = Scene::new();
    std::fs::remove_dir_all(scene.project.root().join(".git")).expect("removed");
    scene.answer("task start T003 --session a");
    assert_eq!(scene.answer("checkpoint --session a")["checkpoint"], "session-1");
    assert_eq!(scene.answer("start --session b")["start"], "resumed");
}
