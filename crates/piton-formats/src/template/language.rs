//! The limits of a template: `MiniJinja` counts instructions, but neither the bytes that one of
//! them makes nor how deep expressions are nested.
//!
//! So a template cannot store a result and add it to itself (`set`, `macro`, `with`, recursive
//! loops, sums in nested loops) and cannot multiply. Filters that make a text longer are limited,
//! and so are the rendered text and the length of an expression. Limits are checked before the
//! template is parsed.

use std::io::{self, Write};
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, StringInput, ValueOrKwargs};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, State, Template, UndefinedBehavior, Value, filters,
};

/// Instructions one template may execute: enough for loops over thousands of items, and soon used
/// up by nested loops.
const FUEL: u64 = 20_000;
/// Bytes of a rendered template: more than any agent reads.
const FILLED_MAX: usize = 4 << 20;
/// Bytes of a filter's result: more than the longest failure context.
const GROWN_MAX: usize = 256 << 10;
/// Most numbers in a range: the instructions would not suffice for more.
const RANGE_MAX: isize = 10_000;
/// Words and signs of one expression: each may be a level of the stack.
const TOKENS_MAX: usize = 200;
/// Most `elif` of a template: each is a level of the stack too.
const ELIFS_MAX: usize = 100;
/// The tags there are.
const TAGS: [&str; 8] = ["if", "elif", "else", "endif", "for", "endfor", "raw", "endraw"];

/// An engine with the rules of all our templates.
pub fn engine() -> Environment<'static> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    // With it, errors have a column.
    engine.set_debug(true);
    engine.set_fuel(Some(FUEL));
    // The engine would drop the last newline of a prompt.
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
    bounded(grown.and_then(|grown| grown.checked_add(text.len())), "the result of `replace`")?;
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
    bounded(
        grown.and_then(|grown| grown.checked_add(text.as_str().len())),
        "the result of `indent`",
    )?;
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
    bounded(between, "the result of `join`")?;
    filters::join(state, list, joiner, attribute, kwargs)
}

fn map(
    state: &mut State<'_, '_>,
    list: Value,
    args: Rest<ValueOrKwargs>,
) -> Result<Vec<Value>, Error> {
    let named = args.first().and_then(|filter| filter.as_str());
    if named.is_some_and(|name| ["indent", "join", "map", "replace"].contains(&name)) {
        return Err(too_large("the result of `map` with this filter"));
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
        ErrorKind::WriteFailure => too_large("the result"),
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

/// What a template must not contain, and where; `None` if the engine may parse it.
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
                "an expression in a template has more than {TOKENS_MAX} words and signs"
            ));
        }
        if words.contains(&"*") {
            return refuse("templates cannot multiply".to_owned());
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
                return refuse("loops in templates cannot be recursive".to_owned());
            }
            "for" if loops > 0 && (has("~") || has("+")) => {
                return refuse("nested loops in templates cannot add".to_owned());
            }
            "for" => loops += 1,
            other if !TAGS.contains(&other) => {
                return refuse(format!("templates have no tag `{other}`"));
            }
            _ => {}
        }
        if elifs > ELIFS_MAX {
            return refuse(format!("the template has more than {ELIFS_MAX} `elif`"));
        }
    }
    None
}

fn next_mark(template: &str, from: usize) -> Option<usize> {
    let rest = template.as_bytes().get(from..)?;
    rest.windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// The end of a `raw` block.
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

/// The length of a quoted text, quotes included.
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
