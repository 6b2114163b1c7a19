//! The stage ledger, which some projects keep instead of completed stages: one row for each stage and
//! each decision of a person, with a status.
//!
//! Rows are added over time, so of several rows of one stage the last counts.

use super::checkpoints::subject;
use super::layout::{Layout, Part};
use super::model::{Completed, LedgerRow, Progress};
use super::words::{is_unfilled, stage_key};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{is_none, plain};
use piton_formats::sink::Sink;

/// Statuses of a row that is done, open or left out.
const DONE: [&str; 4] = ["complete", "completed", "approved", "done"];
const OPEN: [&str; 13] = [
    "pending",
    "open",
    "not started",
    "in progress",
    "waiting",
    "waiting for human",
    "queued",
    "running",
    "dispatched",
    "blocked",
    "failed",
    "rejected",
    "next",
];
const SKIPPED: [&str; 3] = ["skipped", "n/a", "not applicable"];

/// Reads the rows.
pub(super) fn read(layout: &Layout<'_>, sink: &mut Sink<'_>) -> Vec<LedgerRow> {
    let Some(table) = layout.table(Part::Ledger) else { return Vec::new() };
    let columns = table.columns();
    let mut rows = Vec::new();
    for row in &table.rows {
        let cell = |name: &str| {
            let at = columns.iter().position(|column| column == name);
            at.and_then(|at| row.cells.get(at)).cloned().unwrap_or_default()
        };
        let (name, status) = (plain(&cell("stage")), cell("status"));
        if is_none(&name) {
            continue;
        }
        let line = &layout.lines[row.index];
        let progress = progress(&status);
        if progress == Progress::Unknown {
            let message = format!("unknown status {} of {}", quoted(&status), quoted(&name));
            let hint = "write COMPLETE or APPROVED if it is done, PENDING if it is not";
            sink.warn(code::BAD_RECORD, &line.span(), message, hint);
        }
        let (date, notes, line) = (cell("date"), cell("notes"), line.number);
        rows.push(LedgerRow { name, progress, status, date, notes, line });
    }
    rows
}

fn progress(status: &str) -> Progress {
    if is_unfilled(status) {
        return Progress::Unknown;
    }
    let text = plain(status).to_lowercase().replace(['_', '-'], " ");
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let begins = |word: &str| {
        let rest = text.strip_prefix(word);
        // "done (see notes)", but not "done by nobody".
        rest.is_some_and(|rest| !rest.trim_start().starts_with(char::is_alphanumeric))
    };
    if DONE.iter().any(|word| begins(word)) {
        Progress::Done
    } else if text.is_empty() || OPEN.iter().any(|word| begins(word)) {
        Progress::Open
    } else if SKIPPED.iter().any(|word| begins(word)) {
        Progress::Skipped
    } else {
        Progress::Unknown
    }
}

/// The last row of each stage, in the order in which stages first occur.
fn stages(rows: &[LedgerRow]) -> Vec<&LedgerRow> {
    let mut last: Vec<(String, &LedgerRow)> = Vec::new();
    for row in rows.iter().filter(|row| subject(&row.name).is_none()) {
        let key = stage_key(&row.name);
        match last.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = row,
            None => last.push((key, row)),
        }
    }
    last.into_iter().map(|(_, row)| row).collect()
}

/// The stages that are done.
pub(super) fn completed(rows: &[LedgerRow]) -> Vec<Completed> {
    let done = stages(rows).into_iter().filter(|row| row.progress == Progress::Done);
    done.map(|row| Completed {
        stage: row.name.clone(),
        completed_at: Some(plain(&row.date)).filter(|date| !is_none(date)),
        artifact: None,
        hash: None,
        line: row.line,
    })
    .collect()
}

/// The first stage that is still to be done.
pub(super) fn next(rows: &[LedgerRow]) -> Option<String> {
    let open = stages(rows).into_iter().find(|row| row.progress == Progress::Open);
    open.map(|row| stage_key(&row.name))
}
