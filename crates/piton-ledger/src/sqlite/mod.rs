//! The embedded ledger: one SQLite file in WAL mode, every commit synced.
//!
//! This file opens the database and wraps reads and writes in transactions; the statements are in
//! the modules below. Writers queue on a file lock before BEGIN IMMEDIATE, so SQLite's own lock is
//! free; readers never wait for writers. No read transaction outlives its call, because it would
//! prevent the WAL from being reset.

mod history;
mod inbox;
mod last;
mod leases;
mod lock;
pub(crate) mod schema;
mod sound;
mod store;
mod wal;

use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use last::Last;
pub use last::accept;
use lock::{PATIENCE, WriteLock};
use schema::Format;
use wal::WAL_BYTES_MAX;

use crate::files::{DATABASE_FILE, is_unwritable};
use crate::{Error, Ledger, Liveness, Owner, Result, owner_liveness};

/// Commits between two looks at the size of the WAL. SQLite checkpoints by itself; this is only
/// the safety net for a WAL that readers kept from being reset.
const WAL_LOOK_EVERY: u32 = 64;

/// The pause between attempts when SQLite reports a lock without having waited itself.
const RETRY_PAUSE: Duration = Duration::from_millis(2);

/// Prepared statements kept; more than there are different ones.
const STATEMENTS_MAX: usize = 48;

/// How to open a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// For reading and writing; created if it does not exist.
    ReadWrite,
    /// For reading, as cheaply as possible; [`Error::NoLedger`] if it does not exist.
    ReadOnly,
}

/// A connection to an embedded ledger. One per thread; any number per machine.
#[derive(Debug)]
pub struct Sqlite {
    conn: Connection,
    path: PathBuf,
    /// Which file it is: device and inode.
    identity: Option<(u64, u64)>,
    /// Present only in a connection that may write.
    lock: Option<WriteLock>,
    /// The `data_version` seen last.
    seen: Option<i64>,
    /// Commits of this connection, modulo [`WAL_LOOK_EVERY`].
    commits: u32,
    /// The size from which the WAL is emptied next; grows while a reader prevents it.
    wal_bytes_max: u64,
    /// Whether it wrote something that is not yet checkpointed into the database.
    uncarried: bool,
    /// Whether it took a lease and did not give it up. Another process may hold it by now.
    leased: bool,
    /// The damage that was found: nothing is written after that.
    damage: RefCell<Option<String>>,
}

/// Opens the ledger in a folder.
pub fn open(dir: &Path, mode: Open) -> Result<Box<dyn Ledger>> {
    Ok(Box::new(Sqlite::open(dir, mode)?))
}

impl Sqlite {
    /// Opens the ledger in `dir`, judging owners by [`owner_liveness`].
    pub fn open(dir: &Path, mode: Open) -> Result<Self> {
        Self::open_with(dir, mode, &owner_liveness)
    }

    /// Opens the ledger in `dir`. If the format must change, `alive` judges the owners of leases:
    /// it must not change while a driver of an older program lives.
    pub fn open_with(dir: &Path, mode: Open, alive: &dyn Fn(&Owner) -> Liveness) -> Result<Self> {
        let path = dir.join(DATABASE_FILE);
        let last = Last::noted(dir);
        let opened = match mode {
            Open::ReadOnly => open_for_reading(dir, &path, last).map(|conn| (conn, None, false)),
            Open::ReadWrite => open_for_writing(dir, &path, last, alive)
                .map(|(conn, lock, made)| (conn, Some(lock), made)),
        };
        let (conn, lock, uncarried) = opened.map_err(|error| error.in_file(&path))?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let identity = identity(&path);
        Ok(Self {
            conn,
            path,
            identity,
            lock,
            seen: None,
            commits: 0,
            wal_bytes_max: WAL_BYTES_MAX,
            uncarried,
            leased: false,
            damage: RefCell::new(None),
        })
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The raw connection, for checks and copies.
    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    /// Runs a query that may have to be repeated.
    fn read<T>(&self, mut query: impl FnMut(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        patiently(|| query(&self.conn)).map_err(|error| self.noted(error.into()))
    }

    /// Sorts an error, and remembers damage.
    fn noted(&self, error: Error) -> Error {
        let error = error.in_file(&self.path);
        if let Error::Corrupt { detail, .. } = &error {
            self.damage.borrow_mut().get_or_insert_with(|| detail.clone());
        }
        error
    }

    /// Runs several queries as of one moment.
    pub(crate) fn read_at_once<T>(
        &self,
        mut queries: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.read(|conn| {
            let transaction = conn.unchecked_transaction()?;
            let result = queries(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }

    /// Runs `change` in one synced commit, or not at all.
    fn write<T>(&mut self, change: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.write_and(false, |conn| Ok((change(conn)?, None)))
    }

    /// The same, and notes the state of a run after it. With `release`, it then checkpoints the WAL
    /// into the database while it still holds the lock, so that a process that is stopped during
    /// the checkpoint cannot continue it later beside others.
    fn write_and<T>(
        &mut self,
        release: bool,
        change: impl FnOnce(&Connection) -> Result<(T, Option<Last>)>,
    ) -> Result<T> {
        if let Some(detail) = self.damage.borrow().as_ref() {
            return Err(sound::damaged(&self.path, detail));
        }
        let lock = self.lock.as_ref().ok_or(Error::ReadOnly)?;
        let held = lock.hold()?;
        if identity(&self.path) != self.identity {
            // SQLite would keep writing to a deleted file that nobody will ever read.
            let gone = std::io::Error::other("it was deleted or replaced while it was in use");
            return Err(Error::file("continue with", &self.path)(gone));
        }
        let (result, last) = commit(&self.conn, change).map_err(|error| self.noted(error))?;
        if let Some(last) = last {
            last.note(lock.file());
        }
        self.uncarried = true;
        if release {
            // Readers may prevent it, and nothing depends on it.
            wal::empty(&self.conn, Duration::ZERO);
            (self.uncarried, self.leased) = (false, false);
        } else if self.commits == 0 {
            wal::bound(&self.conn, &self.path, &mut self.wal_bytes_max);
        }
        drop(held);
        self.commits = (self.commits + 1) % WAL_LOOK_EVERY;
        Ok(result)
    }
}

impl Drop for Sqlite {
    /// Checkpoints what was written without a lease. The holder of a lease does that when giving it
    /// up, and a driver that was taken over must not touch anything.
    fn drop(&mut self) {
        if !self.uncarried || self.leased || self.damage.borrow().is_some() {
            return;
        }
        // Best effort: the WAL is committed, and the next writer checkpoints it.
        let held = self.lock.as_ref().map(WriteLock::hold_if_free);
        if let Some(Ok(Some(_held))) = held
            && identity(&self.path) == self.identity
        {
            wal::empty(&self.conn, Duration::ZERO);
        }
    }
}

/// The file that a path leads to, if it exists.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Opens without writing anything. A WAL database needs its index file even for reading, hence
/// the ordinary flags.
fn open_for_reading(dir: &Path, path: &Path, last: Option<Last>) -> Result<Connection> {
    let missing = || Error::NoLedger { dir: dir.to_owned() };
    let conn = match connect(path, OpenFlags::empty()) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            return Err(why_unopened(dir, path, error));
        }
        other => other?,
    };
    let format = patiently(|| schema::format(&conn))?;
    match format {
        Format::Empty => Err(missing()),
        Format::Foreign => Err(foreign(path)),
        Format::Version(found) if found > schema::KNOWN => {
            Err(Error::Newer { found, known: schema::KNOWN })
        }
        Format::Version(_) => {
            sound::refuse_cut(&conn, path)?;
            last::refuse_behind(&conn, path, last, format)?;
            Ok(conn)
        }
    }
}

/// Why a database could not be opened: a file without read permission is not a missing one.
fn why_unopened(dir: &Path, path: &Path, error: rusqlite::Error) -> Error {
    // By name, not by opening it: closing a file would drop SQLite's locks on it.
    let seen = fs::symlink_metadata(path).and_then(|_| {
        rustix::fs::access(path, rustix::fs::Access::READ_OK).map_err(std::io::Error::from)
    });
    match seen {
        Ok(()) => error.into(),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            Error::NoLedger { dir: dir.to_owned() }
        }
        Err(source) => Error::Unreadable { path: path.to_owned(), source },
    }
}

/// Opens for writing; creates, completes or migrates the ledger if needed, and returns whether it
/// did.
fn open_for_writing(
    dir: &Path,
    path: &Path,
    last: Option<Last>,
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<(Connection, WriteLock, bool)> {
    let lock = match WriteLock::open(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            create_directory(dir)?;
            WriteLock::open(dir)
        }
        other => other,
    }
    .map_err(|error| {
        if is_unwritable(&error) {
            return Error::Unwritable { path: dir.to_owned(), source: error };
        }
        Error::file("open the lock file in", dir)(error)
    })?;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    let mut made = false;
    let look = || Ok((schema::format(&conn)?, journal_mode(&conn)?));
    let (format, journal) = patiently(look)?;
    match format {
        Format::Foreign => return Err(foreign(path)),
        Format::Version(found) if found > schema::KNOWN => {
            return Err(Error::Newer { found, known: schema::KNOWN });
        }
        Format::Version(schema::KNOWN) if journal == "wal" => {
            sound::look(&conn, path)?;
            last::refuse_behind(&conn, path, last, format)?;
        }
        Format::Version(_) | Format::Empty => {
            let held = lock.hold()?;
            sound::look(&conn, path)?;
            last::refuse_behind(&conn, path, last, format)?;
            establish(&conn, dir, path, alive)?;
            made = true;
            drop(held);
        }
    }
    // Explicit, though most builds have it as the default: durability depends on it.
    conn.execute_batch("PRAGMA synchronous = FULL")?;
    Ok((conn, lock, made))
}

/// Makes an empty or older file a current ledger. Each step can be repeated, so that the next
/// process completes what a crash interrupted.
fn establish(
    conn: &Connection,
    dir: &Path,
    path: &Path,
    alive: &dyn Fn(&Owner) -> Liveness,
) -> Result<()> {
    // By name, not through a file handle: closing one would drop SQLite's locks on the file. The
    // WAL and its index inherit the mode.
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(Error::file("restrict", path))?;
    let journal: String =
        patiently(|| conn.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)))?;
    if journal != "wal" {
        let reason = std::io::Error::from(std::io::ErrorKind::Unsupported);
        return Err(Error::file("use a write-ahead log beside", path)(reason));
    }
    conn.execute_batch("PRAGMA synchronous = FULL")?;
    schema::migrate(conn, schema::MIGRATIONS, alive)?;
    sync_directory(dir)?;
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_directory(Path::new(".")),
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

/// Creates the ledger's directory for its user alone; parents as the user's umask says.
fn create_directory(dir: &Path) -> Result<()> {
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(source) if is_unwritable(&source) => {
            let path = dir.parent().unwrap_or(dir).to_owned();
            Err(Error::Unwritable { path, source })
        }
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::file("create", dir)(error))
        }
        _ => Ok(()),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|file| file.sync_all()).map_err(Error::file("sync", dir))
}

/// Opens the file and sets what costs no query.
fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(PATIENCE)?;
    // By default, the last connection to close checkpoints and deletes the WAL. That would slow
    // down readers, and a driver that was taken over must not touch anything. Writers checkpoint
    // it, with the lock.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Off: we delete rows ourselves, and each check would slow down the hot path.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    Ok(conn)
}

fn journal_mode(conn: &Connection) -> rusqlite::Result<String> {
    conn.query_row("PRAGMA journal_mode", (), |row| row.get(0))
}

fn foreign(path: &Path) -> Error {
    Error::Corrupt { path: path.to_owned(), detail: "it is the database of another program".into() }
}

/// Repeats an operation while it finds a lock, up to a limit.
///
/// SQLite itself waits for most locks, but not during recovery after a crash, the change to WAL, or
/// with a crowded WAL index.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let mut started = None;
    loop {
        let error = match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let started = started.get_or_insert_with(Instant::now);
        if !is_lock(&error) || started.elapsed() >= PATIENCE {
            return Err(error);
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Whether an error is a lock that another process holds.
fn is_lock(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::FileLockingProtocolFailed)
    )
}

/// Runs `change` in a transaction. In WAL mode only its start can find a lock.
fn commit<T>(conn: &Connection, change: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    patiently(|| conn.prepare_cached("BEGIN IMMEDIATE")?.execute(()))?;
    let result = change(conn).and_then(|value| {
        conn.prepare_cached("COMMIT")?.execute(())?;
        Ok(value)
    });
    if result.is_err() && !conn.is_autocommit() {
        conn.prepare_cached("ROLLBACK")?.execute(())?;
    }
    result
}

/// Our numbers to SQLite's; sequences and epochs never come near the limit.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// SQLite's numbers to ours; none of these columns is ever negative.
fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;

    /// Lost: one forgotten reader would let the WAL fill the disk, or stop every writer.
    #[test]
    fn an_outgrown_wal_is_emptied_and_a_reader_only_delays_that() {
        let home = tempfile::tempdir().unwrap();
        let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
        let wal_bytes = || fs::metadata(home.path().join("ledger.db-wal")).unwrap().len();
        let reader = connect(ledger.path(), OpenFlags::empty()).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM blobs").unwrap();

        (ledger.wal_bytes_max, ledger.commits) = (1, 0);
        ledger.put_blob("one", &[1; 10_000]).unwrap();
        assert!(wal_bytes() > 10_000);
        assert_eq!(ledger.wal_bytes_max, wal_bytes() * 2);

        reader.execute_batch("COMMIT").unwrap();
        (ledger.wal_bytes_max, ledger.commits) = (1, 0);
        ledger.put_blob("two", &[2; 10_000]).unwrap();
        assert_eq!((wal_bytes(), ledger.wal_bytes_max), (0, WAL_BYTES_MAX));
        assert_eq!(ledger.blob("one").unwrap().unwrap(), [1; 10_000]);
    }

    /// Lost: a driver would acknowledge into a file that a person has deleted.
    #[test]
    fn a_ledger_deleted_under_us_acknowledges_nothing() {
        let home = tempfile::tempdir().unwrap();
        let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
        ledger.put_blob("before", b"").unwrap();
        fs::remove_file(ledger.path()).unwrap();
        let refused = ledger.put_blob("after", b"").unwrap_err();
        assert!(refused.to_string().contains("deleted"), "{refused}");
    }

    #[test]
    fn a_failed_write_leaves_no_transaction_open() {
        let home = tempfile::tempdir().unwrap();
        let mut ledger = Sqlite::open(home.path(), Open::ReadWrite).unwrap();
        let failed = ledger.write(|conn| {
            conn.execute("INSERT INTO blobs VALUES ('half', x'')", ())?;
            Err::<(), _>(Error::NoRun)
        });
        assert!(matches!(failed, Err(Error::NoRun)));
        assert!(ledger.conn.is_autocommit());
        assert_eq!(ledger.blob("half").unwrap(), None);
        ledger.put_blob("whole", b"").unwrap();
    }
}
