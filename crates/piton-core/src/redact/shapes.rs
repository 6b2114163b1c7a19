//! Secrets that are known by their looks alone: well-known tokens, and private keys.
//!
//! A private key is found by its first and last line. Either may be missing from a text that was cut,
//! so a key without an end is one up to [`KEY_BYTES_MAX`], and before an end that has no beginning
//! goes what looks like a key's lines.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

/// Longest private key that is known as one: the largest in use take a quarter of it. Bounded, so
/// that a text which only speaks of the beginning of a key is not lost from there on.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// Shortest line that looks like one of a private key by itself: all but the last of a key are
/// longer, and few words are.
pub const KEY_LINE_BYTES_MIN: usize = 48;
/// Shorter ones that a key may end with: its last line, and a checksum.
const KEY_SHORT_LINES_MAX: usize = 2;

/// What the lines around private keys hold, and next to nothing else does.
const KEY_HINT: &str = "PRIVATE KEY";

/// Where a private key begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The place of the words that begin it.
    Begin(Range<usize>),
    /// The place of the words that end it.
    End(Range<usize>),
}

/// Where tokens stand in a text.
pub fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    token_shapes().into_iter().flat_map(move |shapes| shapes.find_iter(text).map(|m| m.range()))
}

/// The beginnings and ends of private keys in a text, in order.
pub fn key_marks(text: &str) -> Vec<Mark> {
    if !text.contains(KEY_HINT) {
        return Vec::new();
    }
    let Some(shape) = key_shape() else { return Vec::new() };
    let mark = |c: regex::Captures<'_>| {
        let whole = c.get(0)?.range();
        Some(if c.get(1)?.as_str() == "BEGIN" { Mark::Begin(whole) } else { Mark::End(whole) })
    };
    shape.captures_iter(text).filter_map(mark).collect()
}

/// Where private keys stand in a text.
pub fn keys(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut begun, mut over) = (Vec::new(), None, 0);
    let bounded = |from: usize, end: usize| from..end.min(boundary(text, from + KEY_BYTES_MAX));
    for mark in key_marks(text) {
        match (mark, begun) {
            (Mark::Begin(place), None) => begun = Some(place.start),
            (Mark::Begin(place), Some(from)) if place.start > from + KEY_BYTES_MAX => {
                found.push(bounded(from, place.start));
                begun = Some(place.start);
            }
            (Mark::Begin(_), Some(_)) => {}
            (Mark::End(place), Some(from)) if place.end <= from + KEY_BYTES_MAX => {
                found.push(from..place.end);
                (begun, over) = (None, place.end);
            }
            (Mark::End(place), from) => {
                found.extend(from.map(|from| bounded(from, place.start)));
                found.push(over + body_start(&text[over..place.start])..place.end);
                (begun, over) = (None, place.end);
            }
        }
    }
    found.extend(begun.map(|from| bounded(from, text.len())));
    found
}

/// Where the lines of a key begin that a text ends with.
fn body_start(text: &str) -> usize {
    let (mut start, mut short) = (text.len(), 0);
    loop {
        let before = text[..start].trim_end();
        let word = before.rfind(char::is_whitespace).map_or(before, |at| before[at..].trim_start());
        short += usize::from(word.len() < KEY_LINE_BYTES_MIN);
        if !is_key_line(word) || short > KEY_SHORT_LINES_MAX {
            return start;
        }
        start = before.len() - word.len();
    }
}

/// Whether a line could be from the middle of a private key.
pub fn is_key_line(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
}

/// The last place up to `at` where a character begins.
pub fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn key_shape() -> Option<&'static Regex> {
    static SHAPE: OnceLock<Option<Regex>> = OnceLock::new();
    let shape = r"-----(BEGIN|END) [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----";
    SHAPE.get_or_init(|| Regex::new(shape).ok()).as_ref()
}

/// Shapes of tokens. Words are told apart by ASCII alone, which is quicker and finds no less.
fn token_shapes() -> Option<&'static Regex> {
    static SHAPES: OnceLock<Option<Regex>> = OnceLock::new();
    SHAPES
        .get_or_init(|| {
            let shapes = [
                r"gh[pousr]_[A-Za-z0-9]{20,}",
                r"github_pat_[A-Za-z0-9_]{20,}",
                r"glpat-[A-Za-z0-9_-]{16,}",
                r"sk-[A-Za-z0-9_-]{20,}",
                r"(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
                r"AIza[A-Za-z0-9_-]{30,}",
                r"xox[abprs]-[A-Za-z0-9-]{10,}",
                r"npm_[A-Za-z0-9]{30,}",
                r"pypi-[A-Za-z0-9_-]{30,}",
                r"hf_[A-Za-z0-9]{30,}",
                r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
            ];
            Regex::new(&format!(r"(?-u:\b)(?:{})", shapes.join("|"))).ok()
        })
        .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
    const END: &str = "-----END OPENSSH PRIVATE KEY-----";

    fn found(text: &str) -> Vec<&str> {
        keys(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn a_key_is_found_with_one_end_or_both() {
        let whole = format!("{BEGIN}\nb3Bl\n{END}");
        assert_eq!(found(&format!("a\n{whole}\nb {whole} c")), [whole.as_str(), &whole]);
        assert_eq!(found(&format!("a {BEGIN}\nb3Bl")), [format!("{BEGIN}\nb3Bl")]);
        let rest = format!("{}\n{0}\nb3Bl\n=bn\n{END}", "b3BlbnNz".repeat(8));
        assert_eq!(found(&format!("it is\n{rest} b")), [rest.as_str()]);
        assert_eq!(found(&rest), [rest.as_str()]);
        assert_eq!(found(END), [END]);
        assert_eq!(found(&format!("ä ends with {END}")), [format!("ends with {END}")]);
        let pgp =
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----";
        assert_eq!(found(pgp), [pgp]);
        assert_eq!(found("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"), [""; 0]);
    }

    /// A log that quotes the beginning of a key must not be lost from there on.
    #[test]
    fn a_key_has_an_end() {
        let text = format!("{BEGIN}\n{}", "ä\n".repeat(KEY_BYTES_MAX));
        let lengths: Vec<usize> = keys(&text).into_iter().map(|range| range.len()).collect();
        assert!(lengths.len() == 1 && lengths[0] <= KEY_BYTES_MAX, "{lengths:?}");
        let text = format!("{text}\nb3Bl\n{END}\n{text}");
        assert_eq!(keys(&text).len(), 3);
    }
}
