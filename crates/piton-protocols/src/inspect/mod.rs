//! Tells what a protocol file is and what it says, for `piton inspect`.
//!
//! One table of formats: each claims a file by its content, or for want of content by its name, and
//! then reads it. A new format is one entry and one file. Nothing is changed, nothing is guessed: a
//! file that no format claims is none of them.

mod lanes;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use piton_formats::diagnostic::{Diagnostic, Severity, code};
use piton_formats::sink::{self, Sink};

/// A file to look at.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    /// As the person named it.
    file: &'a str,
    /// Its text; bytes that are none are replaced.
    text: &'a str,
}

impl Source<'_> {
    /// The file's own name, in lower case.
    fn name(&self) -> String {
        self.file.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase()
    }
}

/// How sure a format is of a file; the surest reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// It is something else.
    No,
    /// It is called like one, and nothing in it says otherwise.
    Name,
    /// It looks like one.
    Content,
}

/// What a format made of a file.
struct Reading {
    problems: Vec<Diagnostic>,
    data: Value,
    /// For a person, line by line.
    summary: Vec<String>,
}

/// A format: its name, what it claims, how it reads.
struct Format {
    name: &'static str,
    claim: fn(&Source<'_>) -> Claim,
    read: fn(&Source<'_>) -> Reading,
}

/// All formats; of two that are equally sure the first reads.
const FORMATS: &[Format] = &[
    Format { name: "lanes/phase", claim: lanes::claim_phase, read: lanes::read_phase },
    Format {
        name: "lanes/checkpoints",
        claim: lanes::claim_checkpoints,
        read: lanes::read_checkpoints,
    },
    Format { name: "lanes/run-log", claim: lanes::claim_run_log, read: lanes::read_run_log },
];

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
pub fn inspect(file: &str, bytes: &[u8]) -> Inspection {
    let text = String::from_utf8_lossy(bytes);
    let source = Source { file, text: &text };
    let claimed = FORMATS.iter().map(|format| ((format.claim)(&source), format));
    // `rev`, because of equals the last is taken and the first shall be.
    let best =
        claimed.rev().max_by_key(|(claim, _)| *claim).filter(|(claim, _)| *claim > Claim::No);
    let Some((_, format)) = best else { return unknown(&source) };
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

fn unknown(source: &Source<'_>) -> Inspection {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let mut sink = Sink::new(source.file, source.text);
    let hint = format!("known are {}", names.join(", "));
    sink.error(code::UNKNOWN_FORMAT, &(0..0), "the file is of no known format", hint);
    let (format, data, summary) = (None, Value::Null, Vec::new());
    Inspection { format, problems: sink.finish(), data, summary }
}
