//! Servers that are killed in the middle of a call, and many at once.

use std::thread;

use piton_core::Event;
use serde_json::{Value, json};

use super::client::{Client, Revision};
use super::common::PITON;
use super::scene::{BOARD, LATEST, Scene};

/// The points at which a server is killed: when one of these files appears or changes.
const POINTS: [&str; 5] = ["sessions/lock", "sessions/pending", "ledger.db-wal", BOARD, LATEST];

/// Calls a tool of a server that is killed as soon as something changes at a point.
fn killed(scene: &Scene, point: &str, tool: &str, arguments: &Value) {
    let path = match point {
        BOARD | LATEST => scene.project.root().join(point),
        other => scene.project.state_dir().join(other),
    };
    let look = || std::fs::read(&path).ok();
    let before = look();
    let mut command = scene.project.command(PITON);
    command.arg("mcp");
    let mut client = Client::of(command, Revision::Current);
    client.send("tools/call", json!({ "name": tool, "arguments": arguments }));
    while !client.has_answer() && look() == before {}
    client.kill();
    if scene.project.has(LATEST) {
        assert!(scene.latest()["timestamp"].is_string());
    }
}

/// Lost: a call that was cut short would be half done, or done twice when it is repeated.
#[test]
fn a_call_that_was_cut_short_can_be_repeated() {
    for point in POINTS {
        let scene = Scene::new();
        for (tool, arguments) in [
            ("task_start", json!({ "task": "T003", "session": "a" })),
            ("record_artifact", json!({ "path": "projectConfig.md", "session": "a" })),
            ("ask_approval", json!({ "question": "Go on?", "session": "a" })),
            ("checkpoint", json!({ "message": "now", "session": "a" })),
            ("task_finish", json!({ "task": "T003", "session": "a" })),
        ] {
            killed(&scene, point, tool, &arguments);
            Client::new(&scene.project, Revision::Current).call(tool, arguments);
        }
        let board = scene.board();
        assert_eq!(board["done"], json!(["T003"]), "{point}: {board}");
        assert_eq!(board["in_progress"], json!([]), "{point}: {board}");
        let mut client = Client::new(&scene.project, Revision::Current);
        let asked = client.call("approval", json!({ "session": "a" }));
        assert_eq!(asked["approvals"].as_array().map(Vec::len), Some(1), "{point}: {asked}");
        let run = asked["run_id"].as_str().expect("a run").to_owned();
        let artifacts = scene.project.events(&run).into_iter();
        let artifacts = artifacts.filter(|event| matches!(event, Event::SessionArtifact(_)));
        assert_eq!(artifacts.count(), 1, "{point}");
        assert!(scene.project.read(BOARD).contains("# one at a time"));
    }
}

/// Lost: agents in one project would lock each other out, or mix up what they did.
#[test]
fn several_servers_work_at_once() {
    let scene = Scene::new();
    let tasks = ["T001", "T002", "T003"];
    thread::scope(|scope| {
        for task in tasks {
            let scene = &scene;
            scope.spawn(move || {
                let mut client = Client::new(&scene.project, Revision::Current);
                let session = format!("of-{task}");
                let started =
                    client.call("task_start", json!({ "task": task, "session": session }));
                let saved = client.call("checkpoint", json!({ "session": session }));
                assert_eq!(started["run_id"], saved["run_id"]);
                let done = client.call("task_finish", json!({ "task": task, "session": session }));
                assert_eq!(done["run_id"], saved["run_id"]);
            });
        }
    });
    let board = scene.board();
    let mut done: Vec<String> = board["done"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect();
    done.sort();
    assert_eq!(done, tasks);
}
