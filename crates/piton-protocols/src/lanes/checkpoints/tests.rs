//! What others wrote into `checkpoints.json` must survive, and ours must be found again.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use piton_core::Timestamp;

use super::*;
use piton_formats::diagnostic::Severity;

fn update(
    file: &str,
    text: Option<&str>,
    ours: &[OwnRecord],
) -> Result<String, Box<piton_formats::Diagnostic>> {
    super::update(file, text, ours, &Written::default()).map(|made| made.text)
}

fn own(lane: &str, stage: Stage, status: Status, at: i64) -> OwnRecord {
    OwnRecord {
        run_id: "P1-20251227-103000".to_owned(),
        phase: "P1".to_owned(),
        lane: lane.to_owned(),
        stage,
        status,
        base_branch: "main".to_owned(),
        worktree_path: "/r/.worktrees/P1/SL-1".to_owned(),
        log_path: "/r/.claude/run-logs/P1-20251227-103000.jsonl".to_owned(),
        timestamp: Timestamp(at),
        notes: String::new(),
        resume_hint: "piton resume P1-20251227-103000".to_owned(),
        rollback_hint: "piton rollback P1-20251227-103000".to_owned(),
        retry_attempt: None,
        max_retries: None,
        failure_context: None,
        test_command: None,
        exit_code: None,
        base_sha: None,
        head_sha: None,
        target_branch: None,
        last_command: None,
    }
}

const FOREIGN: &str = r#"[
    {"zeta": 1.50, "run_id": "P9-SL-A", "phase":"P9", "lane": "SL-A",
     "stage": "after_scaffold", "status": "paused", "timestamp": "2025-12-27T12:00:00+02:00",
     "retry_attempt": "2", "failure_context": "one text"},
    "not a record"
]"#;

#[test]
fn nothing_and_an_empty_array_hold_no_records() {
    for text in ["", " \r\n", "\u{feff}", "[]", "[\n]\n"] {
        assert_eq!(read("c.json", text).unwrap(), [], "{text:?}");
    }
    assert_eq!(update("c.json", None, &[]).unwrap(), "[]\n");
    assert_eq!(update("c.json", Some(""), &[]).unwrap(), "[]\n");
}

#[test]
fn unknown_stages_statuses_fields_and_texts_for_numbers_are_read() {
    let (records, problems) = inspect("c.json", FOREIGN);
    let first = &records[0];
    assert_eq!(first.stage, Stage::Unknown("after_scaffold".to_owned()));
    assert_eq!(first.status.as_str(), "paused");
    assert_eq!(first.retry_attempt(), Some(2));
    assert_eq!(first.failure_context(), ["one text"]);
    assert_eq!(first.fields[0], ("zeta".to_owned(), "1.50".to_owned()));
    assert_eq!(first.at, crate::time::read("2025-12-27T10:00:00Z"));
    assert_eq!((first.line, records[1].line), (2, 5));
    let found: Vec<_> = problems.iter().map(|p| (p.severity, p.line)).collect();
    assert_eq!(found, [(Severity::Warning, 2), (Severity::Warning, 2), (Severity::Error, 5)]);
}

#[test]
fn a_file_that_is_no_array_is_refused_with_its_line() {
    for (text, line, words) in [
        ("[\n {\"a\": 1},\n", 3, "cut off"),
        ("[\n {\"a\" 1}\n]", 2, "not valid JSON"),
        ("{\"a\": 1}", 1, "not an array"),
        ("[] x", 1, "not valid JSON"),
    ] {
        let problem = read("c.json", text).unwrap_err();
        assert!(problem.message.contains(words), "{text}: {problem:?}");
        assert_eq!((problem.line, problem.code), (line, code::BAD_JSON), "{text}");
        assert!(problem.hint.unwrap().contains("not changed"));
        assert!(update("c.json", Some(text), &[]).is_err());
    }
}

#[test]
fn a_record_of_ours_has_every_field_of_the_contract() {
    let mut record = own("SL-1", Stage::AfterLaneTests, Status::Failed, 1_766_831_400_000);
    record.notes = "a \"quoted\"\nnote".to_owned();
    record.retry_attempt = Some(1);
    record.max_retries = Some(3);
    record.failure_context = Some(vec!["Attempt 1: x".to_owned(), "log".to_owned()]);
    record.test_command = Some("make test".to_owned());
    record.exit_code = Some(2);
    let text = update("c.json", None, &[record]).unwrap();
    let wanted = r#"[
  {
    "run_id": "P1-20251227-103000",
    "phase": "P1",
    "lane": "SL-1",
    "stage": "after_lane_tests",
    "status": "failed",
    "base_branch": "main",
    "worktree_path": "/r/.worktrees/P1/SL-1",
    "log_path": "/r/.claude/run-logs/P1-20251227-103000.jsonl",
    "timestamp": "2025-12-27T10:30:00.000Z",
    "notes": "a \"quoted\"\nnote",
    "resume_hint": "piton resume P1-20251227-103000",
    "rollback_hint": "piton rollback P1-20251227-103000",
    "retry_attempt": 1,
    "max_retries": 3,
    "failure_context": [
      "Attempt 1: x",
      "log"
    ],
    "test_command": "make test",
    "exit_code": 2
  }
]
"#;
    assert_eq!(text, wanted);
}

#[test]
fn records_of_others_keep_their_bytes() {
    let ours = [own("SL-1", Stage::BeforeLaneStart, Status::Ready, 0)];
    let once = update("c.json", Some(FOREIGN), &ours).unwrap();
    assert!(once.starts_with(FOREIGN.trim_end_matches("\n]")), "{once}");
    let (records, _) = inspect("c.json", &once);
    assert_eq!(records.len(), 3);
    // Our record changes; nothing else moves.
    let later = [own("SL-1", Stage::BeforeLaneStart, Status::Blocked, 5)];
    let twice = update("c.json", Some(&once), &later).unwrap();
    assert!(twice.starts_with(FOREIGN.trim_end_matches("\n]")), "{twice}");
    assert_eq!(read("c.json", &twice).unwrap()[2].status, Status::Blocked);
    // The same again changes nothing at all, whatever the form.
    assert_eq!(update("c.json", Some(&twice), &later).unwrap(), twice);
    let dense = "[{\"run_id\":\"x\"}]";
    assert_eq!(update("c.json", Some(dense), &[]).unwrap(), dense);
}

#[test]
fn fields_that_people_added_to_our_records_stay() {
    let ours = [own("SL-1", Stage::PrePr, Status::InProgress, 0)];
    let text = update("c.json", None, &ours).unwrap();
    let noted = text.replace("\"stage\"", "\"reviewer\": {\"name\": \"Ann\"},\n    \"stage\"");
    let later = [own("SL-1", Stage::PrePr, Status::Complete, 1)];
    let text = update("c.json", Some(&noted), &later).unwrap();
    let records = read("c.json", &text).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].status, Status::Complete);
    assert_eq!(records[0].fields.last().unwrap().1, "{\"name\": \"Ann\"}");
}

#[test]
fn a_key_that_stands_twice_becomes_one_record_with_all_added_fields() {
    let record = update("c.json", None, &[own("SL-1", Stage::PrePr, Status::Ready, 0)]).unwrap();
    let record = record.trim().trim_start_matches('[').trim_end_matches(']').trim().to_owned();
    let added = record.replace("\"notes\"", "\"by\": 7, \"notes\"");
    let text = format!("[{record}, {{}}, {added}]");
    assert_eq!(inspect("c.json", &text).1.len(), 2);
    let ours = [own("SL-1", Stage::PrePr, Status::Complete, 1)];
    let records = read("c.json", &update("c.json", Some(&text), &ours).unwrap()).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].status.clone(), records[0].number("by")), (Status::Complete, Some(7)));
}

/// Lost: of two records with one key in one line, nobody would be told.
#[test]
fn a_key_that_stands_twice_is_told_wherever_it_stands() {
    let one = r#"{"run_id":"R","phase":"P","lane":"L","stage":"pre_pr","status":"failed","timestamp":"2025-01-01T00:00:00Z"}"#;
    for between in [",", ",\n"] {
        let (_, found) = inspect("c.json", &format!("[{one}{between}{one}]"));
        let told: Vec<&str> = found.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(told, ["the record on line 1 has the same key"]);
    }
}

#[test]
fn a_rebuilt_file_is_the_file_that_grew() {
    let history = [
        own("SL-1", Stage::BeforeLaneStart, Status::Ready, 1),
        own("SL-2", Stage::BeforeLaneStart, Status::Ready, 2),
        own("SL-1", Stage::AfterLaneStart, Status::InProgress, 3),
        own("SL-1", Stage::BeforeLaneStart, Status::RolledBack, 4),
        own("SL-2", Stage::RetryAttempt, Status::Retrying, 5),
    ];
    let rank = |own: &OwnRecord| (own.lane.clone(), own.stage.as_str().to_owned());
    let mut ours: Vec<OwnRecord> = Vec::new();
    let mut grown: Option<String> = None;
    for record in &history {
        ours.retain(|own| rank(own) != rank(record));
        ours.push(record.clone());
        // Lanes in their order, so that what comes later may stand before what is there.
        ours.sort_by_key(rank);
        grown = Some(update("c.json", grown.as_deref(), &ours).unwrap());
    }
    assert_eq!(update("c.json", None, &ours).unwrap(), grown.unwrap());
}

#[test]
fn ours_stand_in_order_and_others_where_they_stood() {
    let record = |lane: &str| own(lane, Stage::PrePr, Status::Ready, 0);
    let bare = |lane: &str| {
        let text = update("c.json", None, &[record(lane)]).unwrap();
        text.trim_start_matches("[\n  ").trim_end_matches("\n]\n").to_owned()
    };
    let lanes = |text: &str| -> Vec<String> {
        read("c.json", text).unwrap().into_iter().map(|r| r.lane).collect()
    };
    let foreign = |n: u32| format!("{{\"lane\": \"F{n}\"}}");
    let text = format!("[{}, {},\n\n {}, {}]", bare("C"), foreign(1), bare("A"), foreign(2));
    let ours = ["A", "B", "C", "D"].map(record);
    let text = update("c.json", Some(&text), &ours).unwrap();
    assert_eq!(lanes(&text), ["A", "B", "F1", "C", "D", "F2"], "{text}");
    assert_eq!(update("c.json", Some(&text), &ours).unwrap(), text);
    // One that comes first takes the place before the others of ours.
    let ours = ["0", "A", "B", "C", "D"].map(record);
    assert_eq!(lanes(&update("c.json", Some(&text), &ours).unwrap())[..2], ["0", "A"]);
}

#[test]
fn what_we_no_longer_say_goes_unless_somebody_added_to_it() {
    let (start, merge) = (Stage::BeforeLaneStart, Stage::PrePr);
    let both =
        [own("A", start.clone(), Status::Ready, 0), own("A", merge.clone(), Status::Ready, 0)];
    let text = update("c.json", None, &both).unwrap();
    for left in &both {
        let ours = std::slice::from_ref(left);
        let wanted = update("c.json", None, ours).unwrap();
        assert_eq!(update("c.json", Some(&text), ours).unwrap(), wanted);
    }
    let noted = text.replace("\"pre_pr\",", "\"pre_pr\", \"by\": 1,");
    let kept = update("c.json", Some(&noted), &both[..1]).unwrap();
    assert_eq!(read("c.json", &kept).unwrap().len(), 2, "{kept}");
    let other = [own("B", start, Status::Ready, 0)];
    assert_eq!(read("c.json", &update("c.json", Some(&text), &other).unwrap()).unwrap().len(), 3);
}

#[test]
fn the_newest_is_so_by_time_and_then_by_place() {
    let record = |stage: &str, at: &str| {
        format!(
            "{{\"run_id\":\"r\",\"phase\":\"P1\",\"lane\":\"SL-1\",\"stage\":\"{stage}\",\
             \"status\":\"ready\",\"timestamp\":\"{at}\"}}"
        )
    };
    let text = format!(
        "[{},{},{},{}]",
        record("after_lane_tests", "2025-12-27T10:00:00Z"),
        record("after_lane_start", "2025-12-27T12:00:00+02:00"),
        record("retry_attempt", "2025-12-27T10:00:01Z"),
        record("pre_pr", "some day"),
    );
    let records = read("c.json", &text).unwrap();
    let stage = |records: &[Record]| newest(records.iter()).map(|r| r.stage.clone());
    assert_eq!(stage(&records), Some(Stage::RetryAttempt));
    // Equal times: the later in the file.
    assert_eq!(stage(&records[..2]), Some(Stage::AfterLaneStart));
    assert_eq!(stage(&[]), None);
}

#[test]
fn every_stage_of_the_core_has_its_word_here() {
    for stage in piton_core::lane::Stage::ALL {
        assert!(!matches!(Stage::from(stage), Stage::Unknown(_)), "{stage}");
    }
    assert_eq!(Status::from(piton_core::lane::StageStatus::RolledBack), Status::RolledBack);
}
