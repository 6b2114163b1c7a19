//! What a person or a program sees: terminal, plain lines, JSON.
//!
//! stdout is data, stderr is talk. Everything that can be a pure function of state, time and
//! [`Look`] is one; only this file and the observers write. Text that came from steps goes through
//! [`text::sanitize`] first, so that no output can drive the reader's terminal.

pub mod ask;
#[cfg(test)]
mod fixture;
pub mod frame;
pub mod glance;
pub mod here;
pub mod json;
pub mod lane_words;
pub mod live;
pub mod look;
pub mod picture;
pub mod plain;
mod row;
pub mod status_json;
pub mod summary;
pub mod text;
pub mod time;
pub mod tree;
pub mod words;

use std::io::{self, IsTerminal as _, Write as _};

use piton_core::redact::Redactor;
use piton_core::{Event, RunState, Timestamp};
use piton_engine::{Note, Observer};
use piton_formats::{Diagnostic, Severity};
use serde::Serialize;

pub use ask::ask;
pub use json::JsonStream;
pub use live::Live;
pub use look::{Look, draws};
pub use plain::Plain;
pub use summary::Tally;

use crate::error::CommandError;

/// Says how a command failed: on stderr for people, as one object on stdout for programs.
///
/// An error without words was told already and prints nothing.
pub fn error(error: &CommandError, json: bool) {
    if error.code.is_empty() && error.message.is_empty() {
        return;
    }
    if json {
        data_json(&error_json(error));
        return;
    }
    say(error_text(error, &Look::stderr()).trim_end());
}

fn error_text(error: &CommandError, look: &Look) -> String {
    use std::fmt::Write as _;
    let label = look.paint(look::BAD, &format!("error[{}]:", error.code));
    let mut out = format!("{label} {}\n", text::sanitize_lines(&error.message));
    for hint in &error.hints {
        let label = look.paint(look::NOTE, "hint:");
        let _ = writeln!(out, "{label} {}", text::sanitize_lines(hint));
    }
    out
}

fn error_json(error: &CommandError) -> impl Serialize + use<> {
    serde_json::json!({ "error": {
        "code": error.code,
        "message": here::told(&error.message),
        "hints": error.hints.iter().map(|hint| here::told(hint)).collect::<Vec<_>>(),
        "exit_code": error.kind.exit_code(),
    }})
}

/// Prints the problems of a document as data, in the shape of every other error.
pub fn diagnostics_json(problems: &[Diagnostic], exit_code: u8, redactor: &Redactor) {
    let problems: &[Diagnostic] = &redacted(problems, redactor);
    let one = |p: &Diagnostic| {
        serde_json::json!({
            "severity": p.severity.as_str(),
            "code": p.code,
            "file": p.file,
            "line": p.line,
            "column": p.column,
            "message": p.message,
            "hint": p.hint,
        })
    };
    // What refuses the document comes first, wherever it stands.
    let refuses = problems.iter().find(|p| p.severity == Severity::Error);
    let first = refuses.or(problems.first());
    data_json(&serde_json::json!({ "error": {
        "code": first.map(|p| p.code),
        "message": first.map(|p| format!("{}:{}:{}: {}", p.file, p.line, p.column, p.message)),
        "hints": first.and_then(|p| p.hint.as_ref()).into_iter().collect::<Vec<_>>(),
        "exit_code": exit_code,
        "problems": problems.iter().map(one).collect::<Vec<_>>(),
    }}));
}

/// Shows the problems of a document on stderr.
pub fn diagnostics(problems: &[Diagnostic], source: &str, redactor: &Redactor) {
    if problems.is_empty() {
        return;
    }
    let (problems, source) = (redacted(problems, redactor), redactor.mask(source));
    let look = Look::stderr();
    let shown: String = problems
        .iter()
        .map(|p| piton_formats::diagnostic::render(p, &source, look.color, look.width))
        .collect();
    say_as_is(shown.trim_end());
}

/// The problems without the secrets that they quote.
fn redacted(problems: &[Diagnostic], redactor: &Redactor) -> Vec<Diagnostic> {
    let clean = |text: &str| redactor.redact(text).into_owned();
    let one = |p: &Diagnostic| Diagnostic {
        message: clean(&p.message),
        hint: p.hint.as_deref().map(clean),
        ..p.clone()
    };
    problems.iter().map(one).collect()
}

/// Writes a line on stderr, with commands as they are to be typed here; a terminal that is gone is no
/// reason to stop.
pub fn say(text: &str) {
    say_as_is(&here::told(text));
}

/// The same for what may quote a document or the output of steps.
pub fn say_as_is(text: &str) {
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Writes a line on stdout. If nobody reads any more the program ends quietly.
pub fn data(text: &str) {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(b'\n');
    data_bytes(&bytes);
}

/// Writes bytes on stdout as they are. If nobody reads any more the program ends quietly.
pub fn data_bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        say(&format!("error[stdout]: cannot write the output: {error}"));
        std::process::exit(1);
    }
}

/// Writes a value as JSON on stdout: readable on a terminal, one line elsewhere.
pub fn data_json(value: &impl Serialize) {
    data_bytes(&json_bytes(value));
}

/// The same in a command that drives a run: a reader that went away changes neither what is done
/// nor the exit code.
pub fn drive_json(value: &impl Serialize) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(&json_bytes(value)).and_then(|()| out.flush());
}

fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    let pretty = io::stdout().is_terminal();
    let mut bytes = Vec::with_capacity(4096);
    let done = if pretty {
        serde_json::to_writer_pretty(&mut bytes, value)
    } else {
        serde_json::to_writer(&mut bytes, value)
    };
    // Our own plain types serialise to memory without fail.
    debug_assert!(done.is_ok(), "a value that is no JSON");
    bytes.push(b'\n');
    bytes
}

/// Two observers of one driver, called in turn; for example a [`Tally`] beside the terminal.
pub struct Both<'a>(pub &'a mut dyn Observer, pub &'a mut dyn Observer);

impl Observer for Both<'_> {
    fn event(&mut self, seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        self.0.event(seq, at, event, state);
        self.1.event(seq, at, event, state);
    }

    fn note(&mut self, note: &Note) {
        self.0.note(note);
        self.1.note(note);
    }

    fn tick(&mut self, now: Timestamp, state: &RunState) {
        self.0.tick(now, state);
        self.1.tick(now, state);
    }

    fn wants_ticks(&self) -> bool {
        self.0.wants_ticks() || self.1.wants_ticks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn example() -> CommandError {
        CommandError::new(Kind::Blocked, "spec-changed", "the spec\u{1b}[2J changed")
            .hint("accept it with `--accept-spec`")
            .hint("or undo the change")
    }

    #[test]
    fn an_error_has_a_code_and_each_hint_its_line() {
        assert_eq!(
            error_text(&example(), &Look::plain(80)),
            "error[spec-changed]: the spec changed\n\
             hint: accept it with `--accept-spec`\n\
             hint: or undo the change\n"
        );
    }

    #[test]
    fn programs_get_the_error_as_one_object() -> Result<(), serde_json::Error> {
        let value = serde_json::to_value(error_json(&example()))?;
        assert_eq!(value["error"]["code"], "spec-changed");
        assert_eq!(value["error"]["exit_code"], 4);
        assert_eq!(value["error"]["hints"][1], "or undo the change");
        Ok(())
    }
}
