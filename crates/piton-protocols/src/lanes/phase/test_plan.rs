//! The test execution plan: what runs after all merges, from fences, list items and tables.
//!
//! Commands come from shell fences, from items that are a code span (a label may precede it), and from
//! columns of commands. Commands that prose mentions are ignored.

use super::model::PlannedTest;
use super::tasks::commands;
use piton_formats::markdown::inline::{bullet, code_spans, plain};
use piton_formats::markdown::table::tables;
use piton_formats::markdown::{Document, Line, Place};

/// Languages of fences with commands.
const SHELLS: [&str; 7] = ["", "bash", "sh", "shell", "zsh", "console", "shell-session"];
/// Commands that affect the lines after them.
const LASTING: [&str; 8] = ["cd", "pushd", "export", "unset", "source", ".", "set", "alias"];
/// Words that begin a construct over several lines.
const OPENERS: [&str; 6] = ["for", "while", "until", "if", "case", "function"];

/// The commands, in the order of the document, each once.
pub(super) fn read(document: &Document<'_>) -> Vec<PlannedTest> {
    let mut found: Vec<PlannedTest> = Vec::new();
    for section in document.sections(|title| title.contains("test execution plan")) {
        found.extend(fenced(document, section.lines));
        found.extend(section.lines.iter().flat_map(item));
        for table in tables(section.lines) {
            let columns = table.columns();
            let is_commands = |c: &String| c.contains("command") || c == "run";
            let Some(at) = columns.iter().position(is_commands) else { continue };
            for row in &table.rows {
                let line = section.lines[row.index].number;
                let cell = row.cells.get(at).map_or("", String::as_str);
                let tests = commands(cell).into_iter();
                found.extend(tests.map(|command| PlannedTest { command, line }));
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
    kept
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
        if SHELLS.contains(&document.language(block)) {
            found.extend(script(&lines[at..at + length], document.language(block)));
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
        return vec![PlannedTest { command, line: first }];
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
            None => found.push(PlannedTest { command: text.to_owned(), line }),
        }
        open = goes_on;
    }
    found
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

/// The commands of an item: a code span alone, or after a label such as `**Full**:`.
fn item(line: &Line<'_>) -> Vec<PlannedTest> {
    let mut found = Vec::new();
    if line.place != Place::Text || line.heading().is_some() || line.text.contains('|') {
        return found;
    }
    let item = bullet(line.text).unwrap_or(line.text.trim());
    let spans = code_spans(item);
    let mut from = 0;
    for (at, span) in spans.iter().enumerate() {
        let before = plain(item[from..span.start].trim_end_matches('`'));
        let before = before.trim_matches(|c: char| c.is_whitespace() || c == '`');
        let joined = match at {
            0 => before.is_empty() || before.ends_with([':', '—', '–', '-']),
            _ => matches!(before, "," | ";" | "and" | ", and" | "then" | ", then"),
        };
        // Words after a code span describe it; a command is followed by a mark or by nothing.
        let rest = item[span.end..].trim_start_matches('`').trim();
        let marks = ['(', '—', '–', '-', '#', '.', ':', ',', ';'];
        let listed = rest.starts_with("and `") || rest.starts_with("then `");
        if !joined || !(rest.is_empty() || listed || rest.starts_with(marks)) {
            break;
        }
        let command = item[span.clone()].trim().to_owned();
        if !command.is_empty() {
            found.push(PlannedTest { command, line: line.number });
        }
        from = span.end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_plan(body: &str) -> Vec<String> {
        let text = format!("# P1: T\n## H. Test Execution Plan\n{body}\n## Next\n`no`\n");
        read(&Document::new(&text)).into_iter().map(|test| test.command).collect()
    }

    #[test]
    fn fences_hold_one_command_per_line() {
        let body =
            "```bash\n# all\nmake a\n\nmake b \\\n  --all\nx &&\ny\n```\n```yaml\nrun: no\n```";
        assert_eq!(read_plan(body), ["make a", "make b --all", "x && y"]);
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
