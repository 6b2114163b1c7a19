//! Typed access to a TOML document that keeps the place of everything and collects every problem.
//!
//! A wrong value is reported once and read as absent, so that later problems are found too. Knows
//! types, not meanings: other modules decide what a plan may contain.

use std::collections::BTreeMap;
use std::ops::Range;

use piton_core::Millis;
use piton_core::complexity::Complexity;
use piton_core::plan::Command;
use toml_span::Value;
use toml_span::value::{Table, ValueInner};

use crate::diagnostic::{code, quoted};
use crate::keys::{self, Kind, Section};
use crate::sink::{Located, Sink};
use crate::units;

/// A table of the document, with the keys it may have.
#[derive(Clone)]
pub(crate) struct Node<'v, 'de> {
    table: &'v Table<'de>,
    section: &'static Section,
    /// Its header, or the whole table if it is inline.
    pub(crate) span: Range<usize>,
}

impl<'v, 'de> Node<'v, 'de> {
    /// Reads a table and reports the keys that it must not have.
    pub(crate) fn new(
        value: &'v Value<'de>,
        name: &str,
        section: &'static Section,
        sink: &mut Sink<'_>,
    ) -> Option<Self> {
        Self::with(value, name, section, &[], sink)
    }

    /// The same for a table that may have more sections than its own keys say.
    pub(crate) fn with(
        value: &'v Value<'de>,
        name: &str,
        section: &'static Section,
        more: &[(&str, &'static Section)],
        sink: &mut Sink<'_>,
    ) -> Option<Self> {
        let Some(table) = value.as_table() else {
            let expected = Kind::Table(section);
            wrong_type(name, expected, value, sink);
            return None;
        };
        let is_known =
            |key: &str| section.key(key).is_some() || more.iter().any(|(name, _)| *name == key);
        for key in table.keys().filter(|key| !is_known(&key.name)) {
            unknown_key(&key.name, &(key.span.start..key.span.end), section, sink);
        }
        Some(Self { table, section, span: header(value, sink.text()) })
    }

    /// A section that somebody else reads: checked by its keys, as it is written.
    pub(crate) fn section(
        &self,
        name: &str,
        section: &'static Section,
        sink: &mut Sink<'_>,
    ) -> Option<serde_json::Value> {
        let node = Node::new(self.get(name)?, name, section, sink)?;
        Some(node.checked(sink))
    }

    fn checked(&self, sink: &mut Sink<'_>) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for key in self.section.keys() {
            let Some(value) = self.get(key.name) else { continue };
            let name = key.name;
            let checked = match key.kind {
                Kind::Table(_) => self.table(name, sink).map(|node| node.checked(sink)),
                Kind::Tables(_) => {
                    let nodes = self.tables(name, sink).unwrap_or_default();
                    Some(nodes.iter().map(|node| node.checked(sink)).collect())
                }
                Kind::Named(_) => {
                    let nodes = self.named(name, sink);
                    Some(
                        nodes
                            .iter()
                            .map(|(n, node)| (n.value.clone(), node.checked(sink)))
                            .collect(),
                    )
                }
                Kind::Ids | Kind::Paths | Kind::Globs | Kind::Words => {
                    self.texts(name, sink).map(|_| plain(value))
                }
                Kind::Text | Kind::Id | Kind::Path => self.text(name, sink).map(|_| plain(value)),
                Kind::Command => self.command(name, sink).map(|_| plain(value)),
                Kind::Duration => self.duration(name, sink).map(|_| plain(value)),
                Kind::Size => self.size(name, sink).map(|_| plain(value)),
                Kind::Money => self.money(name, sink).map(|_| plain(value)),
                Kind::Decimal => self.complexity(name, sink).map(|_| plain(value)),
                Kind::Count(..) => self.count(name, sink).map(|_| plain(value)),
                Kind::Flag => self.flag(name, sink).map(|_| plain(value)),
                Kind::Choice(_) => self.choice(name, sink).map(|_| plain(value)),
                Kind::Env => {
                    self.env(name, sink);
                    Some(plain(value))
                }
            };
            all.extend(checked.map(|value| (name.to_owned(), value)));
        }
        all.into()
    }

    /// The value of a key.
    fn get(&self, name: &str) -> Option<&'v Value<'de>> {
        self.table.get(name)
    }

    /// The place of a key, if the table has it.
    pub(crate) fn key_span(&self, name: &str) -> Option<Range<usize>> {
        self.table.get_key_value(name).map(|(key, _)| key.span.start..key.span.end)
    }

    /// Whether this table may have a key.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.section.key(name).is_some()
    }

    fn kind(&self, name: &str) -> Kind {
        self.section.key(name).map_or(Kind::Text, |key| key.kind)
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, name: &str, sink: &mut Sink<'_>) -> Option<Located<String>> {
        let value = self.get(name)?;
        let text = text_of(name, self.kind(name), value, sink)?;
        if text.value.trim().is_empty() {
            let hint = "write something between the quotes, or remove the key";
            sink.error(code::BAD_VALUE, &text.span, format!("`{name}` is empty"), hint);
            return None;
        }
        Some(text)
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str, sink: &mut Sink<'_>) -> Option<Vec<Located<String>>> {
        let value = self.get(name)?;
        let kind = self.kind(name);
        let Some(items) = value.as_array() else {
            wrong_type(name, kind, value, sink);
            return None;
        };
        Some(items.iter().filter_map(|item| text_of(name, kind, item, sink)).collect())
    }

    /// A whole number within the bounds of its key.
    pub(crate) fn count(&self, name: &str, sink: &mut Sink<'_>) -> Option<u64> {
        let value = self.get(name)?;
        let Kind::Count(min, max) = self.kind(name) else {
            return None;
        };
        let Some(number) = value.as_integer() else {
            wrong_type(name, self.kind(name), value, sink);
            return None;
        };
        let fits = u64::try_from(number).ok().filter(|n| (min..=max).contains(n));
        if fits.is_none() {
            let why = if number < 0 { "is negative" } else { "is out of range" };
            let hint = format!("use a whole number from {min} to {max}");
            sink.error(code::BAD_VALUE, &span_of(value), format!("`{name}` {why}: {number}"), hint);
        }
        fits
    }

    /// Like [`Self::count`], for keys whose bounds fit 32 bits.
    pub(crate) fn count32(&self, name: &str, sink: &mut Sink<'_>) -> Option<u32> {
        self.count(name, sink).and_then(|number| u32::try_from(number).ok())
    }

    /// Yes or no.
    pub(crate) fn flag(&self, name: &str, sink: &mut Sink<'_>) -> Option<bool> {
        let value = self.get(name)?;
        let flag = value.as_bool();
        if flag.is_none() {
            wrong_type(name, self.kind(name), value, sink);
        }
        flag
    }

    /// A duration.
    pub(crate) fn duration(&self, name: &str, sink: &mut Sink<'_>) -> Option<Millis> {
        self.quantity(name, code::BAD_DURATION, units::parse_duration, sink)
    }

    /// A duration longer than zero.
    pub(crate) fn duration_above_zero(&self, name: &str, sink: &mut Sink<'_>) -> Option<Millis> {
        let length = self.duration(name, sink)?;
        if length.0 == 0 {
            let span = self.get(name).map_or(self.span.clone(), span_of);
            let hint = format!("use a longer duration, or remove `{name}` to get the default");
            sink.error(code::BAD_DURATION, &span, format!("`{name}` is zero"), hint);
            return None;
        }
        Some(length)
    }

    /// A size in bytes.
    pub(crate) fn size(&self, name: &str, sink: &mut Sink<'_>) -> Option<u64> {
        self.quantity(name, code::BAD_SIZE, units::parse_size, sink)
    }

    /// Money in millionths of a dollar.
    pub(crate) fn money(&self, name: &str, sink: &mut Sink<'_>) -> Option<u64> {
        self.quantity(name, code::BAD_MONEY, units::parse_money, sink)
    }

    /// How complex something is.
    pub(crate) fn complexity(&self, name: &str, sink: &mut Sink<'_>) -> Option<Complexity> {
        self.quantity(name, code::BAD_VALUE, units::parse_complexity, sink)
    }

    /// A quantity. Bare numbers are allowed if its kind allows them.
    fn quantity<T>(
        &self,
        name: &str,
        code: &'static str,
        parse: impl Fn(&str) -> Result<T, units::Error>,
        sink: &mut Sink<'_>,
    ) -> Option<T> {
        let value = self.get(name)?;
        let kind = self.kind(name);
        let text = match (value.as_ref(), kind) {
            (ValueInner::String(text), _) => text.to_string(),
            (ValueInner::Integer(number), Kind::Size | Kind::Money | Kind::Decimal) => {
                number.to_string()
            }
            (ValueInner::Float(number), Kind::Money | Kind::Decimal) => number.to_string(),
            _ => {
                wrong_type(name, kind, value, sink);
                return None;
            }
        };
        parse(&text)
            .map_err(|error| sink.error(code, &span_of(value), error.message, error.hint))
            .ok()
    }

    /// One of the choices of its key.
    pub(crate) fn choice(&self, name: &str, sink: &mut Sink<'_>) -> Option<&'static str> {
        let Kind::Choice(choices) = self.kind(name) else {
            return None;
        };
        let text = self.text(name, sink)?;
        let found = choices.iter().copied().find(|choice| *choice == text.value);
        if found.is_none() {
            let hint = match keys::nearest(&text.value, choices.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("write {}", self.kind(name).example(name)),
            };
            let message = format!("{} is not a valid `{name}`", quoted(&text.value));
            sink.error(code::BAD_VALUE, &text.span, message, hint);
        }
        found
    }

    /// A command, and the place of each of its strings.
    pub(crate) fn command(&self, name: &str, sink: &mut Sink<'_>) -> Option<Located<Command>> {
        let value = self.get(name)?;
        let span = span_of(value);
        let command = if value.as_array().is_some() {
            Command::Args(self.texts(name, sink)?.into_iter().map(|arg| arg.value).collect())
        } else {
            Command::Shell(text_of(name, self.kind(name), value, sink)?.value)
        };
        let program = match &command {
            Command::Shell(line) => Some(line),
            Command::Args(args) => args.first(),
        };
        if program.is_none_or(|program| program.trim().is_empty()) {
            let hint = format!("write {}", self.kind(name).example(name));
            sink.error(code::BAD_VALUE, &span, format!("`{name}` is an empty command"), hint);
            return None;
        }
        Some(Located { value: command, span })
    }

    /// The place of each argument of a command; empty for a shell line.
    pub(crate) fn argument_spans(&self, name: &str) -> Vec<Range<usize>> {
        let items = self.get(name).and_then(Value::as_array);
        items.map(|items| items.iter().map(span_of).collect()).unwrap_or_default()
    }

    /// Names and values of variables.
    pub(crate) fn env(&self, name: &str, sink: &mut Sink<'_>) -> BTreeMap<String, String> {
        let Some(value) = self.get(name) else {
            return BTreeMap::new();
        };
        let Some(table) = value.as_table() else {
            wrong_type(name, self.kind(name), value, sink);
            return BTreeMap::new();
        };
        let mut env = BTreeMap::new();
        for (key, value) in table {
            check_env_name(&key.name, &(key.span.start..key.span.end), sink);
            if let Some(text) = text_of(&key.name, Kind::Text, value, sink) {
                env.insert(key.name.to_string(), text.value);
            }
        }
        env
    }

    /// A table below this one.
    pub(crate) fn table(&self, name: &str, sink: &mut Sink<'_>) -> Option<Node<'v, 'de>> {
        let Kind::Table(section) = self.kind(name) else {
            return None;
        };
        Node::new(self.get(name)?, name, section, sink)
    }

    /// The tables of a list below this one.
    pub(crate) fn tables(&self, name: &str, sink: &mut Sink<'_>) -> Option<Vec<Node<'v, 'de>>> {
        let Kind::Tables(section) = self.kind(name) else {
            return None;
        };
        let value = self.get(name)?;
        let Some(items) = value.as_array() else {
            wrong_type(name, self.kind(name), value, sink);
            return Some(Vec::new());
        };
        if items.is_empty() {
            let hint = format!("write {}", self.kind(name).example(name));
            sink.error(code::MISSING, &span_of(value), format!("`{name}` is an empty list"), hint);
        }
        let mut found = Vec::new();
        for item in items {
            if item.as_table().is_none() {
                wrong_type(name, self.kind(name), item, sink);
                continue;
            }
            found.extend(Node::new(item, name, section, sink));
        }
        Some(found)
    }

    /// The tables below this one whose names the author chose.
    pub(crate) fn named(
        &self,
        name: &str,
        sink: &mut Sink<'_>,
    ) -> Vec<(Located<String>, Node<'v, 'de>)> {
        let Kind::Named(section) = self.kind(name) else {
            return Vec::new();
        };
        let Some(value) = self.get(name) else {
            return Vec::new();
        };
        let Some(table) = value.as_table() else {
            wrong_type(name, self.kind(name), value, sink);
            return Vec::new();
        };
        let mut found = Vec::new();
        for (key, value) in table {
            let located =
                Located { value: key.name.to_string(), span: key.span.start..key.span.end };
            found.extend(Node::new(value, &key.name, section, sink).map(|node| (located, node)));
        }
        found
    }
}

/// Reports a variable name that is not valid or is reserved for Piton.
pub(crate) fn check_env_name(name: &str, span: &Range<usize>, sink: &mut Sink<'_>) {
    let why = if name.is_empty() {
        "is empty"
    } else if name.contains(['=', '\0']) {
        "contains `=` or NUL"
    } else if name.starts_with("PITON_") {
        "is reserved: Piton sets the variables that start with PITON_"
    } else {
        return;
    };
    sink.error(
        code::BAD_ENV,
        span,
        format!("the variable name {} {why}", quoted(name)),
        "use letters, digits and `_`, and do not start with PITON_",
    );
}

fn text_of(
    name: &str,
    kind: Kind,
    value: &Value<'_>,
    sink: &mut Sink<'_>,
) -> Option<Located<String>> {
    let span = span_of(value);
    let Some(text) = value.as_str() else {
        wrong_type(name, kind, value, sink);
        return None;
    };
    if text.contains('\0') {
        let hint = "remove it: programs cannot be given such a string";
        sink.error(code::BAD_VALUE, &span, format!("`{name}` contains a NUL character"), hint);
        return None;
    }
    Some(Located { value: text.to_owned(), span })
}

/// A value without its places.
fn plain(value: &Value<'_>) -> serde_json::Value {
    match value.as_ref() {
        ValueInner::String(text) => text.as_ref().into(),
        ValueInner::Integer(number) => (*number).into(),
        ValueInner::Float(number) => (*number).into(),
        ValueInner::Boolean(flag) => (*flag).into(),
        ValueInner::Array(items) => items.iter().map(plain).collect(),
        ValueInner::Table(table) => {
            table.iter().map(|(key, value)| (key.name.to_string(), plain(value))).collect()
        }
    }
}

fn span_of(value: &Value<'_>) -> Range<usize> {
    value.span.start..value.span.end
}

/// The first line of a table: underlining a whole phase would not help.
fn header(value: &Value<'_>, text: &str) -> Range<usize> {
    let span = span_of(value);
    let inside = text.get(span.clone()).unwrap_or_default();
    let first = inside.lines().next().unwrap_or_default().trim_end();
    span.start..span.start + first.len()
}

fn wrong_type(name: &str, expected: Kind, value: &Value<'_>, sink: &mut Sink<'_>) {
    let found = match value.as_ref() {
        ValueInner::String(_) => "a string",
        ValueInner::Integer(_) => "a whole number",
        ValueInner::Float(_) => "a decimal number",
        ValueInner::Boolean(_) => "true or false",
        ValueInner::Array(_) => "a list",
        ValueInner::Table(_) => "a table",
    };
    let message = format!("`{name}` must be {}, not {found}", expected.expected());
    let span = header(value, sink.text());
    sink.error(code::WRONG_TYPE, &span, message, format!("write {}", expected.example(name)));
}

fn unknown_key(name: &str, span: &Range<usize>, section: &'static Section, sink: &mut Sink<'_>) {
    let known = section.keys();
    let names: Vec<&str> = known.iter().map(|key| key.name).collect();
    let elsewhere = || keys::SECTIONS.iter().find(|other| other.key(name).is_some());
    let hint = match keys::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => match elsewhere() {
            Some(other) => format!("`{name}` belongs to {}", other.title),
            None => format!("known keys: {}", names.join(", ")),
        },
    };
    let message = format!("unknown key {} in {}", quoted(name), section.title);
    sink.error(code::UNKNOWN_KEY, span, message, hint);
}
