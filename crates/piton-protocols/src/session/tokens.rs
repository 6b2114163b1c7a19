//! Tokens: what the thresholds of a conversation ask for. Whoever calls counts those of a text.

use piton_core::event::Reason;

/// Percent of the window at which a checkpoint is made.
pub const WARNING_PERCENT: u64 = 75;
/// Percent of the window at which the agent stops after its current operation.
pub const CRITICAL_PERCENT: u64 = 90;
/// Per mille of the window at which nothing more should be begun.
pub const HALT_PER_MILLE: u64 = 975;

/// Counts the tokens of a text.
pub type Count<'a> = dyn Fn(&str) -> u64 + 'a;

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
