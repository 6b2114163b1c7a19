//! Collects the problems of one document, each with its line, column and bytes.
//!
//! Knows places, not meanings. All problems are collected, so that a person can fix them in one go.

use std::ops::Range;

use toml_span::{ErrorKind, Value};

use crate::diagnostic::{Diagnostic, Severity, code, line_start};

/// A value and its place in the document.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its bytes in the document.
    pub span: Range<usize>,
}

/// Collects the problems of one document.
pub struct Sink<'a> {
    file: &'a str,
    text: &'a str,
    line_starts: Vec<usize>,
    found: Vec<Diagnostic>,
}

impl<'a> Sink<'a> {
    /// Begins a document.
    pub fn new(file: &'a str, text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Self {
            file,
            text,
            line_starts: std::iter::once(0).chain(newlines).collect(),
            found: Vec::new(),
        }
    }

    /// The bytes of a line, counted from 1, without its end.
    pub fn line_span(&self, line: usize) -> Range<usize> {
        let known = self.line_starts.get(line.saturating_sub(1)).copied();
        let start = known.unwrap_or(self.text.len());
        start..start + self.text[start..].lines().next().map_or(0, str::len)
    }

    /// The document.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Reports an error: the document is refused.
    pub fn error(
        &mut self,
        code: &'static str,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Severity::Error, code, span, message.into(), hint.into());
    }

    /// Reports a warning.
    pub fn warn(
        &mut self,
        code: &'static str,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Severity::Warning, code, span, message.into(), hint.into());
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: &Range<usize>,
        message: String,
        hint: String,
    ) {
        // The parser counts bytes and may end within a character.
        let start = floor_boundary(self.text, span.start);
        let end = ceil_boundary(self.text, span.end.max(start));
        let line = self.line_starts.partition_point(|at| *at <= start);
        let column = self.text[line_start(self.text, start)..start].chars().count() + 1;
        self.found.push(Diagnostic {
            severity,
            code,
            file: self.file.to_owned(),
            line,
            column,
            span: start..end,
            message,
            hint: Some(hint),
        });
    }

    /// Whether the document is refused.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// Returns the problems of the document from top to bottom, each once.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by(|a, b| {
            (a.span.start, a.span.end, &a.message).cmp(&(b.span.start, b.span.end, &b.message))
        });
        self.found.dedup();
        self.found
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

fn ceil_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (at..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len())
}

/// Parses a document; a syntax error is reported like any other problem.
pub fn parse<'t>(sink: &mut Sink<'t>) -> Option<Value<'t>> {
    match toml_span::parse(sink.text()) {
        Ok(value) => Some(value),
        Err(error) => {
            let hint = match &error.kind {
                ErrorKind::DuplicateKey { .. } => "remove one of the two",
                ErrorKind::DuplicateTable { .. } | ErrorKind::RedefineAsArray => {
                    "use [[name]] for a list of tables, and [name] only once"
                }
                ErrorKind::UnterminatedString => "close the string with the quote that opened it",
                ErrorKind::InvalidNumber | ErrorKind::UnquotedString => {
                    "put strings, durations and dates in quotes; numbers have at most 63 bits"
                }
                ErrorKind::UnexpectedEof => "something is missing here",
                _ => "correct the TOML here",
            };
            let span = error.span.start..error.span.end;
            sink.error(code::BAD_SYNTAX, &span, format!("not valid TOML: {error}"), hint);
            None
        }
    }
}

/// A document that is not valid UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotUtf8 {
    /// The document with replacement characters, to show the problem in.
    pub text: String,
    /// The first problem.
    pub problems: Vec<Diagnostic>,
}

/// The text of a document; `file` is its name as the user gave it.
pub fn utf8(file: &str, bytes: Vec<u8>) -> Result<String, NotUtf8> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let mut sink = Sink::new(file, &text);
        let message = format!("the file is not valid UTF-8: byte 0x{byte:02x}");
        let mark = char::REPLACEMENT_CHARACTER.len_utf8();
        sink.error(code::NOT_UTF8, &(at..at + mark), message, "save the file as UTF-8");
        let problems = sink.finish();
        NotUtf8 { text, problems }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::render;

    #[test]
    fn bytes_that_are_not_utf8_are_reported_with_their_place() {
        let read = utf8("p.toml", b"a = 1\r\nb = \"\xc3\xa4 \xff\"\n".to_vec());
        let NotUtf8 { text, problems } = read.err().unwrap_or_default();
        let rendered: String = problems.iter().map(|p| render(p, &text, false, 80)).collect();
        assert!(rendered.starts_with("p.toml:2:8: error: "), "{rendered}");
        assert!(rendered.contains(" 2 | b = \"ä \u{fffd}\"\n   |        ^\n"), "{rendered}");
        assert_eq!(utf8("p.toml", b"\xef\xbb\xbfa".to_vec()).ok().as_deref(), Some("\u{feff}a"));
    }
}
