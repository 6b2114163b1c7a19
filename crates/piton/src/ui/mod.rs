//! What a person or a program sees on the terminal.
//!
//! stdout is data, stderr is talk. What is shown is made in `piton-view`; only this folder writes.

pub mod ask;
#[cfg(test)]
mod fixture;
pub mod live;
pub mod picture;
pub mod stream;
pub mod terminal;

use std::io::{self, IsTerminal as _, Write as _};

use piton_core::redact::Redactor;
use piton_core::refusal::Remedy;
use piton_core::{Event, RunState, Timestamp};
use piton_engine::{Note, Observer};
use piton_formats::{Diagnostic, Severity};
use piton_view::answers::{Answer, Failure, InWords};
use piton_view::json;
use serde::Serialize;

pub use ask::{ask, ask_or_confirm, confirms};
pub use live::Live;
pub use stream::Stream;
pub use terminal::{draws, place, read_by_agent, stderr, stdout, works_in};

use crate::error::{CommandError, Kind};

/// Says how a command failed: on stderr for people, as one object on stdout for programs.
///
/// An error without words was already printed.
pub fn error(error: &CommandError, json: bool) {
    if error.code.is_empty() && error.message.is_empty() {
        return;
    }
    let exit_code = error.kind.exit_code();
    let failure = Failure::new(&error.code, &error.message, &error.hints, exit_code, place());
    if json {
        data_json(&Answer::Error(failure));
    } else {
        say_as_is(failure.render(&stderr(), place()).trim_end());
    }
}

/// Prints all problems of a document and returns the error that ends the command: a usage error, or
/// the precondition of lanes that nothing but fields of tasks is missing.
pub fn document_error(
    problems: &[Diagnostic],
    source: &str,
    json: bool,
    redactor: &Redactor,
) -> CommandError {
    let mut errors = problems.iter().filter(|p| p.severity == Severity::Error);
    let update = errors.all(Diagnostic::asks_for_update);
    let kind = if update { Kind::Blocked } else { Kind::Usage };
    if json {
        let problems = redacted(problems, redactor);
        data_json(&Answer::Error(Failure::from_problems(&problems, kind.exit_code())));
    } else {
        diagnostics(problems, source, redactor);
    }
    CommandError::silent(kind)
}

/// Shows the problems of a document on stderr.
pub fn diagnostics(problems: &[Diagnostic], source: &str, redactor: &Redactor) {
    if problems.is_empty() {
        return;
    }
    let (problems, source, layout) =
        (redacted(problems, redactor), redactor.mask(source), stderr());
    let shown: String = problems
        .iter()
        .map(|p| piton_formats::diagnostic::render(p, &source, layout.color, layout.width))
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

/// Says what came of a command: in words on stderr for people, as data for programs.
pub fn report(json: bool, answer: &(impl Serialize + InWords)) {
    if json {
        data_json(answer);
    } else {
        say(answer.words());
    }
}

/// Shows what was asked for: as text, or as data for programs.
pub fn show(json: bool, answer: &impl Serialize, text: impl FnOnce() -> String) {
    if json {
        data_json(answer);
    } else {
        data(text().trim_end());
    }
}

/// Writes a line on stderr, with commands as they are typed here.
pub fn say(text: impl Into<Remedy>) {
    say_as_is(&place().text(&text.into()));
}

/// The same for text that is already complete. A terminal that is gone is not a reason to stop.
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
        say(format!("error[stdout]: cannot write the output: {error}"));
        std::process::exit(1);
    }
}

/// Writes a value as JSON on stdout: readable on a terminal, one line elsewhere.
pub fn data_json(value: &impl Serialize) {
    data_bytes(&json::bytes(value, io::stdout().is_terminal()));
}

/// The same in a command that drives a run: a reader that went away changes neither what is done
/// nor the exit code.
pub fn drive_json(value: &impl Serialize) {
    let mut out = io::stdout().lock();
    let _ =
        out.write_all(&json::bytes(value, io::stdout().is_terminal())).and_then(|()| out.flush());
}

/// Two observers of one driver, called in turn; for example a tally beside the terminal.
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
