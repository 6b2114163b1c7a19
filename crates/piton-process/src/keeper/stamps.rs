//! The clock that files are stamped with.
//!
//! A kernel stamps a file with the time of its last tick. Waiting for a tick between two parts of
//! an attempt makes the files of one distinguishable from those of the next.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The pause between two reads of the clock; a tick takes one to ten milliseconds.
const PAUSE: Duration = Duration::from_micros(500);
/// Most reads: a clock that is set back must not be waited for.
const LOOKS_MAX: u32 = 60;

/// Waits for a stamp that is later than every one given so far, and gives it, in nanoseconds since
/// 1970.
pub(super) fn past_now() -> i64 {
    let given = ns(clock_gettime(ClockId::Realtime));
    for _ in 0..LOOKS_MAX {
        let stamp = now();
        if stamp > given {
            return stamp;
        }
        thread::sleep(PAUSE);
    }
    now()
}

/// The stamp that a file gets now.
fn now() -> i64 {
    #[cfg(target_os = "linux")]
    return ns(clock_gettime(ClockId::RealtimeCoarse));
    #[cfg(not(target_os = "linux"))]
    return ns(clock_gettime(ClockId::Realtime));
}

fn ns(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// Lost, what an agent wrote last would count as written by its tests, or the other way round.
    #[test]
    fn what_was_written_before_is_stamped_before_and_what_comes_after_is_not() {
        let home = tempfile::tempdir().unwrap();
        let stamp_of = |name: &str| {
            fs::write(home.path().join(name), name).unwrap();
            let about = fs::metadata(home.path().join(name)).unwrap();
            about.ctime() * 1_000_000_000 + about.ctime_nsec()
        };
        for _ in 0..20 {
            let before = stamp_of("before");
            let between = past_now();
            let after = stamp_of("after");
            assert!(before < between && between <= after, "{before} {between} {after}");
        }
    }
}
