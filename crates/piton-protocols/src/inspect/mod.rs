//! Tells what a protocol file is and what it says, for `piton inspect`.
//!
//! The formats are those of the protocols in the table: each claims a file by its content, or if it is
//! empty by its name, and then reads it. A file that no format claims is reported, not guessed.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::format::{Around, Format, Source, surest};
use crate::table::Table;
use piton_formats::diagnostic::{Diagnostic, Severity, code};
use piton_formats::sink::{self, Sink};

/// What a file is and says.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Its format; `None` if it is unknown.
    pub format: Option<&'static str>,
    /// Its problems.
    pub problems: Vec<Diagnostic>,
    /// Its content; `null` if the format is unknown.
    pub data: Value,
    /// The same for a person, line by line.
    pub summary: Vec<String>,
}

impl Inspection {
    /// Tells whether it is a file of a known format without an error.
    pub fn is_valid(&self) -> bool {
        self.format.is_some() && self.problems.iter().all(|p| p.severity != Severity::Error)
    }

    /// The result as one JSON object.
    pub fn to_json(&self) -> Value {
        let problem = |p: &Diagnostic| {
            let severity = p.severity.as_str();
            json!({ "severity": severity, "line": p.line, "message": p.message, "hint": p.hint })
        };
        json!({
            "format": self.format,
            "valid": self.is_valid(),
            "problems": self.problems.iter().map(problem).collect::<Vec<_>>(),
            "data": self.data,
        })
    }
}

/// Inspects a file; `file` is its name as the person gave it.
pub fn inspect(table: &Table, file: &str, bytes: &[u8], around: Around<'_>) -> Inspection {
    let text = String::from_utf8_lossy(bytes);
    let source = Source { file, text: &text, around };
    let formats: Vec<&Format> = table.iter().flat_map(|protocol| protocol.formats()).collect();
    let claims = formats.iter().map(|format| ((format.claim)(&source), format));
    let Some(format) = surest(claims) else { return unknown(&source, &formats) };
    let reading = (format.read)(&source);
    let mut problems = reading.problems;
    if matches!(text, std::borrow::Cow::Owned(_))
        && let Err(no_text) = sink::utf8(file, bytes.to_vec())
    {
        problems.extend(no_text.problems);
    }
    let format = Some(format.name);
    Inspection { format, problems, data: reading.data, summary: reading.summary }
}

fn unknown(source: &Source<'_>, formats: &[&Format]) -> Inspection {
    let names: Vec<&str> = formats.iter().map(|format| format.name).collect();
    let mut sink = Sink::new(source.file, source.text);
    let hint = format!("known formats: {}", names.join(", "));
    sink.error(code::UNKNOWN_FORMAT, &(0..0), "the file has an unknown format", hint);
    let (format, data, summary) = (None, Value::Null, Vec::new());
    Inspection { format, problems: sink.finish(), data, summary }
}
