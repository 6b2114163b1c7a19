//! The inside of a Markdown line: emphasis, code spans, bullets, boxes, lists of words.
//!
//! Works on borrowed pieces of one line and knows nothing of any protocol.

use std::ops::Range;

/// The text without emphasis and backquotes.
pub fn plain(text: &str) -> String {
    text.replace("**", "").replace("__", "").replace('`', "").trim().to_owned()
}

/// A heading as it is compared: without pictures, numbering, emphasis and case.
///
/// `D. Swim Lanes`, `4) Swim Lanes`, `🏊 Swim Lanes` and `**Swim lanes**` are one title.
pub fn title(text: &str) -> String {
    let plain = undecorated(&plain(text)).to_lowercase();
    let unnumbered = plain.split_once(['.', ')']).and_then(|(number, rest)| {
        let short = number.len() <= 2 && number.chars().all(char::is_alphanumeric);
        (short && rest.starts_with(' ')).then_some(rest)
    });
    let unnumbered = undecorated(unnumbered.unwrap_or(&plain).trim_start());
    let words: Vec<&str> = unnumbered.split_whitespace().collect();
    words.join(" ").trim_end_matches(':').to_owned()
}

/// The text without pictures before its first word, such as a rocket or a tick; dashes and arrows stay.
pub fn undecorated(text: &str) -> &str {
    let is_picture = |c: char| {
        !c.is_ascii()
            && !c.is_alphanumeric()
            && !matches!(c, '\u{2000}'..='\u{206F}' | '\u{2190}'..='\u{21FF}' | '\u{2500}'..='\u{257F}')
    };
    // A picture may be followed by a mark that chooses how it is drawn.
    let bare =
        text.trim_start_matches(|c: char| is_picture(c) || c == '\u{fe0f}' || c == '\u{200d}');
    if bare.len() < text.len() { bare.trim_start() } else { text }
}

/// What follows the mark of a list item: `- x`, `* x`, `+ x`, `1. x`, `1) x`.
pub fn bullet(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let after = match text.strip_prefix(['-', '*', '+']) {
        Some(after) => after,
        None => text.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(['.', ')'])?,
    };
    let numbered = text.starts_with(|c: char| c.is_ascii_digit());
    let marked = text.starts_with(['-', '*', '+']);
    if !(numbered || marked) || !(after.is_empty() || after.starts_with([' ', '\t'])) {
        return None;
    }
    Some(after.trim_start())
}

/// A box at the start of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkbox<'a> {
    /// The text between the brackets.
    pub mark: &'a str,
    /// What follows the box.
    pub rest: &'a str,
}

impl Checkbox<'_> {
    /// Whether it is ticked.
    pub fn is_ticked(&self) -> bool {
        matches!(self.mark.trim(), "x" | "X")
    }

    /// Whether it is plainly ticked or not, rather than marked in some other way.
    pub fn is_plain(&self) -> bool {
        self.is_ticked() || self.mark.trim().is_empty()
    }
}

/// The box of a list item, given what follows the item's mark.
pub fn checkbox(item: &str) -> Option<Checkbox<'_>> {
    let (mark, rest) = item.strip_prefix('[')?.split_once(']')?;
    (mark.chars().count() <= 1).then(|| Checkbox { mark, rest: rest.trim_start() })
}

/// The code spans of a line, as ranges of the text between the backquotes.
pub fn code_spans(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('`').map(|i| at + i) {
        let run = text[open..].bytes().take_while(|b| *b == b'`').count();
        let from = open + run;
        match closing(&text[from..], run) {
            Some(length) => {
                found.push(from..from + length);
                at = from + length + run;
            }
            None => at = from,
        }
    }
    found
}

/// Where a run of exactly `run` backquotes begins.
fn closing(text: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].find('`').map(|i| at + i) {
        let length = text[next..].bytes().take_while(|b| *b == b'`').count();
        if length == run {
            return Some(next);
        }
        at = next + length;
    }
    None
}

/// The text with its code spans blanked, backquotes included, byte for byte as long as before.
fn blanked(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for span in code_spans(text) {
        bytes[span].fill(b'`');
    }
    bytes
}

/// Splits at any of the characters, outside of brackets and code spans.
pub fn split_outside<'a>(text: &'a str, separators: &[u8]) -> Vec<&'a str> {
    let bytes = blanked(text);
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && separators.contains(byte) => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// The text without parentheses and their content, outside of code spans.
pub fn without_brackets(text: &str) -> String {
    let bytes = blanked(text);
    let mut depth = 0_u32;
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.trim().to_owned()
}

/// Whether a value means nothing: `-`, `none`, `(none - why)`, `n/a`, empty.
pub fn is_none(text: &str) -> bool {
    let plain = plain(text).to_lowercase();
    let bare = plain.trim_start_matches('(').trim_end_matches(')').trim().trim_end_matches('.');
    if matches!(bare, "" | "-" | "--" | "—" | "–" | "n/a" | "na" | "nothing" | "nil" | "null") {
        return true;
    }
    let rest = bare.strip_prefix("none").or_else(|| bare.strip_prefix("n/a"));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_lose_number_emphasis_and_case() {
        let decorated = ["🏊 Swim Lanes", "**✅\u{fe0f} Swim lanes**", "D. 🏊 Swim Lanes"];
        let plain = ["D. Swim Lanes", "4) Swim lanes", "**Swim Lanes**", "Swim  Lanes:"];
        for text in plain.into_iter().chain(decorated) {
            assert_eq!(title(text), "swim lanes", "{text}");
        }
        assert_eq!(title("e.g. this"), "e.g. this");
    }

    #[test]
    fn pictures_before_a_text_are_none_of_its_words() {
        assert_eq!(undecorated("🚀 SL-1"), "SL-1");
        assert_eq!(undecorated("✅\u{fe0f} SL-1"), "SL-1");
        for text in ["→ SL-1", "— x", "Änderung", "SL-1"] {
            assert_eq!(undecorated(text), text);
        }
    }

    #[test]
    fn list_items_and_boxes() {
        assert_eq!(bullet("  - a"), Some("a"));
        assert_eq!(bullet("12. a"), Some("a"));
        assert_eq!(bullet("-> a"), None);
        assert_eq!(bullet(". a"), None);
        assert_eq!(bullet("text"), None);
        let open = checkbox("[ ] IF-1").map(|b| (b.is_ticked(), b.rest));
        assert_eq!(open, Some((false, "IF-1")));
        assert!(checkbox("[X] a").is_some_and(|b| b.is_ticked()));
        assert!(checkbox("[~] a").is_some_and(|b| !b.is_ticked() && !b.is_plain()));
        assert!(checkbox("[link](x)").is_none());
    }

    #[test]
    fn code_spans_end_with_as_many_backquotes() {
        let text = "a `b` ``c ` d`` `e";
        let spans: Vec<&str> = code_spans(text).into_iter().map(|r| &text[r]).collect();
        assert_eq!(spans, ["b", "c ` d"]);
    }

    #[test]
    fn lists_are_split_outside_of_brackets_and_code() {
        assert_eq!(split_outside("a, `b, c`, d (e, f)", b","), ["a", "`b, c`", "d (e, f)"]);
        assert_eq!(without_brackets("SL-1 (needs (all)) x"), "SL-1  x");
        assert_eq!(split_outside("ä, é (", b","), ["ä", "é ("]);
    }

    #[test]
    fn nothing_has_many_names() {
        for text in
            ["", "-", "—", "none", "None (Phase 4 needs it)", "(none - first)", "N/A", "`-`"]
        {
            assert!(is_none(text), "{text}");
        }
        for text in ["nonesuch", "SL-1", "(Phase 2)", "none_x"] {
            assert!(!is_none(text), "{text}");
        }
    }
}
