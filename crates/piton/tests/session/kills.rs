//! Commands that are killed at every point that can be seen from outside.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::scene::{BOARD, LATEST, Scene};

/// The points at which a command is killed: when one of these files appears or changes.
const POINTS: [&str; 6] =
    ["sessions/lock", "sessions/pending", "ledger.db-wal", "BOARD", "LATEST", "protocol-memory"];

/// What is at a point now.
fn look(scene: &Scene, point: &str) -> Vec<Option<Vec<u8>>> {
    let root = scene.project.root();
    let paths: Vec<PathBuf> = match point {
        "BOARD" => vec![root.join(BOARD)],
        "LATEST" => vec![root.join(LATEST)],
        "protocol-memory" => {
            scene.project.run_dirs().iter().map(|dir| dir.join("protocol-memory")).collect()
        }
        other => vec![scene.project.state_dir().join(other)],
    };
    paths.iter().map(|path| fs::read(path).ok()).collect()
}

/// Whether the checkpoint can be read, if it is there.
#[track_caller]
fn latest_is_valid(scene: &Scene) {
    if let Ok(text) = fs::read_to_string(scene.project.root().join(LATEST)) {
        let found: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(found.get("timestamp").is_some(), "{text}");
    }
}

/// Runs a command, and kills it as soon as something changes at a point.
fn killed(scene: &Scene, line: &str, point: &str) {
    let before = look(scene, point);
    let args: Vec<&str> = ["session"].into_iter().chain(line.split_whitespace()).collect();
    let mut command = scene.project.spawn(&args);
    while !command.ended() && look(scene, point) == before {
        latest_is_valid(scene);
    }
    command.kill();
    latest_is_valid(scene);
}

/// Lost: a killed command would leave half a checkpoint, lose a change or make it twice.
#[test]
fn a_command_killed_anywhere_is_finished_by_the_next() {
    for point in POINTS {
        let scene = Scene::new();
        killed(&scene, "task start T003 --session a", point);
        scene.session("task start T003 --session a").exits(0);
        scene.collect_move("T002", "backlog", "blocked");
        killed(&scene, "checkpoint --session a --trigger critical", point);
        scene.session("checkpoint --session a --trigger critical").exits(0);
        assert_eq!(scene.latest()["state"]["inProgress"], "T003", "{point}");
        killed(&scene, "start --session b", point);
        assert_eq!(scene.answer("start --session b")["task"], "T003", "{point}");
        killed(&scene, "task finish T003 --session b", point);
        scene.session("task finish T003 --session b").exits(0);
        let board = scene.board();
        assert_eq!(board["done"], json!(["T003"]), "{point}");
        assert_eq!(board["blocked"], json!(["T002"]), "{point}");
        assert_eq!(board["backlog"], json!(["T001"]), "{point}");
        assert_eq!(scene.collected(), 0, "{point}");
        let text = scene.project.read(BOARD);
        assert!(text.contains("# first") && text.contains("# one at a time"), "{point}: {text}");
        assert_eq!(scene.latest()["timestamp"], "", "{point}");
    }
}

/// Lost: agents that work at the same time would meet a lock, or change each other's tasks.
#[test]
fn sessions_at_the_same_time_do_not_mix() {
    let scene = Scene::new();
    let start = |n: usize| {
        let (task, session) = (format!("T00{}", n + 1), format!("agent-{n}"));
        scene.project.spawn(&["session", "task", "start", &task, "--session", &session])
    };
    let commands: Vec<_> = (0..3).map(start).collect();
    for command in commands {
        command.wait().exits(0);
    }
    let board = scene.board();
    assert_eq!(board["in_progress"].as_array().map(Vec::len), Some(3), "{board}");
    assert_eq!(board["backlog"], json!([]));
}
