//! The type before the text of a task: `test: …`, `**impl** — …`, `[verify] …`, also behind an id.

use super::model::TaskKind;

/// Longest word for a type of task that is not known; a longer one before a colon is something else.
const WORD_BYTES_MAX: usize = 20;

/// An item with the type before its text.
pub(super) struct Typed<'t> {
    /// Its id, if it has one.
    pub(super) id: Option<String>,
    /// The type as written, in lower case.
    pub(super) word: String,
    /// What follows.
    pub(super) text: &'t str,
}

impl Typed<'_> {
    /// What kind of work it is.
    pub(super) fn kind(&self) -> TaskKind {
        TaskKind::read(&self.word)
    }
}

/// Reads `type: text`, `**type** — text`, `[type] text` and the same with an id before.
pub(super) fn typed(item: &str) -> Option<Typed<'_>> {
    let (first, rest) = word(item)?;
    if let Some(text) = after_type(item, first, rest) {
        let is_word =
            first.len() <= WORD_BYTES_MAX && first.chars().all(|c| c.is_alphabetic() || c == '-');
        let known = TaskKind::read(first) != TaskKind::Unknown;
        if known || (is_word && text.1) {
            return Some(Typed { id: None, word: first.to_lowercase(), text: text.0 });
        }
    }
    // An id has a digit; a type stands behind it.
    let is_id = first.contains(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start_matches([' ', ':', '-', '—', '–', '|', '.', '*', '_', '`']);
    let (second, behind) = word(rest).filter(|_| is_id)?;
    let (text, _) = after_type(rest, second, behind)?;
    let known = TaskKind::read(second) != TaskKind::Unknown;
    let id = Some(first.trim_end_matches(['.', '-', '_']).to_owned());
    known.then(|| Typed { id, word: second.to_lowercase(), text })
}

/// The first word of a text, behind marks, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let from = text.trim_start_matches(['*', '_', '`', '[', '(', ' ']);
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '/');
    let end = from.find(|c: char| !allowed(c)).unwrap_or(from.len());
    (end > 0).then(|| from.split_at(end))
}

/// What follows a type, and whether a colon does; `None` if the word is the first of a sentence.
fn after_type<'t>(item: &str, word: &str, rest: &'t str) -> Option<(&'t str, bool)> {
    let is_marked = !item.starts_with(word);
    let closed = rest.trim_start_matches(['*', '_', '`', ']', ')']);
    let mut text = closed.trim_start();
    // `verify (read-only): …`
    if text.starts_with('(')
        && let Some(end) = text.find(')')
        && text[end + 1..].trim_start_matches(['*', '_']).starts_with(':')
    {
        text = &text[end + 1..];
    }
    text = text.trim_start_matches(['*', '_']);
    if let Some(text) = text.strip_prefix(':') {
        return Some((text.trim_start_matches(['*', '_']).trim_start(), true));
    }
    for mark in ["—", "–", "-- ", "- ", "|"] {
        if let Some(text) = text.strip_prefix(mark) {
            return Some((text.trim_start(), false));
        }
    }
    let is_closed = is_marked && closed.len() < rest.len();
    (is_closed || text.is_empty()).then_some((text, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_many_marks() {
        for (item, id, word, text) in [
            ("test: Add X", None, "test", "Add X"),
            ("**test**: Add X", None, "test", "Add X"),
            ("**Test:** Add X", None, "test", "Add X"),
            ("`impl` — Add X", None, "impl", "Add X"),
            ("[verify] `make`", None, "verify", "`make`"),
            ("verify (read-only): `make`", None, "verify", "`make`"),
            ("docs - Add X", None, "docs", "Add X"),
            ("tooling: Add X", None, "tooling", "Add X"),
            ("SL-1.2 (impl): Add X", Some("SL-1.2"), "impl", "Add X"),
            ("**T1 test**: Add X", Some("T1"), "test", "Add X"),
            ("T1 [test] Add X", Some("T1"), "test", "Add X"),
            ("T1: impl: Add X", Some("T1"), "impl", "Add X"),
            ("P1-01 | test | a.rs | `x`", Some("P1-01"), "test", "a.rs | `x`"),
            ("Impl. — Add X", None, "impl.", "Add X"),
        ] {
            let found = typed(item).map(|t| (t.id, t.word, t.text.to_owned()));
            let wanted = (id.map(str::to_owned), word.to_owned(), text.to_owned());
            assert_eq!(found, Some(wanted), "{item}");
        }
        for item in ["test the parser", "Tests for X pass", "impl", "`test_x` is renamed: y"] {
            let known =
                typed(item).is_some_and(|t| t.kind() != TaskKind::Unknown && !t.text.is_empty());
            assert!(!known, "{item}");
        }
    }
}
