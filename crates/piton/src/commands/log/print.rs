//! Writes lines of output: a heading per attempt, redacted, harmless to a terminal.
//!
//! Where stdout is no terminal the text stays as it was written, but for secrets and bytes that are
//! no UTF-8. What a stream said before is remembered for each attempt, however they take turns: a
//! private key that has begun, a long line that goes on.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use piton_core::StepPath;
use piton_core::budget::size;
use piton_core::redact::{Lines, Redactor};
use piton_process::logs::Stream;
use piton_view::answers::{LogLine, Output};

use super::attempts::Attempt;
use crate::ui;

/// Text gathered before it is written: one write for many lines, little memory.
const BUFFER_BYTES: usize = 256 * 1024;
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
    /// The attempt that wrote last, and what its streams are in the middle of.
    current: Option<(Attempt, [Flow; 2])>,
    /// Other attempts whose streams are in the middle of something.
    others: BTreeMap<(StepPath, u32), (Attempt, [Flow; 2])>,
    /// The stream of the current attempt whose last line has no line feed yet.
    open: Option<Stream>,
    out: String,
}

/// What a stream is in the middle of.
#[derive(Clone, Debug, Default, PartialEq)]
struct Flow {
    lines: Lines,
    /// Whether the last line goes on.
    more: bool,
}

impl<'a> Printer<'a> {
    /// Makes a printer.
    pub fn new(redactor: &'a Redactor, form: Form) -> Self {
        Self {
            headings: false,
            printed: false,
            redactor,
            form,
            current: None,
            others: BTreeMap::new(),
            open: None,
            out: String::new(),
        }
    }

    /// Writes a line of an attempt as read from its log, or a part of it if there is `more`.
    pub fn line(&mut self, attempt: &Attempt, stream: Stream, bytes: &[u8], more: bool) {
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        if zeros >= HOLE_BYTES_MIN {
            self.dropped(attempt, stream, zeros as u64);
            if zeros < bytes.len() {
                self.line(attempt, stream, &bytes[zeros..], more);
            }
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let redactor = self.redactor;
        let flow = &mut self.turn_to(attempt)[stream as usize];
        let text = flow.lines.next(redactor, text.strip_suffix('\n').unwrap_or(&text), more);
        let goes_on = std::mem::replace(&mut flow.more, more);
        match self.form {
            Form::Json => self.object(attempt, stream, Output::Line(&text), more),
            // Of a line that is far wider than any terminal the beginning is shown.
            Form::Terminal if goes_on => {}
            Form::Terminal => {
                // Once more: whatever is made of the line, what is shown holds no secret.
                let shown = redactor.redact(&piton_view::text::sanitize(&text)).into_owned();
                self.push(&shown);
            }
            Form::Plain => self.write(stream, &text, more),
        }
    }

    /// Says that bytes of an attempt are no longer there.
    pub fn dropped(&mut self, attempt: &Attempt, stream: Stream, bytes: u64) {
        self.end(attempt, stream);
        self.turn_to(attempt)[stream as usize].lines.skip();
        match self.form {
            Form::Json => self.object(attempt, stream, Output::Dropped(bytes), false),
            _ => self.push(&format!("… {} dropped …", size(bytes))),
        }
    }

    /// Writes what is held back of a line that goes on no more.
    pub fn end(&mut self, attempt: &Attempt, stream: Stream) {
        if self.turn_to(attempt)[stream as usize].more {
            self.line(attempt, stream, b"", false);
        }
    }

    /// The same for all lines of all attempts.
    pub fn end_all(&mut self) {
        let open = |flows: &[Flow; 2]| flows.iter().any(|flow| flow.more);
        let all = self.others.values().chain(&self.current).filter(|(_, flows)| open(flows));
        for attempt in all.map(|(attempt, _)| attempt.clone()).collect::<Vec<_>>() {
            self.end(&attempt, Stream::Stdout);
            self.end(&attempt, Stream::Stderr);
        }
    }

    /// Writes out what was gathered.
    pub fn flush(&mut self) {
        if !self.out.is_empty() {
            ui::data_bytes(self.out.as_bytes());
            self.out.clear();
        }
    }

    /// Makes an attempt the one that writes; a heading says so.
    fn turn_to(&mut self, attempt: &Attempt) -> &mut [Flow; 2] {
        let is_it = |(a, _): &(Attempt, _)| a.number == attempt.number && a.step == attempt.step;
        if !self.current.as_ref().is_some_and(is_it) {
            let id = |a: &Attempt| (a.step.clone(), a.number);
            let flows = self.others.remove(&id(attempt)).map(|(_, flows)| flows);
            if let Some(before) = self.current.take()
                && before.1 != <[Flow; 2]>::default()
            {
                self.others.insert(id(&before.0), before);
            }
            if self.headings && self.form != Form::Json {
                let outcome = attempt.outcome.unwrap_or("running");
                let (step, number) = (&attempt.step, attempt.number);
                self.push(&format!("== {step} attempt {number} ({outcome}) =="));
            }
            self.current = Some((attempt.clone(), flows.unwrap_or_default()));
        }
        &mut self.current.get_or_insert_with(|| (attempt.clone(), Default::default())).1
    }

    fn object(&mut self, attempt: &Attempt, stream: Stream, output: Output<'_>, more: bool) {
        let stream = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let (step, attempt) = (attempt.step.to_string(), attempt.number);
        self.push(&LogLine { step, attempt, stream, output, more }.json());
    }

    /// Writes a line of its own.
    fn push(&mut self, line: &str) {
        if self.open.take().is_some() {
            self.out.push('\n');
        }
        self.printed = true;
        let _ = writeln!(self.out, "{line}");
        self.bound();
    }

    /// Writes a line of a stream, or a part of one: the next part stands right behind it.
    fn write(&mut self, stream: Stream, text: &str, more: bool) {
        if self.open.take().is_some_and(|open| open != stream) {
            self.out.push('\n');
        }
        self.printed = true;
        self.out.push_str(text);
        if more {
            self.open = Some(stream);
        } else {
            self.out.push('\n');
        }
        self.bound();
    }

    fn bound(&mut self) {
        if self.out.len() >= BUFFER_BYTES {
            self.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use piton_core::event::{Event, StepStarted};
    use piton_core::hash::Sha;
    use piton_core::redact::Names;

    use super::super::attempts::Attempts;
    use super::*;

    fn attempt(number: u32) -> Attempt {
        let mut attempts = Attempts::default();
        attempts.take(&Event::StepStarted(StepStarted::new(
            StepPath::new("P1", "A", "build"),
            number,
            Sha::of(b""),
        )));
        attempts.list.remove(0)
    }

    fn printed(form: Form, lines: &[&[u8]]) -> String {
        let redactor = Redactor::new([("MY_TOKEN", "hunter2hunter2")], &Names::default());
        let mut printer = Printer::new(&redactor, form);
        for line in lines {
            printer.line(&attempt(1), Stream::Stdout, line, false);
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

    /// Lost: the lines of a key that two steps writing at once take turns with.
    #[test]
    fn a_key_is_remembered_while_others_write() {
        let redactor = Redactor::default();
        let mut printer = Printer::new(&redactor, Form::Plain);
        let begin = b"-----BEGIN RSA PRIVATE KEY-----\n";
        for (number, stream, line) in [
            (1, Stream::Stdout, &begin[..]),
            (2, Stream::Stdout, b"other\n"),
            (1, Stream::Stderr, b"error\n"),
            (1, Stream::Stdout, b"MIIE\n"),
        ] {
            printer.line(&attempt(number), stream, line, false);
        }
        assert_eq!(printer.out, "[redacted]\nother\nerror\n[redacted]\n");
    }

    /// Lost: lines of a search that marks what it found, on a terminal and in a pipe.
    #[test]
    fn a_marked_secret_goes() {
        let line: [&[u8]; 1] = [b"a \x1b[01;31m\x1b[Khunter\x1b[m\x1b[K2hunter2 b\n"];
        assert_eq!(printed(Form::Terminal, &line), "a [redacted] b\n");
        for form in [Form::Plain, Form::Json] {
            let text = printed(form, &line);
            assert!(text.contains("[redacted]") && !text.contains("hunter"), "{text}");
        }
    }

    /// Lost: a secret in two halves; a line that no program can put together again.
    #[test]
    fn parts_of_a_line_are_one() {
        let long = format!("{}hunter2", "x ".repeat(50_000));
        let of = |form| {
            let redactor = Redactor::new([("MY_TOKEN", "hunter2hunter2")], &Names::default());
            let mut printer = Printer::new(&redactor, form);
            for (stream, line, more) in [
                (Stream::Stdout, long.as_bytes(), true),
                (Stream::Stdout, b"hunter2 end\n", false),
                (Stream::Stdout, b"next ", true),
                (Stream::Stderr, b"E\n", false),
            ] {
                printer.line(&attempt(1), stream, line, more);
            }
            printer.end_all();
            std::mem::take(&mut printer.out)
        };
        let first = format!("{}[redacted] end", "x ".repeat(50_000));
        // What goes on after another stream had its turn begins a line of its own.
        assert_eq!(of(Form::Plain), format!("{first}\n\nE\nnext \n"));
        let objects: Vec<serde_json::Value> =
            of(Form::Json).lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        let more: Vec<bool> = objects.iter().map(|o| o["more"] == true).collect();
        assert_eq!(more, [true, false, true, false, false]);
        let text = |at: usize| objects[at]["line"].as_str().unwrap_or_default().to_owned();
        assert_eq!(text(0) + &text(1), first);
        assert_eq!(text(2) + &text(4), "next ");
        let terminal = of(Form::Terminal);
        let lines: Vec<&str> = terminal.lines().collect();
        assert_eq!((lines.len(), lines[0].trim_end()), (3, first[..4095].trim_end()));
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
            printer.line(&attempt(number), Stream::Stdout, b"x\n", false);
        }
        let expected = "== P1/A/build attempt 1 (running) ==\nx\nx\n\
                        == P1/A/build attempt 2 (running) ==\nx\n";
        assert_eq!(printer.out, expected);
        printer.out.clear();
    }
}
