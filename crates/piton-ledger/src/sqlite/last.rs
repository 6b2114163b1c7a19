//! The last commit to a run, noted outside of the database: in the file of the writers' lock.
//!
//! SQLite ends a WAL at its first frame with a wrong checksum and ignores the rest. A deleted WAL
//! or an older copy of the database looks just as sound. Commits are ordered, so if any is missing,
//! the last one is too: a ledger that lacks it is older than it was.
//!
//! The note is written after the commit is durable, while the lock is still held, and is not
//! synced. So it is never ahead of the ledger. After a power cut it may be behind, and notices
//! less.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};

use super::schema::Format;
use super::{WriteLock, natural, patiently};
use crate::files::LOCK_FILE;
use crate::{Error, Result, RunKey};

/// Bytes of the note. It is written twice: if it is read while it is written, or was torn, the two
/// copies differ.
const NOTE_BYTES: usize = 80;

/// The state of a run after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) run: RunKey,
    pub(super) epoch: u64,
    pub(super) seq: u64,
}

impl Last {
    /// Writes it in place of the previous one.
    pub(super) fn note(self, file: &File) {
        let mut text = format!("{} {} {}", self.run.0, self.epoch, self.seq);
        // Writing to a string has no way to fail.
        let _ = write!(text, "{:>1$}", '\n', NOTE_BYTES - text.len());
        // Without it, an older ledger is not noticed.
        let _ = file.write_all_at(text.repeat(2).as_bytes(), 0);
    }

    /// Reads the note.
    pub(super) fn noted(dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(dir.join(LOCK_FILE)).ok()?;
        let (note, double) = text.split_at_checked(NOTE_BYTES)?;
        let mut words = note.split_ascii_whitespace();
        let mut word = || words.next()?.parse::<u64>().ok();
        let (run, epoch, seq) = (word()?, word()?, word()?);
        (note == double).then_some(Self { run: RunKey(super::int(run)), epoch, seq })
    }
}

/// Refuses a ledger that lacks what was noted. The note must be read before the ledger, because
/// others append to the ledger.
pub(super) fn refuse_behind(
    conn: &Connection,
    path: &Path,
    noted: Option<Last>,
    format: Format,
) -> Result<()> {
    let Some(Last { run, epoch, seq }) = noted else { return Ok(()) };
    let detail = match patiently(|| stands(conn, run, format))? {
        Stands::At { epoch: e, seq: s, .. } if e >= epoch && s >= seq => return Ok(()),
        Stands::At { name, epoch: e, seq: s } => format!(
            "run {name} is at event {s} of driver {e}, but was already at event {seq} of driver {epoch}"
        ),
        Stands::Deleted => return Ok(()),
        Stands::Nowhere => "a run is missing that was in it".to_owned(),
    };
    Err(Error::Behind { path: path.to_owned(), detail })
}

/// Where a run of a ledger is.
enum Stands {
    At { name: String, epoch: u64, seq: u64 },
    Deleted,
    Nowhere,
}

fn stands(conn: &Connection, run: RunKey, format: Format) -> rusqlite::Result<Stands> {
    if format == Format::Empty {
        return Ok(Stands::Nowhere);
    }
    let sql = "SELECT coalesce(i.run_id, 'number ' || r.id), r.epoch, r.seq
               FROM runs r LEFT JOIN run_info i ON i.run = r.id WHERE r.id = ?1";
    let found = conn.query_row(sql, [run.0], |row| {
        let (epoch, seq) = (natural(row.get(1)?), natural(row.get(2)?));
        Ok(Stands::At { name: row.get(0)?, epoch, seq })
    });
    if let Some(found) = found.optional()? {
        return Ok(found);
    }
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'runs'";
    let newest: Option<i64> = conn.query_row(sql, (), |row| row.get(0)).optional()?;
    Ok(if newest >= Some(run.0) { Stands::Deleted } else { Stands::Nowhere })
}

/// Accepts the ledger in `dir` as it is now, because a person put an older copy there. Returns
/// whether that forgot something.
pub fn accept(dir: &Path) -> Result<bool> {
    let path = dir.join(LOCK_FILE);
    if !path.exists() {
        return Ok(false);
    }
    let lock = WriteLock::open(dir).map_err(Error::file("open", &path))?;
    let _held = lock.hold()?;
    let noted = Last::noted(dir).is_some();
    lock.file().set_len(0).map_err(Error::file("empty", &path))?;
    Ok(noted)
}
