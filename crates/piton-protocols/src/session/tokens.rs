//! Tokens: an estimate of how many a text has, and what the thresholds of a conversation ask for.

use piton_core::event::Reason;

/// Characters of a token, on the safe side: plain English has about four.
const CHARS_PER_TOKEN: u64 = 3;
/// Percent of the window at which a checkpoint is made.
pub const WARNING_PERCENT: u64 = 75;
/// Percent of the window at which the agent stops after its current operation.
pub const CRITICAL_PERCENT: u64 = 90;
/// Per mille of the window at which nothing more should be begun.
pub const HALT_PER_MILLE: u64 = 975;

/// Counts the tokens of a text.
pub type Count<'a> = dyn Fn(&str) -> u64 + 'a;

/// An estimate of the tokens of a text that is rather too high: three characters are one token, and a
/// character outside ASCII is one too.
pub fn estimate(text: &str) -> u64 {
    let ascii = text.chars().filter(char::is_ascii).count() as u64;
    let other = text.chars().count() as u64 - ascii;
    ascii.div_ceil(CHARS_PER_TOKEN) + other
}

/// How full a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its tokens.
    pub used: u64,
    /// How many fit.
    pub window: u64,
}

impl Usage {
    /// Percent of the window, rounded down.
    pub fn percent(&self) -> u64 {
        self.used.saturating_mul(100) / self.window.max(1)
    }

    /// Tells whether nothing more should be begun.
    pub fn is_full(&self) -> bool {
        self.used.saturating_mul(1000) >= self.window.saturating_mul(HALT_PER_MILLE)
    }

    /// The trigger that it has reached.
    pub fn trigger(&self) -> Option<Reason> {
        match self.percent() {
            CRITICAL_PERCENT.. => Some(Reason::TokenCritical),
            WARNING_PERCENT.. => Some(Reason::TokenWarning),
            _ => None,
        }
    }
}
