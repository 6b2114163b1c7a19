//! Reads a task list in one pass over its lines, and ticks tasks.

use std::collections::{HashMap, HashSet};

use piton_formats::diagnostic::{Diagnostic, Severity, code, quoted};
use piton_formats::markdown::inline::{bullet, plain};
use piton_formats::markdown::{Document, Line, Place};
use piton_formats::sink::Sink;
use piton_formats::splice::{Splice, splice};

use super::{Phase, TASKS_BYTES_MAX, Task, TaskList, paths};
use crate::workflow::plan::Heading;

/// The level of headings that hold tasks although they are not phases.
const GROUP_LEVEL: usize = 2;

/// Reads a task list to run: the list and its warnings, or all problems.
pub fn read(file: &str, text: &str) -> Result<(TaskList, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (list, problems) = inspect(file, text);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(problems);
    }
    Ok((list, problems))
}

/// Reads as much of a task list as possible, and all its problems.
pub fn inspect(file: &str, text: &str) -> (TaskList, Vec<Diagnostic>) {
    let mut sink = Sink::new(file, text);
    if text.len() > TASKS_BYTES_MAX {
        let message = format!("the task list is larger than {TASKS_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "split it, or name the right file");
        return (TaskList::default(), sink.finish());
    }
    let document = Document::new(text);
    if let Some(at) = document.unclosed {
        let message = "this is never closed, so the rest of the list is not read";
        let hint = "close the fence with as many marks, or the comment with `-->`";
        sink.warn(code::UNCLOSED, &document.lines[at].span(), message, hint);
    }
    let mut reader = Reader::default();
    for line in &document.lines {
        reader.line(line, &mut sink);
    }
    let list = reader.finish();
    if list.tasks().next().is_none() {
        let hint = "write tasks as `- [ ] T001 text` below `## Phase 1: Title`";
        sink.error(code::MISSING, &(0..0), "the list has no tasks", hint);
    }
    (list, sink.finish())
}

/// Tells whether a text is a task list: at least half of its outer boxes begin with a task id.
pub fn is_task_list(text: &str) -> bool {
    let (mut tasks, mut others) = (0_usize, 0_usize);
    for line in Document::new(text).lines.iter().filter(|line| line.indent() <= 1) {
        let Some((found, _)) = line.checkbox() else { continue };
        *if id(found.rest).is_some() { &mut tasks } else { &mut others } += 1;
    }
    tasks > 0 && tasks >= others
}

/// The document with a task's box ticked; `None` if it has no open box with that id.
pub fn tick(text: &str, task_id: &str) -> Option<String> {
    mark(text, task_id, true)
}

/// The same with the tick removed.
pub fn untick(text: &str, task_id: &str) -> Option<String> {
    mark(text, task_id, false)
}

/// The document with the boxes of these tasks ticked.
pub fn tick_each(text: &str, ids: &[String]) -> String {
    let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let document = Document::new(text);
    let boxes = document.lines.iter().filter_map(Line::checkbox).filter(|(found, _)| {
        !found.is_ticked() && id(found.rest).is_some_and(|(id, _)| ids.contains(id))
    });
    splice(text, boxes.map(|(_, range)| Splice::new(range, "x")).collect())
}

fn mark(text: &str, task_id: &str, done: bool) -> Option<String> {
    let document = Document::new(text);
    let boxes = document.lines.iter().filter_map(Line::checkbox).filter(|(found, _)| {
        found.is_ticked() != done && id(found.rest).is_some_and(|(id, _)| id == task_id)
    });
    let mark = if done { "x" } else { " " };
    let splices: Vec<Splice> = boxes.map(|(_, range)| Splice::new(range, mark)).collect();
    (!splices.is_empty()).then(|| splice(text, splices))
}

/// The id at the start of an item, and the rest: `T001`, `T002a`, `**T003**`, `T-4:`.
fn id(item: &str) -> Option<(&str, &str)> {
    let item = item.trim_start().trim_start_matches(['*', '`']);
    let digits = item.strip_prefix('T')?.trim_start_matches('-');
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let letters = digits[count..].bytes().take_while(u8::is_ascii_lowercase).count();
    let length = item.len() - digits.len() + count + letters;
    let rest = &item[length..];
    let ends = rest.is_empty() || rest.starts_with([' ', '\t', ':', '.', '*', '`', '[', ')']);
    if count == 0 || letters > 1 || !ends {
        return None;
    }
    Some((&item[..length], rest.trim_start_matches(['*', '`', ':', '.', ')']).trim_start()))
}

/// The labels at the start of a text, and the rest.
fn labels(mut text: &str) -> (Vec<&str>, &str) {
    let mut found = Vec::new();
    while let Some((label, rest)) = text.strip_prefix('[').and_then(|r| r.split_once(']')) {
        // `[text](target)` is a link.
        if rest.starts_with('(') || label.is_empty() {
            break;
        }
        found.push(label.trim());
        text = rest.trim_start();
    }
    (found, text)
}

/// Tells whether a label names a user story: `US1`, `US-02`, `US1,US2`.
fn is_story(label: &str) -> bool {
    let rest = label.get(..2).filter(|start| start.eq_ignore_ascii_case("us"));
    rest.is_some_and(|_| {
        label[2..].trim_start_matches(['-', ' ']).starts_with(|c: char| c.is_ascii_digit())
    })
}

fn task(item: &str, done: bool, line: usize) -> Option<Task> {
    let (id, rest) = id(item)?;
    let (labels, text) = labels(rest);
    let mut task = Task {
        id: id.to_owned(),
        parallel: false,
        story: None,
        labels: Vec::new(),
        text: text.trim_end().to_owned(),
        paths: Vec::new(),
        done,
        line,
    };
    for label in labels {
        match label {
            "P" | "p" => task.parallel = true,
            story if task.story.is_none() && is_story(story) => {
                task.story = Some(story.to_owned());
            }
            other => task.labels.push(other.to_owned()),
        }
    }
    Some(task)
}

#[derive(Default)]
struct Reader {
    list: TaskList,
    /// The lines of all known ids.
    lines: HashMap<String, usize>,
    open: Option<Open>,
}

/// The task whose lines are being read.
struct Open {
    task: Task,
    indent: usize,
    /// All its lines, for the paths in them.
    body: String,
    /// Whether the first paragraph goes on.
    in_text: bool,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, sink: &mut Sink<'_>) {
        if line.place != Place::Text {
            self.end_paragraph();
            return;
        }
        if let Some((level, text)) = line.heading() {
            self.close();
            self.heading(level, text, line);
            return;
        }
        if let Some((found, _)) = line.checkbox() {
            if let Some(task) = task(found.rest, found.is_ticked(), line.number) {
                self.close();
                self.begin(task, line, sink);
                if !found.is_plain() {
                    let message = format!("unknown box `[{}]`, so the task is open", found.mark);
                    sink.warn(code::BAD_VALUE, &line.span(), message, "write `[ ]` or `[x]`");
                }
                return;
            }
            let is_in_phase = self.list.phases.last().is_some_and(|phase| phase.id.is_some());
            if line.indent() <= 1 && is_in_phase {
                let message =
                    format!("the box {} has no task id, so it is not a task", quoted(found.rest));
                let hint = "write it as `- [ ] T001 text`";
                sink.warn(code::BAD_ID, &line.span(), message, hint);
            }
        }
        self.more(line);
    }

    fn heading(&mut self, level: usize, text: &str, line: &Line<'_>) {
        if let Some(Heading { id, title, .. }) = Heading::read(line) {
            let phase = Phase { id: Some(id), title, tasks: Vec::new(), line: line.number };
            self.list.phases.push(phase);
        } else if level <= GROUP_LEVEL {
            if level == 1 && self.list.title.is_empty() {
                self.list.title = plain(text);
            }
            let phase =
                Phase { id: None, title: plain(text), tasks: Vec::new(), line: line.number };
            self.list.phases.push(phase);
        }
    }

    fn begin(&mut self, task: Task, line: &Line<'_>, sink: &mut Sink<'_>) {
        if let Some(first) = self.lines.get(&task.id) {
            let message = format!("the task {} is also on line {first}", task.id);
            sink.warn(code::DUPLICATE_ID, &line.span(), message, "give one of the two another id");
        } else {
            self.lines.insert(task.id.clone(), task.line);
        }
        let body = task.text.clone();
        self.open = Some(Open { task, indent: line.indent(), body, in_text: true });
    }

    /// A line that may belong to the task before it.
    fn more(&mut self, line: &Line<'_>) {
        let text = line.text.trim();
        let Some(open) = &mut self.open else { return };
        if text.is_empty() {
            open.in_text = false;
            return;
        }
        if line.indent() <= open.indent {
            self.close();
            return;
        }
        open.in_text &= bullet(text).is_none();
        if open.in_text {
            open.task.text.push(' ');
            open.task.text.push_str(text);
        }
        open.body.push('\n');
        open.body.push_str(text);
    }

    fn end_paragraph(&mut self) {
        if let Some(open) = &mut self.open {
            open.in_text = false;
        }
    }

    fn close(&mut self) {
        let Some(Open { mut task, body, .. }) = self.open.take() else { return };
        task.text.truncate(task.text.trim_end().len());
        task.paths = paths(&body);
        if self.list.phases.is_empty() {
            let phase = Phase { id: None, title: String::new(), tasks: Vec::new(), line: 0 };
            self.list.phases.push(phase);
        }
        if let Some(phase) = self.list.phases.last_mut() {
            phase.tasks.push(task);
        }
    }

    fn finish(mut self) -> TaskList {
        self.close();
        // Headings without tasks that are not phases are prose.
        self.list.phases.retain(|phase| phase.id.is_some() || !phase.tasks.is_empty());
        self.list
    }
}
