//! The report as Markdown: for a terminal, a commit message, a comment on a pull request.

use std::fmt::Write as _;

use piton_formats::markdown::write::{code, fence, inline};

use super::Report;
use super::document::{Body, Cell, Document, Table, Trouble, status_words, utc};
use super::scale::LENGTH;
use super::time_line::{Row, RowKind, TimeLine, Tone};
use crate::text::{columns, cut};

/// Characters of the time line: with the names it fits a page of 100 columns.
const LINE_CHARS: usize = 60;
/// Most columns of a name beside it.
const NAME_COLUMNS_MAX: usize = 32;

impl Report<'_> {
    /// The report as Markdown.
    pub fn markdown(&self) -> String {
        let document = Document::new(self);
        let mut out = format!("# {}\n\n", plain(&document.title));
        let status = status_words(Some(document.status));
        let _ = writeln!(out, "- status: **{status}**");
        for (name, value) in &document.lead {
            let _ = writeln!(out, "- {name}: {}", plain(value));
        }
        out.push_str("\n| | | |\n|---|---:|---|\n");
        for figure in &document.figures {
            let _ = writeln!(out, "| {} | {} | {} |", figure.name, figure.value, figure.note);
        }
        for section in &document.sections {
            let _ = write!(out, "\n## {}\n\n", section.title);
            if !section.note.is_empty() {
                let _ = write!(out, "{}\n\n", section.note);
            }
            match &section.body {
                Body::TimeLine(line) => time_line(&mut out, line),
                Body::Table(table) => self::table(&mut out, table),
                Body::Failures(failures) => {
                    for (at, one) in failures.iter().enumerate() {
                        out.push_str(if at > 0 { "\n" } else { "" });
                        failure(&mut out, one);
                    }
                }
            }
        }
        out.push_str("\nTimes are UTC.\n");
        out
    }
}

fn table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "| {} |", table.head.join(" | "));
    let is_number = |at: usize| table.rows.iter().all(|row| matches!(row[at], Cell::Number(_)));
    for at in 0..table.head.len() {
        out.push_str(if is_number(at) { "|---:" } else { "|---" });
    }
    out.push_str("|\n");
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if let Some(left_out) = &table.left_out {
        let _ = write!(out, "\n… {left_out}.\n");
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Code(text) => code(text),
        other => plain(&other.words()),
    }
}

fn failure(out: &mut String, failure: &Trouble) {
    let attempt = failure.attempt.map(|n| format!(", attempt {n}")).unwrap_or_default();
    let (place, when) = (plain(&failure.place), utc(failure.when));
    let _ = write!(out, "### {place}{attempt}\n\n{when}: {}\n", plain(&failure.error));
    if !failure.lines.is_empty() {
        out.push('\n');
        fence(out, "text", &failure.lines);
    }
}

/// The time line as text: a line for each row, a character for a sixtieth of the time.
fn time_line(out: &mut String, line: &TimeLine) {
    let name = |row: &Row| {
        let indent = if row.kind == RowKind::Lane { "  " } else { "" };
        cut(&format!("{indent}{}", row.name), NAME_COLUMNS_MAX, "…")
    };
    let names: Vec<String> = line.rows.iter().map(name).collect();
    let wide = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let mut lines = vec![format!("{:wide$}  {}", "", marks(line))];
    for (row, name) in line.rows.iter().zip(&names) {
        let pad = " ".repeat(wide - columns(name));
        lines.push(format!("{name}{pad}  {}", bar(row, line)).trim_end().to_owned());
    }
    lines.push(String::new());
    lines.push("█ work  ▓ failed  ▒ interrupted or running  ░ waiting or replan  ╎ cut".to_owned());
    fence(out, "text", &lines);
    if line.more > 0 {
        let _ = write!(out, "\n… and {} more lanes.\n", line.more);
    }
}

/// The character that a place falls into.
fn column(at: u32) -> usize {
    (at as usize * LINE_CHARS / LENGTH as usize).min(LINE_CHARS - 1)
}

fn marks(line: &TimeLine) -> String {
    let mut out = String::new();
    for mark in &line.marks {
        let pad = column(mark.at).saturating_sub(out.chars().count());
        let _ = write!(out, "{:pad$}{}", "", mark.text);
    }
    out
}

fn bar(row: &Row, line: &TimeLine) -> String {
    let mut chars = vec![(' ', Tone::Extent); LINE_CHARS];
    for cut in &line.cuts {
        chars[usize::midpoint(column(cut.from), column(cut.to))] = ('╎', Tone::Extent);
    }
    for one in &row.boxes {
        let symbol = match one.tone {
            Tone::Extent => '─',
            Tone::Good => '█',
            Tone::Busy | Tone::Cut => '▒',
            Tone::Wait | Tone::Replan => '░',
            Tone::Bad => '▓',
        };
        // A box that ends where the next character begins is not in that one.
        let last = column(one.to.saturating_sub(1)).max(column(one.from));
        for place in &mut chars[column(one.from)..=last] {
            if place.0 == ' ' || place.0 == '╎' || one.tone > place.1 {
                *place = (symbol, one.tone);
            }
        }
    }
    chars.into_iter().map(|(symbol, _)| symbol).collect()
}

/// A text in which nothing is Markdown.
fn plain(text: &str) -> String {
    let text = inline(text);
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let inside = before.is_alphanumeric() && rest.peek().is_some_and(|c| c.is_alphanumeric());
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' | '#' => out.extend(['\\', c]),
            '_' if !inside => out.extend(['\\', c]),
            c => out.push(c),
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a name could become a heading, a link or HTML of the page that shows the report.
    #[test]
    fn texts_of_others_stay_texts() {
        assert_eq!(
            plain("# a_b _c_ [x](y) <b>|`z`\n"),
            "\\# a_b \\_c\\_ \\[x\\](y) &lt;b>\\|\\`z\\`"
        );
    }
}
