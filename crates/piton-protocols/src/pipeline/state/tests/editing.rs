//! Changes of state files: what changes, and what stays.

use super::super::*;
use super::{LEDGER, MIDRUN};

fn edited(text: &str, change: impl Fn(&mut Editor) -> &mut Editor) -> String {
    let mut editor = Editor::new(text);
    change(&mut editor);
    editor.into_text()
}

/// The lines that a change removes and adds, as `-` and `+`.
fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let removed = old[head..old.len() - tail].iter().map(|line| format!("-{line}"));
    removed.chain(new[head..new.len() - tail].iter().map(|line| format!("+{line}"))).collect()
}

fn done(stage: &str) -> Completed {
    let text = |text: &str| Some(text.to_owned());
    Completed {
        stage: stage.to_owned(),
        completed_at: text("T"),
        artifact: text("a|b.md"),
        hash: text("sha256:44"),
        line: 0,
    }
}

fn cycles(stage: &str, cycle_count: &str) -> Iteration {
    let cycle_count = cycle_count.to_owned();
    Iteration { stage: stage.to_owned(), cycle_count, ..Iteration::default() }
}

#[test]
fn a_field_is_set_where_it_is() {
    for (key, value, wanted) in [
        ("status", "COMPLETE", vec!["-- status: IN_PROGRESS", "+- status: COMPLETE"]),
        ("owner", "two\nlines", vec!["-- owner: somebody", "+- owner: two lines"]),
        ("status", "IN_PROGRESS", vec![]),
        ("reason", "x", vec!["+- reason: x"]),
    ] {
        let new = edited(MIDRUN, |e| e.set_field(key, value));
        assert_eq!(diff(MIDRUN, &new), wanted, "{key}");
    }
    let new = edited(MIDRUN, |e| e.set_detail("last_output_summary", "short"));
    let wanted = [
        "-- last_output_summary: AC-1 fails; one",
        "-  more line of it",
        "+- last_output_summary: short",
    ];
    assert_eq!(diff(MIDRUN, &new), wanted);
    let new = edited(MIDRUN, |e| e.set_detail("retry_count", "3").set_detail("new_key", "v"));
    let state = read("s.md", &new).0;
    assert_eq!((state.detail.retry_count, state.detail.value("new_key")), (Some(3), Some("v")));
}

#[test]
fn emphasis_and_prose_around_a_value_stay() {
    for (old, new) in [
        ("- status: **IN_PROGRESS** — since Monday\n", "- status: **COMPLETE** — since Monday\n"),
        ("* **Status:** IN_PROGRESS (a)\r\n", "* **Status:** COMPLETE (a)\r\n"),
        ("status: IN_PROGRESS", "status: COMPLETE"),
        ("- status:\n", "- status: COMPLETE\n"),
        ("- status: IN_PROGRESS | FAILED\n", "- status: COMPLETE\n"),
        ("|a|b|\n|-|-|\n|status|`FAILED`|\n", "|a|b|\n|-|-|\n|status|`COMPLETE`|\n"),
        ("| a | b |\n|-|-|\n| status | |\n", "| a | b |\n|-|-|\n| status | COMPLETE |\n"),
        ("|a|b|\n|-|-|\n| status | X | Y | Z |\n", "|a|b|\n|-|-|\n| status | COMPLETE |\n"),
    ] {
        assert_eq!(edited(old, |e| e.set_field("status", "COMPLETE")), new, "{old}");
    }
    let short = edited("- stage: tdd\n", |e| e.set_field("current_stage", "docs"));
    assert_eq!(short, "- stage: docs\n");
}

#[test]
fn a_missing_field_is_written_like_its_neighbours() {
    for (old, new) in [
        ("", "- a_b: v|w\n"),
        ("\u{feff}", "\u{feff}- a_b: v|w\n"),
        ("prose\n", "- a_b: v|w\n\nprose\n"),
        ("# T\nprose", "# T\n\n- a_b: v|w\n\nprose"),
        ("# T", "# T\n\n- a_b: v|w"),
        ("---\nx: y\n---\n", "---\nx: y\n---\n\n- a_b: v|w\n"),
        ("# T\r\n\r\n* x: y\r\n", "# T\r\n\r\n* x: y\r\n* a_b: v|w\r\n"),
        ("status: y\n\n## Notes\n", "status: y\na_b: v|w\n\n## Notes\n"),
        ("| F | V |\n|---|---|\n| x | y |\n", "| F | V |\n|---|---|\n| x | y |\n| a_b | v\\|w |\n"),
        ("| F | V |\n|---|---|\n", "| F | V |\n|---|---|\n| a_b | v\\|w |\n"),
        ("- status: y\n  prose\n\nz\n", "- status: y\n  prose\n- a_b: v|w\n\nz\n"),
    ] {
        let text = edited(old, |e| e.set_field("a_b", "v|w"));
        assert_eq!(text, new, "{old:?}");
        assert_eq!(read("s.md", &text).0.field("a_b").map(|f| f.raw.as_str()), Some("v|w"));
    }
}

#[test]
fn rows_are_added_or_set_by_their_columns() {
    let new = edited(MIDRUN, |e| e.complete_stage(&done("programmer")));
    assert_eq!(diff(MIDRUN, &new), [r"+| programmer | T | a\|b.md | sha256:44 |"]);
    let new = edited(MIDRUN, |e| e.set_iteration(&cycles("Programmer", "3")));
    let wanted =
        ["-| programmer | 2 | 5 | WITHIN_BUDGET |", "+| programmer | 3 | 5 | WITHIN_BUDGET |"];
    assert_eq!(diff(MIDRUN, &new), wanted);
    let new = edited(MIDRUN, |e| e.set_iteration(&cycles("docs", "1")));
    assert_eq!(diff(MIDRUN, &new), ["+| docs | 1 | | |"]);
    let cluster = Cluster {
        name: "ac-1  quoting".to_owned(),
        retry_count: "3".to_owned(),
        notes: "a\nb".to_owned(),
        ..Cluster::default()
    };
    let new = edited(MIDRUN, |e| e.set_cluster(&cluster));
    let wanted = [
        "-| AC-1 quoting | 2026-03-01T09:50:00Z | 2 | programmer | |",
        "+| AC-1 quoting | 2026-03-01T09:50:00Z | 3 | programmer | a b |",
    ];
    assert_eq!(diff(MIDRUN, &new), wanted);
    // A column that the file does not have is not invented.
    let old = "## Completed Stages\n\nText.\n\n|Hash|Stage|\n|--|--|\n\n## Notes\n";
    let new = edited(old, |e| e.complete_stage(&done("spec")));
    assert_eq!(diff(old, &new), ["+| | spec |"]);
}

#[test]
fn a_stage_ledger_is_continued() {
    let new =
        edited(LEDGER, |e| e.complete_stage(&done("architect")).set_field("status", "IN_PROGRESS"));
    let row = r"| architect | COMPLETE | T | a\|b.md sha256:44 |";
    assert!(new.contains(&format!("waits |\n{row}\n\n## Constitution Note")), "{new}");
    assert!(new.contains("| spec_version | 1.0.0 |\n| status | IN_PROGRESS |\n"), "{new}");
    assert!(read("s.md", &new).0.is_completed("Software Architect"));
}

#[test]
fn missing_sections_are_added_in_their_order() {
    let new = edited("# Pipeline State\n\n- status: X\n\n## Other\n\ntext\n", |e| {
        e.note("a note")
            .tick("Security sign-off")
            .set_iteration(&cycles("tdd", "1"))
            .set_cluster(&Cluster { name: "c".to_owned(), ..Cluster::default() })
            .set_detail("stage", "tdd")
            .complete_stage(&done("spec"))
    });
    let wanted = r"# Pipeline State

- status: X

## Completed Stages

| Stage | Completed At | Output Artifact | Output Hash |
|-------|--------------|-----------------|-------------|
| spec | T | a\|b.md | sha256:44 |

## Current Stage Detail

- stage: tdd

## Iteration Counts

| Stage | Cycle Count | Budget | Status |
|-------|-------------|--------|--------|
| tdd | 1 | | |

## Failure Clusters

| Cluster | First Seen | Retry Count | Stage | Notes |
|---------|------------|-------------|-------|-------|
| c | | | | |

## Human Checkpoints Cleared

- [x] Security sign-off

## Notes

a note

## Other

text
";
    assert_eq!(new, wanted);
}

#[test]
fn boxes_are_ticked_and_never_unticked() {
    for (text, wanted) in [
        ("Spec approval", vec![]),
        ("security  SIGN-OFF", vec!["-- [ ] Security sign-off", "+- [x] Security sign-off"]),
        (
            "Architecture sign-off",
            vec![
                "-- [ ] Architecture sign-off (includes Constitution Check)",
                "+- [x] Architecture sign-off (includes Constitution Check)",
            ],
        ),
        ("Red-Team\nclearance", vec!["+- [x] Red-Team clearance"]),
    ] {
        let new = edited(MIDRUN, |e| e.tick(text));
        assert_eq!(diff(MIDRUN, &new), wanted, "{text}");
        assert_eq!(edited(&new, |e| e.tick(text)), new);
    }
    let old = "## Human Checkpoints Cleared\n- [] A\n  why\n";
    let new = edited(old, |e| e.tick("A").tick("B"));
    assert_eq!(new, "## Human Checkpoints Cleared\n- [x] A\n  why\n- [x] B\n");
}

#[test]
fn notes_are_added_at_the_end() {
    for (old, new) in [
        ("## Notes\n\nOne.\n", "## Notes\n\nOne.\n\\# two\nthree\n"),
        ("## Notes\n\n- One.", "## Notes\n\n- One.\n- \\# two\n  three"),
        ("## Notes\n\n## Other\n", "## Notes\n\n\\# two\nthree\n\n## Other\n"),
        ("## Notes\r\n\r\n| a |\r\n", "## Notes\r\n\r\n| a |\r\n\r\n\\# two\r\nthree\r\n"),
        ("## Notes", "## Notes\n\n\\# two\nthree"),
    ] {
        assert_eq!(edited(old, |e| e.note("# two\n\n  three \n")), new, "{old}");
    }
    assert_eq!(edited(MIDRUN, |e| e.note(" \n")), MIDRUN);
}

/// Lost: a value would be written into a fence that is never closed, where nobody reads it.
#[test]
fn what_is_added_stays_outside_of_a_fence_that_is_never_closed() {
    let old = "- status: X\n```\n## Notes\n";
    let new = edited(old, |e| e.note("n").set_field("feature", "f").tick("B"));
    let state = read("s.md", &new).0;
    assert_eq!(
        (state.value("feature"), state.notes.as_slice()),
        (Some("f"), &["n".to_owned()][..])
    );
    assert!(new.ends_with("```\n## Notes\n"), "{new}");
}

#[test]
fn a_new_file_is_read_as_it_was_meant() {
    let run = NewRun {
        run_id: "R-1",
        feature: "007-export",
        spec_version: "",
        spec_hash: "sha256:55",
        started_at: "2026-03-01T09:00:00.000Z",
        stage: "spec",
        boxes: &BOXES,
    };
    let text = fresh(&run);
    let (state, problems) = read("s.md", &text);
    assert_eq!(problems, []);
    assert_eq!(state.status.known(), Some(Status::InProgress));
    assert_eq!(state.detail.job_status.known(), Some(JobStatus::Queued));
    assert_eq!(state.pending().map(|b| b.text.as_str()).collect::<Vec<_>>(), BOXES);
    assert!(text.starts_with("# Pipeline State\n\n- run_id: R-1\n- feature: 007-export\n"));
    assert!(text.ends_with("- [ ] Security sign-off\n\n## Notes\n"), "{text}");
    assert!(text.contains("\n- spec_version:\n"));
    let grown = edited(&text, |e| {
        e.complete_stage(&done("spec")).tick(BOXES[0]).note("n").set_field("spec_version", "1")
    });
    let removed = diff(&text, &grown).into_iter().filter(|line| line.starts_with('-')).count();
    assert!(grown.lines().count() > text.lines().count() && removed > 0);
    assert_eq!(read("s.md", &grown).1, []);
}
