//! A lane while it is read: values as written, each with its line, not yet resolved.
//!
//! Attributes of a lane are the same in the lane index and below the swim lanes: `Depends on: …`,
//! with or without bullets and emphasis, on lines of their own or after semicolons.

use std::ops::Range;

use super::model::{Lane, ParallelSafe};
use super::names::gate_ids;
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::Line;
use piton_formats::markdown::inline::{bullet, is_none, plain};
use piton_formats::sink::Sink;

/// Most retries a document can ask for; more is a typing error.
const RETRIES_MAX: u32 = 100;

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
    /// Any other.
    Other,
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
    /// The attribute read last.
    pending: Option<Key>,
    /// Whether its list continues on the next lines.
    goes_on: bool,
    /// Whether it has a value already, so that an empty line ends it.
    has_value: bool,
}

impl Draft {
    /// Begins a lane.
    pub(super) fn new(id: String, name: String, line: &Line<'_>) -> Self {
        let lane = Lane {
            id,
            name,
            depends_on: Vec::new(),
            blocks: Vec::new(),
            parallel_safe: ParallelSafe::Unknown,
            provides: Vec::new(),
            retries: None,
            tasks: Vec::new(),
            ready: false,
            blocked_by: Vec::new(),
            line: line.number,
        };
        let (depends_on, blocks, consumes) = (Vec::new(), Vec::new(), Vec::new());
        let (pending, goes_on, has_value) = (None, false, false);
        let span = line.span();
        Self { lane, span, depends_on, blocks, consumes, pending, goes_on, has_value }
    }

    /// Reads one line below the lane's first: an attribute, or the rest of a list.
    pub(super) fn line(&mut self, line: &Line<'_>, sink: &mut Sink<'_>) {
        let item = bullet(line.text).unwrap_or(line.text.trim());
        if item.is_empty() {
            // `Key:`, an empty line and a list belong together; after the list it ends.
            self.goes_on &= !self.has_value;
            return;
        }
        let list = self.goes_on && (bullet(line.text).is_some() || self.has_value);
        match attribute(item) {
            Some((Key::Other, _)) if list && bullet(line.text).is_some() => self.more(item, line),
            Some((key, value)) => self.set(key, &value, line, sink),
            None if list => self.more(item, line),
            None => self.goes_on = false,
        }
    }

    /// Continues a list: a bullet below its key, or a part after a semicolon.
    pub(super) fn more(&mut self, value: &str, line: &Line<'_>) {
        let at = At { value: value.to_owned(), line: line.number, span: line.span() };
        self.has_value = true;
        match self.pending {
            Some(Key::DependsOn) => self.depends_on.push(at),
            Some(Key::Blocks) => self.blocks.push(at),
            Some(Key::Consumes) => self.consumes.push(at),
            Some(Key::Provides) => self.provide(value),
            Some(Key::ParallelSafe) => {
                if let ParallelSafe::Mixed(why) = &mut self.lane.parallel_safe {
                    why.push_str(if why.is_empty() { "" } else { "; " });
                    why.push_str(value);
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
            Key::ParallelSafe => self.parallel(value, line, sink),
            Key::Retries => self.retries(value, line, sink),
            _ if value.is_empty() => {}
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

/// Key and value of `Key: value`, without emphasis; `None` if it is not an attribute.
pub(super) fn attribute(item: &str) -> Option<(Key, String)> {
    let plain = plain(item);
    let (key, value) = plain.split_once(':')?;
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
        // A word or two that are not an id are an attribute that is not used.
        _ if words.len() <= 3 && !key.contains(|c: char| c.is_ascii_digit() || c == '/') => {
            let id = super::names::id_at_start(key);
            if id.is_some_and(|id| super::names::is_gate_id(id) || super::names::is_lane_id(id)) {
                return None;
            }
            Key::Other
        }
        _ => return None,
    };
    Some((key, value.trim().to_owned()))
}
