//! Properties of the readers of protocol files: any text is read without harm, and what is written
//! is read again.

use piton_core::Timestamp;
use piton_protocols::TABLE;
use piton_protocols::format::Around;
use piton_protocols::inspect::inspect;
use piton_protocols::lanes::checkpoints::{self, OwnRecord, Stage, Status};
use piton_protocols::lanes::phase;
use proptest::prelude::*;

/// A world in which nothing is known.
const AROUND: Around<'static> = Around { now: Timestamp(0), modified: &|_| None };

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
        "## Phase 1: T [DONE]\n",
        "### Phase 2A (x): T",
        "**Dependencies**: [1, 2A]\n",
        "- [ ] T001 [P] `a/b.rs`",
        "Testing:\n",
        "{\"workflow_id\": \"x\", \"current_phase\": 1}",
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

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in pieces()) {
        for file in ["p.md", "checkpoints.json", "x.jsonl", "ckpt.json"] {
            let found = inspect(TABLE, file, text.as_bytes(), AROUND);
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
        inspect(TABLE, "checkpoints.json", &bytes, AROUND);
    }

    #[test]
    fn records_written_one_by_one_are_those_written_at_once(records in prop::collection::vec(record(), 0..12)) {
        let (mut grown, none) = (None, checkpoints::Written::default());
        for count in 1..=records.len() {
            let made = checkpoints::update("c.json", grown.as_deref(), &records[..count], &none);
            grown = made.ok().map(|made| made.text);
        }
        let whole = checkpoints::update("c.json", None, &records, &none).ok().map(|made| made.text);
        if !records.is_empty() {
            prop_assert_eq!(&grown, &whole);
        }
        let read = checkpoints::read("c.json", &whole.unwrap_or_default()).unwrap_or_default();
        for own in &records {
            prop_assert!(read.iter().any(|r| r.lane == own.lane && r.stage == own.stage));
        }
    }
}
