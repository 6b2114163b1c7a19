//! `checkpoints.json`: the records of all runs, of ours and of other tools.
//!
//! An array of objects, one per run, phase, lane and stage. Reading keeps unknown fields and words;
//! writing replaces our own records and keeps the bytes of all others. The caller knows which records
//! are ours.

mod record;
mod update;

#[cfg(test)]
mod tests;

pub use record::{Key, Record, Stage, Status};
pub use update::{OwnRecord, Updated, Written, update};

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::sink::Sink;

/// Largest file: tens of thousands of runs; a larger one is the wrong file.
pub const CHECKPOINTS_BYTES_MAX: usize = 64 << 20;

/// Reads the records; an empty file has none. A file that is not an array is refused.
pub fn read(file: &str, text: &str) -> Result<Vec<Record>, Box<Diagnostic>> {
    Ok(records(text, &elements(file, text)?))
}

fn records(text: &str, elements: &[(usize, &str)]) -> Vec<Record> {
    let (mut line, mut counted) = (1, 0);
    let mut read = |(start, raw): &(usize, &str)| {
        line += text[counted..*start].matches('\n').count();
        counted = *start;
        Record::read(line, *start, raw)
    };
    elements.iter().map(&mut read).collect()
}

/// Reads as much of the file as possible, and all its problems.
pub fn inspect(file: &str, text: &str) -> (Vec<Record>, Vec<Diagnostic>) {
    let records = match read(file, text) {
        Ok(records) => records,
        Err(problem) => return (Vec::new(), vec![*problem]),
    };
    let mut sink = Sink::new(file, text);
    let mut first: BTreeMap<Key<'_>, &Record> = BTreeMap::new();
    for record in &records {
        check(record, &mut sink);
        let same = *first.entry(record.key()).or_insert(record);
        if same.span != record.span && record.missing().is_empty() {
            let line = same.line;
            let message = format!("the record on line {line} has the same key");
            let hint = "keep the newer one: run_id, phase, lane and stage identify a record";
            sink.warn(code::BAD_RECORD, &record.head(), message, hint);
        }
    }
    (records, sink.finish())
}

fn check(record: &Record, sink: &mut Sink<'_>) {
    let span = record.head();
    let missing = record.missing();
    if !missing.is_empty() {
        let message = format!("the record lacks {}", missing.join(", "));
        let hint = "every record needs run_id, phase, lane, stage, status and timestamp";
        sink.error(code::BAD_RECORD, &span, message, hint);
        return;
    }
    if let Stage::Unknown(stage) = &record.stage {
        let message = format!("unknown stage {}", quoted(stage));
        sink.warn(code::BAD_RECORD, &span, message, "no action is needed: the record is kept");
    }
    if let Status::Unknown(status) = &record.status {
        let message = format!("unknown status {}", quoted(status));
        sink.warn(code::BAD_RECORD, &span, message, "no action is needed: the record is kept");
    }
    if record.at.is_none() {
        let message = format!("{} is not a time", quoted(&record.timestamp));
        let hint = "write it like 2025-12-27T10:30:00Z; until then the record counts as the oldest";
        sink.warn(code::BAD_RECORD, &span, message, hint);
    }
}

/// The newest of some records; of equal times the last.
pub fn newest<'r>(records: impl Iterator<Item = &'r Record>) -> Option<&'r Record> {
    records.max_by_key(|record| record.at)
}

/// Each element of the array with its first byte.
fn elements<'t>(file: &str, text: &'t str) -> Result<Vec<(usize, &'t str)>, Box<Diagnostic>> {
    let json = text.trim_start_matches('\u{feff}');
    if text.len() > CHECKPOINTS_BYTES_MAX {
        let message = format!("the file is larger than {CHECKPOINTS_BYTES_MAX} bytes");
        let hint = "check that this is the right file";
        return Err(Box::new(problem(file, text, code::TOO_LARGE, 0, message, hint)));
    }
    if json.trim().is_empty() {
        return Ok(Vec::new());
    }
    match serde_json::from_str::<Vec<&RawValue>>(json) {
        Ok(raw) => Ok(raw
            .into_iter()
            .map(|raw| (raw.get().as_ptr().addr() - text.as_ptr().addr(), raw.get()))
            .collect()),
        Err(error) => Err(Box::new(bad_json(file, text, &error))),
    }
}

/// Where and why a text is not an array of JSON.
fn bad_json(file: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    use serde_json::error::Category;
    let hint = "correct it there, or move the file away; it was not changed";
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let message = match error.classify() {
        Category::Eof => "the JSON is cut off".to_owned(),
        Category::Data => "the file is JSON, but not an array of records".to_owned(),
        Category::Syntax | Category::Io => {
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default();
            format!("not valid JSON: {words}")
        }
    };
    problem(file, text, code::BAD_JSON, at, message, hint)
}

fn problem(
    file: &str,
    text: &str,
    code: &'static str,
    at: usize,
    message: String,
    hint: &str,
) -> Diagnostic {
    let mut sink = Sink::new(file, text);
    let at = at.min(text.len());
    sink.error(code, &(at..at), message, hint);
    // The sink has exactly one problem.
    sink.finish().swap_remove(0)
}
