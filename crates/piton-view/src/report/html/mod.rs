//! The report as one HTML file: no script, no request, no font of its own; dark where the reader's
//! system is dark.
//!
//! Its own policy forbids everything but its style, so that a text of a step could do nothing even if it
//! were not escaped.

mod drawing;

use std::fmt::Write as _;

use piton_core::Status;

use super::document::{Body, Cell, Document, Figure, Section, Table, Trouble, status_words, utc};
use super::{Ended, Report};
use crate::layout::{BAD, BUSY, GOOD, NOTE, style_of};

/// The looks of a page.
const STYLE: &str = include_str!("style.css");
/// A page may use its own style and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// Rows of a table for looking things up that are open at once; longer ones are folded.
const OPEN_ROWS_MAX: usize = 12;

impl Report<'_> {
    /// The report as one HTML file.
    pub fn html(&self) -> String {
        let document = Document::new(self);
        let title = escape(&document.title);
        let mut out = String::with_capacity(64 << 10);
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}: run {}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            escape(&document.run_id),
        );
        head(&mut out, &document);
        figures(&mut out, &document.figures);
        document.sections.iter().for_each(|one| section(&mut out, one));
        out.push_str(
            "<footer>Written by Piton. Times are UTC.</footer>\n</main>\n</body>\n</html>\n",
        );
        out
    }
}

/// A text in which nothing is HTML.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn head(out: &mut String, document: &Document) {
    let badge = badge(status_class(Some(document.status)), &status_words(Some(document.status)));
    let _ = write!(out, "<header>\n<h1>{}</h1>\n{badge}\n<dl>\n", escape(&document.title));
    for (name, value) in &document.lead {
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(value));
    }
    out.push_str("</dl>\n</header>\n");
}

fn figures(out: &mut String, figures: &[Figure]) {
    out.push_str("<dl class=\"figures\">\n");
    for Figure { name, value, note } in figures {
        let (value, note) = (escape(value), escape(note));
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd>");
        if !note.is_empty() {
            let _ = write!(out, "<dd class=\"note\">{note}</dd>");
        }
        out.push_str("</div>\n");
    }
    out.push_str("</dl>\n");
}

fn section(out: &mut String, section: &Section) {
    let _ = write!(out, "<section>\n<h2>{}</h2>\n", section.title);
    if !section.note.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", with_code(&section.note));
    }
    match &section.body {
        Body::TimeLine(line) => drawing::draw(out, line),
        Body::Table(table) => self::table(out, table),
        Body::Failures(failures) => failures.iter().for_each(|f| failure(out, f)),
    }
    out.push_str("</section>\n");
}

/// A sentence of ours, in which backquotes mean code.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(at, part): (usize, &str)| {
        // A sign of a number stays with it.
        let part = escape(part).replace(" %", "&nbsp;%");
        if at % 2 == 1 { format!("<code>{part}</code>") } else { part }
    };
    parts.map(part).collect()
}

fn table(out: &mut String, table: &Table) {
    let folded = table.is_detail && table.rows.len() > OPEN_ROWS_MAX;
    if folded {
        let _ = writeln!(out, "<details>\n<summary>{} rows</summary>", table.rows.len());
    }
    out.push_str("<table>\n<thead><tr>");
    for (at, name) in table.head.iter().enumerate() {
        let _ = write!(out, "<th{}>{name}</th>", class_of(table.rows.first().map(|row| &row[at])));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (name, cell) in table.head.iter().zip(row) {
            let (class, text) = (class_of(Some(cell)), self::cell(cell));
            let empty = if text.is_empty() { " data-empty" } else { "" };
            let _ = write!(out, "<td{class} data-name=\"{name}\"{empty}>{text}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    if folded {
        out.push_str("</details>\n");
    }
    if let Some(left_out) = &table.left_out {
        let _ = writeln!(out, "<p class=\"more\">… {}</p>", escape(left_out));
    }
}

fn class_of(cell: Option<&Cell>) -> &'static str {
    match cell {
        Some(Cell::Number(_)) => " class=\"number\"",
        Some(Cell::Time(_)) => " class=\"time\"",
        _ => "",
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Code(text) => format!("<code>{}</code>", escape(text)),
        Cell::Status(status) => badge(status_class(*status), &status_words(*status)),
        Cell::Ended(ended) => badge(ended_class(*ended), ended.words()),
        other => escape(&other.words()),
    }
}

fn badge(class: &str, words: &str) -> String {
    format!("<span class=\"badge {class}\">{}</span>", escape(words))
}

fn status_class(status: Option<Status>) -> &'static str {
    match status.map(style_of) {
        Some(GOOD) => "good",
        Some(BAD) => "bad",
        Some(BUSY) => "busy",
        Some(NOTE) => "note",
        _ => "dim",
    }
}

fn ended_class(ended: Ended) -> &'static str {
    match ended {
        Ended::Running => "busy",
        Ended::Succeeded => "good",
        Ended::Interrupted => "note",
        Ended::Failed => "bad",
    }
}

fn failure(out: &mut String, failure: &Trouble) {
    let attempt = failure.attempt.map(|n| format!(", attempt {n}")).unwrap_or_default();
    let _ = write!(
        out,
        "<article>\n<h3>{}{attempt}</h3>\n<p><span class=\"time\">{}</span> {}</p>\n",
        escape(&failure.place),
        utc(failure.when),
        escape(&failure.error),
    );
    if !failure.lines.is_empty() {
        let _ = writeln!(out, "<pre>{}</pre>", escape(&failure.lines.join("\n")));
    }
    out.push_str("</article>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a line of a step's output could become a part of the page.
    #[test]
    fn nothing_of_a_text_is_html() {
        let text = "<script>alert(\"1\" + '2')</script> & more";
        let escaped = escape(text);
        assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
        assert_eq!(with_code("see `a<b`."), "see <code>a&lt;b</code>.");
    }

    /// Lost: the page would ask another machine for something, or run a program.
    #[test]
    fn the_style_names_nothing_outside() {
        assert!(STYLE.replace("url(#", "").find("url(").is_none());
        for word in ["@import", "http", "<script", "@font-face"] {
            assert!(!STYLE.contains(word), "{word}");
        }
    }
}
