//! How much a template may do: `MiniJinja` counts instructions, but neither the bytes that one of them
//! makes nor how deep expressions are nested.
//!
//! So there is nothing that a result could be kept in to be added to itself (`set`, `macro`, `with`,
//! loops that call themselves, sums in loops within loops), nothing is multiplied, filters that make
//! more of a text have a limit, and so has what is filled in. An expression is as long as a person
//! reads. What is refused is refused before it is parsed.

use std::io::{self, Write};
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, StringInput, ValueOrKwargs};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, State, Template, UndefinedBehavior, Value, filters,
};

/// Instructions one template may execute: enough for loops over thousands of items, and over in a
/// blink when a template loops within loops.
const FUEL: u64 = 20_000;
/// Bytes that a template may be filled in to: more than any agent reads.
const FILLED_MAX: usize = 4 << 20;
/// Bytes that a filter may make of a text: more than all failures that are told of.
const GROWN_MAX: usize = 256 << 10;
/// Most numbers in a range: more would not fit into the fuel.
const RANGE_MAX: isize = 10_000;
/// Words and signs of one expression: each may be a level of the stack.
const TOKENS_MAX: usize = 200;
/// Times that a template may say `elif`: each is a level of the stack too.
const ELIFS_MAX: usize = 100;
/// The tags there are.
const TAGS: [&str; 8] = ["if", "elif", "else", "endif", "for", "endfor", "raw", "endraw"];

/// An engine with the rules that all our templates have in common.
pub fn engine() -> Environment<'static> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    // Errors then know the place within their line.
    engine.set_debug(true);
    engine.set_fuel(Some(FUEL));
    // The last newline of a prompt is the author's; the engine would drop it.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        engine.set_syntax(syntax);
    }
    engine.add_filter("sh", |text: Value| super::quote_for_shell(&text.to_string()));
    for endless in ["batch", "format", "slice"] {
        engine.remove_filter(endless);
    }
    engine.add_filter("indent", indent);
    engine.add_filter("join", join);
    engine.add_filter("map", map);
    engine.add_filter("replace", replace);
    engine.add_function("range", range);
    engine
}

fn too_large(what: &str) -> Error {
    let detail = format!("{what} is too large for a template");
    Error::new(ErrorKind::InvalidOperation, detail)
}

fn bounded(bytes: Option<usize>, what: &str) -> Result<(), Error> {
    let fits = bytes.is_some_and(|bytes| bytes <= GROWN_MAX);
    if fits { Ok(()) } else { Err(too_large(what)) }
}

fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let grown = text.matches(from).count().checked_mul(to.len());
    bounded(grown.and_then(|grown| grown.checked_add(text.len())), "what `replace` makes")?;
    Ok(text.replace(from, to))
}

fn indent(
    text: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let wide =
        width.map_or_else(|| kwargs.get::<Option<usize>>("width"), |width| Ok(Some(width)))?;
    let grown = text.as_str().lines().count().checked_mul(wide.unwrap_or_default());
    bounded(grown.and_then(|grown| grown.checked_add(text.as_str().len())), "what `indent` makes")?;
    filters::indent(text, width, first, blank, kwargs)
}

fn join(
    state: &mut State<'_, '_>,
    list: &Value,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let items = list.len().unwrap_or(GROWN_MAX);
    let between =
        joiner.as_ref().map_or(Some(0), |between| between.as_str().len().checked_mul(items));
    bounded(between, "what `join` makes")?;
    filters::join(state, list, joiner, attribute, kwargs)
}

fn map(
    state: &mut State<'_, '_>,
    list: Value,
    args: Rest<ValueOrKwargs>,
) -> Result<Vec<Value>, Error> {
    let named = args.first().and_then(|filter| filter.as_str());
    if named.is_some_and(|name| ["indent", "join", "map", "replace"].contains(&name)) {
        return Err(too_large("what `map` makes with this filter"));
    }
    filters::map(state, list, args)
}

fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> Result<Value, Error> {
    let (from, to) = upper.map_or((0, lower), |upper| (lower, upper));
    if to.abs_diff(from) > RANGE_MAX.unsigned_abs() {
        return Err(too_large(&format!("a range of more than {RANGE_MAX} numbers")));
    }
    minijinja::functions::range(lower, upper, step)
}

/// Fills in a template, up to a limit.
pub fn fill(template: &Template<'_, '_>, values: Value) -> Result<String, Error> {
    let mut filled = Filled(Vec::new());
    template.render_captured_to(values, &mut filled).map_err(|error| match error.kind() {
        ErrorKind::WriteFailure => too_large("what it is filled in to"),
        _ => error,
    })?;
    String::from_utf8(filled.0).map_err(|_| Error::from(ErrorKind::WriteFailure))
}

struct Filled(Vec<u8>);

impl Write for Filled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > FILLED_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a template may not say, and where; nothing where the engine may look at it.
pub fn refused(template: &str) -> Option<(Range<usize>, String)> {
    let (mut at, mut elifs, mut loops) = (0, 0, 0_usize);
    while let Some(mark) = next_mark(template, at) {
        let begins = at + mark;
        let (sign, inside) = (template.as_bytes()[begins + 1], begins + 2);
        if sign == b'#' {
            at = template[inside..].find("#}").map_or(template.len(), |end| inside + end + 2);
            continue;
        }
        let tokens = Tokens::new(template, inside, if sign == b'%' { "%}" } else { "}}" });
        at = tokens.end;
        let span = begins..at;
        let refuse = |what: String| Some((span.clone(), what));
        let words = &tokens.found;
        if words.len() > TOKENS_MAX {
            return refuse(format!(
                "an expression of a template has more than {TOKENS_MAX} words and signs"
            ));
        }
        if words.contains(&"*") {
            return refuse("a template can't multiply".to_owned());
        }
        if sign != b'%' {
            continue;
        }
        let tag = words.iter().find(|word| !["-", "+"].contains(word)).copied().unwrap_or_default();
        let has = |sign: &str| words.iter().skip(1).any(|word| *word == sign);
        match tag {
            "raw" => at = after_raw(template, at),
            "elif" => elifs += 1,
            "endfor" => loops = loops.saturating_sub(1),
            "for" if has("recursive") => {
                return refuse("a loop of a template can't be recursive".to_owned());
            }
            "for" if loops > 0 && (has("~") || has("+")) => {
                return refuse("a loop within a loop of a template can't add up".to_owned());
            }
            "for" => loops += 1,
            other if !TAGS.contains(&other) => {
                return refuse(format!("a template has no tag `{other}`"));
            }
            _ => {}
        }
        if elifs > ELIFS_MAX {
            return refuse(format!("a template has `elif` more than {ELIFS_MAX} times"));
        }
    }
    None
}

fn next_mark(template: &str, from: usize) -> Option<usize> {
    let rest = template.as_bytes().get(from..)?;
    rest.windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// Where the text goes on after what is no template.
fn after_raw(template: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(mark) = template[at..].find("{%") {
        let inside = template[at + mark + 2..].trim_start_matches(['-', '+']).trim_start();
        if inside.starts_with("endraw") {
            return at + mark;
        }
        at += mark + 2;
    }
    template.len()
}

/// The words and signs of an expression, without its texts.
struct Tokens<'t> {
    found: Vec<&'t str>,
    end: usize,
}

impl<'t> Tokens<'t> {
    fn new(template: &'t str, from: usize, close: &str) -> Self {
        let (mut found, mut at, mut open) = (Vec::new(), from, 0_usize);
        while let Some(c) = template[at..].chars().next() {
            let rest = &template[at..];
            if open == 0 && rest.starts_with(close) {
                at += close.len();
                break;
            }
            let length = match c {
                '"' | '\'' => text_length(rest, c),
                _ if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
                _ => c.len_utf8(),
            };
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            if !c.is_whitespace() {
                found.push(if c == '"' || c == '\'' { "\"" } else { &rest[..length] });
            }
            at += length;
        }
        Self { found, end: at }
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How long a text between quotes is, with both of them.
fn text_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}
