//! Tables of Markdown: a header, a line of dashes, rows; bars within cells are escaped or
//! in code spans.
//!
//! Returns cells as they are written, except that `\|` becomes a bar. The readers decide what a
//! column means.

use std::ops::Range;

use super::inline::code_spans;
use super::{Line, Place};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Position of its line among the lines that were given.
    pub index: usize,
    /// Its cells, trimmed.
    pub cells: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of its columns.
    pub header: Row,
    /// Its rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// The columns as they are compared: without emphasis, brackets and case.
    pub fn columns(&self) -> Vec<String> {
        self.header.cells.iter().map(|cell| column(cell)).collect()
    }
}

/// A column's name as it is compared; `Test Command(s)` and `test commands` are one.
pub fn column(cell: &str) -> String {
    let lower = super::inline::plain(cell).to_lowercase().replace("(s)", "s").replace('_', " ");
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.join(" ").trim_end_matches(':').to_owned()
}

/// The tables of some lines, outside of fences.
pub fn tables(lines: &[Line<'_>]) -> Vec<Table> {
    let mut found = Vec::new();
    let mut index = 1;
    while index < lines.len() {
        if !(is_row(&lines[index - 1]) && is_delimiter(&lines[index])) {
            index += 1;
            continue;
        }
        let header = Row { index: index - 1, cells: cells(lines[index - 1].text) };
        let from = index + 1;
        let count = lines[from..].iter().take_while(|line| is_row(line)).count();
        let columns = header.cells.len();
        let row = |at: usize| Row { index: at, cells: fitted(lines[at].text, columns) };
        found.push(Table { header, rows: (from..from + count).map(row).collect() });
        index = from + count + 1;
    }
    found
}

fn is_row(line: &Line<'_>) -> bool {
    line.place == Place::Text && line.text.contains('|')
}

fn is_delimiter(line: &Line<'_>) -> bool {
    let dashes = |cell: &String| {
        let bare = cell.trim_start_matches(':').trim_end_matches(':');
        !bare.is_empty() && bare.bytes().all(|b| b == b'-')
    };
    is_row(line) && cells(line.text).iter().all(dashes)
}

/// The cells of a row; bars at its ends are ignored, and a bar within a code span is no border.
pub fn cells(text: &str) -> Vec<String> {
    spans(text, &code_spans(text)).into_iter().map(|span| cell(&text[span])).collect()
}

/// The cells of a row of a table with so many columns.
///
/// A backquote that is never closed makes a code span of what follows. If the row has its columns only
/// without such spans, its bars are borders.
fn fitted(text: &str, columns: usize) -> Vec<String> {
    let found = cells(text);
    if found.len() == columns {
        return found;
    }
    let bare: Vec<String> = spans(text, &[]).into_iter().map(|span| cell(&text[span])).collect();
    if bare.len() == columns { bare } else { found }
}

fn cell(text: &str) -> String {
    text.trim().replace("\\|", "|")
}

/// The cells of a row, as ranges of its text with the blanks around each; bars within the given code
/// spans are no borders.
pub(super) fn spans(text: &str, code: &[Range<usize>]) -> Vec<Range<usize>> {
    let from = text.len() - text.trim_start().len();
    let to = text.trim_end().len();
    let from = if text[from..].starts_with('|') { from + 1 } else { from };
    let mut found = Vec::new();
    let (mut start, mut is_escaped) = (from, false);
    for (at, c) in text.char_indices().filter(|(at, _)| (from..to).contains(at)) {
        if c == '|' && !is_escaped && !code.iter().any(|span| span.contains(&at)) {
            found.push(start..at);
            start = at + 1;
        }
        is_escaped = c == '\\';
    }
    let last = start..to.max(start);
    // What follows the bar at the end of a row is not a cell.
    if found.is_empty() || !text[last.clone()].trim().is_empty() {
        found.push(last);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    #[test]
    fn rows_with_and_without_outer_bars() {
        assert_eq!(cells("| a | b |"), ["a", "b"]);
        assert_eq!(cells("a | b"), ["a", "b"]);
        assert_eq!(cells("| a | |"), ["a", ""]);
        assert_eq!(cells(r"| `x \| y` | \d |"), ["`x | y`", r"\d"]);
    }

    #[test]
    fn a_bar_within_a_code_span_is_no_border() {
        assert_eq!(cells("| `a | b` | c |"), ["`a | b`", "c"]);
        assert_eq!(cells("| `echo '...' | x` smoke | `y` |"), ["`echo '...' | x` smoke", "`y`"]);
        // Two backquotes that belong to different cells are no code span.
        let text = "| A | B |\n|---|---|\n| a ` b | c ` d |\n";
        let found = tables(&Document::new(text).lines);
        assert_eq!(found[0].rows[0].cells, ["a ` b", "c ` d"]);
    }

    #[test]
    fn a_table_needs_its_line_of_dashes() {
        let text = "| A | B(s) |\n|:--|---:|\n| 1 | 2 |\n| 3 | 4 |\n\n| x | y |\n";
        let document = Document::new(text);
        let found = tables(&document.lines);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].columns(), ["a", "bs"]);
        assert_eq!(found[0].rows.len(), 2);
        assert_eq!(found[0].rows[1].index, 3);
    }

    #[test]
    fn tables_within_fences_are_examples() {
        let document = Document::new("```\n| A |\n|---|\n| 1 |\n```\n");
        assert!(tables(&document.lines).is_empty());
    }
}
