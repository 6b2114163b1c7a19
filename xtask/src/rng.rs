//! Random moments that can be had again: a small generator started from a printed seed.
//!
//! `SplitMix64`, because it is ten lines and any seed is a good seed. Not for secrets.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A sequence of numbers that follows from its seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Starts the sequence of one round of a named loop: rounds can be had again one by one.
    pub(crate) fn of_round(seed: u64, name: &str, round: u64) -> Self {
        let name = name.bytes().fold(0_u64, |sum, byte| sum.rotate_left(7) ^ u64::from(byte));
        let mut rng = Self(seed ^ name.rotate_left(32));
        let offset = rng.next();
        let mut rng = Self(offset.wrapping_add(round.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        // Mixed once more: else a round would have the numbers of the one before, one place further.
        Self(rng.next())
    }

    /// A seed nobody had before, short enough to be typed.
    pub(crate) fn new_seed() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::from(since.subsec_nanos()) ^ since.as_secs()).next() % 1_000_000
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A time below so many milliseconds.
    pub(crate) fn millis_below(&mut self, end: u64) -> Duration {
        Duration::from_micros(self.below(end * 1000))
    }

    /// Puts items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(0);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_moments_again_and_rounds_differ() {
        let take = |round| Rng::of_round(7, "kill-driver", round).next();
        assert_eq!(take(3), take(3));
        assert_ne!(take(3), take(4));
        assert_ne!(take(3), Rng::of_round(7, "kill-all", 3).next());
    }
}
