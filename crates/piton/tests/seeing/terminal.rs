//! On a terminal: a narrow one, one without colour. `script` makes the terminal.

use super::PLAN;
use super::common::{Output, PITON, Project, wait_until};

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
    let frames = frames(&output.stdout);
    assert!(frames.len() > 1, "no live picture: {:?}", output.stdout);
    for frame in frames {
        assert!(width(frame) <= COLUMNS, "too wide: {frame:?}");
    }
    assert!(text_of(&output.stdout).contains("complete"), "{:?}", output.stdout);
}

/// The frames of a live picture: each is drawn at once, between two marks.
fn frames(output: &str) -> Vec<&str> {
    let rest = output.split("\u{1b}[?2026h").skip(1);
    rest.filter_map(|rest| Some(rest.split_once("\u{1b}[?2026l")?.0)).collect()
}

/// The width of the widest line of a frame.
fn width(frame: &str) -> usize {
    frame.split("\r\n").map(|line| text_of(line).chars().count()).max().unwrap_or_default()
}

/// Lost: a window made smaller while a run is watched would show a heap of broken lines.
#[test]
fn a_terminal_resized_while_it_is_watched_is_drawn_to_its_new_width() {
    let words = "words and ".repeat(12);
    let step = format!("while [ ! -e go ]; do echo {words}; sleep 0.02; done");
    let project = Project::with_plan(&PLAN.replace("echo from B", &step));
    if project.sh("command -v script").code != 0 {
        return;
    }
    let line = format!("stty cols 120 rows 24; tty > tty.txt; '{PITON}' run plan.toml --run-id r");
    let mut command = project.command("script");
    command.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm-256color");
    let program = project.start(&mut command);
    wait_until("a wide frame", || frames(&program.stdout()).iter().any(|f| width(f) > 60));
    project.sh("stty -F \"$(cat tty.txt)\" cols 40").exits(0);
    let is_narrow = |frame: &&str| width(frame) <= 40;
    wait_until("narrow frames", || frames(&program.stdout()).iter().rev().take(3).all(is_narrow));
    project.write("go", "");
    let output = program.wait().exits(0).stdout;
    let frames = frames(&output);
    let last_wide = frames.iter().rposition(|frame| !is_narrow(frame));
    let after = last_wide.map_or(0, |at| frames.len() - at - 1);
    assert!(after >= 3, "wide again after {after} narrow frames");
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
