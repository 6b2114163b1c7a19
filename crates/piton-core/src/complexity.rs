//! How complex a phase is, as its author says it.

use serde::{Deserialize, Serialize};

/// How complex a phase is, in hundredths: authors write `8.5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Complexity(pub u32);

impl Complexity {
    /// A whole number.
    pub const fn whole(value: u32) -> Self {
        Self(value.saturating_mul(100))
    }
}

impl std::fmt::Display for Complexity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{}", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02}"),
        }
    }
}

impl std::str::FromStr for Complexity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let is_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(part) {
            return Err(());
        }
        let hundredths: String = part.chars().chain("00".chars()).take(2).collect();
        let whole: u32 = whole.parse().map_err(|_| ())?;
        let whole = whole.checked_mul(100).ok_or(())?;
        whole.checked_add(hundredths.parse().map_err(|_| ())?).map(Self).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complexity_is_read_as_authors_write_it() {
        for (text, hundredths, shown) in
            [("8", 800, "8"), ("8.5", 850, "8.5"), ("10.25", 1025, "10.25"), ("7.123", 712, "7.12")]
        {
            assert_eq!(text.parse(), Ok(Complexity(hundredths)));
            assert_eq!(Complexity(hundredths).to_string(), shown);
        }
        for bad in ["", "high", "-1", ".5", "8,5", "99999999999"] {
            assert_eq!(bad.parse::<Complexity>(), Err(()), "{bad}");
        }
    }
}
