//! The form of a report before it is a page: figures, sections, tables, cells.
//!
//! Both pages are made from it, so that they say the same.

use piton_core::budget::dollars;
use piton_core::{Millis, Status, Timestamp};

use super::Ended;
use super::time_line::TimeLine;
use crate::place::Place;
use crate::text::sanitize;

/// A report in words.
#[derive(Debug)]
pub(super) struct Document {
    pub title: String,
    pub run_id: String,
    pub status: Status,
    /// What the run is: names and values.
    pub lead: Vec<(&'static str, String)>,
    pub figures: Vec<Figure>,
    pub sections: Vec<Section>,
}

/// A number that stands for the run.
#[derive(Debug)]
pub(super) struct Figure {
    pub name: &'static str,
    pub value: String,
    pub note: String,
}

/// A part of a report.
#[derive(Debug)]
pub(super) struct Section {
    pub title: &'static str,
    /// What is said before its body.
    pub note: String,
    pub body: Body,
}

/// What a section shows.
#[derive(Debug)]
pub(super) enum Body {
    TimeLine(TimeLine),
    Table(Table),
    Failures(Vec<Trouble>),
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub head: Vec<&'static str>,
    pub rows: Vec<Vec<Cell>>,
    /// What is not shown, in words.
    pub left_out: Option<String>,
    /// Whether it is for looking things up: a page may fold it.
    pub is_detail: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Code(String),
    Number(String),
    Time(Timestamp),
    Status(Option<Status>),
    Ended(Ended),
}

/// A failure.
#[derive(Debug)]
pub(super) struct Trouble {
    pub place: String,
    pub when: Timestamp,
    pub attempt: Option<u32>,
    pub error: String,
    pub lines: Vec<String>,
}

impl Cell {
    pub fn text(text: &str) -> Self {
        Self::Text(sanitize(text))
    }

    pub fn code(text: &str) -> Self {
        Self::Code(sanitize(text))
    }

    /// A length; nothing where there is none.
    pub fn length(ms: Millis) -> Self {
        Self::Number(if ms == Millis(0) { String::new() } else { ms.to_string() })
    }

    /// A number; nothing for none.
    pub fn number(number: impl Into<u64>) -> Self {
        let number = number.into();
        Self::Number(if number == 0 { String::new() } else { thousands(number) })
    }

    pub fn money(micros: u64) -> Self {
        Self::Number(if micros == 0 { String::new() } else { dollars(micros) })
    }

    /// For a page without shapes.
    pub fn words(&self) -> String {
        match self {
            Self::Text(text) | Self::Code(text) | Self::Number(text) => text.clone(),
            Self::Time(at) => utc(*at),
            Self::Status(status) => status_words(*status),
            Self::Ended(ended) => ended.words().to_owned(),
        }
    }
}

impl Ended {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// A status in words; what has none is gone from the plan.
pub(super) fn status_words(status: Option<Status>) -> String {
    status.map_or("dropped".to_owned(), |status| status.as_str().replace('_', " "))
}

/// A point in time: `2026-01-02 03:04:05`.
pub(super) fn utc(at: Timestamp) -> String {
    Place::default().local(at)
}

/// A number in groups: `1 234 567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}
