//! Durations, sizes and money as people write them.
//!
//! Integer arithmetic throughout: an overflow is an error, never a wrapped number. Errors say how
//! to write the value correctly.

use piton_core::Millis;
use piton_core::complexity::Complexity;

/// Longest duration, ten years: sums with timestamps cannot overflow.
pub const DURATION_MAX: Millis = Millis(10 * 365 * 24 * 3_600_000);
/// Largest size, an exbibyte: no disk holds more, and sums of a few stay within 64 bits.
pub const SIZE_BYTES_MAX: u64 = 1 << 60;
/// Largest amount of money in millionths of a dollar: a trillion dollars is a typing error.
pub const MONEY_MICROS_MAX: u64 = 1_000_000_000_000_000_000;

/// Most decimals of a number: nothing here is finer than a millionth.
const DECIMALS_MAX: usize = 6;

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong.
    pub message: String,
    /// How to write it correctly.
    pub hint: String,
}

const DURATION_HINT: &str =
    "write a number with a unit, such as \"500ms\", \"90s\", \"45m\", \"1h30m\" or \"2d\"";
const SIZE_HINT: &str = "write a number with a unit, such as \"64MB\" or \"1GiB\"";
const MONEY_HINT: &str = "write dollars, such as \"12.50\"";

/// The error for a text that is not what it should be.
fn not(what: &str, text: &str, why: &str, hint: &str) -> Error {
    let text = crate::diagnostic::quoted(text);
    Error { message: format!("{text} is not {what}: {why}"), hint: hint.to_owned() }
}

/// Reads a duration: `500ms`, `90s`, `45m`, `1h30m`, `1.5h`, `2d`.
pub fn parse_duration(text: &str) -> Result<Millis, Error> {
    let bad = |why: &str| not("a duration", text, why, DURATION_HINT);
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad("it is empty"));
    }
    let mut total: u128 = 0;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let (millionths, after) = number(rest).map_err(|why| bad(&why))?;
        let unit_len = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_len);
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "" => return Err(bad("the unit is missing")),
            other => return Err(bad(&format!("`{other}` is not a unit"))),
        };
        if unit_ms >= smallest {
            return Err(bad("write units from large to small, each once"));
        }
        smallest = unit_ms;
        total = total.saturating_add(millionths.saturating_mul(unit_ms.into()));
        rest = next.trim_start();
    }
    match u64::try_from(total / 1_000_000) {
        Ok(ms) if ms <= DURATION_MAX.0 => Ok(Millis(ms)),
        _ => Err(bad("it is longer than ten years")),
    }
}

/// Reads a size in bytes: `64MB`, `1GiB`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let bad = |why: &str| not("a size", text, why, SIZE_HINT);
    let (millionths, unit) = number(text.trim()).map_err(|why| bad(&why))?;
    let unit_bytes: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        other => return Err(bad(&format!("`{other}` is not a unit"))),
    };
    match u64::try_from(millionths.saturating_mul(unit_bytes.into()) / 1_000_000) {
        Ok(bytes) if bytes <= SIZE_BYTES_MAX => Ok(bytes),
        _ => Err(bad("it is too large")),
    }
}

/// Reads dollars into millionths: `12.50`.
pub fn parse_money(text: &str) -> Result<u64, Error> {
    let bad = |why: &str| not("an amount of money", text, why, MONEY_HINT);
    let (micros, rest) = number(text.trim()).map_err(|why| bad(&why))?;
    if !rest.is_empty() {
        return Err(bad("only digits and a point are allowed"));
    }
    match u64::try_from(micros) {
        Ok(micros) if micros <= MONEY_MICROS_MAX => Ok(micros),
        _ => Err(bad("it is too large")),
    }
}

/// Reads how complex something is: `8.5`.
pub fn parse_complexity(text: &str) -> Result<Complexity, Error> {
    let bad = |why: &str| not("a number", text, why, "write a number such as 8 or 8.5");
    text.parse().map_err(|()| bad("digits and a point are expected"))
}

/// The decimal number that a text begins with, in millionths, and what follows it; or why it is none.
fn number(text: &str) -> Result<(u128, &str), String> {
    if text.starts_with('-') {
        return Err("it is negative".to_owned());
    }
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
    let (number, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let grouped = whole.replace('_', "");
    if whole.starts_with('_') || !digits(&grouped) || !digits(decimals) {
        return Err("a number is expected".to_owned());
    }
    if decimals.len() > DECIMALS_MAX {
        let count = decimals.len();
        return Err(format!("it has {count} digits after the point; use at most {DECIMALS_MAX}"));
    }
    // What has more digits than that is too large for all uses.
    let part = |text: &str| text.parse::<u128>().unwrap_or(u128::MAX);
    let decimals = part(&format!("{decimals:0<DECIMALS_MAX$}"));
    let millionths = part(&grouped).saturating_mul(1_000_000).saturating_add(decimals);
    Ok((millionths, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        for (text, ms) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("45m", 2_700_000),
            ("1h30m", 5_400_000),
            ("1h 30m 5s", 5_405_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
            ("10 min", 600_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Millis(ms)), "{text}");
        }
    }

    #[test]
    fn bad_durations_say_why() {
        for (text, why) in [
            ("", "empty"),
            ("45", "the unit is missing"),
            ("45 minutes", "`minutes` is not a unit"),
            ("-5m", "negative"),
            ("m", "a number is expected"),
            ("5m1h", "large to small"),
            ("5s5s", "large to small"),
            ("4000d", "ten years"),
            ("99999999999999999999999999999d", "ten years"),
            ("1..5s", "a number is expected"),
            ("1.s", "a number is expected"),
            ("_1s", "a number is expected"),
            ("1.2345678901234567s", "it has 16 digits after the point; use at most 6"),
        ] {
            let error = parse_duration(text).err().map(|e| e.message).unwrap_or_default();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_and_money() {
        assert_eq!(parse_size("64MB"), Ok(64_000_000));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("1.5kB"), Ok(1_500));
        assert_eq!(parse_size("4096"), Ok(4096));
        for bad in ["", "MB", "-1MB", "5XB", "99999999999TB", "9999999999999999999999999"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_money("12.50"), Ok(12_500_000));
        assert_eq!(parse_money("0.000001"), Ok(1));
        for bad in ["", "-1", "1e5", "12,50", "1.2345678", "99999999999999999999", "$5"] {
            assert!(parse_money(bad).is_err(), "{bad}");
        }
        let long = parse_money("12.1234567").map_err(|error| error.message);
        assert!(
            long.is_err_and(|why| {
                why.ends_with("it has 7 digits after the point; use at most 6")
            })
        );
    }
}
