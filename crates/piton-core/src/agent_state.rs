//! What is known of the agent of a step: its session, what it used, how full its window is.

use serde::{Deserialize, Serialize};

use crate::agent::{Level, Tokens};
use crate::agent_event::Beginning;
use crate::time::Timestamp;

/// A day in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// The agent of a step's last attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentState {
    /// Its name.
    pub name: String,
    /// The program it is.
    pub program: String,
    /// The attempt that all this is of.
    pub attempt: u32,
    /// How it began.
    pub how: Beginning,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Tokens of the attempt.
    pub tokens: Tokens,
    /// What they cost, as it counts for budgets.
    pub money_micros: u64,
    /// Whether that is more than a guess.
    pub is_cost_known: bool,
    /// Its requests.
    pub requests: u32,
    /// Tokens in its context at the last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// The window of its model.
    pub window: u64,
    /// How full that was found to be.
    #[serde(skip_serializing_if = "Level::is_fine")]
    pub level: Level,
    /// Whether its session was at the warning already when it was continued: what is added to its
    /// prompts is kept short.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_minimal: bool,
    /// What it did last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doing: String,
    /// The operations that were under way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<String>,
    /// The operations that were under way when the attempt before was cut short.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Hand-offs of the step since it last succeeded, or a person last granted attempts.
    #[serde(skip_serializing_if = "is_zero")]
    pub handoffs: u32,
    /// Why the attempt ended with one: its session is not continued. Empty if it did not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub handed_off: String,
}

impl AgentState {
    /// How full its window is, in hundredths.
    pub fn percent(&self) -> Option<u64> {
        let used = self.context.filter(|_| self.window > 0)?;
        Some(used.saturating_mul(100) / self.window)
    }
}

/// What agents and commands used, over all attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens.
    #[serde(rename = "t", skip_serializing_if = "is_none")]
    pub tokens: u64,
    /// Millionths of a dollar.
    #[serde(rename = "m", skip_serializing_if = "is_none")]
    pub money_micros: u64,
}

impl Spent {
    /// Whether that is nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Counts `now` in the place of `before`.
    pub fn exchange(&mut self, before: Self, now: Self) {
        let exchanged =
            |sum: u64, before: u64, now: u64| sum.saturating_sub(before).saturating_add(now);
        self.tokens = exchanged(self.tokens, before.tokens, now.tokens);
        self.money_micros = exchanged(self.money_micros, before.money_micros, now.money_micros);
    }
}

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum.exchange(Self::default(), one);
            sum
        })
    }
}

/// What was used on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Day {
    /// The day, counted since the Unix epoch, UTC.
    pub number: i64,
    /// What was used on it.
    pub spent: Spent,
}

impl Day {
    /// The day that a time is on, counted since the Unix epoch, UTC.
    pub fn number_at(at: Timestamp) -> i64 {
        at.0.div_euclid(DAY_MS)
    }

    /// A day by its number, as `2026-11-18`.
    pub fn date(number: i64) -> String {
        let days = i32::try_from(number).unwrap_or_default();
        let date = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days));
        date.map_or_else(|_| number.to_string(), |date| date.to_string())
    }

    /// Whether nothing was ever used.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_none(value: &u64) -> bool {
    *value == 0
}
