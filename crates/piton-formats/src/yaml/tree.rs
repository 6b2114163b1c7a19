//! A YAML document as nodes with their bytes, so that one of them can be changed and all else stays.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use serde_json::{Map, Number, Value};

/// Deepest nesting that is read: files of people have a few levels, and a reader must not run out of
/// stack on any text.
const DEPTH_MAX: usize = 64;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Its bytes in the text, from the first character to the last one that is not blank.
    pub span: Range<usize>,
    pub kind: Kind,
    /// Whether it has an anchor or a tag before it.
    pub is_marked: bool,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Scalar {
        text: String,
        quoting: Quoting,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// A reference to another node; its value is not resolved.
    Alias,
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    Plain,
    Single,
    Double,
    /// Over several lines, after `|` or `>`.
    Block,
}

/// Why a text has no tree.
#[derive(Debug)]
pub(super) enum Flaw {
    Syntax { at: usize, words: String },
    TooDeep { at: usize },
}

impl Node {
    /// An empty mapping.
    pub(super) fn empty(at: usize) -> Self {
        Self { span: at..at, kind: Kind::Map(Vec::new()), is_marked: false }
    }

    /// Tells whether it, or anything in it, has an anchor or a tag, or is an alias.
    pub(super) fn is_named(&self) -> bool {
        let within = match &self.kind {
            Kind::Alias => true,
            Kind::Scalar { .. } => false,
            Kind::List(items) => items.iter().any(Self::is_named),
            Kind::Map(entries) => entries.iter().any(|(key, v)| key.is_named() || v.is_named()),
        };
        self.is_marked || within
    }

    /// Tells whether a list or mapping is written in brackets.
    pub(super) fn is_flow(&self, text: &str) -> bool {
        text[self.span.clone()].starts_with(['[', '{'])
    }

    /// The value of a key, or the element with that number.
    pub(super) fn child(&self, step: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(entries) => {
                entries.iter().find(|(key, _)| key.text() == Some(step)).map(|(_, value)| value)
            }
            Kind::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The value, as JSON has it.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar { text, quoting: Quoting::Plain } => plain(text),
            Kind::Scalar { text, .. } => Value::from(text.as_str()),
            Kind::List(items) => items.iter().map(Self::value).collect(),
            Kind::Map(entries) => {
                let entry =
                    |(key, value): &(Self, Self)| Some((key.text()?.to_owned(), value.value()));
                Value::Object(entries.iter().filter_map(entry).collect::<Map<_, _>>())
            }
            Kind::Alias => Value::Null,
        }
    }
}

/// A scalar without quotes: the words of YAML for nothing, yes and no, a number, or text.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let number = || {
        let whole = text.parse::<i64>().ok().map(Number::from);
        whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
    };
    let number = if begins { number() } else { None };
    number.map_or_else(|| Value::from(text), Value::Number)
}

/// Reads the part of a text that is one document; `None` if there is nothing in it.
pub(super) fn read(text: &str, part: Range<usize>) -> Result<Option<Node>, Flaw> {
    let source = &text[part.clone()];
    let offsets: Vec<usize> =
        source.char_indices().map(|(at, _)| at).chain([source.len()]).collect();
    let byte = |at: usize| part.start + offsets.get(at).copied().unwrap_or(source.len());
    let mut reader = Reader { text, byte: &byte, open: Vec::new(), root: None };
    for event in Parser::new_from_str(source) {
        let (event, span) = event.map_err(|error| syntax(&byte, &error))?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        reader.take(event, &span)?;
    }
    Ok(reader.root)
}

fn syntax(byte: &dyn Fn(usize) -> usize, error: &ScanError) -> Flaw {
    Flaw::Syntax { at: byte(error.marker().index()), words: error.info().to_owned() }
}

/// Collects events into nodes.
struct Reader<'t> {
    text: &'t str,
    /// The byte of a character.
    byte: &'t dyn Fn(usize) -> usize,
    open: Vec<Open>,
    root: Option<Node>,
}

/// A list or mapping that is not complete yet.
struct Open {
    start: usize,
    is_map: bool,
    is_marked: bool,
    nodes: Vec<Node>,
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Flaw> {
        let (start, end) = ((self.byte)(span.start.index()), (self.byte)(span.end.index()));
        match event {
            Event::Scalar(text, style, anchor, ref tag) => {
                let quoting = match style {
                    ScalarStyle::Plain => Quoting::Plain,
                    ScalarStyle::SingleQuoted => Quoting::Single,
                    ScalarStyle::DoubleQuoted => Quoting::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => Quoting::Block,
                };
                // The parser says `~` where nothing is written.
                let is_nothing = start == end && quoting == Quoting::Plain;
                let text = if is_nothing { String::new() } else { text.into_owned() };
                let kind = Kind::Scalar { text, quoting };
                let is_marked = anchor > 0 || tag.is_some();
                self.close(Node { span: self.written(start, end, quoting), kind, is_marked });
            }
            Event::Alias(_) => {
                let span = self.trimmed(start, end);
                self.close(Node { span, kind: Kind::Alias, is_marked: false });
            }
            Event::SequenceStart(anchor, ref tag) | Event::MappingStart(anchor, ref tag) => {
                let is_marked = anchor > 0 || tag.is_some();
                if self.open.len() == DEPTH_MAX {
                    return Err(Flaw::TooDeep { at: start });
                }
                let is_map = matches!(event, Event::MappingStart(..));
                self.open.push(Open { start, is_map, is_marked, nodes: Vec::new() });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { start, is_map, is_marked, nodes }) = self.open.pop() else {
                    return Ok(());
                };
                let is_flow = self.text[start..].starts_with(['[', '{']);
                // A block ends with its last node; the parser says where the next one begins.
                let inner = nodes.last().map_or(start, |node| node.span.end).max(start);
                // The end that the parser names may be behind a comment.
                let close = (self.byte)(span.start.index());
                let is_close = self.text[close..].starts_with([']', '}']);
                let end = match is_flow {
                    true if is_close => close + 1,
                    true => end,
                    false => inner,
                };
                let kind = if is_map { pairs(nodes) } else { Kind::List(nodes) };
                self.close(Node { span: self.trimmed(start, end), kind, is_marked });
            }
            _ => {}
        }
        Ok(())
    }

    /// The span of a scalar with its quotes or its mark. What the parser says may begin below the mark
    /// of a block, and end behind a comment.
    fn written(&self, start: usize, end: usize, quoting: Quoting) -> Range<usize> {
        let rest = &self.text[start..];
        match quoting {
            Quoting::Double => start..start + closing(rest, |c| c == '\\', '"'),
            Quoting::Single => start..start + closing(&rest.replace("''", "__"), |_| false, '\''),
            Quoting::Block => {
                let mark =
                    self.text[..start].rfind(['|', '>']).filter(|_| !rest.starts_with(['|', '>']));
                self.trimmed(mark.unwrap_or(start), end)
            }
            Quoting::Plain => self.trimmed(start, end),
        }
    }

    /// The span without the blanks at its end.
    fn trimmed(&self, start: usize, end: usize) -> Range<usize> {
        let text = self.text.get(start..end).unwrap_or_default();
        start..start + text.trim_end().len()
    }

    fn close(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(open) => open.nodes.push(node),
            None => self.root = self.root.take().or(Some(node)),
        }
    }
}

/// The length of a text in quotes, with both.
fn closing(text: &str, escapes: impl Fn(char) -> bool, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = !is_escaped && escapes(c);
    }
    text.len()
}

/// The entries of a mapping, whose keys and values come in turn.
fn pairs(nodes: Vec<Node>) -> Kind {
    let mut nodes = nodes.into_iter();
    let mut entries = Vec::new();
    while let (Some(key), Some(mut value)) = (nodes.next(), nodes.next()) {
        // A value that is not written is right behind the colon of its key.
        if value.span.is_empty() && value.text() == Some("") {
            value.span = key.span.end + 1..key.span.end + 1;
        }
        entries.push((key, value));
    }
    Kind::Map(entries)
}
