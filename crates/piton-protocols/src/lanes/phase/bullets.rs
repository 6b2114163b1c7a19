//! Tasks as list items below the heading of their lane: `- test: …`, `- impl: …`, `- verify: …`.
//!
//! An item may go on over several lines. It needs no id: lane, type and number make one, so that the
//! ids of other tasks stay when one is edited. Items without a known type are tasks only below
//! `Tasks:`, because a section has lists of other things too.

use super::commands::{self, Asked};
use super::draft::Draft;
use super::index::lane_heading;
use super::items::{self, Item};
use super::model::{Lane, Task, TaskKind};
use super::names::LaneNames;
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{bullet, code_spans, plain, split_outside, without_brackets};
use piton_formats::markdown::table::column;
use piton_formats::markdown::{Document, Line};
use piton_formats::sink::Sink;

/// Reads the tasks of all lanes that have no table of tasks; where there is one, items add evidence.
pub(super) fn read(
    document: &Document<'_>,
    lanes: &mut [Draft],
    names: &LaneNames,
    sink: &mut Sink<'_>,
) {
    let mut found: Vec<(String, Vec<Item>)> = Vec::new();
    for (lane, lines) in sections(document, names) {
        let items = items::read(document, lines, sink);
        match found.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, known)) => known.extend(items),
            None => found.push((lane, items)),
        }
    }
    for (id, items) in found {
        let Some(draft) = lanes.iter_mut().find(|draft| draft.lane.id == id) else { continue };
        let is_tabled = !draft.lane.tasks.is_empty();
        for item in items {
            if is_tabled && item.kind() != TaskKind::Verify {
                report_beside_table(item.kind(), &item.word, item.line, sink);
                continue;
            }
            let task = task(item, &draft.lane, sink);
            if is_tabled && !task.is_evidence {
                report_beside_table(task.kind, &task.kind_word, task.line, sink);
                continue;
            }
            draft.lane.tasks.push(task);
        }
    }
}

/// Reports a typed item of a lane whose tasks are the rows of a table.
fn report_beside_table(kind: TaskKind, word: &str, line: usize, sink: &mut Sink<'_>) {
    if kind == TaskKind::Unknown {
        return;
    }
    let (span, word) = (sink.line_span(line), quoted(word));
    let message = format!("the lane has a table of tasks, so this {word} is not one");
    let hint = "add it to the table; a `verify:` that is only commands is read without that";
    sink.warn(code::BAD_VALUE, &span, message, hint);
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

/// One item as a task.
fn task(mut item: Item, lane: &Lane, sink: &mut Sink<'_>) -> Task {
    let parts = parts(&item.text);
    let own = Own::read(&parts);
    if let Some(word) = own.word.filter(|_| item.kind() == TaskKind::Unknown) {
        item.word = word;
    }
    let kind = item.kind();
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
    let mut asked = Asked::default();
    let has_tests = !item.tests.is_empty();
    if kind == TaskKind::Verify && !(item.text.is_empty() && has_tests) {
        asked = if own.asked.commands.is_empty() { verified(&parts) } else { own.asked };
    } else if kind != TaskKind::Verify {
        asked.commands = own.asked.commands;
    }
    asked.commands.extend(item.tests.commands.into_iter().map(|test| test.command));
    let is_proven = kind == TaskKind::Verify && !asked.commands.is_empty();
    let is_evidence = item.is_section || (is_proven && asked.prose.is_none());
    let mut text = item.text;
    if kind != TaskKind::Verify && !item.group.is_empty() {
        text.insert(0, item.group);
    }
    Task {
        id: item.id.unwrap_or(made),
        kind,
        kind_word: word.to_owned(),
        depends_on: Vec::new(),
        files: owned_files(lane),
        tests_owned: Vec::new(),
        is_evidence,
        test_commands: asked.commands,
        checks: asked.prose.into_iter().chain(item.tests.checks).collect(),
        text: text.join("\n"),
        acceptance: String::new(),
        extra: Vec::new(),
        missing: Vec::new(),
        line: item.line,
    }
}

/// The lines of an item, divided where a deeper item begins.
fn parts(lines: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match (bullet(line).filter(|_| at > 0), found.last_mut()) {
            (Some(item), _) => found.push(item.to_owned()),
            (None, Some(last)) => *last = format!("{last}\n{line}"),
            (None, None) => found.push(line.clone()),
        }
    }
    found
}

/// What the deeper items, or the cells, of a task say about it.
#[derive(Default)]
struct Own {
    word: Option<String>,
    asked: Asked,
}

impl Own {
    fn read(parts: &[String]) -> Self {
        let mut own = Self::default();
        for part in parts {
            for (at, line) in part.lines().enumerate() {
                let Some((key, value)) = line.split_once(':') else { continue };
                // The value of a deeper item may go on over its lines.
                let value = if at == 0 { &part[key.len() + 1..] } else { value };
                own.take(key, value.trim_start_matches('*').trim());
            }
        }
        let cells = parts.first().map(|first| split_outside(first, b"|")).unwrap_or_default();
        for cell in cells.iter().skip(1).filter(|cell| cell.starts_with('`')) {
            let asked = commands::read(cell);
            own.asked.commands.extend(asked.commands.into_iter().filter(|_| asked.prose.is_none()));
        }
        own
    }

    fn take(&mut self, key: &str, value: &str) {
        match column(key.trim_start_matches('*')).as_str() {
            "type" | "task type" | "kind" => self.word = Some(plain(value).to_lowercase()),
            "test commands" | "test command" | "commands" | "command" => {
                self.asked.commands.extend(commands::read(value).commands);
            }
            _ => {}
        }
    }
}

/// What an item that verifies asks for, each of its deeper items by itself.
fn verified(parts: &[String]) -> Asked {
    let [first, deeper @ ..] = parts else { return commands::read("") };
    if deeper.is_empty() {
        return commands::read(first);
    }
    let mut all = Asked::default();
    let mut prose: Vec<String> = Vec::new();
    // `Run these:` only begins the list.
    let from = usize::from(first.trim_end().ends_with(':'));
    for asked in parts[from..].iter().map(|part| commands::read(part)) {
        all.commands.extend(asked.commands);
        prose.extend(asked.prose);
    }
    all.prose = (!prose.is_empty()).then(|| prose.join("\n"));
    all
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
