//! How a YAML document is laid out, so that what is added looks like what is there.

use serde_json::Value;

use super::tree::{Kind, Node, Quoting};
use crate::json::Tree;

/// Columns that a dash is indented below its key, in documents that show none.
const DASH: usize = 2;

/// The layout of one document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    newline: &'static str,
    dash: usize,
}

impl Layout {
    /// Reads the layout from the first list that is not in brackets.
    pub(super) fn of(text: &str, root: &Node) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let column = |at: usize| at - text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let lists = match &root.kind {
            Kind::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        let dash = lists.iter().find_map(|(key, value)| {
            let is_list = matches!(&value.kind, Kind::List(items) if !items.is_empty());
            let is_block = is_list && !value.is_flow(text);
            is_block.then(|| column(value.span.start).saturating_sub(column(key.span.start)))
        });
        Self { newline, dash: dash.unwrap_or(DASH) }
    }

    pub(super) fn newline(&self) -> &'static str {
        self.newline
    }

    /// Columns that a dash is indented below its key.
    pub(super) fn dash(&self) -> usize {
        self.dash
    }

    /// A key with its value, on lines at a column.
    pub(super) fn entry(&self, name: &str, value: &Tree, column: usize) -> Vec<String> {
        let lead = format!("{}{}:", " ".repeat(column), key(name));
        match value {
            value if is_short(value) => vec![format!("{lead} {}", flow(value))],
            value => std::iter::once(lead).chain(self.block(value, column)).collect(),
        }
    }

    /// The lines of a value below a key at a column.
    pub(super) fn block(&self, value: &Tree, column: usize) -> Vec<String> {
        match value {
            Tree::List(items) => {
                items.iter().flat_map(|item| self.item(item, column + self.dash)).collect()
            }
            Tree::Object(members) => {
                let column = column + DASH;
                members.iter().flat_map(|(name, value)| self.entry(name, value, column)).collect()
            }
            Tree::Scalar(value) => {
                vec![format!("{}{}", " ".repeat(column + DASH), scalar(value, Quoting::Double))]
            }
        }
    }

    /// The lines of an element of a list, whose dash is at a column.
    pub(super) fn item(&self, value: &Tree, column: usize) -> Vec<String> {
        let Tree::Object(members) = value else {
            return vec![format!("{}- {}", " ".repeat(column), flow(value))];
        };
        let inner = column + DASH;
        let mut lines: Vec<String> =
            members.iter().flat_map(|(name, value)| self.entry(name, value, inner)).collect();
        if let Some(first) = lines.first_mut() {
            first.replace_range(column..inner, "- ");
        }
        lines
    }
}

/// A value on one line.
pub(super) fn flow(value: &Tree) -> String {
    match value {
        Tree::Scalar(value) => scalar(value, Quoting::Double),
        Tree::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Tree::Object(members) => {
            let member = |(name, value): &(String, Tree)| format!("{}: {}", key(name), flow(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Tells whether a value fits behind its key: a scalar, or a list of scalars.
fn is_short(value: &Tree) -> bool {
    match value {
        Tree::Scalar(_) => true,
        Tree::List(items) => items.iter().all(|item| matches!(item, Tree::Scalar(_))),
        Tree::Object(members) => members.is_empty(),
    }
}

/// A scalar with the quotes that another had.
pub(super) fn scalar(value: &Value, quoting: Quoting) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let is_plain_text = !text.chars().any(char::is_control);
    match quoting {
        Quoting::Plain if is_safe(text) => text.clone(),
        Quoting::Single if is_plain_text => format!("'{}'", text.replace('\'', "''")),
        // JSON is YAML, and its escapes are those of double quotes.
        _ => value.to_string(),
    }
}

/// A key as it is written.
fn key(name: &str) -> String {
    if is_safe(name) { name.to_owned() } else { Value::from(name).to_string() }
}

/// Tells whether a text means itself without quotes.
fn is_safe(text: &str) -> bool {
    let is_word =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '@' | '+');
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(is_word)
        && !text.ends_with(' ')
        && !is_yaml_word(text)
}

/// Words that some reader of YAML takes for something other than text.
fn is_yaml_word(text: &str) -> bool {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Lines moved from one column to another; what is indented less stays at the new column.
pub(super) fn shifted(lines: &[String], from: usize, to: usize) -> Vec<String> {
    let shift = |line: &String| {
        let own = line.len() - line.trim_start_matches(' ').len();
        if line.trim().is_empty() {
            return line.clone();
        }
        format!("{}{}", " ".repeat((own + to).saturating_sub(from).max(to)), &line[own..])
    };
    lines.iter().map(shift).collect()
}
