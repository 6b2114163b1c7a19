//! Checkpoints of every form are read as one, and edits keep what others wrote.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use piton_core::Timestamp;
use piton_formats::diagnostic::Severity;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::workflow::phase_id::PhaseId;

const NOW: Timestamp = Timestamp(1_766_831_400_000);
const DAY_MS: i64 = 86_400_000;

const PATTERN: &str = r#"{
  "workflow_id": "implement_027_auth",
  "plan_path": "specs/027_auth/plans/001_implementation.md",
  "current_phase": 3,
  "completed_phases": [1, 2],
  "phase_metadata": {
    "1": {"status": "completed", "artifacts": ["a.md"], "duration_minutes": 45, "timestamp": "2025-12-26T10:30:00Z"},
    "2": {"status": "completed", "artifacts": [], "duration_minutes": 60, "timestamp": "2025-12-26T11:45:00Z", "by": "me"}
  },
  "replan_history": [{"phase": 3, "reason": "complexity_exceeded", "timestamp": "2025-12-26T12:00:00Z"}],
  "replan_count": {"3": 1},
  "artifact_paths": {"implementation_dir": "x/"},
  "context_metadata": {"note": 1.50}
}
"#;

const VERSIONED: &str = "{\r\n\t\"checkpoint_id\": \"implement_x_20251226_120000\",\r\n\t\
    \"workflow_type\": \"implement\",\r\n\t\"created_at\": \"2025-12-26T12:00:00Z\",\r\n\t\
    \"status\": \"in_progress\",\r\n\t\"current_phase\": \"3\",\r\n\t\"total_phases\": \"5\",\r\n\t\
    \"completed_phases\": [\r\n\t\t\"2\",\r\n\t\t\"1\",\r\n\t\t\"2\"\r\n\t],\r\n\t\
    \"workflow_state\": {\"plan_path\": \"p.md\"},\r\n\t\"last_error\": null,\r\n\t\
    \"replanning_count\": 2,\r\n\t\"last_replan_reason\": null,\r\n\t\
    \"replan_phase_counts\": {\"phase_3\": \"2\", \"phase_4\": 1},\r\n\t\"replan_history\": []\r\n}";

fn id(text: &str) -> PhaseId {
    PhaseId::read(text).unwrap()
}

fn done(at: Timestamp) -> PhaseRecord {
    let artifacts = vec!["b.md".to_owned()];
    PhaseRecord {
        status: "completed".to_owned(),
        artifacts,
        timestamp: Some(at),
        ..PhaseRecord::default()
    }
}

#[test]
fn the_form_of_the_pattern_is_read() {
    let found = read("x.json", PATTERN).unwrap();
    assert_eq!((found.form, found.schema.as_str()), (Form::Pattern, "1.0"));
    assert_eq!(found.progress.current, Some(id("3")));
    assert_eq!(found.progress.records[&id("1")].duration_minutes, Some(45));
    assert_eq!(found.replans.count(&id("3")), 1);
    assert_eq!(found.replans.history[0].reason, "complexity_exceeded");
    assert_eq!(found.health.status, Some(Status::InProgress));
    assert_eq!(found.times.written(), crate::time::read("2025-12-26T12:00:00Z"));
    assert_eq!(inspect("x.json", PATTERN).1, []);
    assert_eq!(verify("x.json", PATTERN).unwrap(), [""; 0]);
}

#[test]
fn older_forms_are_read_with_texts_for_numbers() {
    let found = read("x.json", VERSIONED).unwrap();
    assert_eq!((found.form, found.schema.as_str()), (Form::Versioned, "1.0"));
    assert_eq!(found.plan_path.as_deref(), Some("p.md"));
    assert_eq!(found.progress.completed.into_iter().collect::<Vec<_>>(), [id("1"), id("2")]);
    assert_eq!((found.progress.total, found.replans.count(&id("3"))), (Some(5), 2));
    assert!(found.other.iter().any(|(name, raw)| name == "replanning_count" && raw == "2"));
    let other = r#"{"version": "2.0", "plan_file": "/p.md", "current_phase": 3, "replan_phase_3_count": 2,
        "error_state": {"last_error": "boom"}}"#;
    let found = read("x.json", other).unwrap();
    assert_eq!((found.schema.as_str(), found.plan_path.as_deref()), ("2.0", Some("/p.md")));
    assert_eq!((found.replans.count(&id("3")), found.health.status), (2, None));
    assert_eq!(found.health.last_error.as_deref(), Some("boom"));
}

/// Lost: a phase is replanned more often than allowed because one tool counts elsewhere.
#[test]
fn the_counter_of_a_phase_is_the_largest_of_all() {
    let text = r#"{"workflow_id": "x", "replan_count": {"3": 1, "2a": 1}, "replan_phase_counts": {"phase_3": 4},
        "replan_phase_3_count": 2, "replan_history": [{"phase": "5"}, {"phase": 5}, {"other": 1}]}"#;
    let replans = read("x.json", text).unwrap().replans;
    let counts = ["3", "2A", "5", "7"].map(|phase| replans.count(&id(phase)));
    assert_eq!(counts, [4, 1, 2, 0]);
}

#[test]
fn problems_name_their_line() {
    let text = PATTERN
        .replace("\"current_phase\": 3,\n", "\"status\": \"odd\",\n  \"schema_version\": \"9\",\n")
        .replace("\"replan_count\": {\"3\": 1}", "\"created_at\": \"soon\"");
    let found = inspect("x.json", &text).1;
    let places: Vec<_> = found.iter().map(|p| (p.line, p.severity, p.message.as_str())).collect();
    let wanted = [
        (1, Severity::Error, "`current_phase` is missing"),
        (1, Severity::Warning, "`replan_count` is missing"),
        (4, Severity::Warning, "unknown status `odd`"),
        (5, Severity::Warning, "unknown schema version `9`"),
        (12, Severity::Warning, "`created_at` is not a time: `\"soon\"`"),
    ];
    assert_eq!(places, wanted);
    assert_eq!(verify("x.json", &text).unwrap(), ["current_phase", "replan_count"]);
    assert_eq!(verify("x.json", "[]").unwrap_err().code, "bad-json");
}

/// Lost: phases run again because a list of those that are done was not one.
#[test]
fn how_far_a_workflow_came_is_never_guessed() {
    let unclear = |text: &str| read("x", text).unwrap().progress.unclear;
    assert_eq!((unclear(PATTERN), unclear(VERSIONED)), (None, None));
    for (from, to) in [
        ("[1, 2]", "\"1,2\""),
        ("[1, 2]", "[1, {}]"),
        ("\"completed_phases\"", "\"other\""),
        ("\"current_phase\"", "\"other\""),
        ("\"current_phase\": 3", "\"current_phase\": [3]"),
    ] {
        assert!(unclear(&PATTERN.replace(from, to)).is_some(), "{from} {to}");
    }
    assert_eq!(unclear(r#"{"plan_file": "p.md", "current_phase": 1}"#), None);
}

#[test]
fn age_is_compared_to_the_millisecond() {
    let at = |ms: i64| age(Timestamp(NOW.0 - ms), NOW).map(|reason| reason.to_string());
    assert_eq!(at(7 * DAY_MS), None);
    assert_eq!(at(7 * DAY_MS + 1).as_deref(), Some("Checkpoint is more than 7 days old"));
    assert_eq!(at(8 * DAY_MS).as_deref(), Some("Checkpoint is 8 days old (at most 7)"));
    assert_eq!(at(-DAY_MS), None);
    assert_eq!(at(-DAY_MS - 1).as_deref(), Some("Checkpoint is dated in the future"));
}

#[test]
fn a_fresh_checkpoint_has_all_fields_and_resumes() {
    let text = fresh(&Fresh {
        workflow_id: "implement_027_auth",
        plan_path: "p.md",
        current_phase: &id("2A"),
        total_phases: 3,
        plan_modified: Some(NOW),
        artifact_paths: &[("implementation_dir", "specs/x/")],
        research: &["001_oauth.md".to_owned()],
        title: "Auth",
        now: NOW,
    });
    assert!(text.starts_with(
        "{\n  \"workflow_id\": \"implement_027_auth\",\n  \"plan_path\": \"p.md\",\n  \
        \"current_phase\": \"2A\",\n  \"completed_phases\": [],\n  \"phase_metadata\": {},\n"
    ));
    assert!(text.contains("\"artifact_paths\": {\n    \"implementation_dir\": \"specs/x/\"\n  },"));
    assert!(text.ends_with("\"updated_at\": \"2025-12-27T10:30:00Z\"\n}\n"), "{text}");
    assert_eq!(verify("x", &text).unwrap(), [""; 0]);
    let found = read("x", &text).unwrap();
    assert_eq!(auto_resume(&found, NOW, Some(NOW)), AutoResume::Safe);

    let mut editor = Editor::new("x", &text).unwrap();
    let error = Some("boom".to_owned());
    let status = Status::Failed;
    editor.stand(&Stand { status, error: error.clone(), ..at("2A") });
    editor.fail(&id("2A"), &PhaseRecord { status: "failed".to_owned(), error, ..done(NOW) });
    let failed = editor.finish().unwrap();
    let mut editor = Editor::new("x", &failed).unwrap();
    let failed = read("x", &failed).unwrap();
    let reason = Reason::LastError("boom".to_owned());
    assert_eq!(auto_resume(&failed, NOW, Some(NOW)), AutoResume::Ask(reason));
    editor.complete(&id("2A"), &done(NOW));
    editor.stand(&at("3"));
    let found = read("x", &editor.finish().unwrap()).unwrap();
    assert_eq!(auto_resume(&found, NOW, Some(NOW)), AutoResume::Safe);
}

#[test]
fn the_first_failing_reason_is_told() {
    let text = |fields: &str| {
        format!(r#"{{"workflow_id": "x", "created_at": "2025-12-20T10:30:00Z"{fields}}}"#)
    };
    let ask = |fields: &str, later: i64, plan: Option<i64>| {
        let found = read("x", &text(fields)).unwrap();
        match auto_resume(&found, Timestamp(NOW.0 + later), plan.map(Timestamp)) {
            AutoResume::Safe => "safe".to_owned(),
            AutoResume::Ask(reason) => reason.to_string(),
        }
    };
    let all = r#", "tests_passing": false, "last_error": "boom\nmore", "status": "failed""#;
    assert_eq!(ask(all, DAY_MS, None), "Tests failing");
    let all = all.replace("false", "\"true\"");
    assert_eq!(ask(&all, DAY_MS, None), "Last error: boom");
    let all = all.replace("\"boom\\nmore\"", "null");
    assert_eq!(ask(&all, DAY_MS, None), "Status is failed, not in_progress");
    assert_eq!(ask("", 1, None), "Checkpoint is more than 7 days old");
    assert_eq!(ask("", 0, None), "Plan not found");
    let made = NOW.0 - 7 * DAY_MS;
    assert_eq!(ask("", 0, Some(made + 1000)), "Plan changed since the checkpoint");
    assert_eq!(ask("", 0, Some(made)), "safe");
    let recorded = format!(r#", "plan_modification_time": {}"#, made / 1000 + 9);
    assert_eq!(ask(&recorded, 0, Some(made)), "Plan changed since the checkpoint");
    assert_eq!(ask(&recorded, 0, Some(made + 9999)), "safe");
    let found = read("x", r#"{"workflow_id": "x"}"#).unwrap();
    assert_eq!(auto_resume(&found, NOW, None), AutoResume::Ask(Reason::AgeUnknown));
    let found = read("x", r#"{"version": "2.0"}"#).unwrap();
    assert_eq!(auto_resume(&found, NOW, None), AutoResume::Ask(Reason::NotInProgress(None)));
}

#[test]
fn a_failed_phase_is_the_last_error_of_the_pattern() {
    let mut editor = Editor::new("x", PATTERN).unwrap();
    let error = Some("no network".to_owned());
    let record = PhaseRecord { status: "failed".to_owned(), error, ..done(NOW) };
    editor.fail(&id("3"), &record);
    let text = editor.finish().unwrap();
    let found = read("x", &text).unwrap();
    assert_eq!(found.health.status, Some(Status::Failed));
    assert_eq!(found.health.last_error.as_deref(), Some("no network"));
    assert_eq!(found.progress.current, Some(id("3")));
    let mut editor = Editor::new("x", &text).unwrap();
    editor.complete(&id("3"), &done(NOW));
    editor.stand(&at("4"));
    let found = read("x", &editor.finish().unwrap()).unwrap();
    assert_eq!((found.health.last_error, found.progress.current), (None, Some(id("4"))));
    assert_eq!(found.progress.completed.len(), 3);
}

/// A workflow in progress at a phase.
fn at(phase: &str) -> Stand {
    let status = Status::InProgress;
    Stand { current: id(phase), total: 9, status, error: None, tests_passing: true }
}

/// Records one more replan of a phase.
fn replan(editor: &mut Editor, text: &str, phase: &str, reason: &str) {
    let count = read("x", text).unwrap().replans.count(&id(phase));
    let replan = Replan { phase: id(phase), reason: reason.to_owned(), timestamp: Some(NOW) };
    editor.replanned(&[replan]);
    editor.replan_count(&id(phase), count + 1);
}

/// Lost: a phase that was rolled back counts as completed, or a replan is counted twice.
#[test]
fn phases_open_again_and_replans_are_recorded_once() {
    let mut editor = Editor::new("x", PATTERN).unwrap();
    editor.reopen(&id("2"));
    editor.reopen(&id("3"));
    let text = editor.finish().unwrap();
    assert_eq!(read("x", &text).unwrap().progress.completed, [id("1")].into());
    let mut editor = Editor::new("x", PATTERN).unwrap();
    let history = read("x", PATTERN).unwrap().replans.history;
    editor.replanned(&history);
    editor.replan_count(&id("3"), 1);
    assert_eq!(editor.finish().unwrap(), PATTERN);
}

#[test]
fn an_edit_shows_only_what_happened() {
    let mut editor = Editor::new("x", PATTERN).unwrap();
    editor.complete(&id("3"), &done(NOW));
    editor.complete(&id("3"), &done(NOW));
    editor.stand(&at("4"));
    replan(&mut editor, PATTERN, "4", "asked");
    let wanted = PATTERN
        .replace("\"current_phase\": 3", "\"current_phase\": 4")
        .replace("[1, 2],", "[1, 2, 3],")
        .replace(
            "\"by\": \"me\"}\n",
            "\"by\": \"me\"},\n    \"3\": {\n      \"status\": \"completed\",\n      \"artifacts\": [\"b.md\"],\n      \
             \"timestamp\": \"2025-12-27T10:30:00Z\"\n    }\n",
        )
        .replace("12:00:00Z\"}]", "12:00:00Z\"}, {\"phase\": 4, \"reason\": \"asked\", \"timestamp\": \"2025-12-27T10:30:00Z\"}]")
        .replace("{\"3\": 1}", "{\"3\": 1, \"4\": 1}");
    assert_eq!(editor.finish().unwrap(), wanted);
}

#[test]
fn counters_of_other_tools_are_kept_in_step() {
    let mut editor = Editor::new("x", VERSIONED).unwrap();
    replan(&mut editor, VERSIONED, "3", "asked");
    editor.complete(&id("3"), &done(NOW));
    let text = editor.finish().unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["replan_phase_counts"], json!({"phase_3": 3, "phase_4": 1}));
    assert_eq!((&value["replan_count"], &value["replanning_count"]), (&json!({"3": 3}), &json!(3)));
    assert_eq!(value["completed_phases"], json!(["2", "1", "2", "3"]));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

#[test]
fn a_field_of_a_wrong_type_is_not_overwritten() {
    let mut editor =
        Editor::new("x", r#"{"workflow_id": "x", "completed_phases": "1,2"}"#).unwrap();
    editor.complete(&id("3"), &done(NOW));
    let problem = editor.finish().unwrap_err();
    assert!(problem.message.contains("completed_phases"), "{}", problem.message);
}

#[test]
fn an_upgrade_adds_the_fields_of_the_pattern_and_keeps_all_others() {
    let text = upgrade("x", VERSIONED).unwrap();
    assert_eq!(verify("x", &text).unwrap(), [""; 0]);
    let value: Value = serde_json::from_str(&text).unwrap();
    let old: Value = serde_json::from_str(VERSIONED).unwrap();
    for (name, kept) in old.as_object().unwrap() {
        if !["current_phase", "completed_phases"].contains(&name.as_str()) {
            assert_eq!(value[name], *kept, "{name}");
        }
    }
    assert_eq!((&value["current_phase"], &value["completed_phases"]), (&json!(3), &json!([1, 2])));
    assert_eq!(value["replan_count"], json!({"3": 2, "4": 1}));
    assert_eq!(value["workflow_id"], json!(workflow_ids("p.md")[0]));
    assert_eq!(upgrade("x", &text).unwrap(), text);
    assert_eq!(upgrade("x", PATTERN).unwrap(), PATTERN);
    assert!(upgrade("x", "{}").unwrap_err().message.contains("names no plan"));
}

fn field() -> impl Strategy<Value = (String, Value)> {
    let names = prop_oneof![
        Just("workflow_id"),
        Just("plan_path"),
        Just("current_phase"),
        Just("completed_phases"),
        Just("phase_metadata"),
        Just("replan_count"),
        Just("replan_phase_counts"),
        Just("replan_history"),
        Just("replan_phase_3_count"),
        Just("status"),
        Just("last_error"),
        Just("plan_modification_time"),
        Just("created_at"),
        Just("workflow_state"),
        Just("odd"),
    ];
    let values = prop_oneof![
        Just(json!(null)),
        Just(json!(3)),
        Just(json!("3")),
        Just(json!([1, "2", null])),
        Just(json!("2025-12-26")),
        Just(json!({"3": 1, "phase_4": "2"})),
        Just(json!([{"phase": 3}, 4])),
        Just(json!({"1": {"status": "failed"}})),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!(true)),
    ];
    (names.prop_map(str::to_owned), values)
}

proptest! {
    /// Lost: an odd file of another tool stops the program, or loses what that tool wrote.
    #[test]
    fn odd_checkpoints_do_no_harm(fields in prop::collection::btree_map("x", Just(1), 0..1), more in prop::collection::vec(field(), 0..8)) {
        let members: serde_json::Map<String, Value> =
            more.into_iter().chain(fields.into_iter().map(|(name, value)| (name, json!(value)))).collect();
        let text = serde_json::to_string_pretty(&Value::Object(members.clone())).unwrap();
        let found = inspect("x", &text).0.unwrap();
        let _ = auto_resume(&found, NOW, Some(NOW));
        prop_assert_eq!(Editor::new("x", &text).unwrap().finish().unwrap(), text.clone());
        let mut editor = Editor::new("x", &text).unwrap();
        replan(&mut editor, &text, "3", "why");
        if let Ok(new) = editor.finish() {
            prop_assert_eq!(read("x", &new).unwrap().replans.count(&id("3")), found.replans.count(&id("3")) + 1);
            let value: Value = serde_json::from_str(&new).unwrap();
            prop_assert_eq!(value.get("odd"), members.get("odd"));
        }
        if let Ok(new) = upgrade("x", &text) {
            prop_assert_eq!(upgrade("x", &new).unwrap(), new);
        }
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,60}") {
        let _ = (inspect("x", &text), verify("x", &text), upgrade("x", &text));
        let _ = (workflow_ids(&text), VersionedName::read(&text));
    }
}
