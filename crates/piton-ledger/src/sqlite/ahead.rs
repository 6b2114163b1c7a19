//! Room for the WAL ahead of its end.
//!
//! A commit that makes the WAL longer has the file system sync where the file ends too, which takes
//! twice as long as one that writes over what is there. So a connection that commits again and again
//! writes zeros ahead, some hundred kilobytes at once. SQLite goes by what the frames say: zeros are
//! no frame, and a WAL that is read after a crash ends before them.
//!
//! Nothing rests on it. Whatever goes wrong here, the commit goes on as if there was no room.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use super::frozen;

/// Bytes written ahead at once: room for some twenty commits of a driver, and soon written.
const ROOM: u64 = 256 << 10;

/// Commits that make the WAL longer before room is made: a command that only records something and
/// ends has no use for it.
const COMMITS_BEFORE: u32 = 2;

/// The size up to which room is made. SQLite starts over at its beginning after 1,000 pages, about
/// 4 MB; one that grows beyond does so because a reader stands in the way.
const SIZE_MAX: u64 = 5 << 20;

/// What one connection knows of the WAL.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    wal: Option<File>,
    /// How long the file was when it was looked at last.
    size: u64,
    /// Commits that made it longer than that.
    grown: u32,
}

impl Ahead {
    /// Makes room if the last commit had none. Only within a write transaction: nobody else writes
    /// to the file then.
    pub(super) fn make_room(&mut self, database: &Path) {
        let Some(size) = self.look(database) else { return };
        if size <= self.size {
            return;
        }
        self.size = size;
        self.grown += 1;
        if self.grown > COMMITS_BEFORE && size < SIZE_MAX {
            self.size += self.write(size);
        }
    }

    /// The size of the file, while it has a name.
    fn look(&mut self, database: &Path) -> Option<u64> {
        if self.wal.is_none() {
            // SQLite has no locks on this one that closing it could drop.
            self.wal = OpenOptions::new().write(true).open(frozen::wal(database)).ok();
        }
        let found = self.wal.as_ref()?.metadata().ok().filter(|found| found.nlink() > 0);
        if found.is_none() {
            *self = Self::default();
        }
        found.map(|found| found.len())
    }

    /// Writes zeros from there on; how many.
    fn write(&self, from: u64) -> u64 {
        static ZEROS: [u8; ROOM as usize] = [0; ROOM as usize];
        let written = self.wal.as_ref().map(|wal| wal.write_all_at(&ZEROS, from));
        if matches!(written, Some(Ok(()))) { ROOM } else { 0 }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use crate::{Ledger as _, Open, Sqlite};

    #[test]
    fn a_connection_that_goes_on_finds_room_and_what_follows_a_fall_ends_before_it() {
        let home = tempfile::tempdir().unwrap();
        let wal = home.path().join("ledger.db-wal");
        let size = || fs::metadata(&wal).unwrap().len();
        let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
        ledger.put_blob("0", b"0").unwrap();
        let first = size();
        assert!(first < super::ROOM, "nothing is written ahead for a single commit");

        let name = |number: u32| format!("blob {number}");
        for number in 0..6 {
            ledger.put_blob(&name(number), name(number).as_bytes()).unwrap();
        }
        let with_room = size();
        assert!(with_room > super::ROOM && with_room < super::ROOM + 10 * first);
        for number in 6..12 {
            ledger.put_blob(&name(number), name(number).as_bytes()).unwrap();
        }
        assert_eq!(size(), with_room, "there was room for all of them");

        // As a killed process leaves it: the database, and a WAL without its index.
        let fallen = tempfile::tempdir().unwrap();
        for file in ["ledger.db", "ledger.db-wal"] {
            fs::copy(home.path().join(file), fallen.path().join(file)).unwrap();
        }
        let mut found = Sqlite::open(fallen.path(), Open::ReadWrite).unwrap();
        for number in 0..12 {
            assert_eq!(found.blob(&name(number)).unwrap().unwrap(), name(number).as_bytes());
        }
        found.put_blob("after", b"it goes on").unwrap();
        assert_eq!(found.blob("after").unwrap().unwrap(), b"it goes on");
    }
}
