//! The test execution plan: what runs after all merges, from fences, list items and tables.
//!
//! Commands come from shell fences, from items that are a code span (a label may precede it), and from
//! columns of commands. Items of prose are for a person; commands that they mention are not run.

use super::commands::{self, Asked};
use super::model::PlannedTest;
use super::names::is_plain_lane_id;
use piton_formats::markdown::inline::{bullet, checkbox, title};
use piton_formats::markdown::table::tables;
use piton_formats::markdown::{Document, Line, Place};

/// Languages of fences with commands.
const SHELLS: [&str; 7] = ["", "bash", "sh", "shell", "zsh", "console", "shell-session"];
/// Commands that affect the lines after them.
const LASTING: [&str; 8] = ["cd", "pushd", "export", "unset", "source", ".", "set", "alias"];
/// Words that begin a construct over several lines.
const OPENERS: [&str; 6] = ["for", "while", "until", "if", "case", "function"];

/// What only bash understands.
const BASH_ONLY: [&str; 6] = ["pipefail", "[[", "<(", "<<<", "shopt", "mapfile"];

/// What is to be tested after all merges.
#[derive(Debug, Default)]
pub(super) struct Tests {
    /// The commands, in the order of the document, each once.
    pub(super) commands: Vec<PlannedTest>,
    /// What people must look at.
    pub(super) checks: Vec<String>,
}

/// Tells whether a heading is one of such tests.
fn is_plan(title: &str) -> bool {
    title.contains("test execution plan")
        || title.starts_with("verification")
        || matches!(title, "phase verification" | "final verification" | "phase-level verification")
}

/// Reads all sections with such tests, those of lanes apart.
pub(super) fn read(document: &Document<'_>) -> Tests {
    let mut found: Vec<PlannedTest> = Vec::new();
    let mut checks = Vec::new();
    for section in sections(document) {
        found.extend(fenced(document, section));
        for (line, asked) in items(section) {
            found.extend(asked.commands.into_iter().map(|command| PlannedTest::new(command, line)));
            checks.extend(asked.prose);
        }
        for table in tables(section) {
            let columns = table.columns();
            let is_commands = |c: &String| c.contains("command") || c == "run";
            let Some(at) = columns.iter().position(is_commands) else { continue };
            for row in &table.rows {
                let line = section[row.index].number;
                let cell = row.cells.get(at).map_or("", String::as_str);
                let asked = commands::read_cell(cell);
                let tests = asked.commands.into_iter();
                found.extend(tests.map(|command| PlannedTest::new(command, line)));
                checks.extend(asked.prose);
            }
        }
    }
    found.sort_by_key(|test| test.line);
    let mut kept: Vec<PlannedTest> = Vec::new();
    for test in found {
        if !kept.iter().any(|known| known.command == test.command) {
            kept.push(test);
        }
    }
    Tests { commands: kept, checks }
}

/// The lines below the headings of such tests; a heading within the section of a lane is the lane's.
fn sections<'d, 'a>(document: &'d Document<'a>) -> Vec<&'d [Line<'a>]> {
    let lines = &document.lines;
    let mut found = Vec::new();
    let mut lane: Option<usize> = None;
    let mut at = 0;
    while at < lines.len() {
        let Some((level, text)) = lines[at].heading() else {
            at += 1;
            continue;
        };
        at += 1;
        lane = lane.filter(|above| level > *above);
        if super::index::lane_heading(text).is_some_and(|(id, _)| is_plain_lane_id(&id)) {
            lane = Some(level);
        }
        if lane.is_none() && is_plan(&title(text)) {
            let rest = &lines[at..];
            let ends = |line: &Line<'_>| line.heading().is_some_and(|(l, _)| l <= level);
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            found.push(&rest[..length]);
            at += length;
        }
    }
    found
}

/// The criteria below the document's own heading of acceptance, as written.
pub(super) fn acceptance(document: &Document<'_>) -> Vec<String> {
    let is_own = |title: &str| title.starts_with("acceptance criteria");
    let sections = document.sections(is_own);
    let all = sections.iter().flat_map(|section| paragraphs(section.lines));
    all.map(|(_, text)| text).collect()
}

/// The items of a list, each with all its lines and the number of its first; other lines are left out.
fn paragraphs(lines: &[Line<'_>]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    let mut open = false;
    for line in lines {
        let text = line.text.trim();
        if line.place != Place::Text || text.is_empty() || line.heading().is_some() {
            open = false;
            continue;
        }
        if let Some(item) = bullet(line.text) {
            let item = checkbox(item).map_or(item, |boxed| boxed.rest);
            found.push((line.number, line.indent(), item.to_owned()));
            open = true;
        } else if let Some(last) = found.last_mut().filter(|last| open && line.indent() > last.1) {
            last.2 = format!("{}\n{text}", last.2);
        } else {
            open = false;
        }
    }
    found.into_iter().map(|(number, _, text)| (number, text)).collect()
}

/// What the items and lines of a section ask for; a paragraph is asked for only if it is a command.
fn items(lines: &[Line<'_>]) -> Vec<(usize, Asked)> {
    let is_item = |line: &Line<'_>| bullet(line.text).is_some();
    let alone = lines.iter().filter(|line| {
        let text = line.text.trim();
        line.place == Place::Text
            && line.heading().is_none()
            && !is_item(line)
            && text.starts_with('`')
    });
    let alone = alone.map(|line| (line.number, Asked { prose: None, ..commands::read(line.text) }));
    let listed = paragraphs(lines).into_iter().map(|(line, text)| (line, commands::read(&text)));
    alone.chain(listed).collect()
}

/// Tells whether a fence of this language holds commands.
pub(super) fn is_shell(language: &str) -> bool {
    SHELLS.contains(&language)
}

/// The commands of the shell fences.
fn fenced(document: &Document<'_>, lines: &[Line<'_>]) -> Vec<PlannedTest> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Place::Fence(block) = lines[at].place else {
            at += 1;
            continue;
        };
        let length = lines[at..].iter().take_while(|l| l.place == Place::Fence(block)).count();
        let language = document.language(block);
        if is_shell(language) {
            let mut tests = script(&lines[at..at + length], language);
            for test in &mut tests {
                test.is_bash = language == "bash" && needs_bash(&test.command);
            }
            // Without a language it may be anything: only commands are taken.
            let named = !language.is_empty();
            if named || tests.iter().all(|test| commands::has_form(&test.command)) {
                found.extend(tests);
            }
        }
        at += length;
    }
    found
}

/// One command per line, unless lines belong together: then the fence is one command.
pub(super) fn script(lines: &[Line<'_>], language: &str) -> Vec<PlannedTest> {
    let prompts = lines.iter().any(|line| line.text.trim_start().starts_with("$ "));
    let transcript = language == "console" || language == "shell-session" || prompts;
    let wanted: Vec<(usize, &str)> = lines
        .iter()
        .filter_map(|line| {
            let text = line.text.trim();
            // In a transcript only what follows a prompt is a command; the rest is its output.
            let text = if transcript { text.strip_prefix("$ ")? } else { text };
            let is_command = !text.is_empty() && !text.starts_with('#');
            is_command.then_some((line.number, text))
        })
        .collect();
    let Some(&(first, _)) = wanted.first() else { return Vec::new() };
    if !transcript && wanted.iter().any(|(_, text)| spans_lines(text) || lasts(text)) {
        let all: Vec<&str> = lines.iter().map(|line| line.text).collect();
        // Each of its commands must succeed, as each line of other fences must.
        let command = format!("set -e\n{}", all.join("\n").trim());
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

/// Tells whether a line begins something that ends on another line.
fn spans_lines(text: &str) -> bool {
    let first = text.split([' ', ';']).next().unwrap_or_default();
    let closed = ["done", "fi", "esac", "}"].iter().any(|end| text.ends_with(end));
    let odd = |quote: char| text.matches(quote).count() % 2 == 1;
    (OPENERS.contains(&first) && !closed)
        || text.contains("<<")
        || text.ends_with('{')
        || text.ends_with('(')
        // A quote that stays open, apostrophes in words of the other kind of quotes aside.
        || (odd('"') && !text.contains('\''))
        || (odd('\'') && !text.contains('"'))
}

/// Tells whether a line affects those after it: it changes the folder or sets a variable.
fn lasts(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let assigns = first.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    let alone = !text.contains("&&") && !text.contains("||") && !text.contains(';');
    alone && (LASTING.contains(&first) || (assigns && first == text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_plan(body: &str) -> Vec<String> {
        let text = format!("# P1: T\n## H. Test Execution Plan\n{body}\n## Next\n`no`\n");
        read(&Document::new(&text)).commands.into_iter().map(|test| test.command).collect()
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
            let text = format!("# P1: T\n## Verification\n{body}\n");
            read(&Document::new(&text)).commands.iter().map(|test| test.is_bash).collect()
        };
        assert_eq!(of("```bash\nmake a\n[[ -e a ]]\n```"), [false, true]);
        assert_eq!(of("```bash\nset -euo pipefail\nmake a\n```"), [true]);
        assert_eq!(of("```sh\nset -eu\nmake a\n```"), [false]);
    }

    #[test]
    fn a_transcript_gives_what_follows_its_prompts() {
        assert_eq!(
            read_plan("```console\n$ make\nall is well\n$ make test\n```"),
            ["make", "make test"]
        );
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

    #[test]
    fn items_tables_and_labels_give_commands_and_prose_gives_none() {
        let body = "- `make a`\n1. **Full**: `make b` (slow)\n- Run `no` first\n- `no` is the tool\n\
                    - `make c`, `make d`\n- `make a`\n\n| Lane | Test Command |\n|---|---|\n| SL-1 | `e \\| f` |";
        assert_eq!(read_plan(body), ["make a", "make b", "make c", "make d", "e | f"]);
    }
}
