//! What is read from state files in the forms that people and agents write.

use super::super::*;
use super::{LEDGER, MIDRUN};
use piton_formats::Diagnostic;
use piton_formats::diagnostic::{Severity, code};

fn found(text: &str) -> State {
    read("s.md", text).0
}

fn problems(text: &str) -> Vec<Diagnostic> {
    read("s.md", text).1
}

fn keys(state: &State) -> Vec<String> {
    state.completed.iter().map(Completed::key).collect()
}

#[test]
fn a_run_is_read_with_all_its_parts() {
    let (state, problems) = read("s.md", MIDRUN);
    assert_eq!(problems, []);
    assert_eq!(state.status.known(), Some(Status::InProgress));
    assert_eq!(state.current_stage.as_deref(), Some("programmer"));
    assert_eq!(state.value("run_id"), Some("2026-03-01T09:00:00Z"));
    assert_eq!(state.value("owner"), Some("somebody"));
    assert_eq!(keys(&state), ["spec", "tdd"]);
    let tdd = &state.completed[1];
    assert_eq!(tdd.artifact.as_deref(), Some("tests/__init__.py"));
    assert_eq!((tdd.hash.as_deref(), tdd.line), (Some("sha256:33..."), 17));
    assert!(state.is_completed("TDD Agent") && !state.is_completed("programmer"));
    assert_eq!(state.detail.job_status.known(), Some(JobStatus::Retrying));
    assert_eq!(state.detail.retry_count, Some(2));
    let summary = state.detail.value("last_output_summary");
    assert_eq!(summary, Some("AC-1 fails; one more line of it"));
    assert_eq!(state.iterations[1].cycle_count, "2");
    assert_eq!(state.clusters[0].name, "AC-1 quoting");
    let texts = |boxes: Vec<&Checkpoint>| boxes.iter().map(|b| b.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(state.cleared().collect()), ["Spec approval"]);
    let pending = texts(state.pending().collect());
    assert_eq!(
        pending,
        ["Architecture sign-off (includes Constitution Check)", "Security sign-off"]
    );
    assert_eq!(state.notes, ["Resumed once."]);
}

/// Lost: a file saved by another editor would be read as another run.
#[test]
fn line_endings_marks_and_a_missing_newline_change_nothing() {
    let wanted = found(MIDRUN);
    for text in
        [MIDRUN.replace('\n', "\r\n"), format!("\u{feff}{MIDRUN}"), MIDRUN.trim_end().to_owned()]
    {
        assert_eq!(found(&text), wanted);
    }
}

#[test]
fn the_header_is_read_in_every_dialect() {
    for header in [
        "- status: IN_PROGRESS\n- stage: tdd\n",
        "* **Status:** **IN_PROGRESS** — since Monday\n* **Current Stage**: tdd (first try)\n",
        "status: IN_PROGRESS\ncurrent_stage: tdd\n",
        "**Status:** IN_PROGRESS\n**Current stage:** `tdd`\n",
        "| Field | Value |\n|---|---|\n| status | **IN_PROGRESS** |\n| current_stage | tdd |\n",
        "Prose: this is the run, see https://example.org\n\n- Status: IN_PROGRESS (2 of 3)\n- Stage: TDD\n",
    ] {
        let state = found(&format!("# Pipeline State\n\n{header}\n## Notes\n\n- status: FAILED\n"));
        assert_eq!(state.status.known(), Some(Status::InProgress), "{header}");
        assert_eq!(state.current_stage.as_deref(), Some("tdd"), "{header}");
    }
}

#[test]
fn a_stage_ledger_says_what_is_done_and_what_is_next() {
    let (state, problems) = read("s.md", LEDGER);
    assert_eq!(keys(&state), ["spec", "red-team"]);
    assert_eq!(state.current_stage.as_deref(), Some("architect"));
    assert_eq!(state.status, Said::Nothing);
    let boxes: Vec<(&str, bool)> =
        state.checkpoints.iter().map(|c| (c.text.as_str(), c.is_cleared)).collect();
    assert_eq!(boxes, [("Spec approval", true)]);
    let warned: Vec<(Severity, usize)> = problems.iter().map(|p| (p.severity, p.line)).collect();
    assert_eq!(warned, [(Severity::Warning, 1), (Severity::Warning, 15)]);
}

#[test]
fn of_several_rows_of_a_stage_the_last_counts() {
    let later = "| software architect | COMPLETE | 2026-03-03 | |\n| TDD | pending (soon) | | |\n";
    let text = LEDGER.replace("| waits |\n", &format!("| waits |\n{later}"));
    let state = found(&text);
    assert_eq!(keys(&state), ["spec", "red-team", "architect"]);
    assert_eq!(state.current_stage.as_deref(), Some("tdd"));
}

#[test]
fn a_checkpoint_row_and_its_box_are_one() {
    let rows = "| Stage | Status |\n|---|---|\n| Human Architecture Checkpoint | APPROVED |\n\
        | Human Security Sign-off | PENDING |\n| Human Budget Checkpoint | DONE |\n";
    let boxes = "## Human Checkpoints Cleared\n\n- [ ] Architecture sign-off (x)\n- [X] Security sign-off\n";
    let state = found(&format!("## Stage Ledger\n\n{rows}\n{boxes}"));
    let cleared: Vec<&str> = state.cleared().map(|c| c.text.as_str()).collect();
    let wanted = ["Architecture sign-off (x)", "Security sign-off", "Human Budget Checkpoint"];
    assert_eq!(cleared, wanted);
}

/// Lost: a template that was only copied would be resumed as a run.
#[test]
fn a_template_is_not_a_run() {
    let template = "# Pipeline State\n\n- run_id: <uuid, e.g. 2026-02-22T14:30:00Z>\n- feature: <NNN>-<name>\n\
        - debug_mode: on | off\n- current_stage: <stage name — see Stages below>\n\
        - status: IN_PROGRESS | WAITING_FOR_HUMAN | COMPLETE\n\n## Current Stage Detail\n\n- stage: tdd\n\
        - job_status: QUEUED | DISPATCHED\n";
    let (state, problems) = read("s.md", template);
    assert_eq!(state.substance, Substance::Template);
    assert_eq!((state.status.known(), &state.current_stage), (None, &None));
    assert_eq!(state.status.raw(), Some("IN_PROGRESS | WAITING_FOR_HUMAN | COMPLETE"));
    assert!(problems.iter().all(|p| p.severity == Severity::Error && p.code == code::UNFILLED));
    assert_eq!(problems.iter().map(|p| p.line).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 12]);
    for row in ["IN_PROGRESS | FAILED | COMPLETE", r"IN_PROGRESS \| FAILED", "<status>"] {
        let table = format!("| Field | Value |\n|---|---|\n| status | {row} |\n\n## Notes\n");
        assert_eq!(found(&table).substance, Substance::Template, "{row}");
    }
    let partly = MIDRUN.replace("1.0.0", "<version>");
    let (state, problems) = read("s.md", &partly);
    assert_eq!((state.substance, state.value("spec_version")), (Substance::Run, None));
    let found: Vec<_> = problems.iter().map(|p| (p.severity, p.line)).collect();
    assert_eq!(found, [(Severity::Warning, 6)]);
}

#[test]
fn what_is_not_understood_is_reported_where_it_is() {
    for (old, new, line, words) in [
        ("IN_PROGRESS", "PAUSED", 10, "unknown status `PAUSED`"),
        ("- status: IN_PROGRESS\n", "", 1, "no status"),
        ("RETRYING", "HURRYING", 23, "unknown job_status"),
        ("retry_count: 2", "retry_count: many", 24, "not a number"),
        ("- stage: programmer", "- stage: tdd", 21, "current stage is programmer"),
        ("- [ ] Security", "- [~] Security", 45, "unknown box `[~]`"),
        ("| Stage | Completed At |", "| Name | Completed At |", 12, "column Stage"),
        ("- owner: somebody", "- feature: 008", 5, "also on line 4"),
        ("## Notes", "```\n## Notes", 47, "never closed"),
    ] {
        let text = MIDRUN.replacen(old, new, 1);
        let found = problems(&text);
        let seen: Vec<(usize, &str)> = found.iter().map(|p| (p.line, p.message.as_str())).collect();
        let is_there = seen.iter().any(|(at, message)| *at == line && message.contains(words));
        assert!(is_there, "{new}: {seen:?}");
        assert!(found.iter().all(|p| p.severity == Severity::Warning && p.hint.is_some()));
    }
    assert_eq!(problems("")[0].severity, Severity::Error);
}

#[test]
fn examples_in_fences_and_nested_items_are_not_read() {
    let text = "# Pipeline State\n\n```\n- status: FAILED\n```\n- history:\n  - status: FAILED\n- status: COMPLETE\n";
    assert_eq!(found(text).status.known(), Some(Status::Complete));
    assert_eq!(problems(text).len(), 1);
}

#[test]
fn a_state_file_is_known_by_its_content() {
    for text in [
        MIDRUN,
        LEDGER,
        "# Pipeline State\n\nstatus: x\n",
        "## Completed Stages\n- status: x\n## Iteration Counts\n",
    ] {
        assert!(is_state(text), "{text}");
    }
    for text in [
        "",
        "# Pipeline State Format\n\n```\n- status: x\n```\n",
        "# Notes\n\n## Notes\n",
        "- status: open\n",
    ] {
        assert!(!is_state(text), "{text}");
    }
}
