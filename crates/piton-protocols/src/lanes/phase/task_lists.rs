//! Tasks that are written as lists rather than as tables: `Task ID: T1`, then its fields.
//!
//! A task begins with its id, as a line or as a heading (`#### Task T1`), and has its fields as
//! `Key: value` below it, with or without bullets and emphasis, or after semicolons. What a field
//! means is told where tables are read.

use std::collections::BTreeSet;

use super::names::id_at_start;
use super::tasks::{is_field, is_task};
use super::test_plan::script;
use piton_formats::markdown::inline::{bullet, checkbox, is_none, plain, split_outside};
use piton_formats::markdown::{Document, Line, Place};

/// Longest name of a field: what is longer is a sentence.
const NAME_CHARS_MAX: usize = 40;
/// Joins the values that stand below their key, as in a cell.
const BREAK: &str = "<br>";

/// A task as it is written.
#[derive(Debug)]
pub(super) struct Listed {
    /// Position of its first line.
    pub(super) index: usize,
    /// Names of its fields and their values.
    pub(super) fields: Vec<(String, String)>,
    /// Columns before its first line.
    indent: usize,
    /// Numbers of all its lines.
    lines: Vec<usize>,
    /// Whether the field read last goes on with the next lines.
    goes_on: bool,
}

/// All tasks of a document that are lists.
pub(super) fn read(document: &Document<'_>) -> Vec<Listed> {
    let mut reader = Reader::default();
    for lines in document.lines.chunk_by(|one, next| one.place == next.place) {
        match lines[0].place {
            Place::Text => lines.iter().for_each(|line| reader.text(line)),
            Place::Fence(block) => reader.code(lines, document.language(block)),
            Place::FenceMark | Place::Aside => {}
        }
    }
    reader.close();
    reader.found
}

/// The numbers of the lines that are about tasks, and not about the lane they stand below.
pub(super) fn lines(listed: &[Listed]) -> BTreeSet<usize> {
    listed.iter().flat_map(|task| &task.lines).copied().collect()
}

#[derive(Default)]
struct Reader {
    found: Vec<Listed>,
    open: Option<Listed>,
}

impl Reader {
    fn close(&mut self) {
        let is_one = |task: &Listed| is_task(task.fields.iter().map(|(name, _)| name.as_str()));
        self.found.extend(self.open.take().filter(is_one));
    }

    fn begin(&mut self, line: &Line<'_>, id: &str) {
        self.close();
        self.open = Some(Listed {
            // Lines are numbered from 1.
            index: line.number - 1,
            fields: vec![("Task ID".to_owned(), id.to_owned())],
            indent: line.indent(),
            lines: vec![line.number],
            goes_on: false,
        });
    }

    /// A fence: values, where some are waited for.
    fn code(&mut self, lines: &[Line<'_>], language: &str) {
        let Some(task) = self.open.as_mut().filter(|task| task.goes_on) else { return };
        for value in script(lines, language) {
            // As a code span, so that it stays one value whatever it holds.
            let longest = value.command.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let marks = "`".repeat(longest + 1);
            task.more(&format!("{marks} {} {marks}", value.command), BREAK);
        }
        task.lines.extend(lines.iter().map(|line| line.number));
    }

    fn text(&mut self, line: &Line<'_>) {
        if let Some((_, title)) = line.heading() {
            self.close();
            if let Some(id) = headed(title) {
                self.begin(line, &id);
            }
            return;
        }
        let text = line.text.trim();
        if text.is_empty() {
            return;
        }
        let item = bullet(line.text);
        let text = item.unwrap_or(text);
        let text = checkbox(text).map_or(text, |boxed| boxed.rest);
        let parts = split_outside(text, b";");
        let (head, rest) = parts.split_first().map_or(("", &[][..]), |(head, rest)| (*head, rest));
        match field(head) {
            Some((name, id)) if begins(&name) && !is_none(&id) => {
                self.begin(line, &plain(&id));
            }
            Some((name, value)) if self.takes(&name, line, item.is_some()) => {
                if let Some(task) = &mut self.open {
                    task.goes_on = value.is_empty();
                    task.fields.push((name, value));
                    task.lines.push(line.number);
                }
            }
            _ => return self.rest(line, text, item.is_some()),
        }
        let Some(task) = &mut self.open else { return };
        for part in rest {
            match field(part).filter(|(name, _)| is_field(name)) {
                Some((name, value)) => task.fields.push((name, value)),
                None => task.more(part, "; "),
            }
        }
    }

    /// Whether a field is the open task's.
    fn takes(&self, name: &str, line: &Line<'_>, is_item: bool) -> bool {
        self.open.as_ref().is_some_and(|task| {
            let deeper = line.indent() > task.indent;
            // Keys that no task has to have are its own only below it: a lane has some too.
            (is_field(name) && line.indent() >= task.indent) || (is_item && deeper)
        })
    }

    /// A line that is no field: the next value of a list, or the end.
    fn rest(&mut self, line: &Line<'_>, text: &str, is_item: bool) {
        let Some(task) = &mut self.open else { return };
        if task.goes_on && is_item && line.indent() >= task.indent {
            task.more(text, BREAK);
            task.lines.push(line.number);
            return;
        }
        task.goes_on = false;
        if line.indent() <= task.indent {
            self.close();
        }
    }
}

impl Listed {
    fn more(&mut self, value: &str, between: &str) {
        if let Some((_, known)) = self.fields.last_mut().filter(|_| !value.is_empty()) {
            if !known.is_empty() {
                known.push_str(between);
            }
            known.push_str(value);
        }
    }
}

/// The id of the task that a heading begins: `Task T1`, `Task ID: T1`, `Task T1 -- what it does`.
fn headed(title: &str) -> Option<String> {
    let title = plain(title);
    if let Some((_, id)) = field(&title).filter(|(name, id)| begins(name) && !is_none(id)) {
        return id_at_start(&id).map(str::to_owned);
    }
    let (word, rest) = title.split_once(' ')?;
    let id = id_at_start(rest.trim()).filter(|id| id.contains(|c: char| c.is_ascii_digit()))?;
    word.eq_ignore_ascii_case("task").then(|| id.to_owned())
}

/// Whether a field begins a task.
fn begins(name: &str) -> bool {
    ["task id", "taskid", "task"].iter().any(|begin| name.eq_ignore_ascii_case(begin))
}

/// Name and value of `Key: value`; the value keeps its code spans.
fn field(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once(':')?;
    let name = plain(name).trim_matches(['*', '_']).trim().to_owned();
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.chars().count())
        && name.starts_with(char::is_alphabetic)
        && !text.starts_with('`');
    let value = value.trim_start();
    let value = ["**", "__"].iter().find_map(|mark| value.strip_prefix(mark)).unwrap_or(value);
    is_name.then(|| (name, value.trim().to_owned()))
}
