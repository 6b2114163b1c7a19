//! The forms that the files of a memory bank have in the wild: edited by bytes, whatever they look like.

use serde_json::json;

use super::scene::{BOARD, Scene};

const NOON: &str = "2025-10-30T12:00:00Z";

/// A board and the same board after T1 was started and finished.
fn plays(name: &str, before: &str, after: &str) {
    let scene = Scene::new();
    scene.project.remove(BOARD);
    scene.project.write(name, before);
    scene.at(NOON).answer("task start T1 --session a");
    scene.answer("checkpoint --session a");
    assert_eq!(scene.latest()["state"]["inProgress"], "T1", "{name}");
    scene.answer("task finish T1 --session a");
    assert_eq!(scene.project.read(name), after, "{name}");
}

/// Lost: what people wrote around a task would be lost or rewritten.
#[test]
fn a_board_keeps_its_bytes_around_the_task_that_moved() {
    let plain = "# Board\n\nbacklog:   # all\n  # first\n  - id: 'T1'  # one\n    title: \"A: b\"\n\n  - id: T2\n    title: >-\n      folded\n      text\n\ninProgress: []\nblocked: []\ndone:\n- id: T0\n  title: x\n";
    let moved = "# Board\n\nbacklog:   # all\n  # first\n  - id: T2\n    title: >-\n      folded\n      text\n\ninProgress: []\nblocked: []\ndone:\n- id: T0\n  title: x\n- id: 'T1'  # one\n  title: \"A: b\"\n";
    plays("work/backlog.yaml", plain, moved);
    let with_end =
        |text: &str| format!("---\n{text}---\n\n# Notes\n\n- backlog: not this one\n---\n");
    plays("work/backlog.yaml", &with_end(plain), &with_end(moved));
    plays("taskBoard.md", &with_end(plain), &with_end(moved));
    let dos = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    plays("work/backlog.yaml", &dos(plain), &dos(moved));
    let second = |text: &str| format!("{text}---\n");
    plays("work/backlog.yaml", &second(plain), &second(moved));
}

/// Lost: the stack in another file would not be found, and every checkpoint refused.
#[test]
fn stack_and_objective_are_found_in_either_file() {
    let scene = Scene::new();
    scene.project.remove("projectConfig.md");
    scene.project.write("core/project.yaml", "name: x\nSTACK_ID: nextjs # web\n");
    scene.project.write("checkpoints/latest.json", "");
    scene.project.write("activeContext.md", "---\ncurrentObjective:\n  summary: 'Ship it'\n");
    scene.at(NOON).answer("checkpoint --session a");
    let context = &scene.latest()["context"];
    assert_eq!(
        (&context["STACK_ID"], &context["activeObjective"]),
        (&json!("nextjs"), &json!("Ship it"))
    );
}

/// Lost: a person could not see what a file of the bank says.
#[test]
fn inspect_reads_each_file_as_it_comes() {
    let scene = Scene::new();
    let write = |name: &str, text: &str| scene.project.write(name, text);
    write("files/latest.json", "{\"timestamp\": \"\", \"state\": {}, \"tokenUsage\": {}}");
    write(
        "files/progress-delta.json",
        "{\"changes\": [], \"usage\": {\"flushThreshold\": 10}, \"instructions\": {\"example\": {\"operation\": \"move\", \"taskId\": \"T001\"}}}",
    );
    write(
        "files/backlog-1.yaml",
        "backlog:\n  - id: T001\n  - id: T002\ninProgress: []\ndone: []\nsprintSchedule:\n  - id: \"\"\n    tasks: []\n---\n",
    );
    write("files/projectConfig.md", "---\nSTACK_ID: \"\"\n---\n# Project\n");
    write("files/activeContext.md", "---\ncurrentObjective:\n  summary: \"\"\n---\n");
    write("files/protocol.md", "---\ncheckpointTriggers:\n  manual: false\n---\n# Rules\n");
    for (name, format, key, value) in [
        ("latest.json", "session/checkpoint", "active", json!(false)),
        ("progress-delta.json", "session/delta", "changes", json!(0)),
        ("progress-delta.json", "session/delta", "flush_threshold", json!(10)),
        ("backlog-1.yaml", "session/board", "backlog", json!(["T001", "T002"])),
        ("backlog-1.yaml", "session/board", "active_sprint", json!(null)),
        ("projectConfig.md", "session/config", "stack_id", json!("")),
        ("activeContext.md", "session/context", "objective", json!("")),
        ("protocol.md", "session/config", "autoResume", json!(true)),
    ] {
        let read = scene.piton(&format!("inspect files/{name} --json")).exits(0).json();
        assert_eq!(
            (&read["format"], &read["data"][key]),
            (&json!(format), &value),
            "{name}: {read}"
        );
    }
}
