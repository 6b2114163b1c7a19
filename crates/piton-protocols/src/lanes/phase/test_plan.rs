//! The test execution plan: what runs after all merges, from fences, list items and tables.
//!
//! Commands come from fences, from items that are a code span (a label may precede it), and from
//! columns of commands. Items of prose are for a person; commands that they mention are not run.

use super::commands::{self, Asked};
use super::fences;
use super::model::PlannedTest;
use super::names::is_plain_lane_id;
use piton_formats::markdown::inline::{bullet, checkbox, title};
use piton_formats::markdown::table::tables;
use piton_formats::markdown::{Document, Line, Place};
use piton_formats::sink::Sink;

/// What is to be tested after all merges.
#[derive(Debug, Default)]
pub(super) struct Tests {
    /// The commands, in the order of the document, each once.
    pub(super) commands: Vec<PlannedTest>,
    /// What people must look at.
    pub(super) checks: Vec<String>,
}

impl Tests {
    /// What the lines of a section ask for, in their order, each command once.
    pub(super) fn of(document: &Document<'_>, lines: &[Line<'_>], sink: &mut Sink<'_>) -> Self {
        let Self { commands: mut found, mut checks } = fences::read(document, lines, sink);
        for (line, asked) in items(lines).into_iter().chain(cells(lines)) {
            found.extend(asked.commands.into_iter().map(|command| PlannedTest::new(command, line)));
            checks.extend(asked.prose);
        }
        found.sort_by_key(|test| test.line);
        let mut tests = Self { commands: Vec::new(), checks };
        tests.add(found);
        tests
    }

    /// Whether nothing is asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.checks.is_empty()
    }

    fn add(&mut self, tests: Vec<PlannedTest>) {
        for test in tests {
            if !self.commands.iter().any(|known| known.command == test.command) {
                self.commands.push(test);
            }
        }
    }
}

/// Other titles of such tests.
const TITLES: [&str; 11] = [
    "phase verification",
    "final verification",
    "phase-level verification",
    "lane verification",
    "cross-lane verification",
    "validation",
    "validation plan",
    "validation commands",
    "phase validation",
    "final validation",
    "cross-lane validation",
];

/// Tells whether a heading is one of such tests, and not of what came of them.
pub(super) fn is_plan(title: &str) -> bool {
    let tells = ["results", "log", "history", "summary", "notes"];
    let is_past = tells.iter().any(|word| title.split_whitespace().any(|w| w == *word));
    let named = title.contains("test execution plan")
        || title.starts_with("verification")
        || TITLES.contains(&title);
    named && !is_past
}

/// Reads all sections with such tests, those of lanes apart.
pub(super) fn read(document: &Document<'_>, sink: &mut Sink<'_>) -> Tests {
    let mut all = Tests::default();
    for section in sections(document) {
        let tests = Tests::of(document, section, sink);
        all.add(tests.commands);
        all.checks.extend(tests.checks);
    }
    all
}

/// What columns of commands ask for.
fn cells(lines: &[Line<'_>]) -> Vec<(usize, Asked)> {
    let mut found = Vec::new();
    for table in tables(lines) {
        let columns = table.columns();
        let is_commands = |c: &String| c.contains("command") || c == "run";
        let Some(at) = columns.iter().position(is_commands) else { continue };
        for row in &table.rows {
            let cell = row.cells.get(at).map_or("", String::as_str);
            found.push((lines[row.index].number, commands::read_cell(cell)));
        }
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read_plan(body: &str) -> Vec<String> {
        let text = format!("# P1: T\n## H. Test Execution Plan\n{body}\n## Next\n`no`\n");
        let tests = read(&Document::new(&text), &mut Sink::new("", &text));
        tests.commands.into_iter().map(|test| test.command).collect()
    }

    /// Lost: what somebody wrote about earlier tests would be run.
    #[test]
    fn a_section_of_tests_is_known_by_its_title() {
        for title in ["verification", "h. test execution plan", "validation", "verification plan"] {
            assert!(is_plan(title), "{title}");
        }
        for title in ["verification results", "verification log", "validation of input", "tests"] {
            assert!(!is_plan(title), "{title}");
        }
    }

    #[test]
    fn items_tables_and_labels_give_commands_and_prose_gives_none() {
        let body = "- `make a`\n1. **Full**: `make b` (slow)\n- Run `no` first\n- `no` is the tool\n\
                    - `make c`, `make d`\n- `make a`\n\n| Lane | Test Command |\n|---|---|\n| SL-1 | `e \\| f` |";
        assert_eq!(read_plan(body), ["make a", "make b", "make c", "make d", "e | f"]);
    }
}
