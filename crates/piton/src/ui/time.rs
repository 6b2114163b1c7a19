//! Points in time as text: RFC 3339 in UTC for programs, the local clock for people.
//!
//! The time zone is looked up only when a local time is written, and once. Unless `TZ` names one, the
//! file of the system is read directly: opening the whole zone database costs milliseconds.

use std::sync::OnceLock;

use jiff::tz::TimeZone;
use piton_core::Timestamp;

static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Where the system keeps its zone.
const SYSTEM_ZONE: &str = "/etc/localtime";

fn zone() -> &'static TimeZone {
    ZONE.get_or_init(|| {
        if std::env::var_os("TZ").is_some_and(|name| !name.is_empty()) {
            return TimeZone::system();
        }
        // No file means UTC, as in C.
        let bytes = std::fs::read(SYSTEM_ZONE).unwrap_or_default();
        TimeZone::tzif("local", &bytes).unwrap_or(TimeZone::UTC)
    })
}

/// What the clock on the wall is ahead of UTC at a time, in seconds.
pub fn utc_offset_secs(at: Timestamp) -> i32 {
    zone().to_offset(instant(at)).seconds()
}

/// RFC 3339 in UTC, to the millisecond where there is one: `2026-01-02T03:04:05.678Z`.
pub fn rfc3339(at: Timestamp) -> String {
    instant(at).to_string()
}

/// The time of day here: `03:04:05`.
pub fn clock(at: Timestamp) -> String {
    clock_in(at, zone())
}

/// Day and time here: `2026-01-02 03:04:05`.
pub fn local(at: Timestamp) -> String {
    let zoned = instant(at).to_zoned(zone().clone());
    zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A time that lies ahead, as short as it is clear: without the day if it is within half a day.
pub fn ahead(at: Timestamp, now: Timestamp) -> String {
    /// Beyond this the day must be said.
    const HALF_A_DAY_MS: u64 = 12 * 3_600_000;
    let near = at.since(now).0.max(now.since(at).0) < HALF_A_DAY_MS;
    if near { clock(at) } else { local(at) }
}

fn clock_in(at: Timestamp, zone: &TimeZone) -> String {
    let time = zone.to_datetime(instant(at)).time();
    format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
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
        assert_eq!(rfc3339(Timestamp(1_767_323_045_678)), "2026-01-02T03:04:05.678Z");
        assert_eq!(rfc3339(Timestamp(1_767_323_045_000)), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn the_clock_is_that_of_the_zone() {
        let at = Timestamp(1_767_323_045_678);
        assert_eq!(clock_in(at, &TimeZone::UTC), "03:04:05");
        assert_eq!(clock_in(at, &TimeZone::fixed(jiff::tz::offset(2))), "05:04:05");
    }

    #[test]
    fn times_out_of_range_do_no_harm() {
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999"));
        assert!(!clock(Timestamp(i64::MIN)).is_empty());
    }
}
