//! How the terminal is: its colour, its symbols, its size, its clock.
//!
//! `NO_COLOR`, `CLICOLOR` and `TERM=dumb` are obeyed through `anstream`; without a UTF-8 locale the
//! symbols are ASCII.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use jiff::tz::TimeZone;
use piton_view::{Layout, Place};

use crate::environment::environment;

/// Columns where no terminal tells: the reader is a file or a program, so lines are not wrapped.
const COLUMNS_ELSEWHERE: usize = 100_000;
/// Size of a terminal that does not tell: what the oldest ones had.
const SIZE_UNTOLD: (usize, usize) = (80, 24);
/// Where the system keeps its zone.
const SYSTEM_ZONE: &str = "/etc/localtime";

static PLACE: OnceLock<Place> = OnceLock::new();

/// Where the person reads.
pub fn place() -> &'static Place {
    PLACE.get_or_init(|| Place::new(zone, piton_process::strays::is_in_step))
}

/// Notes that an agent reads: it is told of nothing that only a person may do.
pub fn read_by_agent() {
    // Set once, before anything is said.
    let _ = PLACE.set(Place::new(zone, || true));
}

/// Notes that the person works in another folder than where they stand.
pub fn works_in(dir: &Path) {
    // Set once, by the command line, before anything is printed.
    let _ = PLACE.set(Place::new(zone, piton_process::strays::is_in_step).outside(dir));
}

/// The time zone here. Unless `TZ` names one, the file of the system is read directly: opening the
/// whole zone database costs milliseconds.
fn zone() -> TimeZone {
    if environment().names_zone {
        return TimeZone::system();
    }
    // No file means UTC, as in C.
    let bytes = std::fs::read(SYSTEM_ZONE).unwrap_or_default();
    TimeZone::tzif("local", &bytes).unwrap_or(TimeZone::UTC)
}

/// Whether a live picture can be drawn on a stream.
pub fn draws(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && environment().moves_cursor
}

/// How stderr looks now; ask again after a resize.
pub fn stderr() -> Layout {
    let stream = std::io::stderr();
    look(&stream, AutoStream::choice(&stream), stream.is_terminal())
}

/// How stdout looks now.
pub fn stdout() -> Layout {
    let stream = std::io::stdout();
    look(&stream, AutoStream::choice(&stream), stream.is_terminal())
}

fn look(stream: &impl AsFd, choice: ColorChoice, terminal: bool) -> Layout {
    let (width, height) = match (terminal, size(stream)) {
        (true, Some(size)) => size,
        (true, None) => SIZE_UNTOLD,
        (false, _) => (COLUMNS_ELSEWHERE, SIZE_UNTOLD.1),
    };
    let unicode = is_utf8(&environment().locale);
    Layout { color: choice != ColorChoice::Never, unicode, width, height }
}

/// Asks the terminal on stderr for its size again; a frame may come after a resize.
pub fn measure(layout: &mut Layout) {
    if let Some((width, height)) = size(&std::io::stderr()) {
        (layout.width, layout.height) = (width, height);
    }
}

fn size(stream: &impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether a locale says UTF-8.
fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_say_utf8_in_several_ways() {
        assert!(is_utf8("en_US.UTF-8") && is_utf8("C.utf8"));
        assert!(!is_utf8("C") && !is_utf8("de_DE.ISO-8859-1"));
    }
}
