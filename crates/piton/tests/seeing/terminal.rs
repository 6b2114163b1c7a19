//! On a terminal: a narrow one, one without colour. `script` makes the terminal.

use super::PLAN;
use super::common::{Output, PITON, Project};

/// Runs the plan on a terminal of so many columns; nothing where there is no `script`.
fn on_terminal(project: &Project, columns: u32, settings: &str) -> Option<Output> {
    let found = project.sh("command -v script").code == 0;
    let line =
        format!("stty cols {columns} rows 24; {settings} '{PITON}' run plan.toml --run-id r");
    let mut command = project.command("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    found.then(|| project.finish(&mut command))
}

/// What escape sequences of terminal output leave.
fn text_of(output: &str) -> String {
    let mut text = String::new();
    let mut chars = output.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            text.push(c);
        } else if chars.next() == Some('[') {
            chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    text
}

/// Lost: on a narrow terminal lines would wrap and the live picture fall apart.
#[test]
fn a_narrow_terminal_is_never_written_past_its_edge() {
    const COLUMNS: usize = 40;
    let long = "a-name-that-is-much-too-long-for-this-narrow-terminal";
    let plan = PLAN
        .replace("id = \"B\"", &format!("id = \"{long}\""))
        .replace("echo from B", &format!("echo {long} and its long words; sleep 0.5"));
    let project = Project::with_plan(&plan);
    let Some(output) = on_terminal(&project, 40, "") else { return };
    let output = output.exits(0);
    // Each frame is drawn at once, between two marks.
    let frames: Vec<&str> = output
        .stdout
        .split("\u{1b}[?2026h")
        .skip(1)
        .filter_map(|rest| rest.split("\u{1b}[?2026l").next())
        .collect();
    assert!(frames.len() > 1, "no live picture: {:?}", output.stdout);
    for line in frames.iter().flat_map(|frame| frame.split("\r\n")).map(text_of) {
        assert!(line.chars().count() <= COLUMNS, "too wide: {line:?}");
    }
    assert!(text_of(&output.stdout).contains("complete"), "{:?}", output.stdout);
}

/// Lost: a person who wants no colour would get it.
#[test]
fn no_color_is_honoured() {
    let project = Project::with_plan(PLAN);
    let Some(output) = on_terminal(&project, 100, "NO_COLOR=1") else { return };
    let output = output.exits(0);
    let coloured = output.stdout.split('\u{1b}').skip(1).any(|sequence| {
        let body = sequence.strip_prefix('[').unwrap_or_default();
        let digits: String = body.chars().take_while(|c| c.is_ascii_digit() || *c == ';').collect();
        let ends = body[digits.len()..].starts_with('m');
        ends && digits.split(';').any(|d| matches!(d.parse(), Ok(30..=38 | 40..=48 | 90..=107)))
    });
    assert!(!coloured, "{:?}", output.stdout);
}
