//! A JSON object that is edited in place.
//!
//! Order, indentation, line endings, byte order mark, unknown members and the form of every value that
//! stays are kept byte for byte. A new member follows the last one and is written as its siblings are.
//! Of a name that occurs twice the last one counts, as for other readers. Comments are kept too, in a
//! document that may have them.

mod comments;
mod layout;
mod scan;
mod tree;

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, code};
use crate::sink::Sink;
use layout::Layout;
use scan::{Member, elements, members};
pub use tree::Tree;

/// A document whose root is an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    text: String,
    /// The same without comments; each byte is where it is in the text.
    plain: String,
}

impl Object {
    /// Takes a text; one that is not a JSON object is refused, and the problem names the line.
    pub fn new(file: &str, text: &str) -> Result<Self, Box<Diagnostic>> {
        let json = text.trim_start_matches('\u{feff}');
        match serde_json::from_str::<Map<String, Value>>(json) {
            Ok(_) => Ok(Self { text: text.to_owned(), plain: text.to_owned() }),
            Err(error) => Err(Box::new(problem(file, text, &error))),
        }
    }

    /// The same for a text that may have comments, and commas before a closing bracket.
    pub fn with_comments(file: &str, text: &str) -> Result<Self, Box<Diagnostic>> {
        let plain = comments::blanked(text);
        Self::new(file, &plain).map(|object| Self { text: text.to_owned(), ..object })
    }

    /// The document.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The document, to keep.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The members of the root with their values as they are written, in order.
    pub fn members(&self) -> Vec<(String, &str)> {
        let all = members(&self.plain, self.root());
        all.into_iter().map(|member| (member.name, &self.text[member.value])).collect()
    }

    /// The value at a path of names.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        serde_json::from_str(&self.plain[self.span(path)?]).ok()
    }

    /// The bytes of the value at a path of names.
    pub fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        path.iter().try_fold(self.root(), |range, name| {
            Some(last(&members(&self.plain, range), name)?.value.clone())
        })
    }

    /// Sets the value at a path; objects on the way that are missing or null are added. Tells whether
    /// that was possible: it is not where something other than an object is on the way.
    pub fn set(&mut self, path: &[&str], value: impl Into<Tree>) -> bool {
        let Some((name, rest)) = path.split_first() else { return false };
        let (root, layout) = (self.root(), self.layout());
        self.set_within(&root, &layout, (name, rest), value.into())
    }

    fn set_within(
        &mut self,
        object: &Range<usize>,
        layout: &Layout,
        (name, rest): (&str, &[&str]),
        new: Tree,
    ) -> bool {
        let all = members(&self.plain, object.clone());
        let Some(member) = last(&all, name) else {
            let added = layout.member(&self.plain, object, &all, name, &wrapped(rest, new));
            self.replace(added);
            return true;
        };
        let range = member.value.clone();
        let layout = layout.around(&self.plain, member.key);
        let old = serde_json::from_str(&self.plain[range.clone()]).unwrap_or(Value::Null);
        match (rest.split_first(), &old) {
            (Some((next, rest)), Value::Object(_)) => {
                self.set_within(&range, &layout, (next, rest), new)
            }
            (Some(_), Value::Null) | (None, _) => {
                self.exchange(&range, &layout, &old, &wrapped(rest, new));
                true
            }
            (Some(_), _) => false,
        }
    }

    /// Replaces a value; a list that only grows keeps its elements as they are.
    fn exchange(&mut self, range: &Range<usize>, layout: &Layout, old: &Value, new: &Tree) {
        if *old == new.to_value() {
            return;
        }
        if let (Value::Array(old), Tree::List(new)) = (old, new)
            && !old.is_empty()
            && old.len() <= new.len()
            && old.iter().zip(new).all(|(old, new)| *old == new.to_value())
        {
            let mut range = range.clone();
            for value in &new[old.len()..] {
                let length = self.plain.len();
                let all = elements(&self.plain, range.clone());
                let added = layout.element(&self.plain, &range, &all, value);
                self.replace(added);
                range.end += self.plain.len() - length;
            }
            return;
        }
        let with = layout.instead(&self.plain, range, new);
        self.replace((range.clone(), with));
    }

    /// Adds a value to the end of the list at a path; a list that is missing or null is added. Tells
    /// whether that was possible.
    pub fn push(&mut self, path: &[&str], value: impl Into<Tree>) -> bool {
        let mut list = match self.get(path) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.into_iter().map(Tree::from).collect(),
            Some(_) => return false,
        };
        list.push(value.into());
        self.set(path, Tree::List(list))
    }

    /// Removes the member at a path; tells whether there was one.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Some((name, parents)) = path.split_last() else { return false };
        let Some(object) = self.span(parents) else { return false };
        let mut removed = false;
        // A name that occurs twice would show its earlier value again.
        loop {
            let all = members(&self.plain, object.start..self.closing(object.start));
            let Some(at) = all.iter().rposition(|member| member.name == *name) else { break };
            let range = match (at.checked_sub(1), all.get(at + 1)) {
                (Some(before), _) => all[before].value.end..all[at].value.end,
                (None, Some(after)) => all[at].key..after.key,
                (None, None) => object.start + 1..self.closing(object.start) - 1,
            };
            if self.text[range.clone()] == self.plain[range.clone()] {
                self.replace((range, String::new()));
            } else {
                self.cut_out(&all, at);
            }
            removed = true;
        }
        removed
    }

    /// Removes a member and its comma alone: what is said around it stays.
    fn cut_out(&mut self, all: &[Member], at: usize) {
        let Member { key, value, .. } = &all[at];
        let rest = &self.text[value.end..];
        let blank = rest.len() - rest.trim_start().len();
        if rest[blank..].starts_with(',') {
            self.replace((*key..value.end + blank + 1, String::new()));
            return;
        }
        self.replace((*key..value.end, String::new()));
        if let Some(before) = at.checked_sub(1) {
            let end = all[before].value.end;
            let comma = end + self.plain[end..].find(',').unwrap_or_default();
            self.replace((comma..comma + 1, String::new()));
        }
    }

    /// The end of the value that begins at a byte.
    fn closing(&self, start: usize) -> usize {
        scan::value_at(&self.plain, start).end
    }

    fn layout(&self) -> Layout {
        Layout::of(&self.plain, self.root())
    }

    fn root(&self) -> Range<usize> {
        let json = self.plain.trim_start_matches('\u{feff}');
        let start = self.plain.len() - json.trim_start().len();
        start..self.plain.trim_end().len()
    }

    fn replace(&mut self, (range, with): (Range<usize>, String)) {
        self.text.replace_range(range.clone(), &with);
        self.plain.replace_range(range, &with);
    }
}

/// The last member with a name.
fn last<'m>(members: &'m [Member], name: &str) -> Option<&'m Member> {
    members.iter().rev().find(|member| member.name == name)
}

/// A value within objects with these names, the outermost first.
fn wrapped(names: &[&str], value: Tree) -> Tree {
    names.iter().rev().fold(value, |inner, name| Tree::Object(vec![((*name).to_owned(), inner)]))
}

/// Where and why a text is not a JSON object.
fn problem(file: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    use serde_json::error::Category;
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let lines = text[bom..].split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = bom + lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let message = match error.classify() {
        Category::Eof if text.trim_start_matches('\u{feff}').trim().is_empty() => {
            "the file is empty".to_owned()
        }
        Category::Eof => "the JSON is cut off".to_owned(),
        Category::Data => "the file is JSON, but not an object".to_owned(),
        Category::Syntax | Category::Io => {
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default();
            format!("not valid JSON: {words}")
        }
    };
    let mut sink = Sink::new(file, text);
    let at = at.min(text.len());
    let hint = "correct it there, or move the file away; it was not changed";
    sink.error(code::BAD_JSON, &(at..at), message, hint);
    // The sink has exactly one problem.
    sink.finish().swap_remove(0)
}
