//! What `piton inspect` says about files of workflows, and which files it leaves to others.

use piton_core::Timestamp;
use serde_json::{Value, json};

use super::checkpoint::{Fresh, fresh};
use super::phase_id::PhaseId;
use crate::TABLE;
use crate::format::Around;
use crate::inspect::{Inspection, inspect};

const NOW: Timestamp = Timestamp(1_766_831_400_000);

fn inspected(file: &str, text: &str) -> Inspection {
    let around = Around { now: NOW, modified: &|path| (path == "plan.md").then_some(NOW) };
    inspect(TABLE, file, text.as_bytes(), around)
}

fn seen(file: &str, text: &str) -> Value {
    inspected(file, text).to_json()
}

#[test]
fn a_checkpoint_has_the_documented_keys() {
    let text = fresh(&Fresh {
        workflow_id: "x",
        plan_path: "plan.md",
        current_phase: &PhaseId::from(1),
        total_phases: 4,
        plan_modified: Some(NOW),
        artifact_paths: &[],
        research: &[],
        title: "T",
        now: NOW,
    });
    let wanted = json!({
        "format": "workflow/checkpoint", "valid": true, "problems": [],
        "data": {
            "schema": "1.0", "status": "in_progress", "current_phase": 1, "completed_phases": [],
            "total_phases": 4, "replans": {}, "auto_resume": { "safe": true, "reason": null },
        },
    });
    assert_eq!(seen("any.txt", &text), wanted);
    let old = text.replace("2025-12-27", "2025-12-17").replace("[]", "[2, 1]");
    let data = &seen("any.txt", &old)["data"];
    assert_eq!(data["auto_resume"]["safe"], false);
    assert_eq!(data["auto_resume"]["reason"], "Checkpoint is 10 days old (at most 7)");
    assert_eq!(data["completed_phases"], json!([1, 2]));
    assert!(inspected("x", &text).summary.join("\n").contains("without a question"));
}

/// Lost: a damaged checkpoint is taken for a file of an unknown format, or its line is not named.
#[test]
fn a_damaged_checkpoint_is_known_by_its_name() {
    for name in [
        "ckpt-1.json",
        "implement_027_auth.json",
        "a/.claude/data/checkpoints/x.json",
        "implement_a_20251021_120000.json",
    ] {
        let found = seen(name, "{\n  invalid");
        assert_eq!(found["format"], "workflow/checkpoint", "{name}");
        assert_eq!((&found["valid"], &found["problems"][0]["line"]), (&json!(false), &json!(2)));
    }
    for name in ["other.json", "checkpoints.json", "checkpoint-20250101.json", "latest.json"] {
        assert_ne!(seen(name, "{\n  invalid")["format"], "workflow/checkpoint", "{name}");
    }
}

#[test]
fn a_plan_has_the_documented_keys() {
    let text = "# P\n## Phase 1: A [DONE]\n### Phase 2A: B\n**Depends on**: 1\n- [x] a\n- [ ] b\n\
                ### Phase 2B: C\n**Depends on**: None\n";
    let wanted = json!({
        "format": "workflow/plan", "valid": true, "problems": [],
        "data": {
            "phases": [
                { "id": "1", "title": "A", "status": "completed", "depends_on": [], "tasks_done": 0, "tasks_open": 0 },
                { "id": "2A", "title": "B", "status": "in_progress", "depends_on": ["1"], "tasks_done": 1, "tasks_open": 1 },
                { "id": "2B", "title": "C", "status": "not_started", "depends_on": [], "tasks_done": 0, "tasks_open": 0 },
            ],
            "waves": [["1", "2B"], ["2A"]],
            "resume_at": "2A",
        },
    });
    assert_eq!(seen("x", text), wanted);
    assert_eq!(seen("x", "## Phase 1: A [SKIPPED]\n")["data"]["resume_at"], Value::Null);
}

#[test]
fn a_cycle_is_an_error_that_names_its_phases() {
    let found =
        seen("x", "## Phase 1: A\n**Dependencies**: [2]\n## Phase 2: B\n**Dependencies**: [1]\n");
    assert_eq!(found["valid"], false);
    let message = found["problems"][0]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("1 -> 2 -> 1"), "{message}");
    assert_eq!(found["data"]["waves"], json!([]));
}

#[test]
fn a_task_list_has_the_documented_keys() {
    let text = "# T\n## Phase 1: A\n- [x] T001 a\n- [ ] T002 [P] b\n## Phase 2: B\n- [ ] T003 [P] [US1] c\n";
    let wanted = json!({
        "format": "workflow/tasks", "valid": true, "problems": [],
        "data": { "done": 1, "open": 2, "parallel": 2, "phases": 2, "next": "T002" },
    });
    assert_eq!(seen("x", text), wanted);
}

/// Lost: a file of another protocol is read as a plan.
#[test]
fn files_of_other_protocols_are_left_alone() {
    let phase = "# P1: T\n## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n## Lane Index\n- SL-1 -- One\n\
                 ## Phase 2: later\n- [ ] T001 x\n";
    assert_eq!(inspected("x.md", phase).format, Some("lanes/phase"));
    let feature = "# F\n## Phase 0: x\n";
    assert_eq!(inspected("a/.pipeline-state.md", feature).format, Some("pipeline/state"));
    assert_eq!(inspected("x.md", "# Phase 1 Risks\n## Phase 1 Risks\n").format, None);
}
