//! Preallocated room at the end of the WAL.
//!
//! A commit that makes the WAL longer must also sync the file's size, which takes up to twice as
//! long as overwriting. So a driver that waits for a step writes zeros where the WAL will grow
//! before SQLite starts it over. SQLite does not read zeros as a frame, so a WAL that is read after
//! a crash ends before them.
//!
//! Nothing depends on it. If it fails, commits work as without it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use crate::files::wal;

/// Bytes written at once: more than a few commits need, and written while the shortest step runs.
const PIECE: usize = 256 << 10;

/// Commits before room is made: a command that only records something does not need it.
const COMMITS_BEFORE: u32 = 3;

/// The size up to which room is made. SQLite starts over with the next commit after 1,000 pages
/// (about 4 MB); a WAL grows beyond that only while a reader prevents it.
const SIZE_MAX: u64 = 4_400_000;

/// What one connection knows of the WAL.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    wal: Option<File>,
    commits: u32,
    is_enough: bool,
}

impl Ahead {
    /// Notes a commit.
    pub(super) fn committed(&mut self) {
        self.commits = self.commits.saturating_add(1);
    }

    /// Whether room would be of use.
    pub(super) fn is_wanted(&self) -> bool {
        self.commits >= COMMITS_BEFORE && !self.is_enough
    }

    /// Writes one piece at the end; says whether there is something to sync. Only within a write
    /// transaction: nobody else makes the file longer or shorter then.
    pub(super) fn extend(&mut self, database: &Path) -> bool {
        static ZEROS: [u8; PIECE] = [0; PIECE];
        let Some(size) = self.size(database).filter(|size| *size < SIZE_MAX) else {
            self.is_enough = true;
            return false;
        };
        let written = self.wal.as_ref().map(|wal| wal.write_all_at(&ZEROS, size));
        self.is_enough = !matches!(written, Some(Ok(())));
        !self.is_enough
    }

    /// Makes no more room.
    pub(super) fn stop(&mut self) {
        self.is_enough = true;
    }

    /// Makes the new size durable, so that no commit has to.
    pub(super) fn sync(&mut self) {
        let synced = self.wal.as_ref().map(File::sync_data);
        self.is_enough |= !matches!(synced, Some(Ok(())));
    }

    /// The size of the file, while it has a name.
    fn size(&mut self, database: &Path) -> Option<u64> {
        if self.wal.is_none() {
            // SQLite has no locks on this one that closing it could drop.
            self.wal = OpenOptions::new().write(true).open(wal(database)).ok();
        }
        let found = self.wal.as_ref()?.metadata().ok()?;
        (found.nlink() > 0).then_some(found.len())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Ledger as _, NewRun, Open, Owner, Sqlite};

    /// Lost: zeros might overwrite what another process just committed, or be read as frames.
    #[test]
    fn room_is_made_ahead_and_what_follows_a_fall_ends_before_it() {
        let home = tempfile::tempdir().unwrap();
        let wal = home.path().join("ledger.db-wal");
        let size = || fs::metadata(&wal).unwrap().len();
        let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
        let mut other = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
        let new = NewRun { run_id: "run", plan: "p", title: "t", root: "/", at: 1 };
        let run = ledger.create_run(&new, &Owner::current()).unwrap().run;
        ledger.put_blob("0", b"0").unwrap();
        ledger.make_room(run, 1);
        let first = size();
        assert!(first < PIECE as u64, "nothing is written ahead for a single commit");

        let name = |number: u32| format!("blob {number}");
        for number in 0..12 {
            let writer = if number % 3 == 0 { &mut other } else { &mut ledger };
            writer.put_blob(&name(number), name(number).as_bytes()).unwrap();
            ledger.make_room(run, 1);
        }
        let with_room = size();
        assert!(with_room > 4 * PIECE as u64);
        for number in 12..20 {
            ledger.put_blob(&name(number), name(number).as_bytes()).unwrap();
        }
        assert_eq!(size(), with_room, "there was room for all of them");
        for _ in 0..40 {
            ledger.make_room(run, 1);
        }
        assert!(size() < SIZE_MAX + PIECE as u64);

        // As a killed process leaves it: the database, and a WAL without its index.
        let fallen = tempfile::tempdir().unwrap();
        for file in ["ledger.db", "ledger.db-wal"] {
            fs::copy(home.path().join(file), fallen.path().join(file)).unwrap();
        }
        let mut found = Sqlite::open(fallen.path(), Open::ReadWrite).unwrap();
        for number in 0..20 {
            assert_eq!(found.blob(&name(number)).unwrap().unwrap(), name(number).as_bytes());
        }
        found.put_blob("after", b"it goes on").unwrap();
        assert_eq!(found.blob("after").unwrap().unwrap(), b"it goes on");
    }
}
