//! Where a person reads: the clock on their wall, and how they call the program from there.
//!
//! Points in time become text here: RFC 3339 in UTC for programs, the local clock for people. So do
//! commands that are to be typed: whoever works on another folder than the one they stand in gave a
//! `-C`, and has to give it again.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use piton_core::refusal::{Part, Refusal, Remedy};
use piton_core::shell::quoted;
use piton_core::{Timestamp, persons};

use serde::{Serialize, Serializer};

use crate::text::sanitize;

/// Where a person reads.
#[derive(Debug)]
pub struct Place {
    /// Looked up only when a local time is written, and once: that costs more than a cold command.
    zone: LazyLock<TimeZone>,
    /// The option that names the folder, for a shell; empty where the person stands in it.
    option: String,
    /// Whether an agent may be the reader. Looked up only when there is something to do.
    in_step: LazyLock<bool>,
}

/// What an agent is told where only a person can help.
const ASK_A_PERSON: &str = "ask the person who started the run";

impl Default for Place {
    fn default() -> Self {
        Self::new(|| TimeZone::UTC, || false)
    }
}

impl Place {
    /// A place with its time zone, in the folder that is worked on. `in_step` says whether the reader is
    /// a step: it is told of nothing that only a person may do.
    pub fn new(zone: fn() -> TimeZone, in_step: fn() -> bool) -> Self {
        let (zone, in_step) = (LazyLock::new(zone), LazyLock::new(in_step));
        Self { zone, option: String::new(), in_step }
    }

    /// The same in another folder than `dir`, which is worked on.
    #[must_use]
    pub fn outside(mut self, dir: &Path) -> Self {
        self.option = format!("-C {} ", quoted(&dir.to_string_lossy()));
        self
    }

    /// A command as it is typed here.
    pub fn piton(&self, arguments: impl Display) -> String {
        format!("piton {}{arguments}", self.option)
    }

    /// Why something is not done and what to do about it, with commands as they are typed here.
    pub fn refusal(&self, refusal: &Refusal) -> String {
        let mut text = sanitize(&refusal.cause);
        for (number, remedy) in refusal.remedies.iter().enumerate() {
            text.push_str(if number == 0 { "; " } else { ", or " });
            text.push_str(&self.remedy(remedy));
        }
        text
    }

    /// Something to do, on one line, with commands as they are typed here.
    pub fn remedy(&self, remedy: &Remedy) -> String {
        self.parts(remedy, sanitize)
    }

    /// The same for words of ours, which may have several lines.
    pub fn text(&self, text: &Remedy) -> String {
        self.parts(text, str::to_owned)
    }

    fn parts(&self, remedy: &Remedy, clean: fn(&str) -> String) -> String {
        if persons::is_remedy(remedy) && *self.in_step {
            return ASK_A_PERSON.to_owned();
        }
        remedy.0.iter().map(|part| self.part(part, clean)).collect()
    }

    fn part(&self, part: &Part, clean: fn(&str) -> String) -> String {
        match part {
            Part::Words(words) => clean(words),
            Part::Piton(arguments) => format!("`{}`", self.piton(clean(arguments))),
            Part::Shell(text) | Part::Option(text) => format!("`{}`", clean(text)),
        }
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
    use piton_core::remedy;

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
        assert_eq!(
            Place::new(|| TimeZone::fixed(jiff::tz::offset(2)), || false).clock(at),
            "05:04:05"
        );
    }

    #[test]
    fn times_out_of_range_do_no_harm() {
        assert!(At(Timestamp(i64::MAX)).to_string().starts_with("9999"));
        assert!(!Place::default().clock(Timestamp(i64::MIN)).is_empty());
    }

    /// Lost: an agent reads that `piton run --fresh` helps, and sets its own run aside.
    #[test]
    fn a_step_is_told_of_nothing_that_only_a_person_may_do() {
        let place = Place::new(|| TimeZone::UTC, || true);
        let refusal = Refusal::new("x", "it is lost")
            .or(remedy![Piton "run plan.toml --fresh"])
            .or(remedy![Piton "status r"]);
        let said = place.refusal(&refusal);
        assert_eq!(said, "it is lost; ask the person who started the run, or `piton status r`");
    }

    #[test]
    fn commands_get_the_folder_and_words_do_not() {
        let place = Place::default().outside(Path::new("../my project"));
        assert_eq!(place.piton("resume r"), "piton -C '../my project' resume r");
        let remedy =
            remedy![Words "a newer piton resume: ", Piton "resume r", Words "\n", Shell "ls"];
        let typed = "a newer piton resume: `piton -C '../my project' resume r`";
        assert_eq!(place.remedy(&remedy), format!("{typed}`ls`"));
        assert_eq!(place.text(&remedy), format!("{typed}\n`ls`"));
    }
}
