//! Tells what a protocol file is and what it says, for `piton inspect`.
//!
//! The formats are those of the protocols in the table: each claims a file by its content, or for want
//! of content by its name, and then reads it. Nothing is changed, nothing is guessed: a file that no
//! format claims is none of them.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::protocol::{Claim, Table};
use piton_formats::diagnostic::{Diagnostic, Severity, code};
use piton_formats::sink::{self, Sink};

/// A file to look at.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// As the person named it.
    pub file: &'a str,
    /// Its text; bytes that are none are replaced.
    pub text: &'a str,
}

impl Source<'_> {
    /// The file's own name, in lower case.
    pub fn name(&self) -> String {
        self.file.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase()
    }
}

/// What a format made of a file.
#[derive(Debug)]
pub struct Reading {
    /// What is wrong with it.
    pub problems: Vec<Diagnostic>,
    /// What it says.
    pub data: Value,
    /// The same for a person, line by line.
    pub summary: Vec<String>,
}

/// A format: its name, what it claims, how it reads.
#[derive(Debug)]
pub struct Format {
    /// Such as `lanes/phase`.
    pub name: &'static str,
    /// How sure it is of a file.
    pub claim: fn(&Source<'_>) -> Claim,
    /// Reads one.
    pub read: fn(&Source<'_>) -> Reading,
}

/// What a file is and says.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Its format; nothing when it is none that is known.
    pub format: Option<&'static str>,
    /// What is wrong with it.
    pub problems: Vec<Diagnostic>,
    /// What it says; `null` when it is of no known format.
    pub data: Value,
    /// The same for a person, line by line.
    pub summary: Vec<String>,
}

impl Inspection {
    /// Tells whether it is a file of a known format without an error.
    pub fn is_valid(&self) -> bool {
        self.format.is_some() && self.problems.iter().all(|p| p.severity != Severity::Error)
    }

    /// The whole as one object.
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

/// Looks at a file; `file` is its name as the person gave it.
pub fn inspect(table: &Table, file: &str, bytes: &[u8]) -> Inspection {
    let text = String::from_utf8_lossy(bytes);
    let source = Source { file, text: &text };
    let formats: Vec<&Format> = table.iter().flat_map(|protocol| protocol.formats()).collect();
    let claimed = formats.iter().map(|format| ((format.claim)(&source), format));
    // `rev`, because of equals the last is taken and the first shall be.
    let best =
        claimed.rev().max_by_key(|(claim, _)| *claim).filter(|(claim, _)| *claim > Claim::No);
    let Some((_, format)) = best else { return unknown(&source, &formats) };
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
