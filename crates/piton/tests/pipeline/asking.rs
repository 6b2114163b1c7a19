//! What a person at a terminal is asked about features, and what each answer does.

use super::common::terminal::Terminal;
use super::scene::{FOLDER, Feature, STATE};

fn foreign(stage: &str, status: &str) -> String {
    format!(
        "# Pipeline State\n\n- current_stage: {stage}\n- status: {status}\n\n\
         ## Human Checkpoints Cleared\n\n- [x] Spec approval\n"
    )
}

/// Lost: a person who says what an unclear file means has to edit it first, or it is guessed.
#[test]
fn an_unknown_status_is_asked_about() {
    let run = format!("run {FOLDER}");
    for (key, code, ran, aside) in
        [("r\r", 3, "architect", 0), ("f\r", 3, "spec clarify", 1), ("l\r", 3, "", 0)]
    {
        let feature = Feature::new();
        let text = foreign("architect", "PAUSED");
        feature.project.write(STATE, &text);
        let Some(mut terminal) = Terminal::start(&feature.project, &run) else { return };
        terminal.answer("What now?", key);
        if !ran.is_empty() {
            terminal.answer("Approve ", "l\r");
        }
        let said = terminal.ends(code);
        assert!(said.contains("unknown status `PAUSED`"), "{said}");
        assert_eq!(feature.ran().join(" "), ran, "{key}");
        assert_eq!(feature.set_aside().len(), aside, "{key}");
        assert_eq!(feature.state() == text, ran.is_empty(), "{key}");
    }
    // Whoever answers everything beforehand has not seen it.
    let feature = Feature::new();
    feature.project.write(STATE, &foreign("architect", "PAUSED"));
    let Some(terminal) = Terminal::start(&feature.project, &format!("{run} --yes")) else { return };
    assert!(terminal.ends(3).contains("error[state-unclear]"));
    assert!(feature.ran().is_empty());
}

/// Lost: a run is offered to be continued at a stage that nobody knows.
#[test]
fn a_file_without_a_known_stage_can_only_be_left_or_replaced() {
    let feature = Feature::new();
    feature.project.write(STATE, &foreign("shipping", "PAUSED"));
    let run = format!("run {FOLDER}");
    let Some(mut terminal) = Terminal::start(&feature.project, &run) else { return };
    terminal.answer(" [f]resh, [L]eave", "\r");
    terminal.ends(3);
    assert_eq!(feature.state(), foreign("shipping", "PAUSED"));
}

/// Lost: at the start of a session nobody is asked which feature to continue, or about none.
#[test]
fn run_alone_asks_about_active_features() {
    let feature = Feature::new();
    // None: nothing is asked.
    let Some(terminal) = Terminal::start(&feature.project, "run") else { return };
    assert!(!terminal.ends(2).contains("active feature"));
    // One: a no starts nothing.
    feature.project.write(STATE, &foreign("architect", "IN_PROGRESS"));
    let Some(mut terminal) = Terminal::start(&feature.project, "run") else { return };
    terminal.answer("Is there an active feature in progress?", "n\r");
    let said = terminal.ends(2);
    assert!(said.contains("found: 003-csv (architect, IN_PROGRESS"), "{said}");
    assert!(feature.ran().is_empty());
    let Some(mut terminal) = Terminal::start(&feature.project, "run") else { return };
    terminal.answer("Is there an active feature in progress?", "y\r");
    terminal.answer("Approve \"Architecture sign-off", "l\r");
    terminal.ends(3);
    assert_eq!(feature.ran(), ["architect"]);
    // Several: by number.
    let other = "specs/004-tsv/.pipeline-state.md";
    feature.project.write(other, &foreign("tdd", "ABORTED"));
    let Some(mut terminal) = Terminal::start(&feature.project, "run") else { return };
    terminal.answer("Is there an active feature in progress?", "1\r");
    terminal.answer("Approve \"Architecture sign-off", "y\r");
    terminal.answer("Approve \"Security sign-off", "l\r");
    let said = terminal.ends(3);
    assert!(said.contains("2  004-tsv (tdd, ABORTED"), "{said}");
}
