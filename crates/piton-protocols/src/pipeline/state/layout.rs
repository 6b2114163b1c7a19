//! Where the parts of a state file are: its header, its sections, their fields and tables.
//!
//! The reader and the editor see a file through this, so an edit goes where the value was read. What a
//! value means is decided elsewhere.

use std::borrow::Cow;
use std::ops::Range;

use super::words::{Shape, shape};
use piton_formats::markdown::edit::cell_spans;
use piton_formats::markdown::inline::{bullet, plain, title};
use piton_formats::markdown::table::{Table, tables};
use piton_formats::markdown::{Document, Line, Place};

/// Most words of a key; with more it is a sentence that has a colon.
const KEY_WORDS_MAX: usize = 4;
/// Longest key.
const KEY_BYTES_MAX: usize = 48;
/// Most spaces before a line that is not part of the item above it.
const INDENT_MAX: usize = 3;

/// Keys of the header that the protocol names, in its order.
pub(super) const HEADER_KEYS: [&str; 10] = [
    "run_id",
    "feature",
    "coordinator_mode",
    "debug_mode",
    "spec_version",
    "spec_hash",
    "started_at",
    "last_updated_at",
    "current_stage",
    "status",
];
/// Keys of the current stage.
pub(super) const DETAIL_KEYS: [&str; 5] =
    ["stage", "dispatched_at", "job_status", "retry_count", "last_output_summary"];

/// A section that the protocol knows, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// `## Stage Ledger`: instead of the next one, in some projects.
    Ledger,
    /// `## Completed Stages`
    Completed,
    /// `## Current Stage Detail`
    Detail,
    /// `## Iteration Counts`
    Iterations,
    /// `## Failure Clusters`
    Clusters,
    /// `## Human Checkpoints Cleared`
    Checkpoints,
    /// `## Notes`
    Notes,
}

impl Part {
    /// Its heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Ledger => "Stage Ledger",
            Self::Completed => "Completed Stages",
            Self::Detail => "Current Stage Detail",
            Self::Iterations => "Iteration Counts",
            Self::Clusters => "Failure Clusters",
            Self::Checkpoints => "Human Checkpoints Cleared",
            Self::Notes => "Notes",
        }
    }

    /// The columns of its table.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Ledger => &["Stage", "Status", "Date", "Notes"],
            Self::Completed => &["Stage", "Completed At", "Output Artifact", "Output Hash"],
            Self::Iterations => &["Stage", "Cycle Count", "Budget", "Status"],
            Self::Clusters => &["Cluster", "First Seen", "Retry Count", "Stage", "Notes"],
            Self::Detail | Self::Checkpoints | Self::Notes => &[],
        }
    }

    /// The columns that its table cannot do without, as columns are compared; the first is its key.
    pub(super) fn required(self) -> &'static [&'static str] {
        match self {
            Self::Ledger => &["stage", "status"],
            Self::Completed | Self::Iterations => &["stage"],
            Self::Clusters => &["cluster"],
            Self::Detail | Self::Checkpoints | Self::Notes => &[],
        }
    }

    fn of(heading: &str) -> Option<Self> {
        match title(heading).as_str() {
            "stage ledger" => Some(Self::Ledger),
            "completed stages" => Some(Self::Completed),
            "current stage detail" | "current stage details" | "current stage" => {
                Some(Self::Detail)
            }
            "iteration counts" | "iteration count" => Some(Self::Iterations),
            "failure clusters" => Some(Self::Clusters),
            "human checkpoints cleared" | "human checkpoints" => Some(Self::Checkpoints),
            "notes" => Some(Self::Notes),
            _ => None,
        }
    }
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `- key: value`
    Bullet,
    /// `key: value`
    Bare,
    /// `| key | value |`
    Row,
}

/// A field of the header or of the current stage.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    /// Its key, as keys are compared.
    pub(super) key: String,
    /// Its value as it is written, without the escapes of a table.
    pub(super) value: Cow<'a, str>,
    /// The bytes of that value in the file.
    pub(super) span: Range<usize>,
    /// How it is written.
    pub(super) form: Form,
    /// Positions of its first and its last line, prose below it included.
    pub(super) lines: (usize, usize),
}

/// A section of the file.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Which one.
    pub(super) part: Part,
    /// Position of its heading.
    pub(super) heading: usize,
    /// Positions of the lines below the heading.
    pub(super) lines: Range<usize>,
}

/// The parts of a state file.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    /// Its text.
    pub(super) text: &'a str,
    /// Its lines, up to a fence or comment that is never closed.
    pub(super) lines: Vec<Line<'a>>,
    /// The line that is never closed.
    pub(super) unclosed: Option<Line<'a>>,
    /// Positions of the lines of the header.
    pub(super) header: Range<usize>,
    /// The sections that are known, in the order of the file; of several of a kind the first.
    pub(super) sections: Vec<Section>,
}

impl<'a> Layout<'a> {
    /// Finds the parts of a text.
    pub(super) fn new(text: &'a str) -> Self {
        let Document { mut lines, unclosed, .. } = Document::new(text);
        let unclosed = unclosed.and_then(|at| {
            let line = lines.get(at).copied();
            lines.truncate(at);
            line
        });
        let headings: Vec<(usize, usize, &str)> = lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| line.heading().map(|(level, text)| (at, level, text)))
            .collect();
        // The first heading is that of the file, unless it is a section already.
        let title = headings.first().filter(|(_, _, text)| Part::of(text).is_none());
        let ends_header = |(at, level, text): &&(usize, usize, &str)| {
            title.is_none_or(|(first, ..)| at != first) && (*level > 1 || Part::of(text).is_some())
        };
        let end = headings.iter().find(ends_header).map_or(lines.len(), |(at, ..)| *at);
        let mut sections: Vec<Section> = Vec::new();
        for (index, (at, level, text)) in headings.iter().enumerate() {
            let Some(part) = Part::of(text) else { continue };
            if sections.iter().any(|section| section.part == part) {
                continue;
            }
            // A known section is never a part of another, whatever its level.
            let ends = |(_, other, text): &&(usize, usize, &str)| {
                other <= level || Part::of(text).is_some()
            };
            let next = headings[index + 1..].iter().find(ends);
            let last = next.map_or(lines.len(), |(at, ..)| *at);
            sections.push(Section { part, heading: *at, lines: at + 1..last });
        }
        Self { text, lines, unclosed, header: 0..end, sections }
    }

    /// A section, if the file has it.
    pub(super) fn section(&self, part: Part) -> Option<&Section> {
        self.sections.iter().find(|section| section.part == part)
    }

    /// The table of a section: the first with the columns that it cannot do without. Positions are
    /// those of the file.
    pub(super) fn table(&self, part: Part) -> Option<Table> {
        let lines = &self.section(part)?.lines;
        let is_own = |table: &Table| {
            let columns = table.columns();
            part.required().iter().all(|name| columns.iter().any(|column| column == name))
        };
        let mut table = tables(&self.lines[lines.clone()]).into_iter().find(is_own)?;
        table.header.index += lines.start;
        for row in &mut table.rows {
            row.index += lines.start;
        }
        Some(table)
    }

    /// The position of the last line with text.
    pub(super) fn last_filled(&self, lines: &Range<usize>) -> Option<usize> {
        lines.clone().rev().find(|at| !self.lines[*at].text.trim().is_empty())
    }

    /// The fields of some lines, in their order.
    pub(super) fn entries(&self, lines: &Range<usize>) -> Vec<Entry<'a>> {
        let mut found = Vec::new();
        let mut is_table = vec![false; lines.len()];
        for table in tables(&self.lines[lines.clone()]) {
            let first = table.header.index;
            is_table[first..first + 2 + table.rows.len()].fill(true);
            if table.header.cells.len() >= 2 {
                let rows = table.rows.iter().map(|row| row.index + lines.start);
                found.extend(rows.filter_map(|at| self.row(at, table.header.cells.len())));
            }
        }
        let is_item = |at: &usize| {
            let line = &self.lines[*at];
            line.place == Place::Text && !is_table[at - lines.start] && bullet(line.text).is_some()
        };
        let shallowest = lines.clone().filter(is_item).map(|at| self.lines[at].indent()).min();
        for at in lines.clone().filter(|at| !is_table[at - lines.start]) {
            let line = self.lines[at];
            if line.place != Place::Text || line.heading().is_some() {
                continue;
            }
            if is_item(&at) {
                let is_nested = shallowest.is_some_and(|least| line.indent() > least + 1);
                found.extend(if is_nested { None } else { self.item(at, lines.end) });
            } else if line.indent() <= INDENT_MAX {
                found.extend(self.bare(at));
            }
        }
        found.sort_by_key(|entry| entry.lines);
        found
    }

    /// The position of the last line of a list item, what is indented below it included.
    pub(super) fn item_end(&self, at: usize, end: usize) -> usize {
        let is_more = |below: &usize| {
            let more = &self.lines[*below];
            let is_text = more.place == Place::Text && more.heading().is_none();
            let is_deeper = more.indent() > self.lines[at].indent() + 1;
            let is_own = !more.text.trim().is_empty() && bullet(more.text).is_none();
            is_text && is_deeper && is_own && !self.is_header(*below)
        };
        (at + 1..end).take_while(is_more).last().unwrap_or(at)
    }

    /// Whether a line is the header of a table: a line between it and the dashes would take its place.
    fn is_header(&self, at: usize) -> bool {
        let is_rule = |text: &str| {
            text.contains('-') && text.trim().chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
        };
        let next = self.lines.get(at + 1);
        self.lines[at].text.contains('|') && next.is_some_and(|line| is_rule(line.text))
    }

    fn row(&self, at: usize, columns: usize) -> Option<Entry<'a>> {
        let line = &self.lines[at];
        let spans = cell_spans(line.text);
        let (key, value) = (spans.first()?.clone(), spans.get(1)?.clone());
        // Words to choose from are often separated by bars that nobody escaped.
        let is_longer = spans.len() > columns;
        let last = if is_longer { spans.last()?.end } else { value.end };
        let span = line.start + value.start..line.start + last;
        let value = self.text[span.clone()].trim().replace("\\|", "|").into();
        let key = key_of(&line.text[key])?;
        Some(Entry { key, value, span, form: Form::Row, lines: (at, at) })
    }

    fn item(&self, at: usize, end: usize) -> Option<Entry<'a>> {
        let line = self.lines[at];
        let item = bullet(line.text)?;
        let (key, from) = split(item, line.text.len() - item.len())?;
        let last = self.item_end(at, end);
        // Below a single word, further lines are prose.
        let ends = if shape(&key) == Shape::Text { last } else { at };
        let span = line.start + from..self.lines[ends].span().end;
        let more = (at + 1..=ends).map(|at| self.lines[at].text.trim());
        let first = line.text[from..].trim();
        let value = if ends == at {
            first.into()
        } else {
            std::iter::once(first).chain(more).collect::<Vec<_>>().join(" ").into()
        };
        Some(Entry { key, value, span, form: Form::Bullet, lines: (at, last) })
    }

    /// A line without a mark: only if its key looks like one, since prose has colons too.
    fn bare(&self, at: usize) -> Option<Entry<'a>> {
        let line = &self.lines[at];
        let text = line.text.trim_start();
        let (key, from) = split(text, line.text.len() - text.len())?;
        if !is_known(&key) && !text[..text.find(':')?].contains('_') {
            return None;
        }
        let span = line.start + from..line.span().end;
        let value = line.text[from..].trim().into();
        Some(Entry { key, value, span, form: Form::Bare, lines: (at, at) })
    }
}

/// Tells whether a key is one of the protocol's.
pub(super) fn is_known(key: &str) -> bool {
    HEADER_KEYS.iter().chain(&DETAIL_KEYS).any(|known| *known == key)
}

/// The key of `key: value`, and where the value begins; `offset` is where the item does.
fn split(item: &str, offset: usize) -> Option<(String, usize)> {
    let colon = item.find(':')?;
    let key = key_of(&item[..colon])?;
    let mut from = colon + 1;
    // `**key:** value`
    for marks in ["**", "__", "`"] {
        let is_open = item.starts_with(marks) && !item[marks.len()..colon].contains(marks);
        if is_open && item[from..].starts_with(marks) {
            from += marks.len();
        }
    }
    Some((key, offset + from))
}

/// A key as keys are compared; `Current Stage` and `current_stage` are one.
pub(super) fn key_of(text: &str) -> Option<String> {
    let text = plain(text);
    let fits = text.starts_with(|c: char| c.is_alphabetic())
        && text.len() <= KEY_BYTES_MAX
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/'));
    let words: Vec<String> =
        text.split([' ', '_', '-']).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let is_short = text.split(' ').count() <= KEY_WORDS_MAX;
    (fits && is_short).then(|| words.join("_"))
}
