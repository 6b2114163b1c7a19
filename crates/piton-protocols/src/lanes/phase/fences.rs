//! Fences with commands: one command for each line, or one script where lines depend on each other.
//!
//! A line that has something to be filled in is for a person. So is all of a script with such a line:
//! a shell would read `<run-id>` as the name of a file.

use super::commands;
use super::model::PlannedTest;
use super::shell_lines::{self, has_placeholder};
use super::test_plan::Tests;
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::{Document, Line, Place};
use piton_formats::sink::Sink;

/// Languages of fences with commands.
const SHELLS: [&str; 7] = ["", "bash", "sh", "shell", "zsh", "console", "shell-session"];
/// Languages of fences that show commands behind prompts, with what they print.
const TRANSCRIPTS: [&str; 2] = ["console", "shell-session"];
/// What only bash understands.
const BASH_ONLY: [&str; 6] = ["pipefail", "[[", "<(", "<<<", "shopt", "mapfile"];
/// What a prompt looks like.
const PROMPT: &str = "$ ";

/// The commands of the fences among some lines, and what of them is for a person.
pub(super) fn read(document: &Document<'_>, lines: &[Line<'_>], sink: &mut Sink<'_>) -> Tests {
    let mut all = Tests::default();
    let mut at = 0;
    while at < lines.len() {
        let Place::Fence(block) = lines[at].place else {
            at += 1;
            continue;
        };
        let length = lines[at..].iter().take_while(|l| l.place == Place::Fence(block)).count();
        let tests = fence(document.language(block), &lines[at..at + length], sink);
        all.commands.extend(tests.commands);
        all.checks.extend(tests.checks);
        at += length;
    }
    all
}

/// Tells whether a fence of this language holds commands.
pub(super) fn is_shell(language: &str) -> bool {
    SHELLS.contains(&language)
}

/// What one fence asks for.
pub(super) fn fence(language: &str, lines: &[Line<'_>], sink: &mut Sink<'_>) -> Tests {
    let mut tests = Tests::default();
    if !is_shell(language) {
        return tests;
    }
    let found = commands_of(lines, language);
    let formed =
        |test: &PlannedTest| commands::has_form(&test.command) || has_placeholder(&test.command);
    // Without a language it may be anything: only commands are taken.
    if language.is_empty() && !found.iter().all(formed) {
        if let Some(first) = found.iter().find(|test| commands::has_form(&test.command)) {
            let message =
                "this block has no language, and not all of it is commands, so nothing runs it";
            let hint = "write ```bash before it if it is a script";
            sink.warn(code::BAD_VALUE, &sink.line_span(first.line), message, hint);
        }
        return tests;
    }
    for mut test in found {
        if has_placeholder(&test.command) {
            let shown = quoted(test.command.trim_start_matches(SCRIPT_HEAD));
            let message = format!("{shown} has something to be filled in, so nothing runs it");
            let hint = "write what is meant; as it stands, it is listed for a person to check";
            sink.warn(code::BAD_VALUE, &sink.line_span(test.line), message, hint);
            tests.checks.push(test.command.trim_start_matches(SCRIPT_HEAD).to_owned());
            continue;
        }
        test.is_bash = language == "bash" && needs_bash(&test.command);
        tests.commands.push(test);
    }
    tests
}

/// What a script begins with: each of its commands must succeed, as each line of other fences must.
const SCRIPT_HEAD: &str = "set -e\n";

/// One command per line, unless lines belong together: then the fence is one command.
fn commands_of(lines: &[Line<'_>], language: &str) -> Vec<PlannedTest> {
    let prompts = lines.iter().any(|line| line.text.trim_start().starts_with(PROMPT));
    let transcript = TRANSCRIPTS.contains(&language) || prompts;
    let wanted: Vec<(usize, &str)> = lines
        .iter()
        .filter_map(|line| {
            let text = line.text.trim();
            // In a transcript only what follows a prompt is a command; the rest is its output.
            let text = if transcript { text.strip_prefix(PROMPT)? } else { text };
            let is_command = !text.is_empty() && !text.starts_with('#');
            is_command.then_some((line.number, text))
        })
        .collect();
    let Some(&(first, _)) = wanted.first() else { return Vec::new() };
    let texts: Vec<&str> = wanted.iter().map(|(_, text)| *text).collect();
    if shell_lines::are_one(&texts) {
        let all = if transcript { texts } else { lines.iter().map(|line| line.text).collect() };
        let command = format!("{SCRIPT_HEAD}{}", all.join("\n").trim());
        return vec![PlannedTest::new(command, first)];
    }
    let mut found: Vec<PlannedTest> = Vec::new();
    let mut open = false;
    for (line, text) in wanted {
        let (text, goes_on) = match text.strip_suffix('\\') {
            Some(text) => (text.trim_end(), true),
            None => (text, text.ends_with("&&") || text.ends_with("||") || text.ends_with('|')),
        };
        match found.last_mut().filter(|_| open) {
            Some(last) => last.command = format!("{} {text}", last.command),
            None => found.push(PlannedTest::new(text.to_owned(), line)),
        }
        open = goes_on;
    }
    found
}

/// Tells whether a command of a fence for bash may be more than other shells understand: a script, or a
/// line with words of bash alone.
fn needs_bash(command: &str) -> bool {
    command.contains('\n') || BASH_ONLY.iter().any(|word| command.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(body: &str) -> Tests {
        let text = format!("# P1: T\n## Verification\n{body}\n");
        let mut sink = Sink::new("", &text);
        let document = Document::new(&text);
        super::super::test_plan::read(&document, &mut sink)
    }

    fn read_plan(body: &str) -> Vec<String> {
        tests(body).commands.into_iter().map(|test| test.command).collect()
    }

    #[test]
    fn fences_hold_one_command_per_line() {
        let body =
            "```bash\n# all\nmake a\n\nmake b \\\n  --all\nx &&\ny\n```\n```yaml\nrun: no\n```";
        assert_eq!(read_plan(body), ["make a", "make b --all", "x && y"]);
    }

    /// Lost: a script that its author tried with bash would fail with the shell of the system.
    #[test]
    fn what_a_fence_for_bash_has_of_its_own_is_for_bash() {
        let of = |body: &str| -> Vec<bool> {
            tests(body).commands.iter().map(|test| test.is_bash).collect()
        };
        assert_eq!(of("```bash\nmake a\n[[ -e a ]]\n```"), [false, true]);
        assert_eq!(of("```bash\nset -euo pipefail\nmake a\n```"), [true]);
        assert_eq!(of("```sh\nset -eu\nmake a\n```"), [false]);
    }

    #[test]
    fn a_transcript_gives_what_follows_its_prompts() {
        let body = "```console\n$ make\nall is well\n$ make test\n```";
        assert_eq!(read_plan(body), ["make", "make test"]);
        let body = "```console\n$ serve &\nready\n$ curl x\n```";
        assert_eq!(read_plan(body), ["set -e\nserve &\ncurl x"]);
    }

    #[test]
    fn lines_that_belong_together_stay_together() {
        let body = "```sh\nfor f in a b; do\n  test $f\ndone\n```\n```sh\ncat <<EOF\n# x\nEOF\n```";
        assert_eq!(
            read_plan(body),
            ["set -e\nfor f in a b; do\n  test $f\ndone", "set -e\ncat <<EOF\n# x\nEOF"]
        );
        for first in ["cd web", "export A=b", "A=b", ". env/activate"] {
            let body = format!("```\n{first}\nmake\n```\n");
            assert_eq!(read_plan(&body), [format!("set -e\n{first}\nmake")]);
        }
        for first in ["cd web && make all", "A=b make all"] {
            assert_eq!(read_plan(&format!("```\n{first}\nmake\n```\n")), [first, "make"]);
        }
    }

    /// Lost: a shell would read the placeholder as a file, and write another.
    #[test]
    fn what_is_to_be_filled_in_is_for_a_person() {
        let found = tests("```bash\nmake\ngh run watch <run-id> --exit-status\n```");
        let commands: Vec<&str> = found.commands.iter().map(|t| t.command.as_str()).collect();
        assert_eq!(commands, ["make"]);
        assert_eq!(found.checks, ["gh run watch <run-id> --exit-status"]);
        let found = tests("```bash\nID=$(x)\nwatch $ID <name>\n```");
        assert_eq!(found.commands, []);
        assert_eq!(found.checks, ["ID=$(x)\nwatch $ID <name>"]);
        let found = tests("```\nmake\nmake <target>\n```");
        assert_eq!((found.commands.len(), found.checks.len()), (1, 1));
    }
}
