//! Writes lines of output: a heading per attempt, redacted, harmless to a terminal.
//!
//! Where stdout is no terminal the text stays as it was written, but for secrets and bytes that are
//! no UTF-8.

use std::borrow::Cow;
use std::fmt::Write as _;

use piton_core::budget::size;
use piton_core::redact::{REPLACEMENT, Redactor};
use piton_process::logs::Stream;

use super::attempts::Attempt;
use crate::ui;

/// Text gathered before it is written: one write for many lines, little memory.
const BUFFER_BYTES: usize = 64 * 1024;
/// So many zero bytes in a row are a hole in the log of a running attempt, not output: holes are
/// punched in whole pages.
const HOLE_BYTES_MIN: usize = 4096;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One object per line.
    Json,
    /// For a terminal: nothing that could drive it.
    Terminal,
    /// As written.
    Plain,
}

/// Writes lines on stdout.
pub struct Printer<'a> {
    /// Whether a heading says which attempt follows.
    pub headings: bool,
    /// Whether anything was printed.
    pub printed: bool,
    redactor: &'a Redactor,
    form: Form,
    last: Option<(String, u32)>,
    /// Whether the line before stood inside a private key, per stream.
    in_key: [bool; 2],
    out: String,
}

impl<'a> Printer<'a> {
    /// Makes a printer.
    pub fn new(redactor: &'a Redactor, form: Form) -> Self {
        let (headings, printed, last, in_key) = (false, false, None, [false; 2]);
        Self { headings, printed, redactor, form, last, in_key, out: String::new() }
    }

    /// Writes a line of an attempt, as read from its log.
    pub fn line(&mut self, attempt: &Attempt, stream: Stream, bytes: &[u8]) {
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        if zeros >= HOLE_BYTES_MIN {
            self.dropped(attempt, stream, zeros as u64);
            if zeros < bytes.len() {
                self.line(attempt, stream, &bytes[zeros..]);
            }
            return;
        }
        self.heading(attempt);
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = self.redact(stream, text).into_owned();
        match self.form {
            Form::Json => self.object(attempt, stream, "line", &text.into()),
            Form::Terminal => self.push(&ui::text::sanitize(&text)),
            Form::Plain => self.push(&text),
        }
    }

    /// Says that bytes of an attempt are no longer there.
    pub fn dropped(&mut self, attempt: &Attempt, stream: Stream, bytes: u64) {
        self.heading(attempt);
        match self.form {
            Form::Json => self.object(attempt, stream, "dropped", &bytes.into()),
            _ => self.push(&format!("… {} dropped …", size(bytes))),
        }
    }

    /// Writes out what was gathered.
    pub fn flush(&mut self) {
        if !self.out.is_empty() {
            ui::data_bytes(self.out.as_bytes());
            self.out.clear();
        }
    }

    fn heading(&mut self, attempt: &Attempt) {
        let this = (attempt.step.to_string(), attempt.number);
        if self.last.as_ref() == Some(&this) {
            return;
        }
        if self.headings && self.form != Form::Json {
            let outcome = attempt.outcome.unwrap_or("running");
            self.push(&format!("== {} attempt {} ({outcome}) ==", this.0, this.1));
        }
        self.in_key = [false; 2];
        self.last = Some(this);
    }

    fn object(&mut self, attempt: &Attempt, stream: Stream, key: &str, value: &serde_json::Value) {
        let name = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let step = attempt.step.to_string();
        let object = serde_json::json!(
            { "step": step, "attempt": attempt.number, "stream": name, key: value }
        );
        self.push(&object.to_string());
    }

    fn push(&mut self, line: &str) {
        self.printed = true;
        let _ = writeln!(self.out, "{line}");
        if self.out.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    /// Secrets are looked for line by line; of a private key the lines between go as well.
    fn redact<'t>(&mut self, stream: Stream, line: &'t str) -> Cow<'t, str> {
        let in_key = &mut self.in_key[usize::from(stream == Stream::Stderr)];
        let marks = line.contains("PRIVATE KEY-----");
        if *in_key {
            *in_key = !(marks && line.contains("-----END "));
            return Cow::Borrowed(REPLACEMENT);
        }
        *in_key = marks && line.contains("-----BEGIN ") && !line.contains("-----END ");
        self.redactor.redact(line)
    }
}

#[cfg(test)]
mod tests {
    use piton_core::StepPath;
    use piton_core::event::{Event, StepStarted};
    use piton_core::hash::Sha;

    use super::super::attempts::Attempts;
    use super::*;

    fn attempt(number: u32) -> Attempt {
        let mut attempts = Attempts::default();
        attempts.take(&Event::StepStarted(StepStarted {
            step: StepPath::new("P1", "A", "build"),
            attempt: number,
            definition: Sha::of(b""),
            inputs: Vec::new(),
            before: None,
        }));
        attempts.list.remove(0)
    }

    fn printed(form: Form, lines: &[&[u8]]) -> String {
        let redactor = Redactor::new([("MY_TOKEN", "hunter2hunter2")], &[]);
        let mut printer = Printer::new(&redactor, form);
        for line in lines {
            printer.line(&attempt(1), Stream::Stdout, line);
        }
        std::mem::take(&mut printer.out)
    }

    #[test]
    fn secrets_go_and_a_terminal_is_not_driven() {
        let lines: [&[u8]; 2] = [b"  a hunter2hunter2\n", b"\x1b[2Jb\n"];
        assert_eq!(printed(Form::Terminal, &lines), "  a [redacted]\nb\n");
        assert_eq!(printed(Form::Plain, &lines), "  a [redacted]\n\u{1b}[2Jb\n");
    }

    #[test]
    fn all_lines_of_a_private_key_go() {
        let lines: [&[u8]; 4] = [
            b"-----BEGIN RSA PRIVATE KEY-----\n",
            b"MIIE\n",
            b"-----END RSA PRIVATE KEY-----\n",
            b"after\n",
        ];
        assert_eq!(printed(Form::Plain, &lines), "[redacted]\n[redacted]\n[redacted]\nafter\n");
    }

    #[test]
    fn each_line_is_one_object() {
        let text = printed(Form::Json, &[b"bad \xff\n"]);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(value["line"], "bad \u{fffd}");
        assert_eq!((&value["step"], &value["attempt"]), (&"P1/A/build".into(), &1.into()));
        assert_eq!(value["stream"], "stdout");
    }

    #[test]
    fn a_hole_in_a_growing_log_is_named_and_its_zeros_are_not_shown() {
        let mut bytes = vec![0; 5000];
        bytes.extend_from_slice(b"tail\n");
        assert_eq!(printed(Form::Plain, &[&bytes]), "… 5.0 kB dropped …\ntail\n");
    }

    #[test]
    fn attempts_are_told_apart() {
        let redactor = Redactor::default();
        let mut printer = Printer::new(&redactor, Form::Plain);
        printer.headings = true;
        for number in [1, 1, 2] {
            printer.line(&attempt(number), Stream::Stdout, b"x\n");
        }
        let expected = "== P1/A/build attempt 1 (running) ==\nx\nx\n\
                        == P1/A/build attempt 2 (running) ==\nx\n";
        assert_eq!(printer.out, expected);
        printer.out.clear();
    }

    #[test]
    fn sizes_read_like_speech() {
        assert_eq!(size(1_240_000), "1.2 MB");
        assert_eq!(size(999), "999 bytes");
    }
}
