//! A YAML document that is edited in place: a file, or the front matter of a Markdown file.
//!
//! Comments, order, quoting, blank lines, line endings, byte order mark and everything after the first
//! document are kept byte for byte. A well-known parser says what the text means and where each node
//! is; an edit replaces the bytes of one node, or the lines of one element. What cannot be edited that
//! way, such as a task in a list on one line, is refused with its line.

mod cut;
mod layout;
mod part;
mod tree;

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, code};
use crate::json::Tree;
use crate::sink::Sink;
use crate::splice::{Overlap, Splice, exact};
use layout::Layout;
use part::{bom, first_document, is_marker};
use tree::{Flaw, Kind, Node, Quoting};

/// Why an edit was refused, or a text cannot be read.
pub type Problem = Box<Diagnostic>;

/// A document whose root is a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    file: String,
    text: String,
    /// The bytes of the first document.
    part: Range<usize>,
    root: Node,
}

impl Document {
    /// Reads a text. An empty document is an empty mapping; any other that is not a mapping is refused.
    pub fn new(file: &str, text: &str) -> Result<Self, Problem> {
        let part = first_document(text);
        let problem = |at: usize, words: String| {
            let hint = "correct it there; the file was not changed";
            problem(file, text, code::BAD_YAML, &(at..at), words, hint)
        };
        let root = match tree::read(text, part.clone()) {
            Ok(Some(root)) => root,
            Ok(None) => Node::empty(part.end),
            Err(Flaw::Syntax { at, words }) => {
                return Err(problem(at, format!("not valid YAML: {words}")));
            }
            Err(Flaw::TooDeep { at }) => {
                return Err(problem(at, "the YAML is nested too deeply".to_owned()));
            }
        };
        let is_nothing = root.span.is_empty() && root.text() == Some("");
        match root.kind {
            Kind::Map(_) => {}
            _ if is_nothing => {
                let root = Node::empty(part.end);
                return Ok(Self { file: file.to_owned(), text: text.to_owned(), part, root });
            }
            _ => return Err(problem(root.span.start, "the YAML is not a mapping".to_owned())),
        }
        Ok(Self { file: file.to_owned(), text: text.to_owned(), part, root })
    }

    /// The name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The text with all edits.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text, to keep.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The text after the document: the body of a Markdown file.
    pub fn rest(&self) -> &str {
        let rest = &self.text[self.part.end..];
        match rest.split_once('\n') {
            Some((line, rest)) if is_marker(line) => rest,
            _ => rest,
        }
    }

    /// The whole document as a value.
    pub fn value(&self) -> Value {
        self.root.value()
    }

    /// The value at a path of keys and numbers of elements.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        self.node(path).map(Node::value)
    }

    /// The line of the node at a path, from 1; that of its nearest parent if it is not there.
    pub fn line(&self, path: &[&str]) -> usize {
        let mut at = self.part.start;
        let mut node = Some(&self.root);
        for step in path {
            node = node.and_then(|node| node.child(step));
            at = node.map_or(at, |node| node.span.start);
        }
        self.text[..at].matches('\n').count() + 1
    }

    /// Sets the value at a path. A scalar keeps its quotes; a key that is missing is added after the
    /// last one of its mapping.
    pub fn set(&mut self, path: &[&str], value: impl Into<Tree>) -> Result<(), Problem> {
        let value = value.into();
        let Some((name, parents)) = path.split_last() else {
            return Err(self.refused(self.part.start, "nothing is named"));
        };
        if let Some(old) = self.node(path) {
            if old.value() == value.to_value() {
                return Ok(());
            }
            let change = self.exchanged(old, &value)?;
            return self.changed(change);
        }
        let Some(parent) = self.node(parents) else {
            let line = self.line(parents);
            let words = format!("there is no `{}`", parents.join("."));
            return Err(self.refused_at(line, &words));
        };
        let change = self.added(parent, name, &value)?;
        self.changed(vec![change])
    }

    /// Adds an element to the end of the list at a path; a list that is missing is added.
    pub fn push(&mut self, path: &[&str], value: impl Into<Tree>) -> Result<(), Problem> {
        let value = value.into();
        let layout = self.layout();
        let Some(list) = self.node(path).filter(|node| !is_nothing(node)) else {
            return self.set(path, Tree::List(vec![value]));
        };
        let change = match &list.kind {
            Kind::List(items) if list.is_flow(&self.text) => {
                if !matches!(value, Tree::Scalar(_)) && !items.is_empty() {
                    return Err(self.refused(list.span.start, "the list is on one line"));
                }
                if items.is_empty() {
                    let lines =
                        layout.item(&value, self.key_column(list.span.start) + layout.dash());
                    self.in_lines(&list.span, &lines)
                } else {
                    let at = items.last().map_or(list.span.start, |item| item.span.end);
                    vec![Splice::new(at..at, format!(", {}", layout::flow(&value)))]
                }
            }
            Kind::List(items) => {
                let (at, column) = self.end_of_list(items)?;
                vec![self.inserted(at, &layout.item(&value, column))]
            }
            _ => return Err(self.refused(list.span.start, "this is not a list")),
        };
        self.changed(change)
    }

    /// Removes the element with a number from the list at a path, or a key from a mapping, with its
    /// lines. A list that has no more elements becomes `[]`.
    pub fn remove(&mut self, path: &[&str]) -> Result<(), Problem> {
        let (change, _) = self.cut(path)?;
        self.changed(change)
    }

    /// Moves an element of a list, as it is written, to the end of another list.
    ///
    /// It is taken out first, and the text is read again: where it goes is never within what was taken.
    pub fn move_element(&mut self, from: &[&str], to: &[&str]) -> Result<(), Problem> {
        let layout = self.layout();
        let (changes, (column, lines)) = self.cut(from)?;
        let mut left = self.clone();
        left.changed(changes)?;
        let changes = left.pasted(to, layout, column, &lines)?;
        left.changed(changes)?;
        *self = left;
        Ok(())
    }

    /// The changes that add lines to the end of the list at a path, with their dash at its column.
    fn pasted(
        &self,
        to: &[&str],
        layout: Layout,
        old: usize,
        lines: &[String],
    ) -> Result<Vec<Splice>, Problem> {
        let below = |key: usize| layout::shifted(lines, old, key + layout.dash());
        match self.node(to).filter(|node| !is_nothing(node)) {
            Some(list) if matches!(&list.kind, Kind::List(items) if !items.is_empty()) => {
                if list.is_flow(&self.text) {
                    return Err(self.refused(list.span.start, "the list is on one line"));
                }
                let Kind::List(items) = &list.kind else { return Ok(Vec::new()) };
                let (at, column) = self.end_of_list(items)?;
                Ok(vec![self.inserted(at, &layout::shifted(lines, old, column))])
            }
            Some(list) if matches!(list.kind, Kind::List(_)) => {
                Ok(self.in_lines(&list.span, &below(self.key_column(list.span.start))))
            }
            Some(other) => Err(self.refused(other.span.start, "this is not a list")),
            None => self.pasted_below(to, &below),
        }
    }

    /// The same below a key that is missing or has nothing.
    fn pasted_below(
        &self,
        to: &[&str],
        below: &dyn Fn(usize) -> Vec<String>,
    ) -> Result<Vec<Splice>, Problem> {
        let nowhere = || self.refused_at(self.line(to), "there is no such place");
        let (name, parents) = to.split_last().ok_or_else(nowhere)?;
        let parent = self.node(parents).filter(|p| matches!(p.kind, Kind::Map(_)));
        let parent = parent.ok_or_else(nowhere)?;
        if let Some(empty) = parent.child(name) {
            let lines = below(self.key_column(empty.span.start));
            return Ok(vec![self.inserted(self.line_end(empty.span.start), &lines)]);
        }
        let column = self.column(parent.span.start);
        let mut lines = vec![format!("{}{name}:", " ".repeat(column))];
        lines.extend(below(column));
        Ok(vec![self.inserted(self.end_of_map(parent), &lines)])
    }

    fn node(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| node.child(step))
    }

    fn layout(&self) -> Layout {
        Layout::of(&self.text, &self.root)
    }

    /// Makes changes and reads the text again: an edit that does not leave YAML is refused.
    fn changed(&mut self, changes: Vec<Splice>) -> Result<(), Problem> {
        let at = changes.first().map_or(self.part.start, |change| change.range.start);
        let text = exact(&self.text, changes)
            .map_err(|Overlap| self.refused(at, "these lines cannot be told apart"))?;
        let new = Self::new(&self.file, &text)?;
        *self = new;
        Ok(())
    }

    /// The changes that put a value in the place of another.
    fn exchanged(&self, old: &Node, value: &Tree) -> Result<Vec<Splice>, Problem> {
        let layout = self.layout();
        let is_one_line = !self.text[old.span.clone()].contains('\n');
        let written = match (&old.kind, value) {
            (Kind::Scalar { quoting: Quoting::Block, .. } | Kind::Alias, _) => {
                return Err(self.refused(old.span.start, "this value has lines of its own"));
            }
            (_, _) if !is_one_line => {
                return Err(self.refused(old.span.start, "this value has several lines"));
            }
            (Kind::Scalar { quoting, .. }, Tree::Scalar(new)) => layout::scalar(new, *quoting),
            (_, Tree::List(items)) if items.is_empty() => "[]".to_owned(),
            (Kind::List(_), Tree::List(items))
                if items.iter().all(|item| matches!(item, Tree::Scalar(_)))
                    && !is_empty_list(old) =>
            {
                layout::flow(value)
            }
            (_, Tree::Scalar(new)) => layout::scalar(new, Quoting::Double),
            (_, block) => {
                let lines = layout.block(block, self.key_column(old.span.start));
                return Ok(self.in_lines(&old.span, &lines));
            }
        };
        let is_empty = old.span.is_empty();
        let lead = if is_empty && !self.text[..old.span.start].ends_with(' ') { " " } else { "" };
        Ok(vec![Splice::new(old.span.clone(), format!("{lead}{written}"))])
    }

    /// The change that adds a key to a mapping.
    fn added(&self, parent: &Node, name: &str, value: &Tree) -> Result<Splice, Problem> {
        let layout = self.layout();
        let Kind::Map(entries) = &parent.kind else {
            return Err(self.refused(parent.span.start, "this is not a mapping"));
        };
        if parent.is_flow(&self.text) && !entries.is_empty() {
            return Err(self.refused(parent.span.start, "the mapping is on one line"));
        }
        let column = entries.first().map_or(0, |(key, _)| self.column(key.span.start));
        let lines = layout.entry(name, value, column);
        Ok(self.inserted(self.end_of_map(parent), &lines))
    }

    /// Where a new entry of a mapping goes.
    fn end_of_map(&self, map: &Node) -> usize {
        match &map.kind {
            Kind::Map(entries) if !entries.is_empty() => {
                let end = entries.last().map_or(map.span.end, |(_, value)| value.span.end);
                self.line_end(end.max(map.span.start))
            }
            _ => map.span.end,
        }
    }

    /// An insertion of lines at the start of a line, or behind the last one.
    fn inserted(&self, at: usize, lines: &[String]) -> Splice {
        let newline = self.layout().newline();
        let before = &self.text[..at];
        let begins = at == 0 || before.ends_with('\n') || before.ends_with('\u{feff}');
        let with = if begins {
            lines.iter().flat_map(|line| [line.as_str(), newline]).collect::<String>()
        } else {
            lines.iter().flat_map(|line| [newline, line.as_str()]).collect()
        };
        Splice::new(at..at, with)
    }

    /// The changes that put lines below a key in the place of its value; a comment stays on its line.
    fn in_lines(&self, value: &Range<usize>, lines: &[String]) -> Vec<Splice> {
        let end = self.line_end(value.end);
        let start = value.start - self.blanks_before(value.start);
        if end == value.end {
            let with = self.inserted(value.end, lines).with;
            return vec![Splice::new(start..end, with)];
        }
        vec![Splice::new(start..value.end, ""), self.inserted(end, lines)]
    }

    fn blanks_before(&self, at: usize) -> usize {
        let before = &self.text[..at];
        before.len() - before.trim_end_matches(' ').len()
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or_else(|| bom(&self.text), |newline| newline + 1)
    }

    /// The end of a line, before its newline.
    fn line_end(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest
            .find('\n')
            .map_or(rest.len(), |newline| rest[..newline].trim_end_matches('\r').len())
    }

    /// The start of the next line, or the end of the text.
    fn after_line(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// The column of a byte.
    fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    /// The column of the key whose value is at a byte: behind the dash, if there is one.
    fn key_column(&self, at: usize) -> usize {
        let line = &self.text[self.line_start(at)..at];
        line.len() - line.trim_start_matches([' ', '-']).len()
    }

    #[expect(clippy::unnecessary_box_returns, reason = "it is always part of an error")]
    fn refused(&self, at: usize, words: &str) -> Problem {
        let hint =
            "write it over several lines, or make the change by hand; the file was not changed";
        problem(&self.file, &self.text, code::UNEDITABLE, &(at..at), words.to_owned(), hint)
    }

    #[expect(clippy::unnecessary_box_returns, reason = "it is always part of an error")]
    fn refused_at(&self, line: usize, words: &str) -> Problem {
        let at: usize = self.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        self.refused(at, words)
    }
}

fn is_nothing(node: &Node) -> bool {
    matches!(&node.kind, Kind::Scalar { text, quoting: Quoting::Plain } if text.is_empty())
}

fn is_empty_list(node: &Node) -> bool {
    matches!(&node.kind, Kind::List(items) if items.is_empty())
}

#[expect(clippy::unnecessary_box_returns, reason = "it is always part of an error")]
fn problem(
    file: &str,
    text: &str,
    code: &'static str,
    span: &Range<usize>,
    message: String,
    hint: &str,
) -> Problem {
    let mut sink = Sink::new(file, text);
    sink.error(code, span, message, hint);
    // The sink has exactly one problem.
    Box::new(sink.finish().swap_remove(0))
}
