//! Where a change of a state file goes: fields, rows and sections that are replaced or added.
//!
//! Each function names one change of the text. What is added is written like its neighbours.

use std::ops::Range;

use super::layout::{Entry, Form, Layout, Part, Section};
use super::words::{bare, essence};
use piton_formats::markdown::edit::{
    Change, cell, insert_after, insert_at_top, insert_before, one_line, row,
};
use piton_formats::markdown::inline::bullet;
use piton_formats::markdown::table::tables;
use piton_formats::markdown::{Line, Place};

/// A field with another value; `None` if it has that value.
pub(super) fn replaced(layout: &Layout<'_>, entry: &Entry<'_>, value: &str) -> Option<Change> {
    let raw = &layout.text[entry.span.clone()];
    let new = if entry.form == Form::Row { cell(value) } else { one_line(value) };
    if raw.trim().is_empty() {
        let tail = if entry.form == Form::Row { " " } else { "" };
        let change = Change { range: entry.span.clone(), with: format!(" {new}{tail}") };
        return (!new.is_empty()).then_some(change);
    }
    let inner = essence(&entry.key, raw);
    // A value that looks as if prose followed it is compared in full.
    let ends = |rest: &str| {
        rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || ",;*_`".contains(c))
    };
    let begins = |raw: &str| raw.strip_prefix(new.as_str()).is_some_and(ends);
    let written = raw.trim_start();
    let is_so = bare(&raw[inner.clone()]) == new
        || begins(written)
        || begins(written.trim_start_matches(['*', '_', '`']));
    let range = entry.span.start + inner.start..entry.span.start + inner.end;
    (!is_so).then_some(Change { range, with: new })
}

/// A field that is not there yet, behind the last one and written like it.
pub(super) fn with_entry(
    layout: &Layout<'_>,
    region: &Range<usize>,
    entries: &[Entry<'_>],
    key: &str,
    value: &str,
) -> Change {
    let plain = format!("{key}: {}", one_line(value));
    if let Some(last) = entries.last() {
        let line = &layout.lines[last.lines.1];
        let new = match last.form {
            Form::Bullet => format!("{}{plain}", lead(&layout.lines[last.lines.0])),
            Form::Bare => plain,
            Form::Row => row(&[key, value]),
        };
        return insert_after(layout.text, line, &[new]);
    }
    // A table without rows.
    let empty =
        tables(&layout.lines[region.clone()]).into_iter().find(|t| t.header.cells.len() > 1);
    if let Some(table) = empty {
        let dashes = &layout.lines[region.start + table.header.index + 1];
        return insert_after(layout.text, dashes, &[row(&[key, value])]);
    }
    let heading = region.clone().find(|at| layout.lines[*at].heading().is_some());
    let above = match heading {
        Some(heading) => Some(heading),
        None if region.start > 0 => Some(region.start - 1),
        None => front_matter(layout),
    };
    let item = format!("- {plain}");
    let is_filled = |at: usize| layout.lines.get(at).is_some_and(|l| !l.text.trim().is_empty());
    let mut lines = vec![item];
    if let Some(above) = above {
        lines.insert(0, String::new());
        lines.extend(is_filled(above + 1).then(String::new));
        return insert_after(layout.text, &layout.lines[above], &lines);
    }
    lines.extend(is_filled(0).then(String::new));
    insert_at_top(layout.text, &lines)
}

/// The position of the last line of the metadata before the document.
fn front_matter(layout: &Layout<'_>) -> Option<usize> {
    let first = layout.lines.first()?;
    let is_open = first.place == Place::Aside && first.text.trim() == "---";
    let is_end = |line: &Line<'_>| matches!(line.text.trim(), "---" | "...");
    let end = layout.lines.iter().skip(1).position(is_end).filter(|_| is_open);
    end.map(|at| at + 1)
}

/// What stands before the text of a list item: its indent and its mark.
pub(super) fn lead<'a>(line: &Line<'a>) -> &'a str {
    let item = bullet(line.text).unwrap_or(line.text);
    let lead = &line.text[..line.text.len() - item.len()];
    // `-` without text has no blank behind it, and a number counts on: both get a plain mark.
    let is_mark = lead.trim().len() == 1 && lead.ends_with(' ');
    if is_mark { lead } else { "- " }
}

/// A row that is not there yet, by the names of its columns.
pub(super) fn with_row(layout: &Layout<'_>, part: Part, values: &[(&str, &str)]) -> Change {
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| *value)
    };
    if let Some(table) = layout.table(part) {
        let columns = table.columns();
        let cells: Vec<&str> = columns.iter().map(|name| value(name)).collect();
        // The line of dashes follows the header.
        let last = table.rows.last().map_or(table.header.index + 1, |row| row.index);
        return insert_after(layout.text, &layout.lines[last], &[row(&cells)]);
    }
    let names = part.columns();
    let cells: Vec<&str> = names.iter().map(|name| value(&name.to_lowercase())).collect();
    let lines = head(part).into_iter().chain([row(&cells)]).collect();
    match layout.section(part) {
        Some(section) => at_end(layout, section, lines),
        None => with_section(layout, part, lines),
    }
}

/// The header of a section's table.
pub(super) fn head(part: Part) -> Vec<String> {
    let names = part.columns();
    let dashes: Vec<String> = names.iter().map(|name| "-".repeat(name.len() + 2)).collect();
    vec![row(names), format!("|{}|", dashes.join("|"))]
}

/// Lines at the end of a section, with a blank line before them.
pub(super) fn at_end(layout: &Layout<'_>, section: &Section, mut lines: Vec<String>) -> Change {
    let last = layout.last_filled(&section.lines).unwrap_or(section.heading);
    lines.insert(0, String::new());
    let next = layout.lines.get(last + 1).or(layout.unclosed.as_ref());
    if next.is_some_and(|line| !line.text.trim().is_empty()) {
        lines.push(String::new());
    }
    insert_after(layout.text, &layout.lines[last], &lines)
}

/// A section that is not there yet, behind the one before it.
pub(super) fn with_section(layout: &Layout<'_>, part: Part, body: Vec<String>) -> Change {
    let before = layout.sections.iter().filter(|section| section.part < part);
    let nearest = before.max_by_key(|section| section.part);
    let at = nearest.map_or(layout.header.end, |section| section.lines.end);
    let level = nearest.or(layout.sections.first()).and_then(|s| layout.lines[s.heading].heading());
    let marks = "#".repeat(level.map_or(2, |(level, _)| level));
    let mut lines = vec![format!("{marks} {}", part.heading()), String::new()];
    lines.extend(body);
    let above = at.checked_sub(1).map(|above| &layout.lines[above]);
    if above.is_some_and(|line| !line.text.trim().is_empty()) {
        lines.insert(0, String::new());
    }
    if let Some(next) = layout.lines.get(at).or(layout.unclosed.as_ref()) {
        lines.push(String::new());
        return insert_before(layout.text, next, &lines);
    }
    match above {
        Some(above) => insert_after(layout.text, above, &lines),
        None => insert_at_top(layout.text, &lines),
    }
}

/// Tells whether a note can follow a line directly.
pub(super) fn is_prose(line: &Line<'_>) -> bool {
    line.place == Place::Text && line.heading().is_none() && !line.text.contains('|')
}

/// A line of a note, which must not begin a heading, a fence, a comment or a rule.
pub(super) fn prose(line: &str) -> String {
    let line = one_line(line);
    let is_mark =
        ["#", "```", "~~~", "<!--", "---", "==="].iter().any(|mark| line.starts_with(mark));
    if is_mark { format!("\\{line}") } else { line }
}
