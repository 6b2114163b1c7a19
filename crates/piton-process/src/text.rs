//! Makes the output of programs safe to show: one line in, one plain line out.
//!
//! Not a terminal emulator: cursor movement within a screen is dropped, not obeyed.

/// The longest line that is shown, in characters; beyond it a log line is data, not a message.
pub const SHOWN_CHARS_MAX: usize = 500;

/// The most indentation that stays: with more, the line would be cut before its text.
const INDENT_CHARS_MAX: usize = 100;

/// The mark at the end of a line that was cut.
const CUT: char = '…';

/// Makes a line plain: invalid UTF-8 replaced, text overwritten by a carriage return left out
/// (the last segment that is not empty stays), escape sequences and control characters removed,
/// tabs behind the indentation as spaces, blanks at the end trimmed, cut at [`SHOWN_CHARS_MAX`].
///
/// The indentation stays: it is what makes a traceback or a diff readable.
pub fn sanitize(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut shown = String::new();
    for segment in text.split('\r') {
        let plain = plain(segment);
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

/// Removes escape sequences and control characters.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => match chars.next() {
                Some('[') => skip_control_sequence(&mut chars),
                Some(']' | 'P' | '_' | '^' | 'X') => skip_string(&mut chars),
                // Two-character selections (charsets) take one more.
                Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => drop(chars.next()),
                _ => {}
            },
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\t' => plain.push('\t'),
            // Marks that reorder or hide text could make a log say what it does not.
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            char if char.is_control() => {}
            char => plain.push(char),
        }
    }
    plain
}

/// Skips parameters up to the final character of a control sequence.
fn skip_control_sequence(chars: &mut impl Iterator<Item = char>) {
    let _ = chars.find(|char| ('@'..='~').contains(char));
}

/// Skips a string (title, hyperlink) up to its terminator, or to the end of the line.
fn skip_string(chars: &mut std::iter::Peekable<impl Iterator<Item = char>>) {
    while let Some(char) = chars.next() {
        if char == '\u{7}' || char == '\u{9c}' {
            return;
        }
        if char == '\u{1b}' && chars.peek() == Some(&'\\') {
            chars.next();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a step writes must not be able to steer the terminal of whoever reads it.
    #[test]
    fn control_is_removed() {
        for (raw, shown) in [
            (&b"plain\n"[..], "plain"),
            (b"\x1b[1;31merror\x1b[0m: no", "error: no"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b" 10%\r 50%\r100%\r\n", "100%"),
            (b"  two\tthree \t\n", "  two three"),
            (b"\x1b[31m\t at four\x1b[0m  \r\n", "\t at four"),
            (b"\t \r\n", ""),
            (b"a\x08\x00b\tc", "ab c"),
            (b"bad \xff byte", "bad \u{fffd} byte"),
            (b"\x1b[2J\x1b[H", ""),
            (b"\x1b", ""),
        ] {
            assert_eq!(sanitize(raw), shown, "{raw:?}");
        }
    }

    /// One endless line must not fill a prompt.
    #[test]
    fn long_lines_are_cut() {
        let line = "ä".repeat(SHOWN_CHARS_MAX + 10);
        assert_eq!(sanitize(line.as_bytes()).chars().count(), SHOWN_CHARS_MAX + 1);
        let far = sanitize(format!("{}x", " ".repeat(10_000)).as_bytes());
        assert!(far.chars().count() == INDENT_CHARS_MAX + 1 && far.ends_with('x'));
    }
}
