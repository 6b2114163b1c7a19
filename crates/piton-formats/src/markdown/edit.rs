//! Changes of a Markdown document that keep every other byte: lines added beside a line, cells of a
//! table row replaced.
//!
//! Each function names one change; which one is wanted is decided by the caller. Line endings are
//! those of the neighbouring line, and a document without a final newline still has none.

use std::ops::Range;

use super::{Document, Line};

/// A change of a text: some bytes, and what replaces them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The bytes that are replaced; an empty range inserts.
    pub range: Range<usize>,
    /// What replaces them.
    pub with: String,
}

impl Change {
    /// The text with the change made.
    pub fn apply(&self, text: &mut String) {
        text.replace_range(self.range.clone(), &self.with);
    }
}

/// The ending of a line: empty for the last line of a document without a final newline.
pub fn line_ending<'t>(text: &'t str, line: &Line<'_>) -> &'t str {
    let rest = text.get(line.span().end..).unwrap_or_default();
    ["\r\n", "\n"].into_iter().find(|ending| rest.starts_with(ending)).unwrap_or_default()
}

/// The line ending of a document: that of its first line.
pub fn newline(text: &str) -> &'static str {
    let first = text.find('\n').unwrap_or_default();
    if first > 0 && text.as_bytes()[first - 1] == b'\r' { "\r\n" } else { "\n" }
}

/// Adds lines after a line of the document.
pub fn insert_after(text: &str, line: &Line<'_>, lines: &[String]) -> Change {
    let ending = line_ending(text, line);
    let at = line.span().end + ending.len();
    let with = match ending {
        "" => lines.iter().flat_map(|line| [newline(text), line]).collect(),
        ending => lines.iter().flat_map(|line| [line.as_str(), ending]).collect(),
    };
    Change { range: at..at, with }
}

/// Adds lines before a line of the document.
pub fn insert_before(text: &str, line: &Line<'_>, lines: &[String]) -> Change {
    let ending = match line_ending(text, line) {
        "" => newline(text),
        ending => ending,
    };
    let with = lines.iter().flat_map(|line| [line.as_str(), ending]).collect();
    Change { range: line.start..line.start, with }
}

/// Adds lines at the top of a document, behind its byte order mark.
pub fn insert_at_top(text: &str, lines: &[String]) -> Change {
    if let Some(first) = Document::new(text).lines.first() {
        return insert_before(text, first, lines);
    }
    let with = lines.iter().flat_map(|line| [line.as_str(), newline(text)]).collect();
    Change { range: text.len()..text.len(), with }
}

/// A value on one line: line breaks and other control characters become spaces.
pub fn one_line(value: &str) -> String {
    let pieces = value.split(is_break).map(str::trim).filter(|piece| !piece.is_empty());
    pieces.collect::<Vec<&str>>().join(" ")
}

fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A value as a cell of a table: on one line, its bars escaped.
pub fn cell(value: &str) -> String {
    one_line(value).replace('|', "\\|")
}

/// A row of a table.
pub fn row(values: &[&str]) -> String {
    std::iter::once("|".to_owned()).chain(values.iter().map(|value| closed(value))).collect()
}

/// A cell with the bar behind it.
fn closed(value: &str) -> String {
    let value = cell(value);
    if value.is_empty() { " |".to_owned() } else { format!(" {value} |") }
}

/// The cells of a row, as ranges of its text, with the blanks around each.
pub fn cell_spans(text: &str) -> Vec<Range<usize>> {
    super::table::spans(text, &super::inline::code_spans(text))
}

/// The row with one of its cells replaced; the blanks around the cell stay, and cells that the row
/// lacks are added.
pub fn with_cell(text: &str, index: usize, value: &str) -> String {
    let spans = cell_spans(text);
    let mut out = text.to_owned();
    if let Some(span) = spans.get(index) {
        let value = cell(value);
        let old = &text[span.clone()];
        let lead = old.len() - old.trim_start().len();
        let new = if old.trim().is_empty() {
            if value.is_empty() { old.to_owned() } else { format!(" {value} ") }
        } else {
            let tail = &old[old.trim_end().len()..];
            // Without a blank, the backslash would escape the bar behind it.
            let tail = if tail.is_empty() && value.ends_with('\\') { " " } else { tail };
            format!("{}{value}{tail}", &old[..lead])
        };
        out.replace_range(span.clone(), &new);
        return out;
    }
    out.truncate(out.trim_end().len());
    if !out.ends_with('|') || out.ends_with("\\|") {
        out.push_str(" |");
    }
    out.push_str(&" |".repeat(index - spans.len()));
    out.push_str(&closed(value));
    out
}

#[cfg(test)]
mod tests {
    use super::super::table::cells;
    use super::*;

    fn inserted(text: &str, after: usize, new: &str) -> String {
        let mut out = text.to_owned();
        let document = Document::new(text);
        insert_after(text, &document.lines[after], &[new.to_owned()]).apply(&mut out);
        out
    }

    #[test]
    fn lines_are_added_with_the_ending_of_their_neighbour() {
        assert_eq!(inserted("a\r\nb\n", 0, "x"), "a\r\nx\r\nb\n");
        assert_eq!(inserted("a\r\nb\n", 1, "x"), "a\r\nb\nx\n");
        assert_eq!(inserted("a\r\nb", 1, "x"), "a\r\nb\r\nx");
        assert_eq!(inserted("a", 0, "x"), "a\nx");
        for (text, wanted) in
            [("", "x\n"), ("\u{feff}", "\u{feff}x\n"), ("\u{feff}a", "\u{feff}x\na")]
        {
            let mut out = text.to_owned();
            insert_at_top(text, &["x".to_owned()]).apply(&mut out);
            assert_eq!(out, wanted);
        }
    }

    #[test]
    fn a_cell_is_replaced_and_its_spacing_stays() {
        for (text, index, value, wanted) in [
            ("| a | b |", 1, "c", "| a | c |"),
            ("|  a  |b|", 0, "c", "|  c  |b|"),
            ("|  a  |b|", 1, "c", "|  a  |c|"),
            ("|a|b|", 0, "c\\", "|c\\ |b|"),
            ("a | b", 1, "c", "a | c"),
            ("| a | |", 1, "c", "| a | c |"),
            ("| a |", 2, "c", "| a | | c |"),
            ("a | b", 2, "c", "a | b | c |"),
            (r"| a \| b | c |", 0, "x|y", r"| x\|y | c |"),
            ("| a | b | ", 0, "c\nd", "| c d | b | "),
        ] {
            assert_eq!(with_cell(text, index, value), wanted, "{text}");
        }
    }

    #[test]
    fn spans_and_cells_agree() {
        for text in
            ["| a | b |", "a | b", "|a||", "|", "||", "", r"| \| | \\| |", " x ", "| |", r"a \|"]
        {
            let spans: Vec<String> = cell_spans(text)
                .into_iter()
                .map(|span| text[span].trim().replace("\\|", "|"))
                .collect();
            assert_eq!(spans, cells(text), "{text:?}");
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for values in [vec!["a", "b"], vec!["", ""], vec!["x | y", "\\"], vec!["a\\|b", "c\r\nd"]] {
            let line = row(&values);
            let wanted: Vec<String> = values.iter().map(|v| v.replace("\r\n", " ")).collect();
            assert_eq!(cells(&line), wanted, "{line}");
        }
    }
}
