//! A text as a reader sees it: without escape sequences and what else takes no room on a screen.
//!
//! Colours must not hide a secret: a program that marks a part of one writes it in pieces. Not for
//! showing: it only finds, and tells where in the text as written it found.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

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
        let mut chars = written.char_indices().peekable();
        let mut expected = None;
        while let Some((at, c)) = chars.next() {
            match c {
                '\u{1b}' => skip_escape(&mut chars),
                '\u{9b}' => skip_control(&mut chars),
                c if is_unseen(c) => {}
                c => {
                    if expected != Some(at) {
                        plain.runs.push((plain.text.len(), at));
                    }
                    plain.text.push(c);
                    expected = Some(at + c.len_utf8());
                }
            }
        }
        (plain.text.len() < written.len()).then_some(plain)
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

/// Characters that take no room. Line breaks and tabs do.
fn is_unseen(c: char) -> bool {
    (c.is_control() && !"\n\t".contains(c))
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn skip_escape(chars: &mut Peekable<CharIndices<'_>>) {
    match chars.peek().map(|(_, c)| *c) {
        Some('[') => {
            chars.next();
            skip_control(chars);
        }
        Some(']' | 'P' | '_' | '^' | 'X') => skip_string(chars),
        // Choices of character sets take one more.
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            chars.next();
            chars.next();
        }
        Some(c) if c != '\n' && c != '\u{1b}' => drop(chars.next()),
        _ => {}
    }
}

/// Skips what stands between the beginning of a control sequence and its last character, and that.
fn skip_control(chars: &mut Peekable<CharIndices<'_>>) {
    while chars.next_if(|(_, c)| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|(_, c)| ('@'..='~').contains(c));
}

/// Skips a string (title, address of a link) up to its end, which is also the next escape.
fn skip_string(chars: &mut Peekable<CharIndices<'_>>) {
    while chars.next_if(|(_, c)| !matches!(c, '\n' | '\u{1b}' | '\u{7}' | '\u{9c}')).is_some() {}
    chars.next_if(|(_, c)| matches!(c, '\u{7}' | '\u{9c}'));
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
