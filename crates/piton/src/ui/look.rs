//! How output looks where it goes: colour, symbols, room.
//!
//! Colour only adds: every status has a symbol or word of its own. `NO_COLOR`, `CLICOLOR` and
//! `TERM=dumb` are obeyed through `anstream`; without a UTF-8 locale the symbols are ASCII.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use anstream::{AutoStream, ColorChoice};
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

/// Columns where no terminal tells: the reader is a file or a program, so lines are not wrapped.
const COLUMNS_ELSEWHERE: usize = 100_000;
/// Size of a terminal that does not tell: what the oldest ones had.
const SIZE_UNTOLD: (usize, usize) = (80, 24);

/// Whether a live picture can be drawn on a stream.
pub fn draws(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// How output looks where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether to use colour.
    pub color: bool,
    /// Whether to use symbols beyond ASCII.
    pub unicode: bool,
    /// Columns there are.
    pub width: usize,
    /// Rows there are.
    pub height: usize,
}

impl Look {
    /// How stderr looks now; ask again after a resize.
    pub fn stderr() -> Self {
        let stream = std::io::stderr();
        Self::of(&stream, AutoStream::choice(&stream), stream.is_terminal())
    }

    /// How stdout looks now.
    pub fn stdout() -> Self {
        let stream = std::io::stdout();
        Self::of(&stream, AutoStream::choice(&stream), stream.is_terminal())
    }

    /// No colour, symbols, a given width.
    #[cfg(test)]
    pub fn plain(width: usize) -> Self {
        Self { color: false, unicode: true, width, height: SIZE_UNTOLD.1 }
    }

    fn of(stream: &impl AsFd, choice: ColorChoice, terminal: bool) -> Self {
        let (width, height) = match (terminal, size(stream)) {
            (true, Some(size)) => size,
            (true, None) => SIZE_UNTOLD,
            (false, _) => (COLUMNS_ELSEWHERE, SIZE_UNTOLD.1),
        };
        Self { color: choice != ColorChoice::Never, unicode: utf8_locale(), width, height }
    }

    /// Asks the terminal on stderr for its size again; a frame may come after a resize.
    pub fn measure(&mut self) {
        if let Some((width, height)) = size(&std::io::stderr()) {
            (self.width, self.height) = (width, height);
        }
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

fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether the locale says UTF-8; the first variable that is set decides, as in C.
fn utf8_locale() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|value| is_utf8(&value))
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
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
            let look = Look { unicode, ..Look::plain(80) };
            let seen: std::collections::BTreeSet<_> = ALL.iter().map(|s| look.symbol(*s)).collect();
            assert_eq!(seen.len(), ALL.len());
            assert!(
                seen.iter().all(|s| super::super::text::columns(s) == 1 && s.is_ascii() != unicode)
            );
        }
    }

    #[test]
    fn paint_without_colour_is_the_text() {
        assert_eq!(Look::plain(80).paint(BAD, "x"), "x");
        let look = Look { color: true, ..Look::plain(80) };
        assert_eq!(look.paint(BAD, "x"), "\u{1b}[31mx\u{1b}[0m");
    }

    #[test]
    fn locales_say_utf8_in_several_ways() {
        assert!(is_utf8("en_US.UTF-8") && is_utf8("C.utf8"));
        assert!(!is_utf8("C") && !is_utf8("de_DE.ISO-8859-1"));
    }
}
