//! Tokens: what the thresholds of a conversation ask for. Whoever calls counts those of a text.

use piton_core::agent::{Level, Thresholds, level};
use piton_core::event::Reason;

/// Counts the tokens of a text.
pub type Count<'a> = dyn Fn(&str) -> u64 + 'a;

/// How full a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its tokens.
    pub used: u64,
    /// How many fit.
    pub window: u64,
    /// How full it may be.
    pub thresholds: Thresholds,
}

/// Percent of a window, rounded down.
pub fn percent(used: u64, window: u64) -> u64 {
    used.saturating_mul(100) / window.max(1)
}

impl Usage {
    /// Percent of the window, rounded down.
    pub fn percent(&self) -> u64 {
        percent(self.used, self.window)
    }

    /// The highest threshold that it has reached.
    pub fn level(&self) -> Level {
        level(self.thresholds, Some(self.used), self.window.max(1))
    }

    /// Tells whether nothing more should be begun.
    pub fn is_full(&self) -> bool {
        self.level() == Level::Halt
    }

    /// The trigger that it has reached.
    pub fn trigger(&self) -> Option<Reason> {
        match self.level() {
            Level::Halt | Level::Critical => Some(Reason::TokenCritical),
            Level::Warning => Some(Reason::TokenWarning),
            Level::Fine => None,
        }
    }
}
