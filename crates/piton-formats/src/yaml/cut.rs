//! Which lines an element of a list or an entry of a mapping has, and how they are taken away.

use std::ops::Range;

use super::part::key_end;
use super::tree::{Kind, Node};
use super::{Document, Problem};
use crate::splice::Splice;

/// The changes that take lines away, the column that they begin at, and the lines.
type Cut = (Vec<Splice>, (usize, Vec<String>));

impl Document {
    /// The changes that take an element or entry away, and its lines with the column of its dash.
    pub(super) fn cut(&self, path: &[&str]) -> Result<Cut, Problem> {
        let missing = || self.refused_at(self.line(path), "there is nothing to remove");
        let (name, parents) = path.split_last().ok_or_else(missing)?;
        let parent = self.node(parents).ok_or_else(missing)?;
        if parent.is_flow(&self.text) {
            return Err(self.refused(parent.span.start, "the list is on one line"));
        }
        let (extent, count) = match &parent.kind {
            Kind::List(items) => {
                let at = name.parse::<usize>().map_err(|_| missing())?;
                let item = items.get(at).ok_or_else(missing)?;
                if item.is_named() {
                    let words = "an anchor, alias or tag cannot be moved";
                    return Err(self.refused(item.span.start, words));
                }
                (self.extent(item)?, items.len())
            }
            Kind::Map(entries) => {
                let entry = entries.iter().find(|(key, _)| key.text() == Some(name));
                let (key, value) = entry.ok_or_else(missing)?;
                let first = self.line_start(key.span.start);
                (self.with_comments(first, value.span.end, self.column(key.span.start)), 2)
            }
            _ => return Err(missing()),
        };
        let newline = self.layout().newline();
        let lines = self.text[extent.clone()].trim_end_matches(['\r', '\n']);
        let lines: Vec<String> = lines.split(newline).map(str::to_owned).collect();
        let column = match &parent.kind {
            Kind::List(_) => lines.first().map_or(0, |line| line.len() - line.trim_start().len()),
            _ => self.column(parent.span.start),
        };
        let mut changes = Vec::new();
        if count == 1 {
            // Nothing would be a value of its own; the list stays one.
            let key = self.text[..self.line_start(extent.start)].trim_end();
            let at = key_end(key);
            changes.push(Splice::new(at..at, " []"));
        }
        changes.push(Splice::new(self.with_gap(&extent), ""));
        Ok((changes, (column, lines)))
    }

    /// The lines of an element of a list, from that of its dash, with their ends and the comments that
    /// are part of it.
    fn extent(&self, item: &Node) -> Result<Range<usize>, Problem> {
        let start = self.dash_line(item)?;
        let dash = self.text[start..].len() - self.text[start..].trim_start().len();
        Ok(self.with_comments(start, item.span.end.max(start), dash))
    }

    /// Where elements are added to a list, and the column of their dashes. The parser's start of a list
    /// that is not indented is another.
    pub(super) fn end_of_list(&self, items: &[Node]) -> Result<(usize, usize), Problem> {
        let nowhere = || self.refused(self.part.start, "the list has no elements");
        let (first, last) = items.first().zip(items.last()).ok_or_else(nowhere)?;
        let line = &self.text[self.dash_line(first)?..];
        Ok((self.extent(last)?.end, line.len() - line.trim_start_matches(' ').len()))
    }

    /// The start of the line with the dash of an element, which may begin on a later line.
    fn dash_line(&self, item: &Node) -> Result<usize, Problem> {
        let refused = || self.refused(item.span.start, "the dash of this element is not found");
        if matches!(item.kind, Kind::List(_)) && !item.is_flow(&self.text) {
            return Err(self.refused(item.span.start, "this element is a list itself"));
        }
        let mut end = item.span.start;
        let mut start = self.line_start(end);
        loop {
            let line = self.text[start..end].trim_start();
            if is_dash(line) {
                return Ok(start);
            }
            // Nothing but remarks may be between the dash and what it holds.
            let is_between = line.is_empty() || line.starts_with('#');
            if !is_between || start <= self.part.start {
                return Err(refused());
            }
            (end, start) = (start, self.line_start(start - 1));
        }
    }

    /// Lines from a start to where an end is, and the comments below that are indented further.
    fn with_comments(&self, start: usize, end: usize, column: usize) -> Range<usize> {
        let mut end = self.after_line(end);
        loop {
            let line = &self.text[end..self.after_line(end).min(self.part.end).max(end)];
            let is_inner =
                line.trim_start().starts_with('#') && line.len() - line.trim_start().len() > column;
            if !is_inner {
                return start..end.min(self.part.end.max(start));
            }
            end += line.len();
        }
    }

    /// The extent with the blank lines between it and the next element.
    fn with_gap(&self, extent: &Range<usize>) -> Range<usize> {
        let mut end = extent.end;
        while end < self.part.end {
            let next = self.after_line(end);
            if !self.text[end..next].trim().is_empty() {
                break;
            }
            end = next;
        }
        let rest = &self.text[end..self.part.end];
        let column = |line: &str| line.len() - line.trim_start().len();
        let own = column(&self.text[extent.clone()]);
        let is_next = is_dash(rest.trim_start()) && column(rest) == own;
        if is_next {
            return extent.start..end;
        }
        // The last element takes the blank lines before it along, if others follow.
        let before = self.text[..extent.start].trim_end_matches([' ', '\t', '\r', '\n']).len();
        let gap = self.after_line(before).min(extent.start);
        if end > extent.end { gap..extent.end } else { extent.clone() }
    }
}

/// Tells whether a line begins with the dash of an element.
fn is_dash(line: &str) -> bool {
    line.strip_prefix('-')
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}
