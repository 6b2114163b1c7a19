//! Questions on a terminal: what a person is asked, and what each answer does.
//!
//! `script` of util-linux gives the program a terminal; where it is missing there is nothing to
//! test with, and each test says so and passes.

mod common;

use common::terminal::Terminal;
use common::{Project, wait_until};

const PLAN: &str = r#"
[[phase]]
id = "P1"
run = "echo $PITON_RUN_ID one >> ran.txt; test -e mended"

[[phase]]
id = "P2"
gate = "Ship it"
run = "echo $PITON_RUN_ID two >> ran.txt"
"#;

/// If this fails, a person at the terminal is not asked about a gate, or the answer is lost.
#[test]
fn a_gate_is_asked_about() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml --run-id r1") else { return };
    terminal.answer("Approve \"Ship it\"", "y\r");
    terminal.ends(0);
    assert_eq!(project.lines("ran.txt"), ["r1 one", "r1 two"]);
}

/// If this fails, a person who decides at a terminal has to give a second command to go on.
#[test]
fn a_decision_at_a_terminal_goes_on_with_the_run() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(1);
    project.write("mended", "");
    let Some(terminal) = Terminal::start(&project, "retry r1 --no-resume") else { return };
    assert!(terminal.ends(0).contains("next: piton resume r1"));
    let Some(mut terminal) = Terminal::start(&project, "retry r1 P1/main/work --again") else {
        return;
    };
    terminal.answer("Approve \"Ship it\"", "l\r");
    terminal.ends(3);
    let Some(terminal) = Terminal::start(&project, "approve r1 P2") else { return };
    terminal.ends(0);
    assert_eq!(project.status("r1"), "complete");
    assert_eq!(project.lines("ran.txt"), ["r1 one", "r1 one", "r1 two"]);
}

/// If this fails, "later" is taken for a no, or `--yes` for a yes.
#[test]
fn a_gate_may_wait() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml --run-id r1 --yes") else {
        return;
    };
    terminal.answer("Approve \"Ship it\"", "l\r");
    terminal.ends(3);
    assert_eq!(project.status("r1"), "waiting");
}

/// If this fails, a question stays on the screen after somebody else has answered it.
#[test]
fn a_gate_decided_elsewhere_ends_the_question() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    let Some(terminal) = Terminal::start(&project, "run plan.toml --run-id r1") else { return };
    wait_until("the question", || terminal.screen().contains("Approve \"Ship it\""));
    project.piton(&["approve", "r1", "P2"]).exits(0);
    terminal.ends(0);
    assert_eq!(project.lines("ran.txt"), ["r1 one", "r1 two"]);
}

/// If this fails, an answer that comes just after somebody else's ends the command as an error, and
/// the other gates are not asked about.
#[test]
fn an_answer_that_comes_second_goes_on() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\n\
         [[phase.lane]]\nid = \"a\"\ngate = \"First\"\nrun = \"echo a >> ran.txt\"\n\
         [[phase.lane]]\nid = \"b\"\ngate = \"Second\"\nrun = \"echo b >> ran.txt\"\n",
    );
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml --run-id r1") else { return };
    wait_until("the question", || terminal.screen().contains("Approve \"First\""));
    project.piton(&["approve", "r1", "P/a"]).exits(0);
    terminal.answer("Approve \"First\"", "y\r");
    terminal.answer("Approve \"Second\"", "y\r");
    assert!(terminal.ends(0).contains("gate \"First\" (P/a) was approved by tester"));
    assert_eq!(project.lines("ran.txt").len(), 2);
}

/// If this fails, a failed step leaves a person at the terminal without a choice.
#[test]
fn a_failed_step_is_asked_about() {
    let project = Project::with_plan(PLAN);
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml --run-id r1") else { return };
    wait_until("the question", || terminal.screen().contains("What now?"));
    project.write("mended", "");
    terminal.answer("What now?", "r\r");
    terminal.answer("Approve \"Ship it\"", "n\r");
    terminal.ends(1);
    assert_eq!(project.lines("ran.txt"), ["r1 one", "r1 one"]);
    assert_eq!(project.status("r1"), "failed");
}

/// If this fails, declining to resume loses the old run, or the default answer starts anew.
#[test]
fn an_unfinished_run_is_asked_about() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(3);
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml") else { return };
    terminal.answer("Resume from checkpoint?", "\r");
    terminal.answer("Approve \"Ship it\"", "l\r");
    terminal.ends(3);
    assert_eq!(project.lines("ran.txt"), ["r1 one"]);
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml") else { return };
    terminal.answer("Resume from checkpoint?", "n\r");
    terminal.answer("Approve \"Ship it\"", "y\r");
    terminal.ends(0);
    assert_eq!(project.status("r1"), "archived");
    assert_eq!(project.lines("ran.txt").len(), 3);
}

/// If this fails, declining to resume costs the old run although the new one can't start.
#[test]
fn nothing_is_set_aside_for_a_name_that_is_taken() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(3);
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml --run-id r1") else { return };
    terminal.answer("Resume from checkpoint?", "n\r");
    assert!(terminal.ends(2).contains("run-exists"));
    assert_eq!(project.status("r1"), "waiting");
}

/// If this fails, Ctrl-C does not end a question.
#[test]
fn an_interrupted_question_ends_the_command() {
    let project = Project::with_plan(PLAN);
    project.write("mended", "");
    let Some(mut terminal) = Terminal::start(&project, "run plan.toml --run-id r1") else { return };
    terminal.answer("Approve \"Ship it\"", "\u{3}");
    terminal.ends(130);
    assert_eq!(project.status("r1"), "waiting");
}

/// If this fails, a person who only wanted to look ends agents at work, or loses a run for good.
#[test]
fn declining_to_resume_says_what_ends_and_can_be_taken_back() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P1\"\nrun = \"touch begun; while [ ! -e go ]; do sleep 0.02; done; \
         echo $PITON_RUN_ID >> ran.txt\"\n",
    );
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "first"]);
    project.wait_for("begun");
    driver.kill();
    let asks = |key: &str| {
        let mut terminal = Terminal::start(&project, "run plan.toml --run-id second")?;
        terminal.answer("Resume from checkpoint?", key);
        Some(terminal)
    };
    let Some(cancelled) = asks("c\r") else { return };
    let said = cancelled.ends(3);
    assert!(said.contains("archives run first") && said.contains("piton resume first"), "{said}");
    assert!(said.contains("ends P1/main/work (attempt 1)"), "{said}");
    assert_ne!(project.status("first"), "archived");
    assert_eq!(project.keepers().len(), 1, "the step is still at work");
    let declined = asks("n\r").expect("a terminal");
    wait_until("the new run", || declined.screen().contains("run second"));
    project.write("go", "");
    let said = declined.ends(0);
    assert!(said.contains("archived first, ended P1/main/work"), "{said}");
    assert_eq!(project.status("first"), "archived");
    project
        .piton(&["resume", "first"])
        .exits(0)
        .says("run first was archived and is now continued");
    assert_eq!(project.lines("ran.txt"), ["second", "first"]);
    assert_eq!(project.status("first"), "complete");
}

/// If this fails, settings of an agent program change before a person has agreed.
#[test]
fn init_shows_its_changes_and_asks() {
    let project = Project::with_plan(PLAN);
    let Some(mut terminal) = Terminal::start(&project, "init claude") else { return };
    terminal.answer("Make these changes?", "n\r");
    let said = terminal.ends(0);
    assert!(said.contains("created .claude/settings.json"), "{said}");
    assert!(!project.has(".claude") && !project.has(".mcp.json"));
    let Some(mut terminal) = Terminal::start(&project, "init claude") else { return };
    terminal.answer("Make these changes?", "y\r");
    terminal.ends(0);
    assert!(project.read(".claude/settings.json").contains("piton hook claude"));
}
