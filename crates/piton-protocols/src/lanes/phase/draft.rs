//! A lane while it is read: values as written, each with its line, not yet resolved.
//!
//! Attributes of a lane are the same in the lane index and below the swim lanes: `Depends on: …`,
//! with or without bullets and emphasis, on lines of their own or after semicolons.

use std::ops::Range;

use super::model::{Lane, ParallelSafe, TestsCount};
use super::names::{aliases, gate_ids};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::Line;
use piton_formats::markdown::inline::{
    bullet, checkbox, is_none, plain, split_outside, undecorated, without_brackets,
};
use piton_formats::sink::Sink;

/// Most retries a document can ask for; more is a typing error.
const RETRIES_MAX: u32 = 100;
/// Most words of a key; more before a colon are a sentence.
const KEY_WORDS_MAX: usize = 3;

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct At {
    /// As written.
    pub(super) value: String,
    /// Its line, from 1.
    pub(super) line: usize,
    /// The bytes of its line.
    pub(super) span: Range<usize>,
}

/// What an attribute is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// `Depends on:`
    DependsOn,
    /// `Blocks:`
    Blocks,
    /// `Parallel-safe:`
    ParallelSafe,
    /// `Retries:`
    Retries,
    /// `Interfaces provided:`
    Provides,
    /// `Interfaces consumed:`
    Consumes,
    /// `Scope:`
    Scope,
    /// `Owned files:`
    Owned,
    /// `Acceptance criteria:`
    Acceptance,
    /// `Alias:`
    Alias,
    /// `Tests: report`
    Tests,
    /// `Tasks:`, whose list is read elsewhere.
    Tasks,
    /// Any other.
    Other,
}

impl Key {
    /// Whether its value is text, which may go on in the next lines.
    fn is_text(self) -> bool {
        matches!(
            self,
            Self::Scope | Self::Owned | Self::Acceptance | Self::Provides | Self::Consumes
        )
    }
}

/// A lane while it is read.
#[derive(Debug)]
pub(super) struct Draft {
    /// What is known already.
    pub(super) lane: Lane,
    /// Bytes of its line.
    pub(super) span: Range<usize>,
    /// Values of `Depends on:`.
    pub(super) depends_on: Vec<At>,
    /// Values of `Blocks:`.
    pub(super) blocks: Vec<At>,
    /// Gates of `Interfaces consumed:`.
    pub(super) consumes: Vec<At>,
    /// Whether the lane index lacks it.
    pub(super) is_unlisted: bool,
    /// The attribute read last.
    pending: Option<Key>,
    /// Whether its list continues on the next lines.
    goes_on: bool,
    /// Whether it has a value already, so that an empty line ends it.
    has_value: bool,
    /// The indent of the attribute read last, while its own line may continue.
    wraps_at: Option<usize>,
    /// The indent of `Tasks:`, while the lines below belong to it.
    tasks_at: Option<usize>,
}

impl Draft {
    /// Begins a lane.
    pub(super) fn new(id: String, name: String, line: &Line<'_>) -> Self {
        let lane = Lane { aliases: aliases(&name), line: line.number, ..Lane::new(id, name) };
        let (depends_on, blocks, consumes) = (Vec::new(), Vec::new(), Vec::new());
        let (pending, goes_on, has_value) = (None, false, false);
        let (wraps_at, tasks_at) = (None, None);
        let span = line.span();
        Self {
            lane,
            span,
            depends_on,
            blocks,
            consumes,
            is_unlisted: false,
            pending,
            goes_on,
            has_value,
            wraps_at,
            tasks_at,
        }
    }

    /// Reads one line below the lane's first: an attribute, or the rest of a list.
    pub(super) fn line(&mut self, line: &Line<'_>, sink: &mut Sink<'_>) {
        let marked = bullet(line.text);
        let item = marked.unwrap_or(line.text.trim());
        if item.is_empty() {
            // `Key:`, an empty line and a list belong together; after the list it ends.
            self.goes_on &= !self.has_value;
            self.wraps_at = None;
            return;
        }
        if self.tasks_at.is_some_and(|above| line.indent() > above) {
            return;
        }
        self.tasks_at = None;
        let list = self.goes_on && (marked.is_some() || self.has_value);
        // The rest of a long line is indented deeper than its bullet, or is text as before.
        let text = self.pending.is_some_and(Key::is_text);
        let deeper = |above: usize| line.indent() > above || text;
        let wraps = marked.is_none() && self.wraps_at.is_some_and(deeper);
        match attribute(item) {
            Some((Key::Other, _)) if (list && marked.is_some()) || wraps => self.more(item, line),
            Some((Key::Tasks, _)) => {
                self.set(Key::Tasks, "", line, sink);
                self.tasks_at = Some(line.indent());
            }
            Some((key, value)) => {
                self.set(key, value, line, sink);
                self.wraps_at = (marked.is_some() || key.is_text()).then_some(line.indent());
            }
            None if list || wraps => self.more(item, line),
            None => (self.goes_on, self.wraps_at) = (false, None),
        }
    }

    /// Continues a list: a bullet below its key, or a part after a semicolon.
    pub(super) fn more(&mut self, value: &str, line: &Line<'_>) {
        let at = At { value: value.to_owned(), line: line.number, span: line.span() };
        self.has_value = true;
        let text = checkbox(value).map_or(value, |boxed| boxed.rest);
        match self.pending {
            Some(Key::DependsOn) => self.depends_on.push(at),
            Some(Key::Blocks) => self.blocks.push(at),
            Some(Key::Consumes) => {
                self.lane.about.consumed.push(text.to_owned());
                self.consumes.push(at);
            }
            Some(Key::Provides) => {
                self.lane.about.provided.push(text.to_owned());
                self.provide(value);
            }
            Some(Key::Scope) => self.lane.about.scope.push(text.to_owned()),
            Some(Key::Owned) => self.lane.about.owned.push(text.to_owned()),
            Some(Key::Acceptance) => self.lane.about.acceptance.push(text.to_owned()),
            Some(Key::Alias) => {
                let named = plain(value).replace(',', " ");
                self.lane.aliases.extend(named.split_whitespace().map(ToOwned::to_owned));
            }
            Some(Key::ParallelSafe) => {
                if let ParallelSafe::Mixed(why) = &mut self.lane.parallel_safe {
                    why.push_str(if why.is_empty() { "" } else { "; " });
                    why.push_str(&plain(value));
                }
            }
            _ => {}
        }
    }

    /// Tells whether an attribute was read that the next part may belong to.
    pub(super) fn has_attributes(&self) -> bool {
        self.pending.is_some()
    }

    /// Sets an attribute.
    pub(super) fn set(&mut self, key: Key, value: &str, line: &Line<'_>, sink: &mut Sink<'_>) {
        self.pending = Some(key);
        // A list follows on the next lines, or this one ends in its middle.
        self.goes_on = value.is_empty() || value.ends_with(',');
        self.has_value = false;
        match key {
            Key::ParallelSafe => self.parallel(&plain(value), line, sink),
            Key::Retries => self.retries(&plain(value), line, sink),
            Key::Tests => self.lane.tests = TestsCount::read(&plain(value)),
            _ if value.is_empty() => {}
            _ if is_none(value) && key.is_text() => {}
            _ => self.more(value, line),
        }
    }

    fn provide(&mut self, value: &str) {
        // `ID: what it is` names one; what the text after the colon mentions is not provided.
        let head = value.split_once(": ").map_or(value, |(head, _)| head);
        let named = gate_ids(head);
        for id in if named.is_empty() { gate_ids(value) } else { named } {
            if !self.lane.provides.contains(&id) {
                self.lane.provides.push(id);
            }
        }
    }

    fn parallel(&mut self, value: &str, line: &Line<'_>, sink: &mut Sink<'_>) {
        let lower = value.to_lowercase();
        let end = lower.find(|c: char| !c.is_alphanumeric()).unwrap_or(lower.len());
        let why = value.get(end..).unwrap_or_default().trim();
        let why = why.strip_prefix('(').and_then(|w| w.strip_suffix(')')).unwrap_or(why);
        self.lane.parallel_safe = match &lower[..end] {
            "yes" | "true" | "y" => ParallelSafe::Yes,
            "no" | "false" | "n" => ParallelSafe::No,
            "mixed" => {
                let why = why.trim_start_matches(['-', '—', ':', ' ', ',', ';']);
                ParallelSafe::Mixed(why.to_owned())
            }
            _ => {
                let message = format!("{} is not a valid `Parallel-safe`", quoted(value));
                let hint = "write yes, no, or mixed with a reason in parentheses";
                sink.warn(code::BAD_VALUE, &line.span(), message, hint);
                ParallelSafe::Unknown
            }
        };
    }

    fn retries(&mut self, value: &str, line: &Line<'_>, sink: &mut Sink<'_>) {
        let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
        match digits.parse::<u32>() {
            Ok(count) if count <= RETRIES_MAX => self.lane.retries = Some(count),
            _ if is_none(value) => self.lane.retries = Some(0),
            _ => {
                let message = format!("{} is not a valid number of retries", quoted(value));
                let hint = format!("write `Retries: N` with N from 0 to {RETRIES_MAX}");
                sink.error(code::BAD_VALUE, &line.span(), message, hint);
            }
        }
    }
}

/// Key and value of `Key: value`, the value as written; `None` if it is not an attribute.
pub(super) fn attribute(item: &str) -> Option<(Key, &str)> {
    let item = undecorated(item);
    let first = *split_outside(item, b":").first()?;
    let value = item.get(first.len()..)?.trim_start().strip_prefix(':')?;
    // `**Key:** value` ends its emphasis behind the colon.
    let marks = ["**", "__"].into_iter().find(|m| first.starts_with(m) && !first.ends_with(m));
    let value = marks.and_then(|m| value.trim_start().strip_prefix(m)).unwrap_or(value).trim();
    let key = without_brackets(&plain(first));
    let words: Vec<String> =
        key.split([' ', '-', '_']).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let key = match words.join(" ").as_str() {
        "depends on" | "depends" | "dependencies" | "dependency" | "deps" => Key::DependsOn,
        "blocks" | "block" => Key::Blocks,
        "parallel safe" | "parallelsafe" | "parallel" => Key::ParallelSafe,
        "retries" | "max retries" => Key::Retries,
        "interfaces provided" | "interface provided" | "provides" | "gates provided" => {
            Key::Provides
        }
        "interfaces consumed" | "interface consumed" | "consumes" => Key::Consumes,
        "scope" | "lane scope" | "goal" => Key::Scope,
        "owned files" | "files owned" | "owns" | "files" | "files in scope" => Key::Owned,
        "acceptance" | "acceptance criteria" | "done when" | "exit criteria" => Key::Acceptance,
        "alias" | "aliases" | "aka" => Key::Alias,
        "tests" if TestsCount::read(&plain(value)).is_some() => Key::Tests,
        "tasks" | "task list" => Key::Tasks,
        // A word or two that are not an id are an attribute that is not used.
        _ if words.len() <= KEY_WORDS_MAX
            && !key.contains(|c: char| c.is_ascii_digit() || c == '/') =>
        {
            let id = super::names::id_at_start(&key);
            if id.is_some_and(|id| super::names::is_gate_id(id) || super::names::is_lane_id(id)) {
                return None;
            }
            Key::Other
        }
        _ => return None,
    };
    Some((key, value))
}
