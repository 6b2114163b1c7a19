//! Tasks as list items below the heading of their lane: `- test: …`, `- impl: …`, `- verify: …`.
//!
//! An item may go on over several lines. It needs no id: lane, type and number make one, so that the
//! ids of other tasks stay when one is edited. Items without a known type are tasks only below
//! `Tasks:`, because a section has lists of other things too.

use super::commands::{self, Asked};
use super::draft::{Draft, Key, attribute};
use super::index::lane_heading;
use super::model::{Lane, Task, TaskKind};
use super::names::{LaneNames, undecorated};
use super::test_plan;
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{
    bullet, checkbox, code_spans, plain, split_outside, without_brackets,
};
use piton_formats::markdown::{Document, Line, Place};
use piton_formats::sink::Sink;

/// Longest word for a type of task that is not known; a longer one before a colon is something else.
const WORD_BYTES_MAX: usize = 20;

/// Reads the tasks of all lanes that have no table of tasks.
pub(super) fn read(
    document: &Document<'_>,
    lanes: &mut [Draft],
    names: &LaneNames,
    sink: &mut Sink<'_>,
) {
    let mut found: Vec<(String, Vec<Item>)> = Vec::new();
    for (lane, lines) in sections(document, names) {
        let items = items(document, lines);
        match found.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, known)) => known.extend(items),
            None => found.push((lane, items)),
        }
    }
    for (id, items) in found {
        let lane = lanes.iter_mut().find(|draft| draft.lane.id == id);
        let Some(lane) = lane.filter(|draft| draft.lane.tasks.is_empty()) else { continue };
        for item in items {
            let task = task(item, &lane.lane, sink);
            lane.lane.tasks.push(task);
        }
    }
}

/// The sections of lanes: each with the lines up to the next heading of its level.
fn sections<'d, 'a>(
    document: &'d Document<'a>,
    names: &LaneNames,
) -> Vec<(String, &'d [Line<'a>])> {
    let lines = &document.lines;
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((level, title)) = line.heading() else { continue };
        let named = lane_heading(title).and_then(|(id, _)| names.find(&id).map(str::to_owned));
        let Some(lane) = named else { continue };
        let ends = |line: &Line<'_>| {
            line.heading().is_some_and(|(l, t)| {
                let other = lane_heading(t).is_some_and(|(id, _)| names.find(&id).is_some());
                l <= level || other
            })
        };
        let rest = &lines[at + 1..];
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        found.push((lane, &rest[..length]));
    }
    found
}

/// An item of a list that is a task.
struct Item {
    line: usize,
    indent: usize,
    /// Its id, if the document gives one.
    id: Option<String>,
    /// Its type as written; empty if there is none.
    word: String,
    /// Its lines.
    text: Vec<String>,
    /// Commands of fences within it.
    fenced: Vec<String>,
}

/// Where a reader of a section is.
#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    /// Whether the lines belong to the last item.
    open: bool,
    /// Whether the last line was empty.
    gap: bool,
    /// The list below `Tasks:`.
    label: Option<Label>,
}

#[derive(Clone, Copy)]
struct Label {
    indent: usize,
    /// Whether the label is an item of a list itself.
    marked: bool,
}

fn items(document: &Document<'_>, lines: &[Line<'_>]) -> Vec<Item> {
    let mut reader = Reader::default();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        match line.place {
            Place::Text => reader.line(line),
            Place::Fence(block) => {
                let same = |line: &&Line<'_>| line.place == Place::Fence(block);
                let length = lines[at - 1..].iter().take_while(same).count();
                reader.fence(document.language(block), &lines[at - 1..at - 1 + length]);
                at += length - 1;
            }
            Place::FenceMark | Place::Aside => {}
        }
    }
    reader.items
}

impl Reader {
    fn line(&mut self, line: &Line<'_>) {
        if let Some((_, title)) = line.heading() {
            let is_label = matches!(attribute(&format!("{title}:")), Some((Key::Tasks, _)));
            self.label = is_label.then_some(Label { indent: 0, marked: false });
            self.open = false;
            return;
        }
        let text = line.text.trim();
        if text.is_empty() {
            self.gap = true;
            return;
        }
        let gap = std::mem::take(&mut self.gap);
        let marked = bullet(line.text);
        if self.continues(line, marked.is_some(), gap) {
            self.add(text);
            return;
        }
        let item = marked.unwrap_or(text);
        let item = undecorated(checkbox(item).map_or(item, |boxed| boxed.rest));
        if let Some((Key::Tasks, _)) = attribute(&with_colon(item)) {
            self.label = Some(Label { indent: line.indent(), marked: marked.is_some() });
            self.open = false;
            return;
        }
        self.begin(line, item, marked.is_some());
    }

    /// Whether a line belongs to the last item: it is deeper, or goes on where that one broke off.
    fn continues(&self, line: &Line<'_>, marked: bool, gap: bool) -> bool {
        let Some(last) = self.items.last().filter(|_| self.open) else { return false };
        let deeper = line.indent() > last.indent;
        let lazy = !marked && !gap && !line.text.trim_start().starts_with('|');
        let other = !deeper && attribute(line.text.trim()).is_some();
        deeper || (lazy && !other)
    }

    fn add(&mut self, text: &str) {
        if let Some(last) = self.items.last_mut() {
            last.text.push(text.to_owned());
        }
    }

    /// A line that is no part of an item: a new one, or the end of the list.
    fn begin(&mut self, line: &Line<'_>, item: &str, marked: bool) {
        let indent = line.indent();
        let outside = |label: &Label| label.marked && indent <= label.indent;
        let known = !matches!(attribute(item), None | Some((Key::Other, _)));
        if known || self.label.as_ref().is_some_and(outside) {
            self.label = None;
        }
        let listed = self.label.is_some() && marked;
        let found = typed(item)
            .filter(|found| found.kind() != TaskKind::Unknown && (marked || self.label.is_some()));
        let found = found.or_else(|| if listed { typed(item) } else { None });
        let found =
            found.or_else(|| listed.then(|| Typed { id: None, word: String::new(), text: item }));
        self.open = found.is_some();
        let Some(Typed { id, word, text }) = found else {
            // A paragraph ends the list.
            self.label = self.label.filter(|label| marked || indent > label.indent);
            return;
        };
        let text = Vec::from_iter(Some(text.to_owned()).filter(|text| !text.is_empty()));
        let fenced = Vec::new();
        self.items.push(Item { line: line.number, indent, id, word, text, fenced });
    }

    fn fence(&mut self, language: &str, lines: &[Line<'_>]) {
        let Some(last) = self.items.last_mut().filter(|_| self.open) else { return };
        let verifies = TaskKind::read(&last.word) == TaskKind::Verify;
        if verifies && test_plan::is_shell(language) {
            let tests = test_plan::script(lines, language);
            last.fenced.extend(tests.into_iter().map(|test| test.command));
        } else {
            last.text.extend(lines.iter().map(|line| line.text.to_owned()));
        }
    }
}

/// A label may end without a colon: `**Tasks**`.
fn with_colon(item: &str) -> String {
    let bare = item.trim_end();
    if bare.ends_with(':') || bare.contains(": ") || bare.contains(":**") {
        return bare.to_owned();
    }
    format!("{bare}:")
}

/// An item with the type before its text.
struct Typed<'t> {
    id: Option<String>,
    word: String,
    text: &'t str,
}

impl Typed<'_> {
    fn kind(&self) -> TaskKind {
        TaskKind::read(&self.word)
    }
}

/// Reads `type: text`, `**type** — text`, `[type] text` and the same with an id before.
fn typed(item: &str) -> Option<Typed<'_>> {
    let (first, rest) = word(item)?;
    if let Some(text) = after_type(item, first, rest) {
        let is_word =
            first.len() <= WORD_BYTES_MAX && first.chars().all(|c| c.is_alphabetic() || c == '-');
        let known = TaskKind::read(first) != TaskKind::Unknown;
        if known || (is_word && text.1) {
            return Some(Typed { id: None, word: first.to_lowercase(), text: text.0 });
        }
    }
    // An id has a digit; a type stands behind it.
    let is_id = first.contains(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start_matches([' ', ':', '-', '—', '–', '|', '.', '*', '_', '`']);
    let (second, behind) = word(rest).filter(|_| is_id)?;
    let (text, _) = after_type(rest, second, behind)?;
    let known = TaskKind::read(second) != TaskKind::Unknown;
    let id = Some(first.trim_end_matches(['.', '-', '_']).to_owned());
    known.then(|| Typed { id, word: second.to_lowercase(), text })
}

/// The first word of a text, behind marks, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let from = text.trim_start_matches(['*', '_', '`', '[', '(', ' ']);
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '/');
    let end = from.find(|c: char| !allowed(c)).unwrap_or(from.len());
    (end > 0).then(|| from.split_at(end))
}

/// What follows a type, and whether a colon does; `None` if the word is the first of a sentence.
fn after_type<'t>(item: &str, word: &str, rest: &'t str) -> Option<(&'t str, bool)> {
    let is_marked = !item.starts_with(word);
    let closed = rest.trim_start_matches(['*', '_', '`', ']', ')']);
    let mut text = closed.trim_start();
    // `verify (read-only): …`
    if text.starts_with('(')
        && let Some(end) = text.find(')')
        && text[end + 1..].trim_start_matches(['*', '_']).starts_with(':')
    {
        text = &text[end + 1..];
    }
    text = text.trim_start_matches(['*', '_']);
    if let Some(text) = text.strip_prefix(':') {
        return Some((text.trim_start_matches(['*', '_']).trim_start(), true));
    }
    for mark in ["—", "–", "-- ", "- "] {
        if let Some(text) = text.strip_prefix(mark) {
            return Some((text.trim_start(), false));
        }
    }
    let is_closed = is_marked && closed.len() < rest.len();
    (is_closed || text.is_empty()).then_some((text, false))
}

/// One item as a task.
fn task(item: Item, lane: &Lane, sink: &mut Sink<'_>) -> Task {
    let kind = TaskKind::read(&item.word);
    if kind == TaskKind::Unknown {
        let span = sink.line_span(item.line);
        let message = match item.word.as_str() {
            "" => "this task has no type".to_owned(),
            word => format!("{} is not a known type of task", quoted(word)),
        };
        let hint = "begin it with `test:`, `impl:`, `docs:` or `verify:`; it runs before `verify`";
        sink.warn(code::BAD_VALUE, &span, message, hint);
    }
    let word = match (kind, item.word.as_str()) {
        (TaskKind::Unknown, "") => "task",
        (TaskKind::Unknown, word) => word,
        (kind, _) => kind.word(),
    };
    let number = 1 + lane.tasks.iter().filter(|task| task.kind_word == word).count();
    let made = format!("{}.{word}.{number}", lane.id);
    let text = item.text.join("\n");
    let mut asked = match kind {
        TaskKind::Verify if !text.is_empty() || item.fenced.is_empty() => commands::read(&text),
        _ => Asked::default(),
    };
    asked.commands.extend(item.fenced);
    Task {
        id: item.id.unwrap_or(made),
        kind,
        kind_word: word.to_owned(),
        depends_on: Vec::new(),
        files: owned_files(lane),
        tests_owned: Vec::new(),
        is_evidence: !asked.commands.is_empty() && asked.prose.is_none(),
        test_commands: asked.commands,
        checks: asked.prose.into_iter().collect(),
        text,
        acceptance: String::new(),
        extra: Vec::new(),
        missing: Vec::new(),
        line: item.line,
    }
}

/// The files that a lane owns; none if not all of them have a path.
fn owned_files(lane: &Lane) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in &lane.about.owned {
        let entry = without_brackets(entry);
        // What follows a dash is about the files.
        let head = [" — ", " – ", " -- "].iter().fold(entry.as_str(), |text, mark| {
            text.split_once(mark).map_or(text, |(head, _)| head)
        });
        let spans = code_spans(head);
        let names: Vec<String> = if spans.is_empty() {
            split_outside(head, b",;").into_iter().map(plain).collect()
        } else {
            spans.into_iter().map(|span| head[span].trim().to_owned()).collect()
        };
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if name.contains(char::is_whitespace) {
                return Vec::new();
            }
            if !found.contains(&name) {
                found.push(name.trim_end_matches('.').to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_many_marks() {
        for (item, id, word, text) in [
            ("test: Add X", None, "test", "Add X"),
            ("**test**: Add X", None, "test", "Add X"),
            ("**Test:** Add X", None, "test", "Add X"),
            ("`impl` — Add X", None, "impl", "Add X"),
            ("[verify] `make`", None, "verify", "`make`"),
            ("verify (read-only): `make`", None, "verify", "`make`"),
            ("docs - Add X", None, "docs", "Add X"),
            ("tooling: Add X", None, "tooling", "Add X"),
            ("SL-1.2 (impl): Add X", Some("SL-1.2"), "impl", "Add X"),
            ("**T1 test**: Add X", Some("T1"), "test", "Add X"),
            ("T1 [test] Add X", Some("T1"), "test", "Add X"),
            ("T1: impl: Add X", Some("T1"), "impl", "Add X"),
        ] {
            let found = typed(item).map(|t| (t.id, t.word, t.text.to_owned()));
            let wanted = (id.map(str::to_owned), word.to_owned(), text.to_owned());
            assert_eq!(found, Some(wanted), "{item}");
        }
        for item in ["test the parser", "Tests for X pass", "impl", "`test_x` is renamed: y"] {
            let known =
                typed(item).is_some_and(|t| t.kind() != TaskKind::Unknown && !t.text.is_empty());
            assert!(!known, "{item}");
        }
    }
}
