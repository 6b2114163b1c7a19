//! The items below the heading of a lane that are tasks, before anything in them is resolved.
//!
//! An item goes on over its deeper lines. One without a type whose deeper items have one is the heading
//! of those. Below `Acceptance:`, `Scope:` or the interfaces no item is a task; with a `Tasks:` only
//! what is below it is one.

use super::draft::{Key, attribute};
use super::fences;
use super::model::TaskKind;
use super::test_plan::{self, Tests};
use super::typed::{Typed, typed};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{bullet, checkbox, title, undecorated};
use piton_formats::markdown::{Document, Line, Place};
use piton_formats::sink::Sink;

/// An item of a list that is a task.
#[derive(Default)]
pub(super) struct Item {
    /// Its line, from 1.
    pub(super) line: usize,
    indent: usize,
    /// Its id, if the document gives one.
    pub(super) id: Option<String>,
    /// Its type as written; empty if there is none.
    pub(super) word: String,
    /// Its lines.
    pub(super) text: Vec<String>,
    /// What the item above it says.
    pub(super) group: String,
    /// Commands and checks of fences within it.
    pub(super) tests: Tests,
    /// Whether it is a section of its own that says how the lane is verified.
    pub(super) is_section: bool,
    is_group: bool,
}

impl Item {
    pub(super) fn kind(&self) -> TaskKind {
        TaskKind::read(&self.word)
    }
}

/// What the lines are below.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Below {
    /// The heading of the lane, or an attribute that says nothing of tasks.
    #[default]
    Lane,
    /// `Tasks:`
    Tasks,
    /// `Verification:`
    Verification,
    /// `Acceptance:` and the like.
    Other,
}

#[derive(Clone, Copy)]
struct Label {
    indent: usize,
    /// Whether the label is an item of a list itself.
    marked: bool,
    /// The level of its heading, if it is one.
    level: Option<usize>,
}

/// Where a reader of a section is.
#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    /// Whether the lines belong to the last item.
    open: bool,
    /// Whether the last line was empty.
    gap: bool,
    /// The list below `Tasks:`, whose items need no type.
    label: Option<Label>,
    /// Whether the section has a `Tasks:`.
    is_labelled: bool,
    below: Below,
    /// The item that `below` is about, and what comes after it.
    within: Option<(usize, Below)>,
    /// `Tasks:` itself, as long as nothing else has taken its place.
    tasks: Option<Label>,
}

/// Reads the section of a lane.
pub(super) fn read(document: &Document<'_>, lines: &[Line<'_>], sink: &mut Sink<'_>) -> Vec<Item> {
    let is_tasks = |line: &&Line<'_>| {
        let named = label(line, true).or_else(|| label(line, false));
        line.place == Place::Text && named.is_some_and(|(key, _)| key == Key::Tasks)
    };
    let is_labelled = lines.iter().any(|line| is_tasks(&line));
    let mut reader = Reader { is_labelled, ..Reader::default() };
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        if let Some(length) = verification(&lines[at - 1..]) {
            reader.section(document, &lines[at - 1..at + length], sink);
            at += length;
            continue;
        }
        match line.place {
            Place::Text => reader.line(line, sink),
            Place::Fence(block) => {
                let same = |line: &&Line<'_>| line.place == Place::Fence(block);
                let length = lines[at - 1..].iter().take_while(same).count();
                reader.fence(document.language(block), &lines[at - 1..at - 1 + length], sink);
                at += length - 1;
            }
            Place::FenceMark | Place::Aside => {}
        }
    }
    reader.items.retain(|item| !item.is_group);
    reader.items
}

/// How many lines follow a heading of verification that has no typed items.
fn verification(lines: &[Line<'_>]) -> Option<usize> {
    let (level, text) = lines.first()?.heading()?;
    let rest = lines.get(1..).unwrap_or_default();
    let ends = |line: &Line<'_>| line.heading().is_some_and(|(l, _)| l <= level);
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    let is_typed = |line: &Line<'_>| {
        let known = |item: &str| typed(item).is_some_and(|t| t.kind() != TaskKind::Unknown);
        line.place == Place::Text && bullet(line.text).is_some_and(|item| known(unboxed(item)))
    };
    let is_own = test_plan::is_plan(&title(text)) && !rest[..length].iter().any(is_typed);
    is_own.then_some(length)
}

fn unboxed(item: &str) -> &str {
    undecorated(checkbox(item).map_or(item, |boxed| boxed.rest))
}

/// The key of a line that is a label; its value too if it `has_value`.
fn label<'a>(line: &Line<'a>, has_value: bool) -> Option<(Key, &'a str)> {
    let text = line.heading().map_or_else(|| line.text.trim(), |(_, title)| title);
    let item = unboxed(bullet(text).unwrap_or(text));
    let (key, value) = attribute(item).or_else(|| {
        let bare = item.trim_end();
        let is_bold = ["**", "__"].iter().any(|m| bare.starts_with(m) && bare.ends_with(m));
        let (key, _) = attribute(&format!("{bare}:"))?;
        // Words alone are a label if they are marked as one.
        (is_bold || line.heading().is_some() || key == Key::Tasks).then_some((key, ""))
    })?;
    (has_value || value.is_empty()).then_some((key, value))
}

impl Reader {
    fn line(&mut self, line: &Line<'_>, sink: &mut Sink<'_>) {
        if let Some((level, _)) = line.heading() {
            self.heading(line, level);
            return;
        }
        let text = line.text.trim();
        if text.is_empty() {
            self.gap = true;
            return;
        }
        let gap = std::mem::take(&mut self.gap);
        let marked = bullet(line.text);
        let item = unboxed(marked.unwrap_or(text));
        let is_nested = marked.is_some() && self.is_nested(line, item);
        if !is_nested && self.continues(line, marked.is_some(), gap) {
            self.add(text);
            return;
        }
        if self.within.is_some_and(|(indent, _)| line.indent() <= indent)
            && let Some((_, after)) = self.within.take()
        {
            self.below = after;
        }
        let named = label(line, true);
        if let Some((Key::Tasks, _)) = named {
            let label = Label { indent: line.indent(), marked: marked.is_some(), level: None };
            (self.label, self.tasks) = (Some(label), Some(label));
            (self.below, self.within, self.open) = (Below::Tasks, None, false);
            return;
        }
        if let Some((key, value)) = named.filter(|(key, _)| !is_nested && lists(*key)) {
            self.enter(key, value, line.indent(), marked.is_some());
        }
        self.begin(line, item, marked.is_some(), sink);
    }

    fn heading(&mut self, line: &Line<'_>, level: usize) {
        self.open = false;
        self.within = None;
        match label(line, false) {
            Some((Key::Tasks, _)) => {
                let label = Label { indent: 0, marked: false, level: Some(level) };
                (self.label, self.tasks) = (Some(label), Some(label));
                self.below = Below::Tasks;
            }
            Some((key, _)) if lists(key) => (self.label, self.below) = (None, Below::Other),
            _ => {
                self.label = None;
                let deeper = |tasks: Label| tasks.level.is_none_or(|above| level > above);
                let goes_on = self.below != Below::Other && self.tasks.is_some_and(deeper);
                self.below = if goes_on { Below::Tasks } else { Below::Lane };
            }
        }
    }

    /// A label of something else than tasks: what is below it is no task.
    fn enter(&mut self, key: Key, value: &str, indent: usize, marked: bool) {
        debug_assert!(key != Key::Tasks, "the label of tasks begins them");
        if marked {
            let is_inner = |tasks: Label| !tasks.marked || tasks.indent < indent;
            let back = match self.below {
                Below::Tasks if !self.tasks.is_some_and(is_inner) => Below::Lane,
                below => below,
            };
            self.within = Some((indent, back));
            self.below = Below::Other;
        } else if value.is_empty() {
            (self.below, self.within) = (Below::Other, None);
        }
    }

    /// Whether an item is deeper than the last one and a task of its own: that one is the heading of
    /// several, or this one says how it is verified.
    fn is_nested(&mut self, line: &Line<'_>, item: &str) -> bool {
        let Some(last) = self.items.last_mut().filter(|_| self.open) else { return false };
        let Some(found) = typed(item).filter(|found| found.kind() != TaskKind::Unknown) else {
            return false;
        };
        // `SL-1.1 Tests` says as little of what is to be done.
        let is_heading = last.kind() == TaskKind::Unknown || last.text.is_empty();
        let verifies = found.kind() == TaskKind::Verify && last.kind() != TaskKind::Verify;
        if line.indent() <= last.indent || !(is_heading || verifies) {
            return false;
        }
        last.is_group |= is_heading;
        true
    }

    /// Whether a line belongs to the last item: it is deeper, or goes on where that one broke off.
    fn continues(&self, line: &Line<'_>, marked: bool, gap: bool) -> bool {
        let Some(last) = self.items.last().filter(|_| self.open) else { return false };
        let deeper = line.indent() > last.indent;
        let lazy = !marked && !gap && !line.text.trim_start().starts_with('|');
        let other = !deeper && attribute(line.text.trim()).is_some();
        deeper || (lazy && !other)
    }

    fn add(&mut self, text: &str) {
        if let Some(last) = self.items.last_mut() {
            last.text.push(text.to_owned());
        }
    }

    /// The item that is the heading of those at this indent.
    fn group(&self, indent: usize) -> Option<&Item> {
        self.items.iter().rev().find(|item| item.indent < indent).filter(|item| item.is_group)
    }

    /// A line that is no part of an item: a new one, or the end of the list.
    fn begin(&mut self, line: &Line<'_>, item: &str, marked: bool, sink: &mut Sink<'_>) {
        let indent = line.indent();
        let known = typed(item)
            .filter(|found| found.kind() != TaskKind::Unknown && (marked || self.label.is_some()));
        if known.is_none() && marked && self.open && self.group(indent).is_some() {
            // One more line about a task of a group.
            self.add(line.text.trim());
            return;
        }
        let outside = |label: &Label| label.marked && indent <= label.indent;
        let is_key = !matches!(attribute(item), None | Some((Key::Other, _)));
        if is_key || self.label.as_ref().is_some_and(outside) {
            self.label = None;
        }
        if self.tasks.as_ref().is_some_and(outside) && self.below == Below::Tasks {
            self.below = Below::Lane;
        }
        let listed = self.label.is_some() && marked;
        let found = known.or_else(|| if listed { typed(item) } else { None });
        let found =
            found.or_else(|| listed.then(|| Typed { id: None, word: String::new(), text: item }));
        let verifies = self.below == Below::Verification && marked;
        let found = found.or_else(|| {
            verifies.then(|| Typed { id: None, word: "verify".to_owned(), text: item })
        });
        let Some(found) = found.filter(|found| self.counts(found, line, sink)) else {
            self.open = false;
            if !marked && is_verification(item) {
                self.below = Below::Verification;
            }
            // A paragraph ends the list.
            self.label = self.label.filter(|label| marked || indent > label.indent);
            return;
        };
        let Typed { id, word, text } = found;
        let text = Vec::from_iter(Some(text.to_owned()).filter(|text| !text.is_empty()));
        let group = self.group(indent).map(|group| group.text.join("\n")).unwrap_or_default();
        let (line, open) = (line.number, Item::default());
        self.items.push(Item { line, indent, id, word, text, group, ..open });
        self.open = true;
    }

    /// Whether a typed item is a task where it stands.
    fn counts(&self, found: &Typed<'_>, line: &Line<'_>, sink: &mut Sink<'_>) -> bool {
        let counts = match self.below {
            Below::Tasks | Below::Verification => true,
            Below::Other => false,
            Below::Lane => !self.is_labelled,
        };
        if !counts && self.below == Below::Lane {
            let message =
                format!("this item of type {} is not below `Tasks:`", quoted(&found.word));
            let hint = "it is not a task; move it below `Tasks:` if it is to be one";
            sink.warn(code::BAD_VALUE, &line.span(), message, hint);
        }
        counts
    }

    fn fence(&mut self, language: &str, lines: &[Line<'_>], sink: &mut Sink<'_>) {
        let Some(last) = self.items.last_mut().filter(|_| self.open) else { return };
        if last.kind() == TaskKind::Verify && fences::is_shell(language) {
            let tests = fences::fence(language, lines, sink);
            last.tests.commands.extend(tests.commands);
            last.tests.checks.extend(tests.checks);
        } else {
            last.text.extend(lines.iter().map(|line| line.text.to_owned()));
        }
    }

    /// A section of the lane that says how it is verified.
    fn section(&mut self, document: &Document<'_>, lines: &[Line<'_>], sink: &mut Sink<'_>) {
        self.open = false;
        let tests = Tests::of(document, lines.get(1..).unwrap_or_default(), sink);
        if let Some(line) = lines.first().filter(|_| !tests.is_empty()) {
            let word = TaskKind::Verify.word().to_owned();
            let item = Item { line: line.number, word, tests, ..Item::default() };
            self.items.push(Item { is_section: true, ..item });
        }
    }
}

/// Whether what an attribute is followed by is a list of something else than tasks.
fn lists(key: Key) -> bool {
    matches!(
        key,
        Key::DependsOn
            | Key::Blocks
            | Key::Provides
            | Key::Consumes
            | Key::Scope
            | Key::Owned
            | Key::Acceptance
    )
}

/// Whether a line is the label of a list that verifies: `**Verification**:`.
fn is_verification(item: &str) -> bool {
    typed(item).is_some_and(|found| {
        found.kind() == TaskKind::Verify
            && found.text.is_empty()
            && !item.starts_with(char::is_lowercase)
    })
}
