//! Triggers, the creation of checkpoints, and the files they leave.

use serde_json::json;

use super::scene::{BOARD, LATEST, Scene};

/// Lost: an agent works until its context is full, and nothing says where it was.
#[test]
fn tokens_trigger_a_warning_and_a_critical_checkpoint_once_each() {
    let scene = Scene::new();
    scene.session("task start T001 --session a").exits(0);
    assert_eq!(scene.answer("checkpoint --session a --tokens 149000/200000")["why"], "not_due");
    let warned = scene.answer("checkpoint --session a --tokens 150000/200000");
    assert_eq!((&warned["reason"], &warned["halt"]), (&json!("token_warning"), &json!(false)));
    let latest = scene.latest();
    assert_eq!(latest["state"]["inProgress"], "T001");
    assert_eq!(latest["context"]["activeObjective"], "Authentication");
    assert_eq!(latest["tokenUsage"]["mode"], "minimal");
    assert_eq!(scene.files("checkpoints", "checkpoint-").len(), 1);
    assert_eq!(scene.answer("checkpoint --session a --tokens 160000/200000")["why"], "done");
    let critical = scene.session("checkpoint --session a --tokens 182000").exits(0);
    critical.says("Session interrupted at T001-1. To resume:");
    let latest = scene.latest();
    assert_eq!(
        (&latest["reason"], &latest["tokenUsage"]["percentage"]),
        (&json!("token_critical"), &json!(91))
    );
    assert_eq!(scene.files("checkpoints", "emergency-").len(), 1);
    assert_eq!(scene.answer("checkpoint --session a --tokens 190000")["why"], "done");
    let board = scene.board();
    assert_eq!(board["in_progress"], json!(["T001-1"]));
    assert_eq!(board["backlog"], json!(["T002", "T003", "T001", "T001-2"]));
    let text = scene.project.read(BOARD);
    assert!(text.contains("\"Sign in\"   # first") && text.contains("# one at a time"), "{text}");
}

/// Lost: a switch of the protocol file would be read and not obeyed.
#[test]
fn the_protocol_file_switches_triggers_and_everything() {
    let scene = Scene::new();
    let rules = |more: &str| format!("---\nversion: \"1.0\"\n{more}---\n# Rules\n");
    let triggers = "checkpointTriggers:\n  manual: false\n  taskCompletion: true\n";
    scene.project.write("recovery-protocol.md", &rules(triggers));
    assert_eq!(scene.answer("checkpoint")["why"], "off");
    scene.session("task start T003 --session a").exits(0);
    let finished = scene.answer("task finish T003 --session a");
    assert_eq!(finished["checkpoint"], "session-1");
    assert_eq!(scene.latest()["reason"], "task_completion");
    scene.project.write("recovery-protocol.md", &rules("enabled: false\n"));
    assert_eq!(scene.answer("checkpoint --trigger critical")["why"], "disabled");
    assert_eq!(scene.answer("start")["start"], "disabled");
}

/// Lost: changes that an agent collected would be gone with its context.
#[test]
fn collected_changes_are_written_at_the_threshold_and_when_a_task_ends() {
    let scene = Scene::new();
    scene.collect_move("T003", "backlog", "inProgress");
    scene.answer("checkpoint --session a -m one");
    assert_eq!(
        (scene.collected(), scene.latest()["deltaChanges"].as_array().map(Vec::len)),
        (1, Some(1))
    );
    assert_eq!(scene.latest()["state"]["inProgress"], "T003", "as it is when all is written");
    assert_eq!(scene.board()["in_progress"], json!([]));
    for number in 0..9 {
        scene.collect(&json!({ "file": "progress", "operation": "update", "field": "metrics.done", "value": number }));
    }
    scene.answer("checkpoint --session a -m ten");
    assert_eq!((scene.collected(), scene.board()["in_progress"].clone()), (0, json!(["T003"])));
    assert!(scene.project.read("progress.md").contains("  done: 8 # tasks\n"));
    scene.collect_move("T001", "backlog", "blocked");
    scene.collect_move("T999", "backlog", "blocked");
    scene.session("task finish T003 --session a").exits(0).says("no task T999");
    let board = scene.board();
    assert_eq!((&board["done"], &board["blocked"]), (&json!(["T003"]), &json!(["T001"])));
    assert_eq!(scene.collected(), 1, "what does not fit stays where it is");
}

/// Lost: a session ends and its work in progress is not saved, or one without work leaves a checkpoint.
#[test]
fn the_end_saves_work_in_progress_only() {
    let scene = Scene::new();
    assert_eq!(scene.answer("end --session a")["run_id"], json!(null));
    assert!(!scene.project.has(LATEST) && !scene.project.has("checkpoints"));
    scene.session("task start T003 --session a").exits(0);
    assert_eq!(scene.answer("end --session a")["task"], "T003");
    assert_eq!(scene.latest()["reason"], "session_end");
}

/// Lost: a board that cannot be edited by bytes would be rewritten, or the change forgotten.
#[test]
fn a_board_in_another_form_is_refused_with_its_line() {
    let scene = Scene::new();
    let text = "backlog: [{id: T001, title: x}]\ninProgress: []\n";
    scene.project.write(BOARD, text);
    scene.session("task start T001 --session a").exits(4).says("work/backlog.yaml:1");
    assert_eq!(scene.project.read(BOARD), text);
}

/// Lost: a checkpoint grows with the backlog, and a fresh agent is told of tasks that cannot begin.
#[test]
fn a_checkpoint_has_the_next_five_tasks_of_the_backlog() {
    let scene = Scene::new();
    let task = |n: u32| {
        let after = if n == 2 { "    deps: [\"T8\"]\n" } else { "" };
        format!("  - id: T{n}\n    title: Task {n}\n{after}")
    };
    let tasks: String = (1..=8).map(task).collect();
    let board = format!("backlog:\n{tasks}inProgress: []\nblocked: []\ndone: []\n");
    scene.project.write(BOARD, &board);
    scene.answer("checkpoint --session a");
    let entry = |n: u32| json!({"id": format!("T{n}"), "title": format!("Task {n}")});
    let wanted = [1, 3, 4, 5, 6].map(entry);
    assert_eq!(scene.latest()["state"]["backlogSnapshot"], json!(wanted));
}

/// Lost: a memory bank that is not where others are is not found, or the wrong rules are obeyed.
#[test]
fn the_settings_say_where_the_bank_and_its_protocol_are() {
    let scene = Scene::new();
    let before = scene.project.read(BOARD);
    let board = "backlog:\n  - id: T9\n    title: Far\ninProgress: []\nblocked: []\ndone: []\n";
    scene.project.write(&format!("docs/bank/{BOARD}"), board);
    scene.project.write("docs/bank/projectConfig.md", "---\nSTACK_ID: \"nextjs\"\n---\n");
    let rules = |trigger: &str| format!("---\ncheckpointTriggers:\n  {trigger}: false\n---\n");
    scene.project.write("docs/bank/recovery-protocol.md", &rules("manual"));
    scene.project.write("rules/own.md", &rules("tokenCritical"));
    let root = "[session]\nroot = \"docs/bank\"\n";
    scene.project.write("piton.toml", root);
    scene.answer("task start T9 --session a");
    assert_eq!(scene.answer("checkpoint --session a")["why"], "off");
    scene.project.write("piton.toml", &format!("{root}protocol = \"rules/own.md\"\n"));
    assert_eq!(scene.answer("checkpoint --session a --tokens 182000/200000")["why"], "off");
    assert_eq!(scene.answer("checkpoint --session a")["saved"], true);
    let latest = scene.project.read("docs/bank/checkpoints/latest.json");
    let latest: serde_json::Value = serde_json::from_str(&latest).expect("latest.json is JSON");
    assert_eq!(
        (&latest["state"]["inProgress"], &latest["context"]["STACK_ID"]),
        (&json!("T9"), &json!("nextjs"))
    );
    assert_eq!(scene.project.read(BOARD), before);
    assert!(!scene.project.has("checkpoints"), "the bank of the root was written to");
}
