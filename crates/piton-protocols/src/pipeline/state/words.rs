//! The words of a state file: statuses, names of stages, and values nobody has filled in.
//!
//! A word is read with emphasis and with prose after it, in any case. What is not clearly one of the
//! known words stays unknown: a run is neither resumed nor replaced because of a guess.

use super::super::gaps::placeholders;
use piton_formats::markdown::inline::{is_none, plain, without_brackets};

/// The words of one field, and how each is written.
pub(super) trait Words: Copy + PartialEq + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// As it is written.
    fn as_str(self) -> &'static str;
}

/// Declares an enum of such words.
macro_rules! vocabulary {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }
        impl $name {
            /// The word as it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
        impl Words for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];
            fn as_str(self) -> &'static str {
                Self::as_str(self)
            }
        }
    };
}

vocabulary! {
    /// The status of a run.
    Status {
        /// It is being worked on, or was when its session ended.
        InProgress = "IN_PROGRESS",
        /// A person must decide first.
        WaitingForHuman = "WAITING_FOR_HUMAN",
        /// All stages are done.
        Complete = "COMPLETE",
        /// It failed for good.
        Failed = "FAILED",
        /// A person ended it for good.
        Cancelled = "CANCELLED",
        /// It was stopped, and may continue.
        Aborted = "ABORTED",
    }
}

vocabulary! {
    /// The status of the job of the current stage.
    JobStatus {
        /// It has not been given to an agent.
        Queued = "QUEUED",
        /// It was given to an agent.
        Dispatched = "DISPATCHED",
        /// The agent works on it.
        Running = "RUNNING",
        /// The agent finished.
        Done = "DONE",
        /// It failed and is tried again.
        Retrying = "RETRYING",
        /// It failed.
        Failed = "FAILED",
        /// It was handed to a person after too many failures.
        Escalated = "ESCALATED",
        /// A person must decide first.
        WaitingForHuman = "WAITING_FOR_HUMAN",
        /// A person ended it.
        Cancelled = "CANCELLED",
        /// It was stopped.
        Aborted = "ABORTED",
    }
}

/// What a field says that has one of a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Said<W> {
    /// The field is missing or empty.
    #[default]
    Nothing,
    /// It still has the text of the template.
    Unfilled(String),
    /// Something else than the known words.
    Unknown(String),
    /// A known word, and the value as it is written.
    Known(W, String),
}

impl<W: Copy> Said<W> {
    /// The word, if it is known.
    pub fn known(&self) -> Option<W> {
        match self {
            Self::Known(word, _) => Some(*word),
            _ => None,
        }
    }

    /// The value as it is written.
    pub fn raw(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Unfilled(raw) | Self::Unknown(raw) | Self::Known(_, raw) => Some(raw),
        }
    }
}

/// Reads the word of a value; prose may follow it.
pub(super) fn said<W: Words>(value: &str) -> Said<W> {
    let raw = value.trim().to_owned();
    let text = plain(value);
    if is_none(&text) {
        return Said::Nothing;
    }
    if is_unfilled(&text) || is_choice::<W>(&text) {
        return Said::Unfilled(raw);
    }
    match leading(&text) {
        Some(word) => Said::Known(word, raw),
        None => Said::Unknown(raw),
    }
}

/// The word that a text is or begins with.
fn leading<W: Words>(text: &str) -> Option<W> {
    // `✅ DONE` begins with its word as well.
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric()).trim_end_matches('.');
    let same = |a: &str, b: &str| a.replace([' ', '-'], "_").eq_ignore_ascii_case(b);
    if let Some(word) = W::ALL.iter().find(|word| same(text, word.as_str())) {
        return Some(*word);
    }
    let end = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    let (lead, prose) = (&text[..end], &text[end..]);
    let found = W::ALL.iter().find(|word| lead.eq_ignore_ascii_case(word.as_str()))?;
    // "failed to start" is a sentence; "FAILED to start" is the word and prose.
    let is_apart = !prose.trim_start().starts_with(is_word);
    // "FAILED, now IN_PROGRESS" says two things.
    let mut others = prose.split(|c| !is_word(c)).filter_map(|word| of(word));
    let is_plain = lead == found.as_str() || is_apart;
    (is_plain && others.all(|other: W| other == *found)).then_some(*found)
}

fn of<W: Words>(word: &str) -> Option<W> {
    W::ALL.iter().find(|known| known.as_str() == word).copied()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Tells whether a value lists several words to choose from.
fn is_choice<W: Words>(text: &str) -> bool {
    let mut parts = text.split(['|', '/', ',']).map(str::trim);
    parts.clone().count() > 1 && parts.all(|part| of::<W>(part).is_some())
}

/// Tells whether a value is still that of a template: `<version>`, `on | off`.
pub(super) fn is_unfilled(value: &str) -> bool {
    let text = plain(value).replace("\\|", "|");
    let mut choices = text.split('|').map(str::trim);
    let is_list = choices.clone().count() > 1
        && choices.all(|choice| !choice.is_empty() && !choice.contains(char::is_whitespace));
    is_list || !placeholders(&text).is_empty()
}

/// The name of a stage as names are compared: `Code Review`, `code_review` and `code-review` are one.
///
/// Names are free, but those of agents are the names of their stages: `Software Architect` is
/// `architect`.
pub fn stage_key(name: &str) -> String {
    let lower = without_brackets(&plain(name)).to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let words = match words.as_slice() {
        [first @ .., "agent" | "stage"] if !first.is_empty() => first,
        all => all,
    };
    match words.join("-").as_str() {
        "software-architect" | "architecture" => "architect".to_owned(),
        "specification" => "spec".to_owned(),
        "clarification" => "clarify".to_owned(),
        "test-runner" => "testrunner".to_owned(),
        "redteam" => "red-team".to_owned(),
        "documentation" => "docs".to_owned(),
        other => other.to_owned(),
    }
}

/// Marks that begin the prose after a value of several words.
const PROSE: [&str; 9] = [" (", " [", " — ", " – ", " -- ", " - ", "; ", ", ", " <!--"];

/// A value without the emphasis around it; marks within stay, as paths have them too.
pub(super) fn bare(value: &str) -> &str {
    let value = value.trim();
    let inner = ["**", "__", "`"].iter().find_map(|marks| {
        let inner = value.strip_prefix(marks)?.strip_suffix(marks)?;
        (!inner.contains(marks)).then_some(inner)
    });
    inner.map_or(value, bare)
}

/// How much of a value is the value itself; prose may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One word.
    Word,
    /// A few words, until a bracket or a dash.
    Phrase,
    /// All of it.
    Text,
}

/// The shape of a field's value, by its key.
pub(super) fn shape(key: &str) -> Shape {
    match key {
        "status" | "job_status" | "spec_hash" | "spec_version" | "retry_count" => Shape::Word,
        "run_id" | "feature" | "current_stage" | "stage" | "started_at" | "last_updated_at"
        | "dispatched_at" => Shape::Phrase,
        _ => Shape::Text,
    }
}

/// The part of a value that is the value itself, without emphasis and prose, as a range of its text.
pub(super) fn essence(key: &str, value: &str) -> std::ops::Range<usize> {
    let start = value.len() - value.trim_start().len();
    let end = value.trim_end().len().max(start);
    let shape = shape(key);
    if shape == Shape::Text || is_unfilled(value) {
        return start..end;
    }
    let marks = value[start..end].bytes().take_while(|b| matches!(b, b'*' | b'_' | b'`')).count();
    let from = start + marks;
    // The same marks, the other way round, close it.
    let close: String = value[start..from].chars().rev().collect();
    let closed = value[from..end].find(close.as_str()).filter(|_| marks > 0);
    if let Some(length) = closed.filter(|length| *length > 0) {
        return from..from + length;
    }
    let inner = &value[start..end];
    let length = match shape {
        Shape::Word => inner.find(char::is_whitespace).unwrap_or(inner.len()),
        _ => PROSE.iter().filter_map(|mark| inner.find(mark)).min().unwrap_or(inner.len()),
    };
    start..start + inner[..length].trim_end_matches([',', ';']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(value: &str) -> Said<Status> {
        said(value)
    }

    #[test]
    fn a_status_is_read_with_emphasis_prose_and_in_any_case() {
        for value in [
            "IN_PROGRESS",
            " **IN_PROGRESS** ",
            "`IN_PROGRESS`",
            "in_progress",
            "In Progress",
            "in-progress",
            "IN_PROGRESS (resumed twice)",
            "**IN_PROGRESS** — waits for tests",
            "IN_PROGRESS since Tuesday",
            "In_Progress, see Notes",
            "🟢 IN_PROGRESS.",
        ] {
            assert_eq!(status(value).known(), Some(Status::InProgress), "{value}");
        }
        for word in Status::ALL {
            assert_eq!(status(word.as_str()).known(), Some(*word));
        }
        for word in JobStatus::ALL {
            assert_eq!(said(word.as_str()).known(), Some(*word));
        }
    }

    /// Lost: a template, or a sentence that mentions a status, would start or replace a run.
    #[test]
    fn what_is_not_one_word_is_not_guessed() {
        for value in [
            "DONE",
            "COMPLETED",
            "NOT IN_PROGRESS",
            "FAILED, now IN_PROGRESS",
            "failed to start",
            "IN_PROGRESS_2",
            "?",
        ] {
            assert_eq!(status(value), Said::Unknown(value.to_owned()), "{value}");
        }
        for value in [
            "IN_PROGRESS | WAITING_FOR_HUMAN | COMPLETE",
            "IN_PROGRESS|COMPLETE",
            "IN_PROGRESS / COMPLETE",
            "<status>",
        ] {
            assert_eq!(status(value), Said::Unfilled(value.to_owned()), "{value}");
        }
        assert_eq!((status(""), status("-")), (Said::Nothing, Said::Nothing));
    }

    #[test]
    fn names_of_stages_are_compared_without_case_and_separators() {
        for (name, key) in [
            ("Code Review", "code-review"),
            ("code_review", "code-review"),
            ("**Software Architect**", "architect"),
            ("Spec Agent", "spec"),
            ("TestRunner", "testrunner"),
            ("Test Runner", "testrunner"),
            ("Red-Team (second round)", "red-team"),
            ("QA/E2E", "qa-e2e"),
            ("My own", "my-own"),
            ("Agent", "agent"),
        ] {
            assert_eq!(stage_key(name), key, "{name}");
        }
    }

    #[test]
    fn the_value_is_told_from_its_prose() {
        for (key, value, wanted) in [
            ("status", " **IN_PROGRESS** — waits", "IN_PROGRESS"),
            ("status", "IN_PROGRESS since", "IN_PROGRESS"),
            ("status", "IN_PROGRESS, since", "IN_PROGRESS"),
            ("status", "A | B | C", "A | B | C"),
            ("spec_hash", "sha256:a3f8... (old)", "sha256:a3f8..."),
            ("current_stage", "code review (round 2)", "code review"),
            ("started_at", "2026-02-22 14:30:00 — late", "2026-02-22 14:30:00"),
            ("last_output_summary", "a — b (c)", "a — b (c)"),
            ("status", "**", "**"),
            ("status", "****", "****"),
            ("status", "", ""),
        ] {
            assert_eq!(&value[essence(key, value)], wanted, "{value}");
        }
    }
}
