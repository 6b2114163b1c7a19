//! What a plan says: phases with their markers, dependencies and boxes.

use std::ops::Range;

use crate::workflow::phase_id::PhaseId;

/// One plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The text of its first heading; empty if it has none.
    pub title: String,
    /// Its phases, in the order of the document.
    pub phases: Vec<Phase>,
}

impl Plan {
    /// A phase by its id.
    pub fn phase(&self, id: &PhaseId) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.id.is(id))
    }
}

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Such as `2A`.
    pub id: PhaseId,
    /// What people call it.
    pub title: String,
    /// What stands in parentheses after the id, such as `OPTIONAL`.
    pub remark: Option<String>,
    /// The marker of its heading.
    pub marker: Option<Marker>,
    /// Its status: the marker, else what its boxes say, else its `Status` line.
    pub status: PhaseStatus,
    /// The phases that it depends on, as stated; `None` if the plan does not say.
    pub depends_on: Option<Vec<PhaseId>>,
    /// What it depends on that is not a phase of this plan, as stated.
    pub outside: Vec<String>,
    /// Its boxes.
    pub tasks: Vec<Task>,
    /// How complex the plan says it is.
    pub complexity: Option<Complexity>,
    /// Commands that test it.
    pub tests: Vec<TestCommand>,
    /// Files that it may change.
    pub files: Vec<String>,
    /// The file that describes it in detail, as the plan links it.
    pub expanded: Option<String>,
    /// The line of its heading, from 1.
    pub line: usize,
    /// The bytes of its section, heading included.
    pub section: Range<usize>,
}

impl Phase {
    /// Tells whether nothing is left to do: it is complete, or it was skipped or deferred.
    pub fn is_settled(&self) -> bool {
        matches!(self.status, PhaseStatus::Completed | PhaseStatus::Skipped | PhaseStatus::Deferred)
    }

    /// How many of its boxes are ticked.
    pub fn tasks_done(&self) -> usize {
        self.tasks.iter().filter(|task| task.done).count()
    }

    /// How many are not.
    pub fn tasks_open(&self) -> usize {
        self.tasks.len() - self.tasks_done()
    }

    /// The text of its section, for a prompt; `plan` is the text that the phase was read from.
    pub fn text<'t>(&self, plan: &'t str) -> &'t str {
        plan.get(self.section.clone()).unwrap_or_default()
    }
}

/// A box of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it says, on its first line.
    pub text: String,
    /// Whether it is ticked.
    pub done: bool,
    /// Which of the phase's boxes with the same text it is, from 0; with the text, its identity.
    pub nth: usize,
    /// Its line, from 1.
    pub line: usize,
}

/// A command that tests a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCommand {
    /// For the shell.
    pub command: String,
    /// Its line, from 1.
    pub line: usize,
}

/// How complex a phase is.
#[derive(Clone, Debug, PartialEq)]
pub struct Complexity {
    /// As the plan says it.
    pub raw: String,
    /// As a number up to 10; `None` if the plan uses a word.
    pub score: Option<f64>,
}

impl Complexity {
    /// Reads `7`, `7/10`, `Low (2/10)` or `High (Score: 82/100)`.
    pub fn read(text: &str) -> Self {
        let number = |text: &str| -> Option<f64> {
            let text = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
            text[..end].trim_end_matches('.').parse().ok()
        };
        let of = |rest: &str| rest.trim_start().strip_prefix('/').and_then(number);
        let after = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(after.len());
        let scale = of(&after[end..]).filter(|most| *most > 0.0).map_or(1.0, |most| 10.0 / most);
        Self { raw: text.trim().to_owned(), score: number(text).map(|score| score * scale) }
    }
}

/// The marker of a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// COMPLETED, COMPLETE or DONE.
    Completed,
    /// VERIFIED: complete, and somebody looked at it.
    Verified,
    /// NOT STARTED or PENDING.
    NotStarted,
    /// IN PROGRESS.
    InProgress,
    /// PARTIAL.
    Partial,
    /// BLOCKED.
    Blocked,
    /// INCOMPLETE.
    Incomplete,
    /// SKIPPED.
    Skipped,
    /// DEFERRED.
    Deferred,
    /// Another word, which is kept.
    Unknown(String),
}

/// The words of markers, the ones to write first.
const WORDS: [(&str, Marker); 12] = [
    ("COMPLETED", Marker::Completed),
    ("VERIFIED", Marker::Verified),
    ("NOT STARTED", Marker::NotStarted),
    ("IN PROGRESS", Marker::InProgress),
    ("PARTIAL", Marker::Partial),
    ("BLOCKED", Marker::Blocked),
    ("INCOMPLETE", Marker::Incomplete),
    ("SKIPPED", Marker::Skipped),
    ("DEFERRED", Marker::Deferred),
    ("COMPLETE", Marker::Completed),
    ("DONE", Marker::Completed),
    ("PENDING", Marker::NotStarted),
];

impl Marker {
    /// Reads a known word; symbols around it are ignored, and so is a date or a remark after a dash.
    pub fn known(text: &str) -> Option<Self> {
        let upper = text.to_uppercase().replace('_', " ");
        let bare = upper.trim_matches(|c: char| !c.is_alphanumeric() && c != '(' && c != ')');
        let words = bare.replacen("NOT-", "NOT ", 1).replacen("IN-", "IN ", 1);
        let is = |word: &str| words.strip_prefix(word).is_some_and(is_remark);
        WORDS.iter().find(|(word, _)| is(word)).map(|(_, marker)| marker.clone())
    }

    /// The word as it is written.
    pub fn as_str(&self) -> &str {
        if let Self::Unknown(word) = self {
            return word;
        }
        WORDS.iter().find(|(_, marker)| marker == self).map_or("", |(word, _)| word)
    }

    /// What it says about the phase.
    pub fn status(&self) -> PhaseStatus {
        match self {
            Self::Completed | Self::Verified => PhaseStatus::Completed,
            Self::NotStarted => PhaseStatus::NotStarted,
            Self::InProgress => PhaseStatus::InProgress,
            Self::Partial => PhaseStatus::Partial,
            Self::Blocked => PhaseStatus::Blocked,
            Self::Incomplete => PhaseStatus::Incomplete,
            Self::Skipped => PhaseStatus::Skipped,
            Self::Deferred => PhaseStatus::Deferred,
            Self::Unknown(_) => PhaseStatus::Unknown,
        }
    }
}

/// Whether what follows the word of a marker says no more than when or why.
fn is_remark(rest: &str) -> bool {
    let trimmed = rest.trim_start();
    let is_apart = rest.len() > trimmed.len();
    let is_dash = trimmed.starts_with(['—', '–']) || is_apart && trimmed.starts_with('-');
    if rest.is_empty() || is_dash || trimmed.starts_with([':', ',', ';', '(']) {
        return true;
    }
    let plain = |word: &str| word.chars().all(|c| !c.is_alphanumeric()) || is_date(word);
    is_apart && trimmed.split_whitespace().all(plain)
}

/// Whether a word is a date or a time: digits with `-`, `/`, `.` or `:` between them.
pub(super) fn is_date(word: &str) -> bool {
    let word = word.trim_matches([',', ';', '*']);
    let mut groups = 0;
    for part in word.trim_end_matches('Z').split(['-', '/', '.', ':', 'T', '+']) {
        if part.is_empty() || part.bytes().any(|b| !b.is_ascii_digit()) {
            return false;
        }
        groups += 1;
    }
    groups > 2 || groups == 2 && word.contains([':', '-'])
}

/// The status of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseStatus {
    /// Complete.
    Completed,
    /// Nothing was done.
    NotStarted,
    /// Something was done.
    InProgress,
    /// A part is complete.
    Partial,
    /// Something must change first.
    Blocked,
    /// It ended before it was complete.
    Incomplete,
    /// It is left out.
    Skipped,
    /// It is left for later.
    Deferred,
    /// The marker has a word that is not known.
    Unknown,
}

impl PhaseStatus {
    /// The word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NotStarted => "not_started",
            Self::InProgress => "in_progress",
            Self::Partial => "partial",
            Self::Blocked => "blocked",
            Self::Incomplete => "incomplete",
            Self::Skipped => "skipped",
            Self::Deferred => "deferred",
            Self::Unknown => "unknown",
        }
    }
}
