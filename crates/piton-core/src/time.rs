//! Time as values: instants come in from outside, nothing here reads a clock.

use serde::{Deserialize, Serialize};

/// A length of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// A point in time: milliseconds since the Unix epoch, UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Millis {
    /// A length of whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }
}

impl std::fmt::Display for Millis {
    /// Writes a length the way a person says it: `850ms`, `4.2s`, `3m 05s`, `2h 10m`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = self.0;
        let secs = ms / 1000;
        match ms {
            0..1000 => write!(f, "{ms}ms"),
            1000..60_000 => write!(f, "{secs}.{}s", ms % 1000 / 100),
            60_000..3_600_000 => write!(f, "{}m {:02}s", secs / 60, secs % 60),
            _ => write!(f, "{}h {:02}m", secs / 3600, secs % 3600 / 60),
        }
    }
}

impl Timestamp {
    /// The point `length` later.
    #[must_use]
    pub fn after(self, length: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(length.0))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Self) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_like_speech() {
        let said: Vec<String> =
            [7, 4_250, 185_000, 7_800_000].iter().map(|ms| Millis(*ms).to_string()).collect();
        assert_eq!(said, ["7ms", "4.2s", "3m 05s", "2h 10m"]);
    }

    #[test]
    fn a_clock_that_jumps_back_gives_no_negative_length() {
        assert_eq!(Timestamp(5).since(Timestamp(10)), Millis(0));
    }
}
