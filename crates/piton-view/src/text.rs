//! Text for terminals: made harmless, measured in columns, cut and wrapped.
//!
//! Nothing here knows of runs. Text from steps may hold anything; what could move the cursor, change
//! colours or hide the order of characters does not pass.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Most bytes of one text that are looked at for one line of a terminal: no screen is wider, and a
/// step may write a line of many megabytes.
const LINE_BYTES_MAX: usize = 4096;

/// A line with the columns it takes.
pub type Line = (String, usize);

/// Text for one line of a terminal: escape sequences and control characters are gone.
///
/// Of a line that was rewritten with carriage returns the last version remains.
pub fn sanitize(text: &str) -> String {
    let text = text.trim_end_matches(['\r', '\n']);
    let text = text.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
    let mut clean = String::with_capacity(text.len().min(LINE_BYTES_MAX));
    push_clean(&mut clean, head(text));
    clean
}

/// Text for several lines of a terminal: like [`sanitize`], but line breaks stay.
pub fn sanitize_lines(text: &str) -> String {
    text.lines().map(sanitize).collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, cut between characters.
fn head(text: &str) -> &str {
    let mut end = text.len().min(LINE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn push_clean(clean: &mut String, text: &str) {
    for piece in anstream::adapter::strip_str(text) {
        for c in piece.chars() {
            match c {
                '\t' | '\n' => clean.push(' '),
                c if is_unsafe(c) => {}
                c => clean.push(c),
            }
        }
    }
}

/// Tells whether a character could drive a terminal or hide the order of a text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The columns a text takes on a terminal; it must hold no escape sequences.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Cuts a text to a number of columns; what was cut ends in an ellipsis.
pub fn cut(text: &str, width: usize, ellipsis: &str) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let workspace = width.saturating_sub(columns(ellipsis));
    let mut used = 0;
    let mut short: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= workspace
        })
        .collect();
    if columns(ellipsis) <= width {
        short.push_str(ellipsis);
    }
    short
}

/// Wraps words into lines of at most `width` columns, further lines indented by `indent`.
///
/// A word longer than a line is not broken: a command must stay one piece to be copied.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let start = text.len() - text.trim_start().len();
    out.push_str(&text[..start]);
    let (mut used, mut fresh) = (start, true);
    for word in text.split_whitespace() {
        let long = columns(word);
        if !fresh && used + 1 + long > width {
            let _ = write!(out, "\n{:indent$}", "");
            (used, fresh) = (indent, true);
        }
        if !fresh {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
        fresh = false;
    }
    out
}

/// Counts things: `1 step`, `3 steps`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_of_a_step_do_not_reach_the_terminal() {
        let hostile = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}a\tb\u{8}\u{202e}c\u{9b}";
        assert_eq!(sanitize(hostile), "red a bc");
    }

    #[test]
    fn the_last_version_of_a_progress_line_remains() {
        assert_eq!(sanitize("10%\r50%\r100%\r\n"), "100%");
        assert_eq!(sanitize_lines("a\r\nb\u{1b}[2J\n"), "a\nb");
        assert_eq!(sanitize("\r\n"), "");
    }

    #[test]
    fn a_line_of_megabytes_is_not_copied_whole() {
        assert_eq!(sanitize(&"é".repeat(1_000_000)).len(), LINE_BYTES_MAX);
    }

    #[test]
    fn cutting_counts_columns() {
        assert_eq!(cut("日本語", 6, "…"), "日本語");
        assert_eq!(cut("日本語", 5, "…"), "日本…");
        assert_eq!(cut("abcdef", 4, "..."), "a...");
        assert_eq!(cut("abcdef", 2, "..."), "");
    }

    #[test]
    fn wrapping_keeps_indent_and_long_words() {
        assert_eq!(wrap("  a bb ccc dddddddddd", 8, 4), "  a bb\n    ccc\n    dddddddddd");
        assert_eq!(wrap("what  fits is   kept", 80, 4), "what  fits is   kept");
    }
}
