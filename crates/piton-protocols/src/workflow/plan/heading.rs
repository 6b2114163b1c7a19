//! The heading of a phase: `### Phase 2A: Title [MARKER]`.
//!
//! The id is followed by a colon, a dash, parentheses, a marker or nothing; so "Phase 1 Risks" is not
//! a phase. Brackets within a title are no marker: what is skipped by mistake is never done.

use std::ops::Range;

use piton_formats::markdown::Line;
use piton_formats::markdown::inline::code_spans;

use super::model::{Marker, is_date};
use crate::workflow::phase_id::PhaseId;

/// Levels of headings that can be phases.
const LEVELS: std::ops::RangeInclusive<usize> = 2..=4;

/// Symbols that stand for a finished phase.
const CHECKS: [char; 4] = ['✅', '✓', '✔', '☑'];

/// The heading of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The id.
    pub id: PhaseId,
    /// The text after it, without marker and emphasis.
    pub title: String,
    /// What stands in parentheses directly after the id.
    pub remark: Option<String>,
    /// The marker.
    pub marker: Option<Marker>,
    /// The bytes of the marker in the document, brackets included; without a marker the empty range
    /// where one would be added.
    pub marker_range: Range<usize>,
    /// The bytes of what looks like a marker and is none, because text follows it.
    pub stray: Option<Range<usize>>,
}

/// Tells whether a line is the heading of a phase.
pub fn is_phase_heading(line: &Line<'_>) -> bool {
    Heading::read(line).is_some()
}

impl Heading {
    /// Reads a line; `None` if it is not the heading of a phase.
    pub fn read(line: &Line<'_>) -> Option<Self> {
        let (_, text) = line.heading().filter(|(level, _)| LEVELS.contains(level))?;
        let after = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let word = after.get(..5).filter(|word| word.eq_ignore_ascii_case("phase"))?;
        let rest = &after[word.len()..];
        let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
        let (id, rest) = id(rest)?;
        let (remark, rest) =
            match rest.trim_start().strip_prefix('(').and_then(|r| r.split_once(')')) {
                Some((remark, rest)) => (Some(remark.trim().to_owned()), rest),
                None => (None, rest),
            };
        let title = title(rest)?;
        let offset = |piece: &str| piece.as_ptr().addr() - text.as_ptr().addr();
        let text_start = line.start + (text.as_ptr().addr() - line.text.as_ptr().addr());
        let from = offset(rest);
        let found = Brackets::of(text, from).marker();
        let (marker, marker_range, title) = if let Some((marker, range)) = found {
            let title = around(title, offset(title), &range);
            (Some(marker), text_start + range.start..text_start + range.end, title)
        } else {
            let end = text_start + text.trim_end_matches('*').trim_end().len();
            (None, end..end, title)
        };
        let stray = marker.is_none().then(|| Brackets::of(text, from).stray()).flatten();
        let stray = stray.map(|range| text_start + range.start..text_start + range.end);
        let title = title.trim().trim_matches(['*', '_']).trim().to_owned();
        Some(Self { id, title, remark, marker, marker_range, stray })
    }
}

/// A title without the marker that stands before or after it.
fn around<'t>(title: &'t str, start: usize, marker: &Range<usize>) -> &'t str {
    let before = title.get(..marker.start.saturating_sub(start).min(title.len()));
    let before = before.unwrap_or(title);
    if !before.trim().is_empty() {
        return before;
    }
    let after = title.get(marker.end.saturating_sub(start)..).unwrap_or_default().trim_start();
    after.strip_prefix([':', '—', '–', '-']).unwrap_or(after)
}

/// The id at the start of a text, and the rest: `2`, `2A`, `3.1`, `3.1a`.
fn id(text: &str) -> Option<(PhaseId, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(text.len());
    let token = text[..end].trim_end_matches('.');
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    let letters = token[digits..].bytes().filter(u8::is_ascii_alphabetic).count();
    let is_id = digits > 0 && letters <= 1 || digits == 0 && token.len() == 1 || is_roman(token);
    let id = PhaseId::read(token).filter(|_| is_id)?;
    Some((id, &text[token.len()..]))
}

/// Whether a word is a Roman number of several letters.
pub(super) fn is_roman(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|b| matches!(b, b'I' | b'V' | b'X' | b'L' | b'C'))
}

/// The title after the id, if something separates the two.
fn title(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches('*').trim_start();
    if rest.is_empty() || rest.starts_with('[') {
        return Some(rest);
    }
    let separators = [":", "—", "–", "--", "- ", "."];
    separators
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
        .map(|title| title.trim_start_matches('*'))
}

/// The brackets of a heading that are neither code nor links.
struct Brackets<'t> {
    text: &'t str,
    /// Where the id ends.
    from: usize,
    all: Vec<Range<usize>>,
}

impl<'t> Brackets<'t> {
    fn of(text: &'t str, from: usize) -> Self {
        let code = code_spans(text);
        let is_code = |at: usize| code.iter().any(|span| span.contains(&at));
        let (mut all, mut at) = (Vec::new(), from);
        while let Some(close) = text[at..].find(']').map(|close| at + close) {
            let open = text[at..close].rfind('[').map(|open| at + open);
            at = close + 1;
            let is_link = text[at..].starts_with(['(', '[']);
            all.extend(
                open.filter(|open| !is_link && !is_code(*open) && !is_code(close))
                    .map(|open| open..close + 1),
            );
        }
        Self { text, from, all }
    }

    /// The marker and its bytes: at the end of the heading, where dates and parentheses may follow it,
    /// or directly after the id. One after the id's colon is in capitals: otherwise it begins the title.
    fn marker(&self) -> Option<(Marker, Range<usize>)> {
        let mut ending = self.all.iter().filter(|range| is_tail(&self.text[range.end..]));
        let last = ending.clone().next_back();
        let known = |range: &Range<usize>| Some((Marker::known(self.word(range))?, range.clone()));
        if let Some(found) = ending.find_map(known) {
            return Some(found);
        }
        let first = self.all.first().and_then(|range| {
            let before = &self.text[self.from..range.start];
            let marker = Marker::known(self.word(range))?;
            let is_after_id = before.trim_matches(['*', ' ']).is_empty();
            let is_after_colon = before.trim_matches(['*', ' ', ':', '—', '–', '-']).is_empty();
            (is_after_id || is_after_colon && is_capital(self.word(range)))
                .then(|| (marker, range.clone()))
        });
        let unknown = || {
            let (range, word) = (last?.clone(), self.word(last?).trim());
            (is_capital(word) && word.chars().filter(|c| c.is_alphabetic()).count() > 1)
                .then(|| (Marker::Unknown(word.to_owned()), range))
        };
        first.or_else(|| bare(self.text, self.from)).or_else(unknown)
    }

    /// A marker in a place where it is none.
    fn stray(&self) -> Option<Range<usize>> {
        let is_marker = |range: &&Range<usize>| {
            let word = self.word(range);
            is_capital(word) && Marker::known(word).is_some()
        };
        self.all.iter().rfind(is_marker).cloned()
    }

    fn word(&self, range: &Range<usize>) -> &'t str {
        &self.text[range.start + 1..range.end - 1]
    }
}

fn is_capital(word: &str) -> bool {
    !word.chars().any(char::is_lowercase)
}

/// A marker at the end without brackets: `✅ COMPLETED`.
fn bare(text: &str, from: usize) -> Option<(Marker, Range<usize>)> {
    let at = from + text[from..].rfind(CHECKS)?;
    let word = text[at..].trim_start_matches(CHECKS).trim_start_matches('\u{fe0f}');
    let word = word.trim_end_matches(['*', ' ']);
    let marker = Marker::known(word).filter(|_| is_capital(word))?;
    let end = text.len() - (text[at..].len() - text[at..].trim_end_matches(['*', ' ']).len());
    Some((marker, at..end))
}

/// Whether nothing follows a marker but dates, symbols and parentheses.
fn is_tail(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        rest = if c == '(' {
            let Some(end) = rest.find(')') else { return false };
            &rest[end + 1..]
        } else if c.is_alphanumeric() {
            let end = rest.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(rest.len());
            if !is_date(&rest[..end]) {
                return false;
            }
            &rest[end..]
        } else if matches!(c, '[' | ']' | '`') {
            return false;
        } else {
            &rest[c.len_utf8()..]
        };
    }
    true
}
