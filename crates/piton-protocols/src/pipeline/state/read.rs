//! Reads a state file: as much of it as possible, and all its problems.

use super::checkpoints;
use super::layout::{Entry, HEADER_KEYS, Layout, Part, is_known};
use super::ledger;
use super::model::{Cluster, Completed, Detail, Field, Iteration, State, Substance};
use super::words::{Said, bare, essence, is_unfilled, said, stage_key};
use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::markdown::inline::{is_none, plain};
use piton_formats::sink::Sink;

/// Largest state file: a thousand times the longest known; a larger file is the wrong one.
pub const STATE_BYTES_MAX: usize = 4 << 20;

/// Reads as much of a state file as possible, and all its problems.
pub fn read(file: &str, text: &str) -> (State, Vec<Diagnostic>) {
    let mut sink = Sink::new(file, text);
    if text.len() > STATE_BYTES_MAX {
        let message = format!("the file is larger than {STATE_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "check that this is the right file");
        return (State::default(), sink.finish());
    }
    let layout = Layout::new(text);
    if let Some(line) = &layout.unclosed {
        let message = "this is never closed, so the rest of the file is not read";
        let hint = "close the fence with as many marks, or the comment with `-->`";
        sink.warn(code::UNCLOSED, &line.span(), message, hint);
    }
    let header = layout.entries(&layout.header);
    let mut state = State { fields: fields(&layout, &header), ..State::default() };
    state.status = status(&layout, &header, &mut sink);
    state.detail = detail(&layout, &mut sink);
    state.ledger = ledger::read(&layout, &mut sink);
    state.completed = completed(&layout, &mut sink);
    for done in ledger::completed(&state.ledger) {
        if !state.is_completed(&done.stage) {
            state.completed.push(done);
        }
    }
    state.checkpoints = checkpoints::read(&layout, &state.ledger, &mut sink);
    state.iterations = iterations(&layout);
    state.clusters = clusters(&layout);
    state.notes = notes(&layout);
    state.current_stage = current_stage(&state);
    state.substance = substance(&state, &layout);
    report(&state, &layout, &mut sink);
    (state, sink.finish())
}

/// The fields as values; `stage` in the header means `current_stage`.
fn fields(layout: &Layout<'_>, entries: &[Entry<'_>]) -> Vec<Field> {
    let field = |entry: &Entry<'_>| Field {
        key: entry.key.clone(),
        value: bare(&entry.value[essence(&entry.key, &entry.value)]).to_owned(),
        raw: entry.value.clone().into_owned(),
        is_unfilled: is_unfilled(&entry.value),
        line: layout.lines[entry.lines.0].number,
    };
    entries.iter().map(field).collect()
}

fn status(layout: &Layout<'_>, header: &[Entry<'_>], sink: &mut Sink<'_>) -> Said<super::Status> {
    let mut values = header.iter().filter(|entry| entry.key == "status");
    let Some(first) = values.next() else { return Said::Nothing };
    let read = said(&first.value);
    for other in values {
        let line = layout.lines[first.lines.0].number;
        let hint = "keep the one that holds, and remove the other";
        let message = format!("the status is also on line {line}");
        if said::<super::Status>(&other.value).known() == read.known() {
            sink.warn(code::BAD_RECORD, &other.span, message, hint);
        } else {
            sink.error(code::BAD_RECORD, &other.span, format!("{message}, and differs"), hint);
            return Said::Unknown(format!("{}, {}", first.value, other.value));
        }
    }
    read
}

fn detail(layout: &Layout<'_>, sink: &mut Sink<'_>) -> Detail {
    let Some(section) = layout.section(Part::Detail) else { return Detail::default() };
    let entries = layout.entries(&section.lines);
    let mut detail = Detail { fields: fields(layout, &entries), ..Detail::default() };
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key);
    if let Some(entry) = entry("job_status") {
        detail.job_status = said(&entry.value);
        if let Said::Unknown(raw) = &detail.job_status {
            let message = format!("unknown job_status {}", quoted(raw));
            let hint = "write a word such as QUEUED, RUNNING, RETRYING or DONE";
            sink.warn(code::BAD_RECORD, &entry.span, message, hint);
        }
    }
    if let Some(entry) = entry("retry_count") {
        let text = plain(&entry.value);
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        detail.retry_count = digits.parse().ok();
        if detail.retry_count.is_none() && !is_none(&text) && !is_unfilled(&text) {
            let message = format!("{} is not a number of retries", quoted(&text));
            sink.warn(code::BAD_RECORD, &entry.span, message, "write a whole number");
        }
    }
    detail
}

/// The rows of a section's table, each as cells by column, with its line.
fn rows(layout: &Layout<'_>, part: Part) -> Vec<(usize, impl Fn(&str) -> String)> {
    let Some(table) = layout.table(part) else { return Vec::new() };
    let key = part.required().first().copied().unwrap_or_default();
    let columns = table.columns();
    let read = |row: piton_formats::markdown::table::Row| {
        let (columns, line) = (columns.clone(), layout.lines[row.index].number);
        let cell = move |name: &str| {
            let wanted = name.to_lowercase();
            let at = columns.iter().position(|column| *column == wanted);
            at.and_then(|at| row.cells.get(at))
                .map(|cell| bare(cell).to_owned())
                .unwrap_or_default()
        };
        (line, cell)
    };
    let all = table.rows.into_iter().map(read);
    all.filter(|(_, cell)| !is_none(&cell(key))).collect()
}

fn completed(layout: &Layout<'_>, sink: &mut Sink<'_>) -> Vec<Completed> {
    let Some(section) = layout.section(Part::Completed) else { return Vec::new() };
    let is_filled = layout.last_filled(&section.lines).is_some();
    if is_filled && layout.table(Part::Completed).is_none() {
        let span = layout.lines[section.heading].span();
        let message = "this section has no table with a column Stage, so no stage counts as done";
        let hint = "add `| Stage | Completed At | Output Artifact | Output Hash |`";
        sink.warn(code::BAD_RECORD, &span, message, hint);
    }
    let given = |text: String| Some(text).filter(|text| !is_none(text));
    let done = rows(layout, Part::Completed).into_iter().map(|(line, cell)| Completed {
        stage: cell("Stage"),
        completed_at: given(cell("Completed At")),
        artifact: given(cell("Output Artifact")),
        hash: given(cell("Output Hash")),
        line,
    });
    done.filter(|row| !is_unfilled(&row.stage)).collect()
}

fn iterations(layout: &Layout<'_>) -> Vec<Iteration> {
    let read = |(_, cell): (usize, _)| {
        let cell: &dyn Fn(&str) -> String = &cell;
        Iteration {
            stage: cell("Stage"),
            cycle_count: cell("Cycle Count"),
            budget: cell("Budget"),
            status: cell("Status"),
        }
    };
    rows(layout, Part::Iterations).into_iter().map(read).collect()
}

fn clusters(layout: &Layout<'_>) -> Vec<Cluster> {
    let read = |(_, cell): (usize, _)| {
        let cell: &dyn Fn(&str) -> String = &cell;
        Cluster {
            name: cell("Cluster"),
            first_seen: cell("First Seen"),
            retry_count: cell("Retry Count"),
            stage: cell("Stage"),
            notes: cell("Notes"),
        }
    };
    rows(layout, Part::Clusters).into_iter().map(read).collect()
}

fn notes(layout: &Layout<'_>) -> Vec<String> {
    let Some(section) = layout.section(Part::Notes) else { return Vec::new() };
    let Some(last) = layout.last_filled(&section.lines) else { return Vec::new() };
    let lines = (section.lines.start..=last).map(|at| layout.lines[at].text.to_owned());
    lines.skip_while(|line| line.trim().is_empty()).collect()
}

/// The current stage: as the header says, or the section about it, or a stage ledger.
fn current_stage(state: &State) -> Option<String> {
    let given = |text: &str| Some(stage_key(text)).filter(|key| !key.is_empty());
    let stated = ["current_stage", "stage"].into_iter().find_map(|key| state.field(key));
    match stated {
        Some(field) if field.is_unfilled => None,
        Some(field) if !is_none(&field.value) => given(&field.value),
        _ => state
            .detail
            .value("stage")
            .filter(|stage| !is_none(stage))
            .and_then(given)
            .or_else(|| ledger::next(&state.ledger)),
    }
}

/// Tells a run from a template and from a file that is neither.
fn substance(state: &State, layout: &Layout<'_>) -> Substance {
    let is_open = |key: &str| state.field(key).is_some_and(|field| field.is_unfilled);
    let has_status = !matches!(state.status, Said::Unfilled(_));
    if !has_status || is_open("current_stage") || is_open("run_id") && is_open("feature") {
        return Substance::Template;
    }
    let has_fields = state.fields.iter().any(|field| is_known(&field.key));
    let has_sections = layout.sections.iter().any(|section| section.part != Part::Notes);
    if has_fields || has_sections { Substance::Run } else { Substance::Nothing }
}

fn report(state: &State, layout: &Layout<'_>, sink: &mut Sink<'_>) {
    let top = layout.lines.first().map_or(0..0, piton_formats::markdown::Line::span);
    if state.substance == Substance::Nothing {
        let message = "the file has neither fields nor sections of a pipeline state";
        let hint = "check that this is the right file, or move it away to start fresh";
        sink.error(code::BAD_RECORD, &top, message, hint);
        return;
    }
    let is_template = state.substance == Substance::Template;
    let fields = state.fields.iter().chain(&state.detail.fields);
    for field in fields.filter(|field| field.is_unfilled) {
        let span = sink.line_span(field.line);
        let message = format!("{} is not filled in: {}", field.key, quoted(&field.raw));
        if is_template {
            let hint = "fill in the template, or move it away: it does not describe a run";
            sink.error(code::UNFILLED, &span, message, hint);
        } else {
            sink.warn(code::UNFILLED, &span, message, "write its value");
        }
    }
    doubled(state, sink);
    let words = "IN_PROGRESS, WAITING_FOR_HUMAN, COMPLETE, FAILED, CANCELLED or ABORTED";
    match &state.status {
        Said::Nothing => {
            let hint = format!("add `- status: ` with {words}; until then a person is asked");
            sink.warn(code::BAD_RECORD, &top, "the file has no status", hint);
        }
        Said::Unknown(raw) => {
            let line = state.fields.iter().find(|field| field.key == "status");
            let span = line.map_or(top.clone(), |field| sink.line_span(field.line));
            let message = format!("unknown status {}", quoted(raw));
            let hint = format!("write {words}; until then a person is asked");
            sink.warn(code::BAD_RECORD, &span, message, hint);
        }
        Said::Unfilled(_) | Said::Known(..) => {}
    }
    if state.current_stage.is_none() && !is_template {
        let hint = "add `- current_stage: ` with the name of the stage";
        sink.warn(code::BAD_RECORD, &top, "the file has no current stage", hint);
    }
    let detailed = state.detail.value("stage").map(stage_key).filter(|key| !key.is_empty());
    if let (Some(stage), Some(detailed)) = (&state.current_stage, detailed)
        && *stage != detailed
        && let Some(field) = state.detail.fields.iter().find(|field| field.key == "stage")
    {
        let span = sink.line_span(field.line);
        let message = format!("this is about {detailed}, but the current stage is {stage}");
        sink.warn(code::BAD_RECORD, &span, message, "name the same stage in both places");
    }
}

/// Reports fields of the header that are given twice.
fn doubled(state: &State, sink: &mut Sink<'_>) {
    for (index, field) in state.fields.iter().enumerate() {
        let is_own = HEADER_KEYS.contains(&field.key.as_str()) && field.key != "status";
        let first = state.fields[..index].iter().find(|known| known.key == field.key);
        if let Some(first) = first.filter(|_| is_own) {
            let span = sink.line_span(field.line);
            let message = format!("{} is also on line {}, which counts", field.key, first.line);
            sink.warn(code::BAD_RECORD, &span, message, "remove one of the two");
        }
    }
}
