//! The protocol step by step, on real files, with a clock that stands still.

use serde_json::{Value, json};

use super::scene::{BOARD, LATEST, Scene};

/// The example of the protocol, as it stands there.
const EXAMPLE: &str = r#"{
  "version": "1.0",
  "timestamp": "2025-10-30T15:30:00Z",
  "reason": "token_critical",
  "tokenUsage": {
    "total": 182000,
    "percentage": 91,
    "mode": "recovery"
  },
  "state": {
    "completedTasks": ["T001", "T002", "T003", "T004"],
    "inProgress": "T005",
    "backlogSnapshot": [
      {"id": "T006", "title": "Add rate limiting"},
      {"id": "T007", "title": "Implement caching"},
      {"id": "T008", "title": "Setup monitoring"}
    ],
    "currentPhase": "development"
  },
  "context": {
    "STACK_ID": "fastapi",
    "currentSprint": "sprint-2",
    "activeObjective": "Complete authentication system"
  },
  "nextSteps": [
    "Finish T005: JWT refresh token logic",
    "Write unit tests for refresh endpoint",
    "Run pytest suite",
    "Update progress metrics",
    "Move T005 to done"
  ],
  "deltaChanges": [
    {"file": "taskBoard", "operation": "move", "taskId": "T005", "from": "backlog", "to": "inProgress"},
    {"file": "progress", "operation": "update", "field": "metrics.currentSprint.completed", "value": 4}
  ],
  "resumeInstructions": "Load recovery context, complete T005 JWT refresh implementation, run tests, then full sync and return to standard mode."
}
"#;

/// The file without a checkpoint.
const EMPTY: &str = r#"{
  "version": "1.0",
  "timestamp": "",
  "reason": "",
  "tokenUsage": {
    "total": 0,
    "percentage": 0,
    "mode": "standard"
  },
  "state": {
    "completedTasks": [],
    "inProgress": "",
    "backlogSnapshot": [],
    "currentPhase": ""
  },
  "context": {
    "STACK_ID": "",
    "currentSprint": "",
    "activeObjective": ""
  },
  "nextSteps": [],
  "resumeInstructions": "",
  "deltaChanges": [],
  "notes": "This file is automatically managed. Empty state indicates no active checkpoint."
}
"#;

/// The board of the example, before its changes.
const EXAMPLE_BOARD: &str = "\
backlog:
  - id: T005
    title: JWT refresh token logic   # next
    type: development
    pri: H
  - id: T006
    title: Add rate limiting
    type: development
    pri: M
inProgress: []
blocked: []
done:
  - id: T001
  - id: T002
  - id: T003
  - id: T004
sprintSchedule:
  - id: sprint-1
    tasks: [T001, T002]
  - id: sprint-2
    tasks: [T004, T005]
";

const NOON: &str = "2025-10-30T12:00:00Z";

/// A bank as the example of the protocol has it.
fn example() -> Scene {
    let scene = Scene::new();
    scene.project.write(BOARD, EXAMPLE_BOARD);
    let progress = "---\nmetrics:\n  currentSprint:\n    completed: 3 # tasks\nlog: []\n---\n";
    scene.project.write("progress.md", progress);
    scene.project.write(LATEST, EXAMPLE);
    scene
}

/// Lost: a checkpoint as the protocol shows it would not be resumed, or its changes be made twice.
#[test]
fn the_example_of_the_protocol_is_resumed_and_removed() {
    let scene = example();
    let started = scene.at("2025-10-31T15:29:59Z").answer("start --session b");
    assert_eq!((&started["start"], &started["task"]), (&json!("resumed"), &json!("T005")));
    assert_eq!(started["applied"], 2);
    let context = started["context"].as_str().unwrap_or_default();
    let order = [
        "# Resume from the checkpoint of 2025-10-30T15:30:00Z (token_critical)",
        "## context-strategy.md (recovery mode)",
        "## token-monitoring.md",
        "## projectConfig.md\n\nSTACK_ID: fastapi",
        "## activeContext.md\n\n- objective: Complete authentication system",
        "- sprint: sprint-2",
        "## Current task\n\nT005: JWT refresh token logic",
        "- Write unit tests for refresh endpoint",
        "2 changes of the checkpoint are applied",
        "- stack profiles: when coding resumes",
        "- techContext.md: if needed",
        "- systemPatterns.md: if needed",
        "- deliverables.md: only for a release task",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|part| context.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{context}");
    assert_eq!(scene.board()["in_progress"], json!(["T005"]));
    assert!(scene.project.read(BOARD).contains("JWT refresh token logic   # next\n"));
    assert!(scene.project.read("progress.md").contains("    completed: 4 # tasks\n"));
    let again = scene.at("2025-10-31T15:29:59Z").answer("start --session c");
    assert_eq!((&again["start"], &again["applied"]), (&json!("resumed"), &json!(0)));
    assert_eq!(scene.answer("task finish T005 --session c")["synced"], true);
    assert_eq!(scene.project.read(LATEST), EMPTY, "it is not what memory banks come with");
    assert_eq!(scene.answer("start --session d")["start"], "fresh");
}

/// Lost: work that is a day old would be resumed, or one that is younger would not.
#[test]
fn a_checkpoint_is_too_old_after_24_hours_and_kept() {
    let scene = example();
    let started = scene.at("2025-10-31T15:30:00Z").answer("start --session b");
    assert_eq!(started["start"], "too_old");
    assert_eq!(scene.project.read(LATEST), EXAMPLE);
    assert_eq!(scene.project.read(BOARD), EXAMPLE_BOARD, "its changes were applied");
    // A new checkpoint takes its place, and nobody resumed it: a copy stays.
    scene.answer("task start T006 --session b");
    scene.answer("checkpoint --session b");
    assert_eq!(scene.latest()["state"]["inProgress"], "T006");
    let kept = scene.project.read("checkpoints/archive/checkpoint-20251030-153000.json");
    assert_eq!(kept, EXAMPLE);
}

/// Lost: a file without a checkpoint would be taken for one.
#[test]
fn an_empty_timestamp_is_no_checkpoint() {
    let scene = Scene::new();
    scene.project.write(LATEST, EMPTY);
    assert_eq!(scene.at(NOON).answer("start --session a")["start"], "fresh");
    assert_eq!(scene.project.read(LATEST), EMPTY);
    assert!(!scene.project.state_dir().join("ledger.db").exists(), "a ledger was opened for it");
}

/// Lost: the file would lack what the next session needs, or have it in another form.
#[test]
fn a_checkpoint_is_made_from_the_bank_byte_for_byte() {
    let scene = example();
    scene.project.write(LATEST, EMPTY);
    scene.at(NOON).answer("task start T005 --session a");
    let change = json!({ "file": "progress", "operation": "update", "field": "metrics.currentSprint.completed", "value": 4 });
    scene.collect(&change);
    let saved = scene.answer("checkpoint --session a --tokens 150000/200000");
    let said = "Minimal context mode: load only what task T005 needs, and continue with it.";
    assert_eq!((&saved["halt"], &saved["talk"]), (&json!(false), &json!(said)));
    let run = saved["run_id"].as_str().unwrap_or_default();
    let wanted = format!(
        r#"{{
  "version": "1.0",
  "timestamp": "2025-10-30T12:00:00Z",
  "reason": "token_warning",
  "tokenUsage": {{
    "total": 150000,
    "percentage": 75,
    "mode": "minimal"
  }},
  "state": {{
    "completedTasks": ["T001", "T002", "T003", "T004"],
    "inProgress": "T005",
    "backlogSnapshot": [
      {{
        "id": "T006",
        "title": "Add rate limiting"
      }}
    ],
    "currentPhase": "development"
  }},
  "context": {{
    "STACK_ID": "fastapi",
    "currentSprint": "sprint-2",
    "activeObjective": "Authentication"
  }},
  "nextSteps": ["Finish T005: JWT refresh token logic", "Run quality gates", "Update progress metrics", "Move T005 to done"],
  "deltaChanges": [
    {{
      "field": "metrics.currentSprint.completed",
      "file": "progress",
      "operation": "update",
      "value": 4
    }}
  ],
  "resumeInstructions": "Load recovery context, complete T005: JWT refresh token logic, run tests, then full sync and return to standard mode.",
  "piton": {{
    "run": "{run}",
    "session": "a"
  }}
}}
"#
    );
    assert_eq!(scene.project.read(LATEST), wanted);
    assert_eq!(scene.project.read("checkpoints/checkpoint-20251030-120000.json"), wanted);
    assert_eq!(scene.collected(), 1, "a warning writes no changes");
    // Another one within the same second has a name of its own.
    scene.answer("checkpoint --session a");
    assert!(scene.project.has("checkpoints/checkpoint-20251030-120000-2.json"));
    assert_eq!(scene.latest()["reason"], "manual");
}

/// Lost: the agent would not stop, or a person would not learn how to go on.
#[test]
fn critical_writes_an_emergency_and_says_how_to_resume() {
    let scene = example();
    scene.project.write(LATEST, EMPTY);
    scene.at(NOON).answer("task start T005 --session a");
    scene.collect_move("T006", "backlog", "blocked");
    let saved = scene.answer("checkpoint --session a --tokens 180000/200000");
    let said = "Session interrupted at T005. To resume:\n\n1. Start new session\n2. Agent will \
                auto-detect checkpoint\n3. Or manually: \"Resume from last checkpoint\"\n4. System \
                loads minimal context and continues";
    assert_eq!((&saved["halt"], &saved["talk"]), (&json!(true), &json!(said)));
    let latest = scene.latest();
    let stored = latest["resumeInstructions"].as_str().unwrap_or_default();
    assert!(stored.starts_with(said), "{stored}");
    assert_eq!(
        (&latest["reason"], &latest["tokenUsage"]["mode"]),
        (&json!("token_critical"), &json!("recovery"))
    );
    let emergency = scene.project.read("checkpoints/emergency-20251030-120000.json");
    assert_eq!(emergency, scene.project.read(LATEST));
    assert_eq!((scene.collected(), scene.board()["blocked"].clone()), (0, json!(["T006"])));
    // It is not long, so it stays whole.
    assert_eq!(scene.board()["in_progress"], json!(["T005"]));
}

/// Lost: a resume that failed would not be seen, or what could show why would be gone.
#[test]
fn each_failed_resume_is_logged_with_its_time_and_the_checkpoint_kept() {
    let broken_board = EXAMPLE_BOARD.replace("backlog:\n", "backlog: [\n");
    for (file, text, why) in [
        (LATEST, "{ \"timestamp\": \"2025-10-30T15:30:00Z\",".to_owned(), "latest.json:1"),
        (LATEST, EXAMPLE.replace("2025-10-30T15:30:00Z", "yesterday"), "`yesterday` is not a time"),
        (LATEST, EXAMPLE.replace("\"T005\"", "\"T050\""), "task T050 is not on the board"),
        ("projectConfig.md", "---\nSTACK_ID: nextjs\n---\n".to_owned(), "STACK_ID"),
        ("projectConfig.md", "---\nSTACK_ID: \"\"\n---\n".to_owned(), "that of the project none"),
        (BOARD, broken_board, "backlog.yaml"),
    ] {
        let scene = example();
        scene.project.write(file, &text);
        let before = scene.project.read(LATEST);
        let said = scene.at("2025-10-30T16:00:00Z").session("start --session b").exits(0);
        said.says(why).says("the session starts normally").says("hint: fix this and start again");
        let progress = scene.project.read("progress.md");
        let entry = "log:\n  - timestamp: \"2025-10-30T16:00:00Z\"\n    event: \"checkpoint resume failed\"\n";
        assert!(progress.contains(entry), "{why}\n{progress}");
        assert!(progress.contains("    completed: 3 # tasks\n"), "{why}: its changes were applied");
        assert_eq!(scene.project.read(LATEST), before, "{why}");
        let kept = scene.project.read("checkpoints/archive/failed-20251030-160000.json");
        assert_eq!(kept, before, "{why}");
    }
}

/// Lost: copies would stay for ever, or the last good one would go.
#[test]
fn clean_up_deletes_after_a_week_and_beyond_five() {
    let scene = example();
    let write = |name: &str| scene.project.write(&format!("checkpoints/{name}"), "{}");
    for name in [
        "checkpoint-20251030-153000.json",
        "checkpoint-20251024-160000.json",
        "checkpoint-20251023-160000.json",
        "checkpoint-20251023-155959.json",
        "emergency-20251030-153000.json",
        "emergency-20251029-153000.json",
        "mine.json",
    ] {
        write(name);
    }
    let left = |scene: &Scene, folder: &str| {
        let mut names = scene.files(folder, "");
        names.retain(|name| name != "archive" && name != "latest.json");
        names.sort();
        names
    };
    scene.at("2025-10-30T16:00:00Z").answer("start --session b");
    let kept = [
        "checkpoint-20251023-160000.json",
        "checkpoint-20251024-160000.json",
        "checkpoint-20251030-153000.json",
        "emergency-20251030-153000.json",
        "mine.json",
    ];
    assert_eq!(left(&scene, "checkpoints"), kept);
    assert_eq!(left(&scene, "checkpoints/archive"), ["emergency-20251029-153000.json"]);
    for hour in 10..16 {
        write(&format!("checkpoint-20251030-{hour}0000.json"));
    }
    scene.piton("gc --yes").exits(0);
    let kept = [
        "checkpoint-20251030-120000.json",
        "checkpoint-20251030-130000.json",
        "checkpoint-20251030-140000.json",
        "checkpoint-20251030-150000.json",
        "checkpoint-20251030-153000.json",
        "emergency-20251030-153000.json",
        "mine.json",
    ];
    assert_eq!(left(&scene, "checkpoints"), kept);
    // Years later the last good one is still there, although no session resumes from it.
    scene.answer("task finish T005 --session b");
    scene.at("2027-01-01T00:00:00Z").answer("start --session c");
    assert_eq!(left(&scene, "checkpoints"), ["checkpoint-20251030-153000.json", "mine.json"]);
}

/// Lost: each switch of the protocol file has to be obeyed, alone.
#[test]
fn each_trigger_is_switched_off_by_its_name() {
    for (name, line) in [
        ("tokenWarning", "checkpoint --session a --tokens 150000/200000"),
        ("tokenCritical", "checkpoint --session a --tokens 180000/200000"),
        ("manual", "checkpoint --session a"),
        ("sessionEnd", "checkpoint --session a --trigger end"),
        ("taskCompletion", "checkpoint --session a --trigger task"),
    ] {
        let scene = Scene::new();
        scene.at(NOON).answer("task start T003 --session a");
        let rules = format!("---\ncheckpointTriggers:\n  {name}: false\n---\n");
        scene.project.write("recovery-protocol.md", &rules);
        assert_eq!(scene.answer(line)["why"], "off", "{name}");
        scene.answer("end --session a");
        assert_eq!(scene.project.has(LATEST), name != "sessionEnd", "{name}");
        let rules = format!("---\ncheckpointTriggers:\n  {name}: true\n---\n");
        scene.project.write("recovery-protocol.md", &rules);
        assert_eq!(scene.answer(line)["saved"], true, "{name}");
    }
}

/// Lost: the phase of a checkpoint would be wrong, or several tasks in progress would be one.
#[test]
fn phase_and_several_tasks_are_as_the_board_and_the_settings_say() {
    let scene = Scene::new();
    for (task, phase) in [("T003", "bootstrap"), ("T002", "testing"), ("T001", "development")] {
        scene.at(NOON).answer(&format!("task start {task} --session a"));
        scene.answer("checkpoint --session a");
        assert_eq!(scene.latest()["state"]["currentPhase"], phase);
    }
    assert_eq!(scene.latest()["state"]["inProgress"], json!(["T001", "T003", "T002"]));
    let started = scene.at("2025-10-30T12:00:01Z").answer("start --session b");
    let context = started["context"].as_str().unwrap_or_default();
    assert!(
        context.contains("T001: Sign in") && context.contains("Also in progress: T003, T002"),
        "{context}"
    );
    for (task, synced) in [("T001", false), ("T002", false), ("T003", true)] {
        let finished = scene.answer(&format!("task finish {task} --session b"));
        assert_eq!(finished["synced"], synced, "{task}: the checkpoint is not over before all are");
    }
    scene.project.write("piton.toml", "[session]\nphase = \"release\"\n");
    scene.answer("checkpoint --session b");
    assert_eq!(scene.latest()["state"]["currentPhase"], "release");
}

/// Lost: a task that was finished after the checkpoint would be done again.
#[test]
fn a_task_that_was_finished_since_is_not_the_current_one() {
    let scene = Scene::new();
    scene.at(NOON).answer("task start T003 --session a");
    scene.answer("checkpoint --session a --tokens 150000/200000");
    scene.answer("task finish T003 --session a");
    let started = scene.at("2025-10-30T12:10:00Z").answer("start --session b");
    assert_eq!((&started["start"], &started["task"]), (&json!("resumed"), &Value::Null));
    let context = started["context"].as_str().unwrap_or_default();
    assert!(context.contains("none in progress; next: T001"), "{context}");
    assert!(!context.contains("Finish T003"), "{context}");
    assert!(started["remarks"][0].as_str().is_some_and(|r| r.contains("T003 was finished")));
}

/// Lost: ten changes would wait for a checkpoint that nobody makes.
#[test]
fn ten_collected_changes_are_written_by_the_next_command() {
    let scene = Scene::new();
    for number in 0..9 {
        scene.collect(&json!({ "file": "progress", "operation": "update", "field": "metrics.done", "value": number }));
    }
    scene.at(NOON).answer("task start T003 --session a");
    assert_eq!(scene.collected(), 9);
    scene.collect_move("T001", "backlog", "blocked");
    scene.answer("task start T002 --session a");
    assert_eq!((scene.collected(), scene.board()["blocked"].clone()), (0, json!(["T001"])));
    assert!(
        scene.project.read("progress-delta.json").contains("2025-10-30T12:00:00Z"),
        "lastFlush"
    );
    scene.collect_move("T001", "blocked", "backlog");
    scene.answer("end --session a");
    assert_eq!((scene.collected(), scene.board()["blocked"].clone()), (0, json!([])), "at the end");
}

/// Lost: a task is split where it should not be, or too often, or something of it is forgotten.
#[test]
fn a_task_is_split_by_the_rules() {
    let criteria: Vec<String> = (1..=10).map(|n| format!("c{n}")).collect();
    let board = |id: &str, est: &str| {
        let criteria = criteria.join("|");
        format!(
            "backlog: []\ninProgress:\n  - id: {id}\n    title: Long\n    type: development\n    est: {est}\n    ac: \"{criteria}\"\ndone: []\n"
        )
    };
    for (id, est, parts) in
        [("T042", "30m", 0), ("T042", "31m", 8), ("T042-3", "1h", 8), ("T042-3-1", "1h", 0)]
    {
        let scene = Scene::new();
        scene.project.write(BOARD, &board(id, est));
        scene.at(NOON).answer("checkpoint --session a --trigger critical");
        let found = scene.board();
        let first = if parts == 0 { id.to_owned() } else { format!("{id}-1") };
        assert_eq!(found["in_progress"], json!([first]), "{id} {est}");
        assert_eq!(scene.latest()["state"]["inProgress"], json!(first), "{id} {est}");
        let text = scene.project.read(BOARD);
        assert_eq!(
            text.matches("status: \"decomposed\"").count(),
            usize::from(parts > 0),
            "{text}"
        );
        let backlog = found["backlog"].as_array().map_or(0, Vec::len);
        assert_eq!(backlog, parts, "{id} {est}: the parent and all parts but the first");
        assert!(parts == 0 || text.contains("c8; c9; c10"), "{text}");
    }
    let scene = Scene::new();
    scene.project.write(BOARD, &board("T042", "2h"));
    scene.answer("checkpoint --session a --trigger critical --part One --part Two");
    assert_eq!(scene.board()["backlog"], json!(["T042", "T042-2"]), "as the agent says");
}
