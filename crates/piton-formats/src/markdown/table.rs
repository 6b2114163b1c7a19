//! Tables of Markdown: a header, a line of dashes, rows; bars within cells are escaped.
//!
//! Returns cells as they are written, except that `\|` becomes a bar. The readers decide what a
//! column means.

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
        let row = |at: usize| Row { index: at, cells: cells(lines[at].text) };
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

/// The cells of a row; bars at its ends are ignored.
pub fn cells(text: &str) -> Vec<String> {
    let text = text.trim();
    let text = text.strip_prefix('|').unwrap_or(text);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match (c, escaped) {
            ('|', false) => cells.push(String::new()),
            ('|', true) => {
                if let Some(cell) = cells.last_mut() {
                    // The backslash before it was the escape.
                    cell.pop();
                    cell.push('|');
                }
            }
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(c)),
        }
        escaped = c == '\\';
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
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
