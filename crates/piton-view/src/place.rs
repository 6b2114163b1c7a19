//! Where a person reads: the clock on their wall, and how they call the program from there.
//!
//! Points in time become text here: RFC 3339 in UTC for programs, the local clock for people. So do
//! commands that are to be typed: whoever works on another folder than the one they stand in gave a
//! `-C`, and has to give it again.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::Path;
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use piton_core::Timestamp;
use piton_core::shell::quoted;
use serde::{Serialize, Serializer};

/// What the commands are called by.
const NAME: &str = "piton ";

/// What may stand before a command that is to be typed; so may the beginning of a line.
const BEFORE: [&str; 7] = ["`", "(", "&& ", ": ", "  ", "then ", "⏸ "];

/// Where a person reads.
#[derive(Debug)]
pub struct Place {
    /// Looked up only when a local time is written, and once: that costs more than a cold command.
    zone: LazyLock<TimeZone>,
    /// The option that names the folder, for a shell; empty where the person stands in it.
    option: String,
    /// The names of all commands.
    commands: Vec<String>,
}

impl Default for Place {
    fn default() -> Self {
        Self::new(|| TimeZone::UTC)
    }
}

impl Place {
    /// A place with its time zone, in the folder that is worked on.
    pub fn new(zone: fn() -> TimeZone) -> Self {
        Self { zone: LazyLock::new(zone), option: String::new(), commands: Vec::new() }
    }

    /// The same in another folder than `dir`, which is worked on; `commands` are all there are.
    #[must_use]
    pub fn outside(mut self, dir: &Path, commands: Vec<String>) -> Self {
        self.option = format!("-C {} ", quoted(&dir.to_string_lossy()));
        self.commands = commands;
        self
    }

    /// A command as it is to be typed here.
    pub fn piton(&self, arguments: impl Display) -> String {
        format!("{NAME}{}{arguments}", self.option)
    }

    /// A sentence of somebody else with the commands in it as they are to be typed: those in
    /// backquotes, or alone on their side of a line.
    pub fn told<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.option.is_empty() {
            return text.into();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = 0;
        for (at, _) in text.match_indices(NAME) {
            let after = at + NAME.len();
            let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
            let word = text[after..].split(|c: char| !c.is_ascii_lowercase()).next();
            let is_command = word.is_some_and(|word| self.commands.iter().any(|c| c == word));
            let is_meant = line.is_empty() || BEFORE.iter().any(|before| line.ends_with(before));
            // It goes to its folder by itself.
            let is_there = line.ends_with("&& ") && line.contains("cd ");
            if is_command && is_meant && !is_there {
                out.push_str(&text[rest..after]);
                out.push_str(&self.option);
                rest = after;
            }
        }
        out.push_str(&text[rest..]);
        out.into()
    }

    /// What the clock on the wall is ahead of UTC at a time, in seconds.
    pub fn utc_offset_secs(&self, at: Timestamp) -> i32 {
        self.zone.to_offset(instant(at)).seconds()
    }

    /// The time of day here: `03:04:05`.
    pub fn clock(&self, at: Timestamp) -> String {
        let time = self.zone.to_datetime(instant(at)).time();
        format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
    }

    /// Day and time here: `2026-01-02 03:04:05`.
    pub fn local(&self, at: Timestamp) -> String {
        let zoned = instant(at).to_zoned(self.zone.clone());
        zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// A time that lies ahead, as short as it is clear: without the day if it is within half a day.
    pub fn ahead(&self, at: Timestamp, now: Timestamp) -> String {
        /// Beyond this the day must be said.
        const HALF_A_DAY_MS: u64 = 12 * 3_600_000;
        let near = at.since(now).0.max(now.since(at).0) < HALF_A_DAY_MS;
        if near { self.clock(at) } else { self.local(at) }
    }
}

/// A point in time for programs: RFC 3339 in UTC, to the millisecond where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At(pub Timestamp);

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        instant(self.0).fmt(f)
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A time beyond jiff's range (year 9999) becomes its nearest end: showing it must not fail.
fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(if at.0 < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_text_is_rfc3339() {
        assert_eq!(At(Timestamp(1_767_323_045_678)).to_string(), "2026-01-02T03:04:05.678Z");
        assert_eq!(At(Timestamp(1_767_323_045_000)).to_string(), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn the_clock_is_that_of_the_zone() {
        let at = Timestamp(1_767_323_045_678);
        assert_eq!(Place::default().clock(at), "03:04:05");
        assert_eq!(Place::new(|| TimeZone::fixed(jiff::tz::offset(2))).clock(at), "05:04:05");
    }

    #[test]
    fn times_out_of_range_do_no_harm() {
        assert!(At(Timestamp(i64::MAX)).to_string().starts_with("9999"));
        assert!(!Place::default().clock(Timestamp(i64::MIN)).is_empty());
    }

    #[test]
    fn commands_get_the_folder_and_nothing_else_changes() {
        let commands = ["resume", "retry", "abort", "show", "run"].map(str::to_owned).to_vec();
        let place = Place::default().outside(Path::new("../my project"), commands);
        assert_eq!(place.piton("resume r"), "piton -C '../my project' resume r");
        for (text, told) in [
            ("piton resume r", "piton -C '../my project' resume r"),
            ("then `piton resume`", "then `piton -C '../my project' resume`"),
            (
                "  next: piton retry r P/a && piton resume r\n    or: piton abort r",
                "  next: piton -C '../my project' retry r P/a && piton -C '../my project' resume r\n    \
                 or: piton -C '../my project' abort r",
            ),
            ("raise it, then piton resume r", "raise it, then piton -C '../my project' resume r"),
            ("(piton show r/P lists them)", "(piton -C '../my project' show r/P lists them)"),
        ] {
            assert_eq!(place.told(text), told);
            assert_eq!(place.told(told), told, "again is the same");
        }
        for text in [
            "cd /srv/project && piton run plan.toml --resume",
            "only a newer piton knows",
            "`piton --help` lists all commands",
            "`piton.toml` is not used",
            "the piton resume",
        ] {
            assert_eq!(place.told(text), text);
        }
    }
}
