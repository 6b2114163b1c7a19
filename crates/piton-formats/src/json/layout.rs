//! How a JSON document is laid out, so that what is added looks like what is there.
//!
//! A document is written on many lines or on one; a list of numbers or strings stays on one line
//! unless the list that it replaces has several.

use std::ops::Range;

use serde_json::Value;

use super::Tree;
use super::scan::{Member, members};

/// Indentation of documents that show none.
const UNIT: &str = "  ";

/// The layout of one document.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Whether members have lines of their own.
    is_tall: bool,
    newline: &'static str,
    /// The indentation of one level.
    unit: String,
    /// What stands between a name and its value.
    colon: String,
}

impl Layout {
    /// Reads the layout from the first member of the root.
    pub(super) fn of(text: &str, root: Range<usize>) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let tall = Self { is_tall: true, newline, unit: UNIT.to_owned(), colon: ": ".to_owned() };
        let members = members(text, root);
        let Some(first) = members.first() else { return tall };
        let colon = colon_before(text, first.value.start).to_owned();
        match gap_before(text, first.key).rsplit_once('\n') {
            Some((_, "")) => Self { colon, ..tall },
            Some((_, unit)) => Self { unit: unit.to_owned(), colon, ..tall },
            None => Self { is_tall: false, colon, ..tall },
        }
    }

    /// The layout of what a member contains; without a line of its own it stays on that line.
    pub(super) fn around(&self, text: &str, key: usize) -> Self {
        if gap_before(text, key).contains('\n') { self.clone() } else { self.flat() }
    }

    /// The same on one line.
    fn flat(&self) -> Self {
        Self { is_tall: false, ..self.clone() }
    }

    /// What follows a comma on one line.
    fn space(&self) -> &'static str {
        if self.colon.len() > 1 { " " } else { "" }
    }

    /// A new member at the end of an object: where it goes, and its text.
    pub(super) fn member(
        &self,
        text: &str,
        object: &Range<usize>,
        members: &[Member],
        name: &str,
        value: &Tree,
    ) -> (Range<usize>, String) {
        let Some(last) = members.last() else {
            let indent = indent_at(text, object.start);
            let written = self.object(&[(name.to_owned(), value.clone())], indent);
            return (object.clone(), written);
        };
        let key = Value::from(name);
        let gap = gap_before(text, last.key);
        let colon = colon_before(text, last.value.start).to_owned();
        let own = Self { colon, ..self.clone() };
        let written = match gap.rsplit_once('\n') {
            Some((_, indent)) => own.value(value, indent, false),
            None => own.flat().value(value, "", false),
        };
        let gap = if members.len() == 1 && gap.is_empty() { own.space() } else { between(gap) };
        let end = last.value.end;
        (end..end, format!(",{gap}{key}{}{written}", own.colon))
    }

    /// A new element at the end of a list: where it goes, and its text.
    pub(super) fn element(
        &self,
        text: &str,
        array: &Range<usize>,
        elements: &[Range<usize>],
        value: &Tree,
    ) -> (Range<usize>, String) {
        let Some(last) = elements.last() else {
            return (array.clone(), self.instead(text, array, &Tree::List(vec![value.clone()])));
        };
        let gap = gap_before(text, last.start);
        let written = match gap.rsplit_once('\n') {
            Some((_, indent)) => self.value(value, indent, false),
            None => self.flat().value(value, "", false),
        };
        let gap = if elements.len() == 1 && gap.is_empty() { self.space() } else { between(gap) };
        (last.end..last.end, format!(",{gap}{written}"))
    }

    /// The text of a value that takes the place of another.
    pub(super) fn instead(&self, text: &str, old: &Range<usize>, new: &Tree) -> String {
        let was_tall = text[old.clone()].contains('\n');
        self.value(new, indent_at(text, old.start), was_tall)
    }

    /// A value as text; `is_tall_list` puts each scalar of a list on its own line.
    fn value(&self, value: &Tree, indent: &str, is_tall_list: bool) -> String {
        match value {
            Tree::List(items) => self.list(items, indent, is_tall_list),
            Tree::Object(members) => self.object(members, indent),
            Tree::Scalar(scalar) => scalar.to_string(),
        }
    }

    fn list(&self, items: &[Tree], indent: &str, is_tall_list: bool) -> String {
        let is_tall = self.is_tall
            && (is_tall_list || items.iter().any(|item| !matches!(item, Tree::Scalar(_))));
        let inner = format!("{indent}{}", self.unit);
        let layout = if is_tall { self.clone() } else { self.flat() };
        let items: Vec<String> =
            items.iter().map(|item| layout.value(item, &inner, is_tall_list)).collect();
        self.joined(&items, ("[", "]"), indent, is_tall)
    }

    fn object(&self, members: &[(String, Tree)], indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let member = |(name, value): &(String, Tree)| {
            let name = Value::from(name.as_str());
            format!("{name}{}{}", self.colon, self.value(value, &inner, false))
        };
        let members: Vec<String> = members.iter().map(member).collect();
        self.joined(&members, ("{", "}"), indent, self.is_tall)
    }

    fn joined(
        &self,
        parts: &[String],
        (open, close): (&str, &str),
        indent: &str,
        is_tall: bool,
    ) -> String {
        let Self { newline, unit, .. } = self;
        if is_tall && !parts.is_empty() {
            let inner = format!("{newline}{indent}{unit}");
            let parts = parts.join(&format!(",{inner}"));
            format!("{open}{inner}{parts}{newline}{indent}{close}")
        } else {
            format!("{open}{}{close}", parts.join(&format!(",{}", self.space())))
        }
    }
}

/// The indentation of the line that a byte is on.
fn indent_at(text: &str, at: usize) -> &str {
    let from = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[from..at];
    &line[..line.len() - line.trim_start().len()]
}

/// The blank space before a byte.
fn gap_before(text: &str, at: usize) -> &str {
    let before = &text[..at];
    &before[before.trim_end().len()..]
}

/// The gap of siblings without what stands for comments: the end of a line, and the next one's indent.
fn between(gap: &str) -> &str {
    let is_commented =
        gap.split('\n').rev().skip(1).any(|line| !line.trim_end_matches('\r').is_empty());
    match gap.rfind('\n') {
        Some(at) if is_commented => &gap[at - usize::from(gap[..at].ends_with('\r'))..],
        _ => gap,
    }
}

/// The colon before a value, and the blank space around it.
fn colon_before(text: &str, value: usize) -> &str {
    let before = text[..value].trim_end();
    let colon = before.len() - usize::from(before.ends_with(':'));
    &text[colon..value]
}
