//! Changes that are collected: when they are written, and what stays because it cannot be.

use serde_json::{Value, json};

use super::hooks::hook;
use super::scene::{BOARD, Scene};

/// As many as are written at the latest.
const MANY: usize = 12;

fn collect_many(scene: &Scene) {
    for n in 0..MANY {
        let at = format!("2025-10-30T10:15:{n:02}Z");
        scene.collect(&json!({
            "timestamp": at, "file": "progress", "operation": "add", "field": "log", "value": "again",
        }));
    }
}

fn log(scene: &Scene) -> usize {
    scene.project.read("progress.md").matches("again").count()
}

/// Lost: ten changes wait although a command ran, because it had nothing else to do.
#[test]
fn many_changes_are_written_by_the_next_command_whatever_it_is() {
    for line in ["start --session a", "checkpoint --session a --tokens 1000/200000"] {
        let scene = Scene::new();
        collect_many(&scene);
        scene.answer(line);
        assert_eq!((scene.collected(), log(&scene)), (0, MANY), "{line}");
    }
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    collect_many(&scene);
    hook(&scene, "claude", "Stop", "a", json!({}));
    assert_eq!((scene.collected(), log(&scene)), (0, MANY));
}

/// Lost: a switch for checkpoints leaves changes unwritten, and work that is open counts as complete.
#[test]
fn triggers_switch_checkpoints_and_not_the_writing() {
    let scene = Scene::new();
    let switches = "---\ncheckpointTriggers:\n  sessionEnd: false\n  tokenCritical: false\n---\n";
    scene.project.write("recovery-protocol.md", switches);
    scene.session("task start T001 --session a").exits(0);
    let metric = |value: u64| json!({ "file": "progress", "operation": "update", "field": "metrics.done", "value": value });
    scene.collect(&metric(1));
    let saved = scene.answer("checkpoint --session a --tokens 182000/200000");
    assert_eq!((&saved["saved"], scene.collected()), (&json!(false), 0));
    assert!(scene.project.read("progress.md").contains("done: 1"));
    scene.collect(&metric(2));
    scene
        .session("end --session a")
        .exits(0)
        .says("the session ended without a checkpoint; T001 is in progress");
    assert_eq!(scene.collected(), 0);
    let status: Value = scene.piton("status --json").exits(0).json();
    assert_eq!(status["status"], "interrupted");
}

/// Lost: what could not be added is reported as added.
#[test]
fn what_cannot_be_added_stays_and_is_reported() {
    let scene = Scene::new();
    let add = |file: &str, field: &str, value: &str| json!({ "file": file, "operation": "add", "field": field, "value": value });
    scene.collect(&add("deliverables", "items", "d1"));
    scene.collect(&add("deliverables", "items", "d2"));
    scene.collect(&add("progress", "metrics.done", "d3"));
    let output = scene.session("checkpoint --session a --trigger critical").exits(0);
    output.says("`metrics.done` is not a list");
    let text = scene.project.read("deliverables.md");
    assert!(text.contains("d1") && text.contains("d2") && !text.contains("log"), "{text}");
    assert_eq!(scene.collected(), 1);
}

/// Lost: a task that is finished is gone from the board.
#[test]
fn a_board_without_the_column_gets_it() {
    for (board, line, column) in [
        ("backlog: []\ninProgress:\n  - id: T1\n", "finish", "done"),
        ("backlog:\n  - id: T1\n", "start", "in_progress"),
        ("inProgress:\n  - T1\n", "finish", "done"),
    ] {
        let scene = Scene::new();
        scene.project.write(BOARD, board);
        scene.session(&format!("task {line} T1 --session a")).exits(0);
        assert_eq!(scene.board()[column], json!(["T1"]), "{}", scene.project.read(BOARD));
    }
}
