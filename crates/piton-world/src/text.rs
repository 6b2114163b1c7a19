//! Makes the output of programs safe to show: one line in, one plain line out.
//!
//! Not a terminal emulator: cursor movement within a screen is dropped, not obeyed.

use piton_core::redact::as_seen;

/// The longest line that is shown, in characters; beyond it a log line is data, not a message.
const SHOWN_CHARS_MAX: usize = 500;

/// The most indentation that stays: with more, the line would be cut before its text.
const INDENT_CHARS_MAX: usize = 100;

/// The mark at the end of a line that was cut.
const CUT: char = '…';

/// Makes a line plain: text overwritten by a carriage return left out (the last segment that is not
/// empty stays), escape sequences and control characters removed, tabs behind the indentation as
/// spaces, blanks at the end trimmed, cut at `SHOWN_CHARS_MAX`.
///
/// The indentation stays: it is what makes a traceback or a diff readable.
pub fn sanitize(line: &str) -> String {
    let mut shown = String::new();
    for segment in line.split('\r') {
        let plain = as_seen(segment);
        let text = plain.trim_start();
        if !text.is_empty() {
            let indent = plain[..plain.len() - text.len()].chars().take(INDENT_CHARS_MAX);
            shown = indent.chain(text.trim_end().replace('\t', " ").chars()).collect();
        }
    }
    if let Some((at, _)) = shown.char_indices().nth(SHOWN_CHARS_MAX) {
        shown.truncate(at);
        shown.push(CUT);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a step writes must not be able to steer the terminal of whoever reads it.
    #[test]
    fn control_is_removed() {
        for (raw, shown) in [
            ("plain\n", "plain"),
            ("\x1b[1;31merror\x1b[0m: no", "error: no"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (" 10%\r 50%\r100%\r\n", "100%"),
            ("  two\tthree \t\n", "  two three"),
            ("\x1b[31m\t at four\x1b[0m  \r\n", "\t at four"),
            ("\t \r\n", ""),
            ("a\x08\x00b\tc", "ab c"),
            ("\x1b[2J\x1b[H", ""),
            ("\x1b", ""),
        ] {
            assert_eq!(sanitize(raw), shown, "{raw:?}");
        }
    }

    /// One endless line must not fill a prompt.
    #[test]
    fn long_lines_are_cut() {
        let line = "ä".repeat(SHOWN_CHARS_MAX + 10);
        assert_eq!(sanitize(&line).chars().count(), SHOWN_CHARS_MAX + 1);
        let far = sanitize(&format!("{}x", " ".repeat(10_000)));
        assert!(far.chars().count() == INDENT_CHARS_MAX + 1 && far.ends_with('x'));
    }
}
