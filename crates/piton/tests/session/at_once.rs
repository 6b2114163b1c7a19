//! Many agents in one repository at the same time: no lock error, and nobody's work is another's.

use std::sync::Barrier;

use serde_json::{Value, json};

use super::hooks::{hook, log};
use super::scene::{BOARD, Scene};

/// Agents at the same time; the loop `many-sessions` has 32 of them, on a release build.
const AGENTS: usize = 8;

/// Lost: the limit of one agent would split the task of another, or save it as its own.
#[test]
fn a_checkpoint_is_about_the_task_of_its_own_session() {
    let scene = Scene::new();
    scene.answer("task start T001 --session a");
    scene.answer("task start T003 --session b");
    scene.answer("checkpoint --session b --trigger critical");
    assert_eq!(scene.latest()["state"]["inProgress"], "T003");
    assert_eq!(scene.board()["in_progress"], json!(["T001", "T003"]), "T001 was split");
    scene.answer("task finish T003 --session b");
    assert_eq!(scene.answer("end --session b")["checkpoint"], Value::Null, "it has no work");
    scene.session("task start T001 --session b").exits(0).says("another session started T001");
    assert_eq!(scene.answer("end --session b")["task"], "T001", "it was told, and may");
}

/// Lost: an agent stops at its limit, and the next one does not learn of the task that a person started.
#[test]
fn a_task_that_somebody_started_by_hand_is_the_agents() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.answer("task start T001");
    let at = json!({ "transcript_path": super::hooks::record(&scene, 182_000) });
    let stopped = hook(&scene, "claude", "PostToolBatch", "a", at);
    let reason = stopped["stopReason"].as_str().unwrap_or_default();
    assert!(reason.contains("Session interrupted at T001-1."), "{stopped}");
    assert_eq!(scene.latest()["state"]["inProgress"], "T001-1");
}

/// Lost: a task is taken for a week, although the agent that had it stopped and ended.
#[test]
fn a_session_that_stopped_and_ended_has_no_task() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.answer("task start T003 --session a");
    let at = json!({ "transcript_path": super::hooks::record(&scene, 182_000) });
    hook(&scene, "claude", "PostToolBatch", "a", at);
    hook(&scene, "claude", "SessionEnd", "a", json!({}));
    scene.session("task start T003 --session b").exits(0).silent_about("another session");
    let saved = scene.answer("checkpoint --session b");
    assert_eq!(saved["task"], "T003");
}

/// Lost: agents that work side by side would meet locks, or end with each other's tasks.
#[test]
fn agents_work_side_by_side() {
    let scene = Scene::new();
    let task =
        |n: usize| format!("  - id: A{n}\n    title: task {n} # of agent {n}\n    est: 10m\n");
    let tasks: String = (0..AGENTS).map(task).collect();
    scene.project.write(BOARD, &format!("backlog:\n{tasks}inProgress: []\ndone: []\n"));
    scene.project.commit();
    // A session that starts later continues what another one was stopped in: that is another story.
    let started = Barrier::new(AGENTS);
    std::thread::scope(|scope| {
        for n in 0..AGENTS {
            let (scene, started) = (&scene, &started);
            scope.spawn(move || agent(scene, n, started));
        }
    });
    let board = scene.board();
    let mut done: Vec<&str> =
        board["done"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    done.sort_unstable();
    let mut all: Vec<String> = (0..AGENTS).map(|n| format!("A{n}")).collect();
    all.sort_unstable();
    assert_eq!(done, all, "{board}");
    let text = scene.project.read(BOARD);
    assert!((0..AGENTS).all(|n| text.contains(&format!("task {n} # of agent {n}\n"))), "{text}");
    let runs = scene.piton("runs --json").exits(0).json();
    let runs = runs.as_array().cloned().unwrap_or_default();
    assert_eq!(runs.len(), AGENTS, "each has a run of its own");
    assert!(runs.iter().all(|run| run["status"] == "complete"), "{runs:#?}");
    assert_eq!(log(&scene), "", "hooks failed");
    assert_eq!(scene.latest()["timestamp"], "", "nothing is left to resume");
}

/// One agent: its hooks, its task, its limit, its end.
fn agent(scene: &Scene, n: usize, started: &Barrier) {
    let (session, task) = (format!("agent-{n}"), format!("A{n}"));
    hook(scene, "claude", "SessionStart", &session, json!({}));
    started.wait();
    scene.answer(&format!("task start {task} --session {session}"));
    let record = scene.project.outside().join(format!("record-{n}.jsonl"));
    let at = |tokens: u64| {
        let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": tokens - 10 });
        let line = json!({ "type": "assistant", "message": { "usage": usage } });
        std::fs::write(&record, format!("{line}\n")).expect("the record is written");
        json!({ "transcript_path": record })
    };
    let warned = hook(scene, "claude", "PostToolBatch", &session, at(151_000));
    assert!(warned["hookSpecificOutput"].is_object(), "{session}: {warned}");
    let stopped = hook(scene, "claude", "PostToolBatch", &session, at(182_000));
    let reason = stopped["stopReason"].as_str().unwrap_or_default();
    assert!(reason.contains(&format!("Session interrupted at {task}.")), "{session}: {stopped}");
    hook(scene, "claude", "UserPromptSubmit", &session, json!({}));
    let finished = scene.answer(&format!("task finish {task} --session {session}"));
    assert_eq!(finished["column"], "done", "{session}");
    hook(scene, "claude", "SessionEnd", &session, json!({}));
}
