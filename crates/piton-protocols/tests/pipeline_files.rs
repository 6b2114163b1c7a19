//! Properties of the pipeline's files: any text is read without harm, nothing changes without need,
//! and a change touches only what it concerns.

use piton_core::Timestamp;
use piton_protocols::TABLE;
use piton_protocols::format::Around;
use piton_protocols::inspect::inspect;
use piton_protocols::pipeline::state::{self, Cluster, Completed, Editor, Iteration, State};
use piton_protocols::pipeline::{adr, gaps, hashes};
use proptest::prelude::*;

const AROUND: Around<'_> = Around { now: Timestamp(0), modified: &|_| None };

/// Pieces of real files, broken and whole, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "# Pipeline State",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "- status: IN_PROGRESS",
        "- **Status:** **FAILED** — x",
        "status: A | B",
        "* current_stage: tdd",
        "  more\n",
        "| Field | Value |\n|---|---|\n",
        "| status | COMPLETE |\n",
        "| status | a \\| b | c |",
        "## Completed Stages\n",
        "| Stage | Completed At |\n|---|---|\n",
        "| spec | T |\n",
        "|",
        "## Stage Ledger\n",
        "| Stage | Status | Notes |\n|--|--|--|\n| Software Architect | PENDING |\n",
        "| Human Spec Checkpoint | APPROVED |\n",
        "## Current Stage Detail\n",
        "- job_status: RUNNING\n- retry_count: 9x\n",
        "## Iteration Counts\n",
        "| Stage | Cycle Count | Budget | Status |\n|---|---|---|---|\n| tdd | 1 |\n",
        "## Failure Clusters\n",
        "| Cluster | Stage |\n|---|---|\n| c |\n",
        "### Human Checkpoints Cleared\n",
        "- [ ] Spec approval\n",
        "- [x] Security",
        "- [] x",
        "## Notes\n",
        "## Other\n",
        "## Constitution Check\n",
        "| Article | Status |\n|---|---|\n| I | EXCEPTION |\n",
        "## Complexity Justification\n",
        "[NEEDS CLARIFICATION: a",
        "]",
        "<name>",
        "<!--",
        "-->",
        "```",
        "~~~\n",
        "---\n",
        "\u{feff}",
        "ä—",
        "\t",
        "`",
        "**",
        "\\",
        "sha256:00",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Values that could do harm.
fn value() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "x",
        "a b",
        "a | b",
        "a\nb",
        "\r\n## Notes\n",
        "```",
        "<!--",
        "\\",
        "**",
        "`a",
        "- [x] b",
        "|",
        "<n>",
        "ä",
    ]);
    prop_oneof![odd.prop_map(str::to_owned), "[ -~]{0,12}"]
}

#[derive(Clone, Debug)]
enum Edit {
    Field(String),
    Detail(String),
    Complete(String),
    Iteration(String),
    Cluster(String),
    Tick(String),
    Untick(String),
    Note(String),
}

fn edit() -> impl Strategy<Value = Edit> {
    (0..8_usize, value()).prop_map(|(kind, value)| match kind {
        0 => Edit::Field(value),
        1 => Edit::Detail(value),
        2 => Edit::Complete(value),
        3 => Edit::Iteration(value),
        4 => Edit::Cluster(value),
        5 => Edit::Tick(value),
        6 => Edit::Untick(value),
        _ => Edit::Note(value),
    })
}

fn apply(text: &str, edit: &Edit) -> String {
    let mut editor = Editor::new(text);
    match edit.clone() {
        Edit::Field(value) => editor.set_field("last_updated_at", &value),
        Edit::Detail(value) => editor.set_detail("last_output_summary", &value),
        Edit::Complete(hash) => {
            let (stage, hash) = ("docs".to_owned(), Some(hash));
            editor.complete_stage(&Completed { stage, hash, ..Completed::default() })
        }
        Edit::Iteration(status) => {
            let stage = "tdd".to_owned();
            editor.set_iteration(&Iteration { stage, status, ..Iteration::default() })
        }
        Edit::Cluster(notes) => {
            let name = "c".to_owned();
            editor.set_cluster(&Cluster { name, notes, ..Cluster::default() })
        }
        Edit::Tick(text) => editor.tick(&text),
        // Only boxes that are there can be unticked.
        Edit::Untick(text) => editor.tick(&text).untick(&text),
        Edit::Note(text) => editor.note(&text),
    };
    editor.into_text()
}

/// What a change must leave as it was: everything but the part it is about, and lines.
fn others(state: &State, edit: &Edit) -> State {
    let mut state = state.clone();
    for field in state.fields.iter_mut().chain(&mut state.detail.fields) {
        field.line = 0;
    }
    state.completed.iter_mut().for_each(|done| done.line = 0);
    state.checkpoints.iter_mut().for_each(|found| found.line = 0);
    state.ledger.iter_mut().for_each(|row| row.line = 0);
    match edit {
        Edit::Field(_) => state.fields.retain(|field| field.key != "last_updated_at"),
        Edit::Detail(_) => state.detail.fields.retain(|f| f.key != "last_output_summary"),
        Edit::Complete(_) => {
            state.completed.retain(|done| done.stage != "docs");
            state.ledger.retain(|row| row.name != "docs");
        }
        Edit::Iteration(_) => state.iterations.clear(),
        Edit::Cluster(_) => state.clusters.clear(),
        Edit::Tick(_) | Edit::Untick(_) => state.checkpoints.clear(),
        Edit::Note(_) => state.notes.clear(),
    }
    // A file that had nothing of a state file has something now.
    state.substance = state::Substance::Run;
    state
}

/// The lines that both texts share at the beginning and at the end.
fn shared(old: &str, new: &str) -> (usize, usize) {
    // The byte order mark is not a part of the first line.
    let lines = |text: &'_ str| -> Vec<String> {
        text.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect()
    };
    let (old, new) = (lines(old), lines(new));
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b);
    (head, tail.count())
}

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in prop_oneof![pieces(), ".{0,200}"]) {
        for file in ["pipeline-state.md", "adr.md"] {
            let found = inspect(TABLE, file, text.as_bytes(), AROUND);
            let lines = text.split('\n').count();
            prop_assert!(found.problems.iter().all(|p| (1..=lines).contains(&p.line)));
        }
        state::read("s.md", &text);
        adr::read("adr.md", &text);
        gaps::looks_complete(&text);
        hashes::compare(&text, text.as_bytes());
        hashes::compare(&format!("{:064}", 0), text.as_bytes());
        prop_assert_eq!(Editor::new(text.clone()).into_text(), text);
    }

    /// Lost: what people wrote would vanish, or be moved into another part of the file.
    #[test]
    fn a_change_touches_only_what_it_concerns(text in pieces(), edit in edit()) {
        let new = apply(&text, &edit);
        let (old_state, new_state) = (state::read("s.md", &text).0, state::read("s.md", &new).0);
        prop_assert_eq!(others(&old_state, &edit), others(&new_state, &edit));
        let (head, tail) = shared(&text, &new);
        let removed = text.trim_start_matches('\u{feff}').lines().count() - head - tail;
        // A summary may go on over several lines; all else is on one line.
        let is_summary = matches!(edit, Edit::Detail(_));
        prop_assert!(removed <= 1 || is_summary, "{removed} lines removed");
        if matches!(edit, Edit::Complete(_) | Edit::Note(_)) {
            prop_assert_eq!(removed, 0);
        }
        // Without line endings of its own, an addition uses those of the file.
        if !text.contains("\r\n") {
            prop_assert!(!new.contains('\r'));
        }
        if new != text && !text.trim_start_matches('\u{feff}').is_empty() {
            prop_assert_eq!(text.ends_with('\n'), new.ends_with('\n'));
        }
    }

    /// Lost: a run that says the same twice would grow its file for ever.
    #[test]
    fn the_same_change_again_changes_nothing(text in pieces(), edit in edit()) {
        if !matches!(edit, Edit::Complete(_) | Edit::Note(_)) {
            let once = apply(&text, &edit);
            prop_assert_eq!(apply(&once, &edit), once);
        }
    }

    #[test]
    fn changes_are_read_again(text in pieces(), word in "w[a-z]{1,8}", edits in prop::collection::vec(edit(), 0..4)) {
        let text = edits.iter().fold(text, |text, edit| apply(&text, edit));
        let mut editor = Editor::new(text);
        let (stage, hash) = (word.clone(), Some(word.clone()));
        editor
            .set_field("feature", &word)
            .set_detail("dispatched_at", &word)
            .complete_stage(&Completed { stage, hash, ..Completed::default() })
            .tick(&word)
            .note(&word);
        let state = state::read("s.md", &editor.into_text()).0;
        prop_assert_eq!(state.value("feature"), Some(word.as_str()));
        prop_assert_eq!(state.detail.value("dispatched_at"), Some(word.as_str()));
        prop_assert!(state.is_completed(&word));
        prop_assert!(state.cleared().any(|found| found.text == word));
        prop_assert!(state.notes.last().is_some_and(|note| note.ends_with(&word)));
    }
}

/// Lost: a field that is put between the header of a table and its dashes becomes that header.
#[test]
fn a_table_below_an_item_is_no_part_of_it() {
    let text = "- retry_count: 9\n\t| Stage | Completed At |\n|---|---|\n## Completed Stages\n";
    let edit = Edit::Field("a | b".to_owned());
    let once = apply(text, &edit);
    assert!(once.starts_with("- retry_count: 9\n- last_updated_at: a | b\n"), "{once}");
    assert_eq!(apply(&once, &edit), once);
}
