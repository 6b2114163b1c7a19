//! Keeps secrets out of what Piton writes: ledger, failure context, views, terminal.
//!
//! Two kinds are known: values of variables whose names look secret (`names`), and the shapes of
//! well-known tokens and private keys (`shapes`). A text is searched as written and as it looks on a
//! screen (`plain`). Any other secret, such as one typed into a command, is not found; the docs say so.

mod lines;
mod names;
mod plain;
mod shapes;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

pub use lines::{KEPT_BYTES_MIN, Key, Lines};
pub use names::Names;

use crate::pattern::pattern;
use plain::Plain;

/// Shortest value that is redacted: shorter ones would blank out ordinary words.
pub const VALUE_BYTES_MIN: usize = 8;
/// What replaces a secret.
pub const REPLACEMENT: &str = "[redacted]";

/// A text without escape sequences, control characters and marks that hide or reorder others. Line
/// breaks and tabs stay.
pub fn as_seen(text: &str) -> Cow<'_, str> {
    plain::Plain::of(text).map_or(Cow::Borrowed(text), |plain| Cow::Owned(plain.text))
}

/// Whether something was recorded with a secret replaced.
pub fn is_redacted(recorded: &impl serde::Serialize) -> bool {
    serde_json::to_string(recorded).is_ok_and(|text| text.contains(REPLACEMENT))
}

/// Replaces secrets in text.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// Longest first.
    values: Vec<String>,
    /// The variables that they come from.
    names: BTreeSet<String>,
}

impl Redactor {
    /// Takes the secrets out of an environment; `names` is what a person declared.
    pub fn new<'a>(
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
        names: &Names,
    ) -> Self {
        Self::default().and(environment, names)
    }

    /// The same, knowing the secrets of a further environment too.
    #[must_use]
    pub fn and<'a>(
        mut self,
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
        names: &Names,
    ) -> Self {
        // The length first: it is cheaper to check than the name.
        let is_secret =
            |(name, value): &(&str, &str)| value.len() >= VALUE_BYTES_MIN && names.is_secret(name);
        for (name, value) in environment.into_iter().filter(is_secret) {
            self.names.insert(name.to_owned());
            // Output is looked at line by line, so each line of a secret is one.
            let parts = [value].into_iter().chain(value.lines()).map(str::trim);
            for part in parts.filter(|part| part.len() >= VALUE_BYTES_MIN) {
                self.values.push(part.to_owned());
                // As it stands in JSON, which agents speak.
                let json = serde_json::to_string(part).unwrap_or_default();
                let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
                self.values.extend(inner.filter(|inner| *inner != part).map(str::to_owned));
                // As it stands in an address, where a slash may stay.
                self.values.extend(["", "/"].map(|kept| in_address(part, kept)));
            }
        }
        self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
        self
    }

    /// The same, knowing what a text that could not be read as a document assigns to names that look
    /// secret: `NAME = "value"`, `NAME=value`, `"NAME": "value"`. Numbers are none.
    #[must_use]
    pub fn and_assigned_in(self, text: &str, names: &Names) -> Self {
        // What looks like a name that something is given to, and like what is given: quoted, or up to
        // the next blank.
        let given = pattern!(r#"([A-Za-z_][A-Za-z0-9_-]*)["']?[ \t]*[=:][ \t]*"#);
        let value = pattern!(r#"^(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"',;}\]]+))"#);
        let (Some(given), Some(value)) = (given, value) else { return self };
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(c) = given.captures_at(text, at) {
            let (Some(whole), Some(name)) = (c.get(0), c.get(1)) else { break };
            // On behind the name: what is given to it may give something itself. Only of a secret the
            // value is read, and once: a text may be names within names to its end.
            at = whole.end();
            if !names.is_secret(name.as_str()) {
                continue;
            }
            let c = value.captures(&text[at..]);
            let Some(value) = c.and_then(|c| c.get(1).or(c.get(2)).or(c.get(3))) else { continue };
            at += value.end();
            if !value.as_str().bytes().all(|b| b.is_ascii_digit() || b".,_".contains(&b)) {
                found.push((name.as_str(), value.as_str()));
            }
        }
        self.and(found, names)
    }

    /// The text with its secrets replaced by stars. Its length stays the same, so that places in it
    /// stay valid.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let stars = |secret: &str| -> String {
            secret.bytes().map(|b| if b == b'\n' { '\n' } else { '*' }).collect()
        };
        let mut text = Cow::Borrowed(text);
        loop {
            let masked = replace(&text, &self.ranges(&text), stars);
            if masked == text {
                return text;
            }
            text = Cow::Owned(masked);
        }
    }

    /// The variables whose values it knows.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Whether it knows no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the text without its secrets. Redacting the result again changes nothing.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        loop {
            let mut ranges = self.ranges(&text);
            if !ranges.is_empty() {
                // What was replaced before is not part of a secret.
                ranges.extend(occurrences(&text, REPLACEMENT));
                ranges = merged(ranges);
                ranges.retain(|range| &text[range.clone()] != REPLACEMENT);
            }
            if ranges.is_empty() {
                return text;
            }
            // Again: a word may begin now that did not while a secret stood before it.
            let gone = |secret: &str| format!("{REPLACEMENT}{}", plain::colours(secret));
            text = Cow::Owned(replace(&text, &ranges, gone));
        }
    }

    /// Where secrets are, as written and as seen: in order, without overlaps.
    fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let mut ranges = self.found(text);
        if let Some(plain) = Plain::of(text) {
            ranges.extend(self.found(&plain.text).iter().map(|seen| plain.written(seen)));
        }
        merged(ranges)
    }

    fn found(&self, text: &str) -> Vec<Range<usize>> {
        let values = self.values.iter().flat_map(|value| occurrences(text, value));
        values.chain(shapes::tokens(text)).chain(shapes::keys(text)).collect()
    }
}

/// A text as a part of an address: all but letters, digits and a few signs, and those that are kept,
/// as the numbers of their bytes.
fn in_address(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let sign = char::from(byte);
        if byte.is_ascii_alphanumeric() || "-._~".contains(sign) || kept.contains(sign) {
            out.push(sign);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Where a value stands in a text, also where it overlaps itself.
fn occurrences<'t>(text: &'t str, value: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
    let mut from = 0;
    let step = value.chars().next().map_or(1, char::len_utf8);
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(value)?;
        from = at + step;
        Some(at..at + value.len())
    })
}

/// The ranges in order, those that overlap as one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, range| {
        let overlaps = next.start < range.end;
        if overlaps {
            range.end = range.end.max(next.end);
        }
        overlaps
    });
    ranges
}

fn replace(text: &str, ranges: &[Range<usize>], by: impl Fn(&str) -> String) -> String {
    let (mut new, mut at) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        new.push_str(&text[at..range.start]);
        new.push_str(&by(&text[range.clone()]));
        at = range.end;
    }
    new.push_str(&text[at..]);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_variables_go_wherever_they_stand() {
        let redactor = Redactor::new(
            [("DEPLOY_TOKEN", "hunter2hunter2"), ("PATH", "/usr/bin:/bin"), ("X_TOKEN", "short")],
            &Names::default(),
        );
        assert_eq!(redactor.redact("a hunter2hunter2 b"), "a [redacted] b");
        assert_eq!(redactor.redact("/usr/bin:/bin short"), "/usr/bin:/bin short");
    }

    #[test]
    fn token_shapes_go_without_any_variable() {
        let redactor = Redactor::default();
        let token = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(redactor.redact(&format!("push {token}!")), "push [redacted]!");
        assert_eq!(redactor.redact("sk-short"), "sk-short");
    }

    #[test]
    fn each_line_of_a_secret_is_secret() {
        let redactor =
            Redactor::default().and([("MY_SECRET", "first line\nx\nlast line")], &Names::default());
        assert_eq!(redactor.redact("a last line, x"), "a [redacted], x");
    }

    #[test]
    fn a_secret_in_json_is_one() {
        let environment = [("A_PASSWORD", r#"pass\1"word""#), ("B_KEY", "first line\nlast line")];
        let redactor = Redactor::new(environment, &Names::default());
        let line = r#"{"a":"pass\\1\"word\"","b":"first line\nlast line"}"#;
        assert_eq!(redactor.redact(line), r#"{"a":"[redacted]","b":"[redacted]"}"#);
    }

    /// Lost: the password of a database, which stands in its address, is shown when it can't be reached.
    #[test]
    fn a_secret_in_an_address_is_one() {
        let redactor = Redactor::new([("DB_PASSWORD", "p@ss w\u{f6}rd/1")], &Names::default());
        for text in ["p%40ss%20w%C3%B6rd%2F1", "p%40ss%20w%C3%B6rd/1", "p@ss w\u{f6}rd/1"] {
            assert_eq!(redactor.redact(&format!("db://me:{text}@host")), "db://me:[redacted]@host");
        }
    }

    #[test]
    fn what_a_broken_document_gives_to_a_secret_name_is_known_and_places_stay() {
        let text = "tokens = 1000000000\nenv = { DB_PASSWORD = \"häslich-lang\", A = \"plain-text\" }\nrun = \"MY_TOKEN=abcdefghij make\"\n";
        let redactor = Redactor::default().and_assigned_in(text, &Names::default());
        let masked = redactor.mask(text);
        assert_eq!(masked.len(), text.len());
        for secret in ["häslich-lang", "abcdefghij"] {
            assert!(!masked.contains(secret), "{masked}");
        }
        assert!(masked.contains("plain-text") && masked.contains("1000000000"), "{masked}");
    }

    /// Lost: a plan of tables within tables, which is refused, is looked at for minutes first.
    #[test]
    fn names_within_names_are_read_once() {
        for name in ["a", "TOKEN"] {
            let text = format!("{}\nMY_KEY = swordfish", format!("{name}={{").repeat(50_000));
            let redactor = Redactor::default().and_assigned_in(&text, &Names::default());
            assert_eq!(redactor.redact("a swordfish"), format!("a {REPLACEMENT}"));
        }
    }

    /// Lost: the end of a token beside the word that says there was one.
    #[test]
    fn secrets_that_overlap_go_as_one() {
        let names = Names::default();
        let redactor = Redactor::new([("PIN_SECRET", "12345678"), ("A_KEY", "abababab")], &names);
        let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        assert_eq!(redactor.redact(token), REPLACEMENT);
        assert_eq!(redactor.redact("x abababababa y"), "x [redacted]a y");
        assert_eq!(redactor.redact("x ababababab y"), "x [redacted] y");
        let both = Redactor::new([("A_KEY", "first-half"), ("B_KEY", "half-second")], &names);
        assert_eq!(both.redact("first-half-second"), REPLACEMENT);
        assert_eq!(both.mask("a first-half-second"), format!("a {}", "*".repeat(17)));
    }

    /// Lost: a search that marks what it found shows the whole secret around it.
    #[test]
    fn colours_hide_no_secret() {
        let redactor = Redactor::new([("MY_TOKEN", "supersecretvalue123")], &Names::default());
        let marked = "T=\u{1b}[01;31m\u{1b}[Ksuper\u{1b}[m\u{1b}[Ksecretvalue123\u{1b}[K.";
        let shown = redactor.redact(marked);
        assert_eq!(shown, "T=\u{1b}[01;31m\u{1b}[K[redacted]\u{1b}[m\u{1b}[K.");
        assert_eq!(redactor.redact("a\u{1b}[1mb\u{1b}[0m"), "a\u{1b}[1mb\u{1b}[0m");
        let token = format!("\u{1b}[1mghp_\u{1b}[0m{}", "a1".repeat(18));
        assert_eq!(redactor.redact(&token), "\u{1b}[1m[redacted]\u{1b}[0m");
    }

    /// Lost: what is recorded redacted and read again would be taken for something else.
    #[test]
    fn what_was_redacted_stays_as_it_is() {
        let environment =
            [("A_KEY", "redacted"), ("B_KEY", "redacted]after"), ("C_KEY", "swordfish")];
        let redactor = Redactor::new(environment, &Names::default());
        let token = format!("ghp_{}", "a1".repeat(18));
        for text in [
            "[redacted]".to_owned(),
            "redacted".to_owned(),
            "swordfishafter".to_owned(),
            format!("swordfish{token}"),
            format!("{token}swordfish[redacted]after"),
            "-----END PRIVATE KEY-----\nswordfish\n-----BEGIN PRIVATE KEY-----".to_owned(),
        ] {
            let once = redactor.redact(&text).into_owned();
            assert!(once.contains(REPLACEMENT) && !once.contains("swordfish"), "{once}");
            assert!(!once.contains("ghp_"), "{once}");
            assert_eq!(redactor.redact(&once), once, "{text}");
        }
        assert_eq!(redactor.redact("[redacted]"), "[redacted]");
    }

    #[test]
    fn stars_leave_lines_where_they_are() {
        let key = "a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb";
        let masked = Redactor::default().mask(key).into_owned();
        assert_eq!((masked.len(), masked.lines().count()), (key.len(), 5));
        assert!(!masked.contains("MIIE"));
        let stars = Redactor::new([("A_KEY", "********")], &Names::default());
        assert_eq!(stars.mask("x ********"), "x ********");
    }
}
