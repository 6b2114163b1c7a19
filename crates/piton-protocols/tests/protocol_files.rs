//! Properties of the readers of protocol files: any text is read without harm, and what is written
//! is read again.

use piton_core::Timestamp;
use piton_protocols::TABLE;
use piton_protocols::inspect::inspect;
use piton_protocols::lanes::checkpoints::{self, OwnRecord, Stage, Status};
use piton_protocols::lanes::phase;
use proptest::prelude::*;

/// Pieces of real documents, broken and whole, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "# P1: T",
        "\n",
        "\r\n",
        "## Interface Freeze Gates\n",
        "- [ ] IF-0-P1-A: a",
        "- [x] **IF-1** — b",
        "## Lane Index & Dependencies\n",
        "```",
        "~~~sh\n",
        "- SL-1 -- One",
        "SL-2 — Two; Blocks: SL-1; ",
        "  - Depends on: ",
        "SL-2, ",
        "(none",
        ")",
        "  Parallel-safe: mixed (",
        "Retries: 9",
        "; ",
        "## D. Swim Lanes\n",
        "### SL-1 -- One\n",
        "| Task ID | Type | Test Command(s) |\n|---|---|---|\n",
        "| SL-1.1 | impl | `a \\| b` |\n",
        "| | |",
        "`",
        "``",
        "<!--",
        "-->",
        "---\n",
        "\u{feff}",
        "ä—",
        "\t",
        "## H. Test Execution Plan\n",
        "$ make\n",
        "[",
        "]",
        "{",
        "\"run_id\": \"r\", \"stage\": 1",
        "\\",
        "{\"ts\":1,\"event\":\"e\"}\n",
        "**",
        "{{ x }}",
        "{% raw %}",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn record() -> impl Strategy<Value = OwnRecord> {
    ("[a-c]", 0..3_usize, any::<i32>(), ".{0,12}", prop::option::of(any::<u32>())).prop_map(
        |(lane, stage, at, notes, retry)| OwnRecord {
            run_id: "r".to_owned(),
            phase: "P1".to_owned(),
            lane,
            stage: [Stage::PrePr, Stage::RetryAttempt, Stage::AfterLaneTests][stage].clone(),
            status: Status::Failed,
            base_branch: "main".to_owned(),
            worktree_path: notes.clone(),
            log_path: "/l".to_owned(),
            timestamp: Timestamp(i64::from(at)),
            notes: notes.clone(),
            resume_hint: String::new(),
            rollback_hint: String::new(),
            retry_attempt: retry,
            max_retries: retry,
            failure_context: retry.map(|_| vec![notes.clone(), "line".to_owned()]),
            test_command: Some(notes),
            exit_code: Some(at),
            base_sha: None,
            head_sha: None,
            target_branch: None,
            last_command: None,
        },
    )
}

/// Files that others made.
const STARTS: [&str; 6] = [
    "",
    "[]",
    "[{\"run_id\": \"x\", \"lane\": \"a\"}]",
    "[\n  {\"run_id\": \"x\"},\n  7\n]\n",
    "\u{feff}[ {\"run_id\": \"r\", \"phase\": \"P1\", \"lane\": \"a\", \"stage\": \"pre_pr\"} ]",
    " [\n{\"run_id\": \"r\", \"phase\": \"P1\", \"lane\": \"z\", \"stage\": \"pre_pr\"}\n]",
];

/// What others do to a file between two of our writes.
const EDITS: [fn(&str) -> String; 6] = [
    |text| text.trim_end().to_owned(),
    |text| text.replacen("\"stage\"", "\"by\": 1, \"stage\"", 1),
    |text| text.replacen('[', "[{\"run_id\": \"y\"},\n  ", 1).replace("},\n  ]", "}]"),
    |text| text.replacen("},\n", "},\n\n", 1),
    |text| text.replacen("failed", "blocked", 1),
    |text| format!("{}x", text.chars().take(40).collect::<String>()),
];

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in pieces()) {
        for file in ["p.md", "checkpoints.json", "x.jsonl"] {
            let found = inspect(TABLE, file, text.as_bytes());
            let lines = text.split('\n').count();
            prop_assert!(found.problems.iter().all(|p| (1..=lines).contains(&p.line)));
        }
        let (phase, _) = phase::inspect("p.md", &text);
        for gate in phase.gates.iter().filter(|gate| !gate.closed) {
            if let Some(ticked) = phase::tick(&text, &gate.id) {
                let again = phase::inspect("p.md", &ticked).0;
                prop_assert!(again.gates.iter().any(|g| g.id == gate.id && g.closed));
                prop_assert_eq!(phase::tick(&ticked, &gate.id), None);
                let open = phase::untick(&ticked, &gate.id).unwrap_or_default();
                prop_assert_eq!(phase::tick(&open, &gate.id), Some(ticked));
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        inspect(TABLE, "checkpoints.json", &bytes);
    }

    #[test]
    fn what_is_remembered_changes_nothing_that_is_written(
        records in prop::collection::vec(record(), 1..12),
        cuts in prop::collection::vec((0..12_usize, 0..12_usize), 1..12),
        edits in prop::collection::vec(prop::option::of(0..EDITS.len()), 12),
        start in prop::option::of(0..STARTS.len()),
    ) {
        let mut book = checkpoints::Book::default();
        let mut there = start.map(|start| STARTS[start].to_owned());
        for ((from, to), edit) in cuts.into_iter().zip(edits) {
            let (from, to) = (from.min(records.len() - 1), to.min(records.len()));
            let ours = &records[from.min(to)..to.max(from)];
            let wanted = checkpoints::update("c.json", there.as_deref(), ours).ok();
            let made = book.update("c.json", there.as_deref(), ours).ok();
            prop_assert_eq!(made.map(|made| made.text), wanted.clone());
            there = wanted.or(there).map(|text| edit.map_or(text.clone(), |e| EDITS[e](&text)));
        }
    }

    #[test]
    fn records_written_one_by_one_are_those_written_at_once(records in prop::collection::vec(record(), 0..12)) {
        let mut grown = None;
        for count in 1..=records.len() {
            grown = checkpoints::update("c.json", grown.as_deref(), &records[..count]).ok();
        }
        let whole = checkpoints::update("c.json", None, &records).ok();
        if !records.is_empty() {
            prop_assert_eq!(&grown, &whole);
        }
        let read = checkpoints::read("c.json", &whole.unwrap_or_default()).unwrap_or_default();
        for own in &records {
            prop_assert!(read.iter().any(|r| r.lane == own.lane && r.stage == own.stage));
        }
    }
}
