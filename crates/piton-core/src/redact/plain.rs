//! A text as a reader sees it: without escape sequences and invisible characters.
//!
//! Colours must not hide a secret: a program that marks a part of one writes it in pieces. This text
//! is only searched, never shown; matches are mapped back to the text as written.

use std::ops::Range;

use crate::pattern::pattern;

/// What takes no space on a screen: escape sequences, control characters other than line breaks and
/// tabs, and marks that hide or reorder what is beside them.
const UNSEEN: [&str; 5] = [
    // A control sequence, such as a colour.
    r"(?:\x1b\[|\u{9b})[ -?]*[@-~]?",
    // A string, such as a title or the address of a link. The next escape ends it too.
    r"\x1b[\]P_^X][^\n\x1b\x07\u{9c}]*[\x07\u{9c}]?",
    // The choice of a character set takes one more character.
    r"\x1b[()*+#% ](?s:.)?",
    r"\x1b[^\n\x1b]?",
    r"[\x00-\x08\x0b-\x1f\x7f-\u{9f}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]",
];

/// A text without what is not seen.
pub struct Plain {
    /// What is seen.
    pub text: String,
    /// Where runs of it begin, here and in the text as written.
    runs: Vec<(usize, usize)>,
}

impl Plain {
    /// The text as it is seen; nothing if that is just as it is written.
    pub fn of(written: &str) -> Option<Self> {
        // The bytes that controls and invisible marks begin with; most texts hold none.
        let is_odd = |b: u8| (b < b' ' && !b"\n\t".contains(&b)) || matches!(b, 0x7f | 0xc2 | 0xe2);
        if !written.bytes().any(is_odd) {
            return None;
        }
        let mut plain = Self { text: String::with_capacity(written.len()), runs: Vec::new() };
        let mut at = 0;
        for unseen in pattern!(&UNSEEN.join("|"))?.find_iter(written) {
            plain.push(at, &written[at..unseen.start()]);
            at = unseen.end();
        }
        plain.push(at, &written[at..]);
        (plain.text.len() < written.len()).then_some(plain)
    }

    fn push(&mut self, at: usize, seen: &str) {
        if !seen.is_empty() {
            self.runs.push((self.text.len(), at));
            self.text.push_str(seen);
        }
    }

    /// Where a range of what is seen lies in the text as written; what is not seen around it is not
    /// part of it.
    pub fn written(&self, seen: &Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let run = self.runs.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            self.runs.get(run).map_or(at, |(start, written)| written + (at - start))
        };
        if seen.is_empty() {
            return place(seen.start)..place(seen.start);
        }
        place(seen.start)..place(seen.end - 1) + 1
    }
}

/// The sequences in a text that set colours, one after the other: what stays of a secret that was
/// coloured, or all that follows would have its colour.
pub fn colours(text: &str) -> String {
    let parts = text.split("\u{1b}[").skip(1);
    let params = |part: &str| part.find(|c: char| !c.is_ascii_digit() && !";:".contains(c));
    parts
        .filter_map(|part| {
            let end = params(part).filter(|end| part[*end..].starts_with('m'))?;
            Some(format!("\u{1b}[{}m", &part[..end]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_found_in_what_is_written() {
        for (written, seen) in [
            ("a\u{1b}[01;31m\u{1b}[Kb\u{1b}[m\u{1b}[Kc", "abc"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("a\u{0}b\u{200b}c\u{8}", "abc"),
            ("ä\u{9b}1mö\u{1b}(Bü", "äöü"),
            ("\u{1b}", ""),
            ("a\u{1b}[\nb", "a\nb"),
        ] {
            let plain = Plain::of(written).map(|plain| plain.text);
            assert_eq!(plain.as_deref(), Some(seen), "{written:?}");
        }
        for whole in ["", "plain\ttext\n", "“ä” £"] {
            assert!(Plain::of(whole).is_none(), "{whole}");
        }
        let written = "x \u{1b}[1mab\u{1b}[0mcd\u{1b}[K y";
        let place = Plain::of(written).map(|plain| plain.written(&(2..6)));
        assert_eq!(place.map(|place| &written[place]), Some("ab\u{1b}[0mcd"));
    }

    #[test]
    fn only_colours_are_kept() {
        assert_eq!(
            colours("a\u{1b}[1;31mb\u{1b}[Kc\u{1b}]0;x\u{7}\u{1b}[m"),
            "\u{1b}[1;31m\u{1b}[m"
        );
        assert_eq!(colours("\u{1b}[12"), "");
    }
}
