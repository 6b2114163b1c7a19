//! What an agent says while it works, in the words of no program.

use piton_core::Timestamp;
pub use piton_core::agent::{Tokens, Totals};

pub use crate::verdict::Clock;
use crate::verdict::{Exit, Verdict};

/// Longest line about what an agent does: it fits a row of the live view.
const DOING_CHARS_MAX: usize = 160;

/// Reads the lines of one process. All counts are those of this process since its beginning, so that
/// reading a stream again counts nothing twice.
pub trait Reader {
    /// What a line of standard output means. A line that is cut, or not understood, says nothing.
    fn line(&mut self, line: &str) -> Vec<Said>;

    /// What a line of a second stream means: a file in which the program records its session.
    fn record(&mut self, _line: &str) -> Vec<Said> {
        Vec::new()
    }

    /// A line of standard error, of its beginning. Programs say there which servers did not start.
    fn aside(&mut self, _line: &str) {}

    /// What was used and where the context stands.
    fn totals(&self) -> Totals;

    /// How it went, from all signs together. `errors` are the last lines of standard error, `now` and
    /// `offset_secs` are for times of day in what it says.
    fn verdict(&self, exit: Exit, errors: &[String], clock: Clock) -> Verdict;

    /// The operations that began and have not ended.
    fn in_flight(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Something an agent said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Its session has this id.
    Session(String),
    /// It works with this model.
    Model(String),
    /// It says or does this, in one line.
    Doing(String),
    /// The context in use after a request, in tokens.
    Context(u64),
    /// A limit of its account: `until` is when it ends, if the program says so.
    Limit {
        /// Whether requests are refused; otherwise it is a warning.
        is_reached: bool,
        /// When it ends.
        until: Option<Timestamp>,
    },
    /// A request failed and is sent again.
    Retrying(String),
    /// The conversation was replaced by a summary.
    Compacted,
    /// It was not allowed to do something.
    Denied(String),
    /// It ended its turn.
    Finished,
}

/// A dollar amount as millionths; nothing for what is no amount.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked beside it")]
pub(crate) fn micros(dollars: f64) -> Option<u64> {
    let micros = (dollars * 1e6).round();
    (0.0..=1e15).contains(&micros).then_some(micros as u64)
}

/// One line for people: the first line of a text, cut to what a row holds.
pub(crate) fn doing(parts: &[&str]) -> Option<Said> {
    let joined: Vec<&str> =
        parts.iter().map(|part| part.trim()).filter(|p| !p.is_empty()).collect();
    let line: String = joined.join(" ").lines().next()?.chars().take(DOING_CHARS_MAX).collect();
    (!line.is_empty()).then_some(Said::Doing(line))
}
