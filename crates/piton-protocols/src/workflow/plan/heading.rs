//! The heading of a phase: `### Phase 2A: Title [MARKER]`.
//!
//! The id is followed by a colon, a dash, parentheses, a marker or nothing; so "Phase 1 Risks" is not
//! a phase.

use std::ops::Range;

use piton_formats::markdown::Line;

use super::model::Marker;
use crate::workflow::phase_id::PhaseId;

/// Levels of headings that can be phases.
const LEVELS: std::ops::RangeInclusive<usize> = 2..=4;

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
        let offset = |piece: &str, of: &str| piece.as_ptr().addr() - of.as_ptr().addr();
        let text_start = line.start + offset(text, line.text);
        let (marker, marker_range, title) = if let Some((marker, range)) = marker(text) {
            let length = range.start.saturating_sub(offset(title, text)).min(title.len());
            let title = title.get(..length).unwrap_or(title);
            (Some(marker), text_start + range.start..text_start + range.end, title)
        } else {
            let end = text_start + text.trim_end_matches('*').trim_end().len();
            (None, end..end, title)
        };
        let title = title.trim().trim_matches(['*', '_']).trim().to_owned();
        Some(Self { id, title, remark, marker, marker_range })
    }
}

/// The id at the start of a text, and the rest: `2`, `2A`, `3.1`, `3.1a`.
fn id(text: &str) -> Option<(PhaseId, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(text.len());
    let token = text[..end].trim_end_matches('.');
    let digits = token.bytes().take_while(u8::is_ascii_digit).count();
    let letters = token[digits..].bytes().filter(u8::is_ascii_alphabetic).count();
    let is_id = digits > 0 && letters <= 1 || digits == 0 && token.len() == 1;
    let id = PhaseId::read(token).filter(|_| is_id)?;
    Some((id, &text[token.len()..]))
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

/// The marker in brackets, and its bytes within the text. The last known one counts; without one, the
/// brackets at the end if they hold upper-case words.
fn marker(text: &str) -> Option<(Marker, Range<usize>)> {
    let mut unknown = None;
    let mut end = text.len();
    while let Some(close) = text[..end].rfind(']') {
        let Some(open) = text[..close].rfind('[') else { break };
        let word = &text[open + 1..close];
        if let Some(marker) = Marker::known(word) {
            return Some((marker, open..close + 1));
        }
        let is_last = text[close + 1..].trim_matches(['*', ' ']).is_empty();
        let is_upper = |c: char| c.is_ascii_uppercase() || matches!(c, ' ' | '-' | '_');
        if is_last && word.trim().len() > 1 && word.chars().all(is_upper) {
            unknown = Some((Marker::Unknown(word.trim().to_owned()), open..close + 1));
        }
        end = open;
    }
    unknown
}
