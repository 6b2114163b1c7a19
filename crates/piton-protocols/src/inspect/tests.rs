//! The shape of what `piton inspect` prints, and which file is which.

use serde_json::{Value, json};

use super::*;
use crate::TABLE;

const PHASE: &str = "# P1: T\n## Interface Freeze Gates\n- [x] IF-0-P1-A: a\n\
    ## Lane Index\n- SL-1 -- One\n  - Depends on: IF-0-P1-A\n  - Blocks: SL-2\n\
    - SL-2 -- Two\n  - Parallel-safe: mixed (why)\n\
    ## Tasks\n\
    | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
    |---|---|---|---|---|---|\n\
    | SL-1-01 | impl | - | a | - | `true` |\n\
    | SL-2-01 | test | - | b | - | `true` |\n\
    | SL-2-02 | impl | - | b | - | `true` |\n";
const LOG: &str = "{\"ts\":\"2026-01-02T01:16:39Z\",\"run_id\":\"r\",\"lane\":\"-\",\"event\":\"phase_start\",\"status\":\"ok\"}\n\
    {\"ts\":\"2026-01-02T01:16:40Z\",\"run_id\":\"r\",\"lane\":\"SL-1\",\"event\":\"lane_start\",\"status\":\"ok\"}\n";

fn inspected(file: &str, bytes: &[u8]) -> Inspection {
    let around = Around { now: piton_core::Timestamp(0), modified: &|_| None };
    inspect(TABLE, file, bytes, around)
}

fn seen(file: &str, text: &str) -> Value {
    inspected(file, text.as_bytes()).to_json()
}

#[test]
fn a_phase_document_has_the_documented_keys() {
    let two = json!({ "test": 1, "impl": 1, "verify": 0, "docs": 0 });
    let counts = |of_impl: u8| json!({ "test": 0, "impl": of_impl, "verify": 0, "docs": 0 });
    let wanted = json!({
        "format": "lanes/phase", "valid": true, "problems": [],
        "data": {
            "phase_id": "P1",
            "gates": [{ "id": "IF-0-P1-A", "closed": true }],
            "lanes": [
                { "id": "SL-1", "name": "One", "depends_on": ["IF-0-P1-A"], "parallel_safe": null,
                  "tasks": 1, "tasks_by_type": counts(1), "ready": true, "blocked_by": [] },
                { "id": "SL-2", "name": "Two", "depends_on": ["SL-1"], "parallel_safe": "mixed",
                  "tasks": 2, "tasks_by_type": two, "ready": false, "blocked_by": ["SL-1"] },
            ],
            "tasks_by_type": { "test": 1, "impl": 2, "verify": 0, "docs": 0 },
        },
    });
    assert_eq!(seen("any.txt", PHASE), wanted);
    let summary = inspected("any.txt", PHASE.as_bytes()).summary.join("\n");
    assert!(summary.contains("(One): 1 task, ready") && summary.contains("(Two): 2 tasks, "));
}

/// Lost: a document would be called valid that `piton run` refuses.
#[test]
fn a_lane_without_tasks_is_a_problem() {
    let text = PHASE.replace("| SL-1-01", "| SL-2-03");
    let found = seen("any.txt", &text);
    assert_eq!(found["valid"], false);
    let wanted = json!({ "severity": "error", "line": 5, "message": "the lane `SL-1` has no tasks",
        "hint": "ask for a plan update that adds tasks to it" });
    assert_eq!(found["problems"], json!([wanted]));
}

#[test]
fn checkpoints_show_the_latest_of_each_lane() {
    let record = |lane: &str, stage: &str, second: u8| {
        json!({ "run_id": "r", "phase": "P1", "lane": lane, "stage": stage, "status": "ready",
                "timestamp": format!("2025-12-27T10:00:0{second}Z") })
    };
    let file = json!([
        record("SL-1", "after_lane_start", 2),
        record("SL-1", "before_lane_start", 1),
        record("-", "pre_pr", 3),
    ]);
    let found = seen("x.json", &file.to_string());
    assert_eq!(found["format"], "lanes/checkpoints");
    assert_eq!(found["data"]["records"], 3);
    let latest = json!({ "stage": "after_lane_start", "status": "ready", "timestamp": "2025-12-27T10:00:02Z" });
    assert_eq!(found["data"]["runs"]["r"]["SL-1"], latest);
    assert_eq!(found["data"]["runs"]["r"]["-"]["stage"], "pre_pr");
}

#[test]
fn a_run_log_shows_lanes_and_the_last_five_events() {
    let found = seen("r.jsonl", &LOG.repeat(4));
    assert_eq!(found["format"], "lanes/run-log");
    assert_eq!((&found["data"]["run_id"], &found["data"]["events"]), (&json!("r"), &json!(8)));
    assert_eq!(found["data"]["lanes"], json!({ "SL-1": "lane_start" }));
    assert_eq!(found["data"]["last"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_problem_has_severity_line_message_and_hint() {
    let found = seen("p.md", &PHASE.replace("IF-0-P1-A\n", "SL-7\n"));
    assert_eq!(found["valid"], false);
    let problem = found["problems"][0].as_object().cloned().unwrap_or_default();
    let keys: Vec<&str> = problem.keys().map(String::as_str).collect();
    assert_eq!(keys, ["hint", "line", "message", "severity"]);
    assert_eq!((&problem["line"], &problem["severity"]), (&json!(6), &json!("error")));
}

#[test]
fn files_are_known_by_content_and_empty_or_damaged_ones_by_name() {
    for (file, text, format) in [
        ("plan.txt", PHASE, Some("lanes/phase")),
        ("x", LOG, Some("lanes/run-log")),
        ("a/checkpoints.json", "", Some("lanes/checkpoints")),
        ("checkpoints.json", "[]", Some("lanes/checkpoints")),
        ("checkpoints.json", "[{\"run", Some("lanes/checkpoints")),
        ("checkpoints.json", "{}", Some("lanes/checkpoints")),
        ("a.jsonl", "", Some("lanes/run-log")),
        ("a.jsonl", "{\"event\": cut\n", Some("lanes/run-log")),
        ("a.jsonl", "{\"other\": 1}\n", None),
        ("other.json", "[]", None),
        ("other.json", "[{\"a\": 1}]", None),
        ("plan.md", "# Plan\n## Phase 1: x\n", Some("workflow/plan")),
        ("x", "", None),
    ] {
        assert_eq!(inspected(file, text.as_bytes()).format, format, "{file}: {text}");
    }
    let none = seen("x", "");
    assert_eq!(
        (&none["format"], &none["valid"], &none["data"]),
        (&Value::Null, &json!(false), &Value::Null)
    );
}

#[test]
fn bytes_that_are_no_text_are_reported_where_they_stand() {
    let mut bytes = PHASE.as_bytes().to_vec();
    bytes.extend_from_slice(b"ok\n\xff\n");
    let found = inspected("p.md", &bytes);
    assert_eq!(found.format, Some("lanes/phase"));
    assert!(!found.is_valid());
    assert_eq!(found.problems[0].line, 17);
}
