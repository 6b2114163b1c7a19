//! How output looks where it goes: colour, symbols, room.
//!
//! Colour only adds: every status has a symbol or word of its own.

use anstyle::{AnsiColor, Effects, Style};
use piton_core::Status;

/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Failure.
pub const BAD: Style = AnsiColor::Red.on_default();
/// At work.
pub const BUSY: Style = AnsiColor::Cyan.on_default();
/// Something for a person to do or to know.
pub const NOTE: Style = AnsiColor::Yellow.on_default();
/// What may be overlooked.
pub const DIM: Style = Style::new().effects(Effects::DIMMED);
/// What should be found first.
pub const STRONG: Style = Style::new().effects(Effects::BOLD);
/// As it is.
pub const PLAIN: Style = Style::new();

/// How output looks where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether to use colour.
    pub color: bool,
    /// Whether to use symbols beyond ASCII.
    pub unicode: bool,
    /// Columns there are.
    pub width: usize,
    /// Rows there are.
    pub height: usize,
}

impl Layout {
    /// No colour, symbols, a given width, as high as the oldest terminals.
    pub fn plain(width: usize) -> Self {
        Self { color: false, unicode: true, width, height: 24 }
    }

    /// Puts a text into a style, if there is colour.
    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.color && style != PLAIN {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// The symbol of a status.
    pub fn symbol(&self, status: Status) -> &'static str {
        let (symbol, ascii) = match status {
            Status::Pending => ("○", "."),
            Status::Running => ("●", "*"),
            Status::Retrying => ("↻", "~"),
            Status::Waiting => ("⏸", "?"),
            Status::Parked => ("◷", "z"),
            Status::Failed => ("✗", "x"),
            Status::Blocked => ("■", "!"),
            Status::Complete => ("✓", "+"),
            Status::Skipped => ("–", "-"),
            Status::Interrupted => ("↯", "/"),
            Status::RolledBack => ("↶", "<"),
            Status::Aborted => ("⊘", "#"),
            Status::Cancelled => ("⊗", "%"),
            Status::Archived => ("▫", "="),
        };
        if self.unicode { symbol } else { ascii }
    }

    /// The ellipsis of texts that were cut.
    pub fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }
}

/// The style of a status.
pub fn style_of(status: Status) -> Style {
    match status {
        Status::Complete => GOOD,
        Status::Failed | Status::Aborted | Status::Cancelled => BAD,
        Status::Running => BUSY,
        Status::Retrying
        | Status::Waiting
        | Status::Parked
        | Status::Blocked
        | Status::Interrupted
        | Status::RolledBack => NOTE,
        Status::Pending | Status::Skipped | Status::Archived => DIM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Status; 14] = [
        Status::Pending,
        Status::Running,
        Status::Retrying,
        Status::Waiting,
        Status::Parked,
        Status::Failed,
        Status::Blocked,
        Status::Complete,
        Status::Skipped,
        Status::Interrupted,
        Status::RolledBack,
        Status::Aborted,
        Status::Cancelled,
        Status::Archived,
    ];

    #[test]
    fn every_status_reads_without_colour() {
        for unicode in [true, false] {
            let layout = Layout { unicode, ..Layout::plain(80) };
            let seen: std::collections::BTreeSet<_> =
                ALL.iter().map(|s| layout.symbol(*s)).collect();
            assert_eq!(seen.len(), ALL.len());
            assert!(seen.iter().all(|s| crate::text::columns(s) == 1 && s.is_ascii() != unicode));
        }
    }

    #[test]
    fn paint_without_colour_is_the_text() {
        assert_eq!(Layout::plain(80).paint(BAD, "x"), "x");
        let layout = Layout { color: true, ..Layout::plain(80) };
        assert_eq!(layout.paint(BAD, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
