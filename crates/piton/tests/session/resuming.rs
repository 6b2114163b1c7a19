//! The start of a session: what a checkpoint means, and what happens where it does not fit.

use std::fs;

use serde_json::{Value, json};

use super::hooks::{hook, log, record};
use super::scene::{BOARD, DELTA, LATEST, Scene};

/// A scene whose session was interrupted in a short task, with a change that is not written.
fn interrupted() -> Scene {
    let scene = Scene::new();
    scene.session("task start T003 --session a").exits(0);
    scene.collect_move("T002", "backlog", "blocked");
    scene.answer("checkpoint --session a --trigger warning --tokens 151000/200000");
    scene
}

/// A checkpoint of another tool, made a number of seconds ago.
fn foreign(scene: &Scene, ago_secs: i64, task: &str) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let at = i64::try_from(now.as_millis()).expect("a time") - ago_secs * 1000;
    let delta: Value = serde_json::from_str(
        r#"{"file": "taskBoard", "operation": "move", "taskId": "T003", "from": "backlog", "to": "inProgress"}"#,
    )
    .expect("a change");
    let checkpoint = json!({
        "version": "1.0",
        "timestamp": piton_protocols::time::write_seconds(piton_core::Timestamp(at)),
        "reason": "token_critical",
        "tokenUsage": { "total": 182_000, "percentage": 91, "mode": "recovery" },
        "state": { "completedTasks": [], "inProgress": [task], "backlogSnapshot": [] },
        "context": { "STACK_ID": "fastapi" },
        "nextSteps": ["Finish it"],
        "deltaChanges": [delta],
        "mine": "kept",
    });
    scene.project.write(LATEST, &checkpoint.to_string());
}

/// Lost: a fresh agent would not know what to do, or do what is done already.
#[test]
fn a_session_resumes_finishes_its_task_and_goes_back_to_normal() {
    let scene = interrupted();
    let started = scene.answer("start --session b --tokens 1000");
    assert_eq!((&started["start"], &started["applied"]), (&json!("resumed"), &json!(1)));
    let context = started["context"].as_str().unwrap_or_default();
    assert!(context.contains("## Current task\n\nT003: Remember me"), "{context}");
    assert_eq!((scene.board()["blocked"].clone(), scene.collected()), (json!(["T002"]), 0));
    let again = scene.answer("start --session b");
    assert_eq!((&again["start"], &again["applied"]), (&json!("resumed"), &json!(0)));
    let finished = scene.answer("task finish T003 --session b --tokens 9000");
    assert_eq!(finished["synced"], true);
    assert_eq!(
        (scene.latest()["timestamp"].clone(), scene.latest()["tokenUsage"]["mode"].clone()),
        (json!(""), json!("standard"))
    );
    assert_eq!(scene.answer("start --session c")["start"], "fresh");
    let shown = scene.project.piton(&["show"]).exits(0);
    shown.says("task completion         8000 of  15000 tokens");
    scene.project.piton(&["report"]).exits(0).says("## Recovery");
}

/// Lost: changes would be applied twice where two sessions resume one after the other.
#[test]
fn the_changes_of_a_checkpoint_are_applied_once() {
    let scene = interrupted();
    scene.answer("start --session b");
    let board = scene.project.read(BOARD).replace("title: 'Sign out'", "title: 'Sign off'");
    scene.project.write(BOARD, &board);
    scene.project.piton(&["session", "task", "start", "T002", "--session", "b"]).exits(0);
    assert_eq!(scene.answer("start --session c")["applied"], 0);
    assert_eq!(scene.board()["blocked"], json!([]), "T002 was moved on since");
    assert!(scene.project.read(BOARD).contains("title: 'Sign off'"));
}

/// Lost: the checkpoint of another tool would be ignored, or overwritten before it is used.
#[test]
fn a_checkpoint_of_another_tool_is_resumed() {
    let scene = Scene::new();
    foreign(&scene, 60, "T003");
    let started = scene.answer("start --session a");
    assert_eq!(
        (&started["start"], &started["task"], &started["applied"]),
        (&json!("resumed"), &json!("T003"), &json!(1))
    );
    assert_eq!(scene.latest()["mine"], "kept");
    assert_eq!(scene.answer("start --session b")["applied"], 0);
    scene.answer("task finish T003 --session b");
    assert_eq!(scene.latest()["timestamp"], "");
}

/// Lost: work of yesterday would be resumed on files of today, or its checkpoint be gone.
#[test]
fn a_checkpoint_that_is_too_old_is_kept_and_reported() {
    let scene = Scene::new();
    foreign(&scene, 24 * 60 * 60 + 60, "T003");
    let before = scene.project.read(LATEST);
    let started = scene.session("start --session a").exits(0);
    started.says("older than 24 hours").says("the checkpoint is kept");
    assert_eq!(scene.project.read(LATEST), before);
}

/// Lost: a checkpoint that does not fit would be resumed, or nobody would learn why it was not.
#[test]
fn a_failed_resume_is_logged_once_and_the_checkpoint_kept() {
    let scene = Scene::new();
    foreign(&scene, 60, "T099");
    let before = scene.project.read(LATEST);
    for _ in 0..2 {
        scene.session("start --session a").exits(0).says("task T099 is not on the board any more");
    }
    let progress = scene.project.read("progress.md");
    assert_eq!(progress.matches("T099").count(), 1, "{progress}");
    assert!(progress.contains("  done: 0 # tasks\n") && progress.ends_with("---\n# Progress\n"));
    assert_eq!(scene.project.read(LATEST), before);
    assert_eq!(scene.files("checkpoints/archive", "failed-").len(), 1);
    scene.project.write("projectConfig.md", "---\nSTACK_ID: \"\"\n---\n");
    foreign(&scene, 30, "T003");
    scene.session("start --session a").exits(0).says("STACK_ID");
}

/// Lost: a person who wants to be asked would not be.
#[test]
fn auto_resume_off_asks() {
    let scene = interrupted();
    scene.project.write("recovery-protocol.md", "---\nautoResume: false\n---\n");
    scene.session("start --session b").exits(3).says("session start --resume");
    assert_eq!(scene.answer("start --session b --resume")["start"], "resumed");
}

/// Lost: a checkpoint file that somebody deleted or damaged would be gone for good.
#[test]
fn a_checkpoint_that_is_gone_or_damaged_comes_back() {
    let scene = interrupted();
    let before = scene.project.read(LATEST);
    scene.project.remove(LATEST);
    assert_eq!(scene.answer("start --session b")["start"], "resumed");
    assert_eq!(scene.project.read(LATEST), before);
    scene.project.write(LATEST, "{ half");
    assert_eq!(scene.answer("start --session c")["start"], "resumed");
    assert_eq!(scene.project.read(LATEST), before);
    assert_eq!(scene.files("checkpoints", "latest.json.corrupt-").len(), 1);
}

/// Lost: the folder of checkpoints would grow for ever, or lose the last good one.
#[test]
fn old_files_are_cleaned_up_at_the_start_and_by_gc() {
    let scene = interrupted();
    let old = |scene: &Scene| {
        for day in 1..=9 {
            scene.project.write(&format!("checkpoints/checkpoint-2020010{day}-000000.json"), "{}");
        }
        scene.project.write("checkpoints/emergency-20200101-000000.json", "{}");
    };
    old(&scene);
    scene.session("start --session b").exits(0);
    assert_eq!(scene.files("checkpoints", "checkpoint-").len(), 1);
    assert_eq!(scene.files("checkpoints/archive", "emergency-").len(), 1);
    old(&scene);
    scene.project.piton(&["gc", "--yes"]).exits(0);
    assert_eq!(scene.files("checkpoints", "checkpoint-").len(), 1);
    fs::remove_dir_all(scene.project.root().join("checkpoints")).expect("removed");
    scene.project.remove(DELTA);
    scene.session("start --session c").exits(0);
}

/// Lost: a second checkpoint that is broken in another way is neither kept nor logged.
#[test]
fn each_broken_checkpoint_is_kept_once() {
    let scene = Scene::new();
    for (text, count) in [("{ broken", 1), ("{ broken", 1), ("[ also broken", 2)] {
        scene.project.write(super::scene::LATEST, text);
        scene.answer("start --session a");
        assert_eq!(scene.files("checkpoints/archive", "failed-").len(), count, "{text}");
        let log = scene.project.read("progress.md");
        assert_eq!(log.matches("checkpoint resume failed").count(), count, "{log}");
    }
}

/// Lost: an agent that works in minimal mode is told to load everything again.
#[test]
fn a_checkpoint_after_the_warning_is_of_the_same_mode() {
    let scene = Scene::new();
    scene.answer("task start T001 --session a");
    scene.answer("checkpoint --session a");
    assert_eq!(scene.latest()["tokenUsage"]["mode"], "standard");
    scene.answer("checkpoint --session a --tokens 151000/200000");
    scene.answer("checkpoint --session a");
    assert_eq!(scene.latest()["tokenUsage"]["mode"], "minimal");
}

/// Lost: each agent that is killed leaves a note behind for ever.
#[test]
fn notes_of_killed_agents_are_forgotten_after_a_week() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", serde_json::json!({}));
    let notes = || scene.files(".git/piton/hooks", "").len();
    assert_eq!(notes(), 1);
    scene.at("2099-01-01T00:00:00Z").answer("start --session b");
    assert_eq!(notes(), 0);
}

/// Lost: a session does not resume because a finished task left the board, or nobody is told.
#[test]
fn a_completed_task_that_left_the_board_is_a_warning() {
    let scene = Scene::new();
    foreign(&scene, 60, "T003");
    let mut checkpoint = scene.latest();
    checkpoint["state"]["completedTasks"] = json!(["T000"]);
    scene.project.write(LATEST, &checkpoint.to_string());
    let started = scene.session("start --session a").exits(0);
    started
        .says("warning: completed task T000 is not on the board any more")
        .says("## Current task\n\nT003: Remember me");
    assert_eq!(scene.board()["in_progress"], json!(["T003"]));
    assert!(scene.files("checkpoints/archive", "failed-").is_empty());
}

/// Lost: an agent goes on although its person wants to be asked, or the person never hears of it.
#[test]
fn auto_resume_off_has_the_agent_ask_its_person() {
    let scene = interrupted();
    scene.project.write("recovery-protocol.md", "---\nautoResume: false\n---\n");
    let files = || [LATEST, BOARD, DELTA].map(|path| scene.project.read(path));
    let before = files();
    let told = hook(&scene, "claude", "SessionStart", "b", json!({"source": "startup"}));
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(text.contains("question: there is a checkpoint of"), "{told}");
    assert!(text.contains("piton session start --resume"), "{told}");
    assert!(!text.contains("Current task"), "{told}");
    assert_eq!(files(), before);
    assert_eq!(log(&scene), "");
}

/// Lost: a project that switched the protocol off finds its files changed all the same.
#[test]
fn nothing_is_written_where_the_protocol_is_off() {
    let scene = Scene::new();
    foreign(&scene, 60, "T003");
    for _ in 0..12 {
        scene.collect_move("T001", "backlog", "inProgress");
    }
    let board = scene.project.read(BOARD).replace("inProgress: []", "inProgress:\n  - id: T009");
    scene.project.write(BOARD, &board);
    scene.project.write("recovery-protocol.md", "---\nenabled: false\n---\n");
    scene.project.commit();
    for line in ["start", "checkpoint", "checkpoint --tokens 190000/200000", "end"] {
        scene.session(&format!("{line} --session a")).exits(0);
    }
    for event in ["SessionStart", "PostToolBatch", "PreCompact", "Stop", "SessionEnd"] {
        let more = json!({"transcript_path": record(&scene, 190_000)});
        assert_eq!(hook(&scene, "claude", event, "a", more), Value::Null, "{event}");
    }
    assert_eq!(scene.project.git(&["status", "--porcelain", "--ignored", "-uall"]), "");
    assert!(!scene.project.state_dir().exists(), "something was left in the state folder");
}
