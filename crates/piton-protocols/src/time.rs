//! Times as protocol files write them.
//!
//! Read with any offset, with or without fractions, `T` or a space; written in UTC.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use piton_core::Timestamp;

/// Reads a time; one without an offset is UTC.
pub fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp(at.as_millisecond()));
    }
    let civil = text.parse::<DateTime>().ok().or_else(|| {
        let date: Date = text.parse().ok()?;
        Some(date.at(0, 0, 0, 0))
    })?;
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp(zoned.timestamp().as_millisecond()))
}

/// Writes a time: `2025-12-27T10:30:00.000Z`.
///
/// Always with milliseconds: then the order of the texts is the order of the times.
pub fn write(at: Timestamp) -> String {
    let t = utc(at);
    let (date, time) = ((t.month(), t.day()), (t.hour(), t.minute(), t.second()));
    let millis = t.subsec_nanosecond() / 1_000_000;
    // Not with a pattern, which is parsed each time: a run writes thousands of times.
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        t.year(),
        date.0,
        date.1,
        time.0,
        time.1,
        time.2
    )
}

/// Writes a time without milliseconds: `2025-12-27T10:30:00Z`.
pub fn write_seconds(at: Timestamp) -> String {
    utc(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The same as part of a name: `20251227-103000`.
pub fn stamp(at: Timestamp) -> String {
    utc(at).strftime("%Y%m%d-%H%M%S").to_string()
}

/// A time in the calendar.
fn utc(at: Timestamp) -> DateTime {
    // A time outside the calendar's range comes from a broken clock: the nearest valid one is used.
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or(if at.0 < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    });
    TimeZone::UTC.to_datetime(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_fractions_and_bare_times_are_read() {
        let wanted = Some(Timestamp(1_766_831_400_000));
        for text in [
            "2025-12-27T10:30:00Z",
            "2025-12-27T11:30:00+01:00",
            "2025-12-27T05:30:00-0500",
            "2025-12-27T10:30:00.000Z",
            "2025-12-27 10:30:00Z",
            "2025-12-27T10:30:00",
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        assert_eq!(read("2025-12-27"), Some(Timestamp(1_766_793_600_000)));
        assert_eq!(read("yesterday"), None);
    }

    #[test]
    fn times_are_written_in_utc() {
        let at = Timestamp(1_766_831_400_007);
        assert_eq!(write(at), "2025-12-27T10:30:00.007Z");
        assert_eq!(stamp(at), "20251227-103000");
        assert_eq!(read(&write(at)), Some(at));
        assert!(write(Timestamp(i64::MAX)).starts_with("9999-"));
        for at in [0, 1, 999, 1_000, 951_868_799_999, 1_766_831_400_007, 32_503_680_000_000] {
            let at = Timestamp(at);
            let pattern = utc(at).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
            assert_eq!(write(at), pattern);
        }
    }
}
