//! Markdown that Piton writes itself: tables, fences and texts of others within them.
//!
//! Foreign texts break neither the table nor the fence that they stand in.

use std::fmt::Write as _;

/// Longest text in a table; the log has the full text.
const CELL_CHARS_MAX: usize = 200;

/// A section with a table; nothing if there are no rows.
pub fn table(out: &mut String, title: &str, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "\n## {title}\n\n| {} |\n", head.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
}

/// Lines in a fence that is longer than any backquotes in them.
pub fn fence(out: &mut String, language: &str, lines: &[String]) {
    let text = lines.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest.max(2) + 1);
    let text = text.replace('\r', "");
    let _ = write!(out, "{marks}{language}\n{}\n{marks}\n", text.trim_end());
}

/// A text on one line.
pub fn inline(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).collect::<String>().trim().to_owned()
}

/// A text for a cell of a table.
pub fn cell(text: &str) -> String {
    let mut short: String = inline(text).chars().take(CELL_CHARS_MAX).collect();
    if text.chars().count() > CELL_CHARS_MAX {
        short.push('…');
    }
    short.replace('|', "\\|")
}

/// A text as code within a cell.
pub fn code(text: &str) -> String {
    let cell = cell(text);
    match (cell.is_empty(), cell.contains('`')) {
        (true, _) => String::new(),
        (_, true) => format!("`` {cell} ``"),
        _ => format!("`{cell}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_break_neither_tables_nor_fences() {
        let mut out = String::new();
        table(&mut out, "Empty", &["a"], Vec::new());
        table(&mut out, "One", &["a", "b"], vec![vec![cell("A | B\n"), code("`x`")]]);
        fence(&mut out, "text", &["Attempt 1: ``` no".to_owned(), "line\r".to_owned()]);
        let wanted = "\n## One\n\n| a | b |\n|---|---|\n| A \\| B | `` `x` `` |\n\
            ````text\nAttempt 1: ``` no\nline\n````\n";
        assert_eq!(out, wanted);
        assert_eq!(cell(&"x".repeat(300)).chars().count(), CELL_CHARS_MAX + 1);
    }
}
