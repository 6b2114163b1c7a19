//! The clock: the system's, or one that stands still for tests of what depends on time.

use std::sync::OnceLock;

use piton_core::Timestamp;

/// The time that the clock shows for tests; unset, it is the system's.
static FIXED: OnceLock<Timestamp> = OnceLock::new();

/// Stops the clock of this process, for tests of what depends on time. Only debug builds can.
pub fn fix_clock(at: Timestamp) {
    if cfg!(debug_assertions) {
        // The first time that is set stays.
        let _ = FIXED.set(at);
    }
}

/// The time now.
pub fn now() -> Timestamp {
    if let Some(at) = FIXED.get() {
        return *at;
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
}
