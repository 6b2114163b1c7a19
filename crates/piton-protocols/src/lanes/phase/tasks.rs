//! The tasks: rows of tables, known by their columns, given to the lane they belong to.
//!
//! The lane comes from the section of the table, from a column, or from the task's id. A cell with
//! `-` or "none" is an answer; an empty cell or a missing column is a missing field.

use super::draft::Draft;
use super::index::{lane_heading, lane_of_task};
use super::model::{Dependency, DependencyKind, Field, Task, TaskKind};
use super::names::{Known, LaneNames};
use super::{bullets, commands, index};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{
    code_spans, is_none, plain, split_outside, without_brackets,
};
use piton_formats::markdown::table::{Row, Table, tables};
use piton_formats::markdown::{Document, Line};
use piton_formats::sink::Sink;

/// What a column of a task table contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Field(Field),
    Lane,
    Acceptance,
    Extra,
}

fn column(name: &str) -> Column {
    match name {
        "task id" | "task" | "id" | "taskid" | "task ids" | "#" | "no" | "no." => {
            Column::Field(Field::Id)
        }
        "type" | "task type" | "kind" | "task kind" => Column::Field(Field::Kind),
        "depends on" | "depends" | "dependencies" | "deps" | "dependency" => {
            Column::Field(Field::DependsOn)
        }
        "files in scope" | "file in scope" | "files" | "scope" | "files scope"
        | "files touched" | "touched files" | "files changed" => Column::Field(Field::Files),
        "tests owned files" | "tests owned" | "test files" | "owned tests" | "test files owned"
        | "tests owned file" | "test owned files" => Column::Field(Field::TestsOwned),
        "test commands"
        | "test command"
        | "commands"
        | "command"
        | "tests"
        | "verify"
        | "verification"
        | "verify command"
        | "verification command"
        | "test cmd" => Column::Field(Field::TestCommands),
        "lane" | "lane id" | "swim lane" => Column::Lane,
        "acceptance" | "acceptance criteria" | "done when" => Column::Acceptance,
        _ => Column::Extra,
    }
}

/// A table of tasks with its columns; `None` for any other table.
fn task_columns(table: &Table) -> Option<Vec<Column>> {
    let names = table.columns();
    let mut columns: Vec<Column> = names.iter().map(|name| column(name)).collect();
    // Beside a column of commands, `Tests` are files.
    let is_commands = |column: &&Column| **column == Column::Field(Field::TestCommands);
    if columns.iter().filter(is_commands).count() > 1
        && let Some(at) = names.iter().position(|name| name == "tests")
    {
        columns[at] = Column::Field(Field::TestsOwned);
    }
    let has = |field| columns.contains(&Column::Field(field));
    let typical = [Field::Kind, Field::DependsOn, Field::TestsOwned, Field::TestCommands];
    // "ID" alone begins many tables; two more columns of a task make it one of tasks.
    let is_of_tasks =
        has(Field::Id) && typical.into_iter().filter(|field| has(*field)).count() >= 2;
    is_of_tasks.then_some(columns)
}

/// A row that is a task, before its names are resolved.
struct Found<'a> {
    line: &'a Line<'a>,
    lane: String,
    id: String,
    columns: Vec<Column>,
    header: Vec<String>,
    row: Row,
    /// Whether its table is one of documentation, which has nothing to test.
    of_docs: bool,
}

/// Reads all tasks into their lanes.
pub(super) fn read(document: &Document<'_>, lanes: &mut [Draft], sink: &mut Sink<'_>) {
    let names = index::names(lanes);
    let found = rows(document, &names, sink);
    let task_ids: Vec<String> = found.iter().map(|f| f.id.clone()).collect();
    let known = Known { lanes: &names, tasks: &task_ids };
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for found in &found {
        if let Some((_, first)) = seen.iter().find(|(id, _)| *id == found.id) {
            let message = format!("the task {} is also on line {first}", quoted(&found.id));
            sink.error(code::DUPLICATE_ID, &found.line.span(), message, "rename one of the two");
            continue;
        }
        if !found.id.is_empty() {
            seen.push((&found.id, found.line.number));
        }
        let task = task(found, known, sink);
        if let Some(lane) = lanes.iter_mut().find(|lane| lane.lane.id == found.lane) {
            lane.lane.tasks.push(task);
        }
    }
    bullets::read(document, lanes, &names, sink);
}

/// The rows of all task tables, each with its lane; a row without one is reported.
fn rows<'a>(document: &'a Document<'_>, lanes: &LaneNames, sink: &mut Sink<'_>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for table in tables(&document.lines) {
        let Some(columns) = task_columns(&table) else { continue };
        let section = section_lane(&document.lines[..table.header.index], lanes);
        let of_docs = is_of_docs(&table, &columns);
        for row in table.rows.iter().filter(|row| row.cells.iter().any(|cell| !cell.is_empty())) {
            let line = &document.lines[row.index];
            let Some((lane, id)) = place(line, &columns, row, section.as_ref(), lanes, sink) else {
                continue;
            };
            let (columns, header) = (columns.clone(), table.header.cells.clone());
            found.push(Found { line, lane, id, columns, header, row: row.clone(), of_docs });
        }
    }
    found
}

/// Whether a table has no columns of tests and lists documentation.
fn is_of_docs(table: &Table, columns: &[Column]) -> bool {
    let at = |field| columns.iter().position(|c| *c == Column::Field(field));
    let tested = [Field::TestsOwned, Field::TestCommands].into_iter().any(|f| at(f).is_some());
    let kinds =
        at(Field::Kind).into_iter().flat_map(|at| table.rows.iter().map(move |r| r.cells.get(at)));
    let is_docs = |cell: Option<&String>| {
        cell.is_some_and(|cell| TaskKind::read(&plain(cell)) == TaskKind::Docs)
    };
    !tested && kinds.into_iter().any(is_docs)
}

/// The lane of a task and its id; one without a lane is reported.
fn place(
    line: &Line<'_>,
    columns: &[Column],
    row: &Row,
    section: Option<&String>,
    lanes: &LaneNames,
    sink: &mut Sink<'_>,
) -> Option<(String, String)> {
    let at = |wanted: Column| {
        let place = columns.iter().position(|c| *c == wanted);
        place.and_then(|at| row.cells.get(at)).map(|c| plain(c)).unwrap_or_default()
    };
    let (id, named) = (at(Column::Field(Field::Id)), at(Column::Lane));
    let by_column = lanes.find(&named).map(str::to_owned);
    let by_id = || lane_of_task(&id, lanes).map(str::to_owned);
    let Some(lane) = by_column.or(section.cloned()).or_else(by_id) else {
        let message = format!("the task {} does not belong to a lane", quoted(&id));
        let hint = "move it below the heading of its lane, or start its id with the lane's id";
        sink.error(code::STRAY_TASK, &line.span(), message, hint);
        return None;
    };
    Some((lane, id))
}

/// The lane whose section the end of these lines belongs to.
fn section_lane(lines: &[Line<'_>], lanes: &LaneNames) -> Option<String> {
    let mut deepest = usize::MAX;
    for (level, title) in lines.iter().rev().filter_map(Line::heading) {
        // Only headings above the ones already met enclose this place.
        if level >= deepest {
            continue;
        }
        deepest = level;
        if let Some(lane) = lane_heading(title).and_then(|(id, _)| lanes.find(&id)) {
            return Some(lane.to_owned());
        }
    }
    None
}

/// Reads one row.
fn task(found: &Found<'_>, known: Known<'_>, sink: &mut Sink<'_>) -> Task {
    let mut task = Task {
        id: found.id.clone(),
        kind: TaskKind::Unknown,
        kind_word: String::new(),
        text: String::new(),
        depends_on: Vec::new(),
        files: Vec::new(),
        tests_owned: Vec::new(),
        test_commands: Vec::new(),
        checks: Vec::new(),
        is_evidence: false,
        acceptance: String::new(),
        extra: Vec::new(),
        missing: Field::ALL.to_vec(),
        line: found.line.number,
    };
    for (at, column) in found.columns.iter().enumerate() {
        let cell = found.row.cells.get(at).map_or("", String::as_str);
        match column {
            Column::Field(field) => {
                if cell.is_empty() {
                    continue;
                }
                task.missing.retain(|missing| missing != field);
                match field {
                    Field::Id => {}
                    Field::Kind => (task.kind, task.kind_word) = kind(cell, found, sink),
                    Field::DependsOn => {
                        task.depends_on = known.dependencies(cell, found.line.number);
                    }
                    Field::Files => task.files = list(cell),
                    Field::TestsOwned => task.tests_owned = list(cell),
                    Field::TestCommands => test(cell, &mut task, found, sink),
                }
            }
            Column::Lane => {}
            Column::Acceptance => task.acceptance = text(cell),
            Column::Extra => task.extra.push((found.header[at].clone(), text(cell))),
        }
    }
    // Documentation needs no tests, and a table of it has no columns for them.
    if task.kind == TaskKind::Docs || found.of_docs {
        let tested = [Field::TestsOwned, Field::TestCommands];
        task.missing.retain(|field| !tested.contains(field));
    }
    report_missing(&task, found, sink);
    report_unknown_tasks(&task, found, known, sink);
    report_overflow(found, sink);
    task
}

/// Reports dependencies on tasks that do not exist.
fn report_unknown_tasks(task: &Task, found: &Found<'_>, known: Known<'_>, sink: &mut Sink<'_>) {
    let digits = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let is_task = |raw: &str| {
        let own = known.lanes.names().any(|(lane, _)| raw.starts_with(lane));
        own || raw.strip_prefix(['T', 't']).is_some_and(|rest| digits(rest.trim_matches('-')))
    };
    let is_unknown = |d: &&Dependency| {
        matches!(d.kind, DependencyKind::Unknown | DependencyKind::Phase) && is_task(&d.raw)
    };
    for dependency in task.depends_on.iter().filter(is_unknown) {
        let (task, name) = (quoted(&task.id), quoted(&dependency.raw));
        let message = format!("the task {task} depends on {name}, which is not a task here");
        let hint = "correct the id, or write `none`";
        sink.error(code::UNKNOWN_ID, &found.line.span(), message, hint);
    }
}

/// Reports cells without a column: then the others are in the wrong columns.
fn report_overflow(found: &Found<'_>, sink: &mut Sink<'_>) {
    let (cells, columns) = (found.row.cells.len(), found.columns.len());
    let beyond = found.row.cells.get(columns..).unwrap_or_default();
    if beyond.iter().any(|cell| !cell.is_empty()) {
        let message = format!("this row has {cells} cells, but its table has {columns} columns");
        let hint = "write a `|` within a cell as `\\|`, also in commands";
        sink.error(code::BAD_VALUE, &found.line.span(), message, hint);
    }
}

fn report_missing(task: &Task, found: &Found<'_>, sink: &mut Sink<'_>) {
    if task.missing.is_empty() {
        return;
    }
    let names: Vec<&str> = task.missing.iter().map(|field| field.name()).collect();
    let name = if task.id.is_empty() { "a task".to_owned() } else { quoted(&task.id) };
    let message = format!("{name} of lane {} lacks: {}", quoted(&found.lane), names.join(", "));
    let hint = "ask for a plan update that fills them in; write `-` for none";
    sink.error(code::MISSING_FIELD, &found.line.span(), message, hint);
}

/// The commands of a test column; words that are none are for the agent and for a person.
fn test(cell: &str, task: &mut Task, found: &Found<'_>, sink: &mut Sink<'_>) {
    let asked = commands::read_cell(cell);
    if let Some(prose) = asked.prose.as_ref().filter(|_| asked.commands.is_empty()) {
        let message = format!("the test {} is not a command, so nothing runs it", quoted(prose));
        let hint =
            "write a command between backquotes; words are given to the agent and to a person";
        sink.warn(code::BAD_VALUE, &found.line.span(), message, hint);
    }
    task.test_commands = asked.commands;
    task.checks.extend(asked.prose);
}

fn kind(cell: &str, found: &Found<'_>, sink: &mut Sink<'_>) -> (TaskKind, String) {
    let word = plain(cell).to_lowercase();
    let kind = TaskKind::read(&word);
    if kind == TaskKind::Unknown {
        let message = format!("{} is not a valid type of task", quoted(cell));
        let hint = "write test, impl, docs or verify";
        sink.warn(code::BAD_VALUE, &found.line.span(), message, hint);
        return (kind, word);
    }
    (kind, kind.word().to_owned())
}

/// The text of a cell; empty for "none".
fn text(cell: &str) -> String {
    if is_none(cell) { String::new() } else { breaks(cell).join("\n") }
}

/// A cell at its line breaks.
fn breaks(cell: &str) -> Vec<String> {
    let unified = cell.replace("<br/>", "<br>").replace("<br />", "<br>");
    unified.split("<br>").map(|part| part.trim().to_owned()).filter(|p| !p.is_empty()).collect()
}

/// The names a cell lists; a cell of prose stays one text.
fn list(cell: &str) -> Vec<String> {
    if is_none(cell) {
        return Vec::new();
    }
    let parts = breaks(cell);
    let items: Vec<String> = parts
        .iter()
        .flat_map(|part| split_outside(part, b",;"))
        .map(without_brackets)
        .filter(|item| !is_none(item))
        .collect();
    let name = |item: &String| {
        let spans = code_spans(item);
        let is_span = spans.len() == 1 && item.trim_matches('`').len() == spans[0].len();
        is_span || !plain(item).contains(char::is_whitespace)
    };
    if items.iter().all(name) {
        return items.iter().map(|item| plain(item)).collect();
    }
    vec![text(cell)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_lists() {
        assert_eq!(list("`a.rs`, `b.rs` (new), c/*.json"), ["a.rs", "b.rs", "c/*.json"]);
        assert_eq!(list("a.rs<br>b.rs"), ["a.rs", "b.rs"]);
        assert_eq!(list("`with space.md`"), ["with space.md"]);
        assert_eq!(list("all greps of `x`, none left"), ["all greps of `x`, none left"]);
        assert!(list("-").is_empty() && list("None").is_empty());
    }
}
