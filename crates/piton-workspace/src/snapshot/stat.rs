//! What tells that a file did not change since it was read: size, times, inode, mode.
//!
//! A change within the clock tick of the one before leaves no trace in these, so what is as young
//! as the reading is remembered as unknown ("smudged") and read again the next time.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType};

/// Kernels stamp files with the time of the last tick; the slowest ticks a hundred times a second.
const TICK_NS: i64 = 10_000_000;
/// File systems without fractions of a second count in steps of up to two seconds.
const COARSE_NS: i64 = 2_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// The identity of a file's content, as far as the file system tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) ino: u64,
    pub(crate) mode: u32,
}

impl Stat {
    /// From what the system reports.
    #[expect(
        clippy::useless_conversion,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the types of these fields differ between systems; sizes are never negative"
    )]
    pub(crate) fn new(stat: &rustix::fs::Stat) -> Self {
        let ns = |seconds: i64, ns: i64| seconds.wrapping_mul(SECOND_NS).wrapping_add(ns);
        Self {
            size: stat.st_size as u64,
            mtime: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ino: u64::from(stat.st_ino),
            mode: u32::from(stat.st_mode),
        }
    }

    /// Of a path, links not followed; `None` where there is nothing.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|s| Self::new(&s))
    }

    /// Of what a path leads to.
    pub(crate) fn followed(path: &Path) -> Option<Self> {
        rustix::fs::stat(path).ok().map(|s| Self::new(&s))
    }

    /// What kind of file it is.
    pub(crate) fn file_type(&self) -> FileType {
        #[expect(clippy::useless_conversion, reason = "the type differs between systems")]
        FileType::from_raw_mode(self.mode.try_into().unwrap_or_default())
    }

    /// Permissions with setuid, setgid and sticky.
    pub(crate) fn perm(&self) -> u32 {
        self.mode & 0o7777
    }

    /// Itself, or an identity that nothing equals if a later change might look the same.
    pub(crate) fn settled(self, started: i64) -> Self {
        let coarse = self.mtime % SECOND_NS == 0 && self.ctime % SECOND_NS == 0;
        let window = if coarse { COARSE_NS } else { TICK_NS };
        if self.mtime.max(self.ctime) >= started.saturating_sub(window) {
            return Self { mtime: i64::MIN, ctime: i64::MIN, ..self };
        }
        self
    }

    /// Whether anything equals it.
    pub(crate) fn is_settled(&self) -> bool {
        self.mtime != i64::MIN
    }
}

/// Now, on the clock that files are stamped with.
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_young_as_the_reading_is_never_trusted() {
        let old =
            Stat { size: 1, mtime: 5 * SECOND_NS + 1, ctime: 5 * SECOND_NS + 1, ..Stat::default() };
        assert_eq!(old.settled(5 * SECOND_NS + TICK_NS + 2), old);
        assert_ne!(old.settled(5 * SECOND_NS + TICK_NS), old);
        let coarse = Stat { mtime: 5 * SECOND_NS, ctime: 5 * SECOND_NS, ..old };
        assert_ne!(coarse.settled(6 * SECOND_NS), coarse);
        assert_eq!(coarse.settled(8 * SECOND_NS), coarse);
    }
}
