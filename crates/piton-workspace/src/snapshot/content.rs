//! Reads what the walk could not vouch for, and gives it ids.
//!
//! A file that changes under the reader is read again, a few times; one that never holds still is
//! listed as missed. Contents are read once, hashed and packed from the same bytes.

use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Error;
use super::convert::{self, Conversion};
use super::entry::{Kind, Why};
use super::stat::Stat;
use super::walk::{Body, Folder, Walk};
use crate::files::join;
use crate::objects::{self, Objects, Oid, Packed, There};

/// How often a file that changes while it is read is read.
const TRIES_MAX: usize = 4;
/// Files from which more threads pay for reading and packing.
const PARALLEL_MIN: usize = 64;
/// Packed files waiting to be appended; keeps memory small when the disk is slow.
const WAITING_MAX: usize = 32;

/// A file to be read: its place, its path.
pub(super) struct Task {
    folder: usize,
    entry: usize,
    pub(super) path: Vec<u8>,
    /// What it held in the last snapshot, which is durable.
    known: Oid,
    conversion: Conversion,
}

/// What came of reading a file.
pub(super) enum Outcome {
    Read { stat: Stat, oid: Oid, packed: Option<Packed>, convert: bool },
    Gone,
    Missed(Why, Stat),
}

/// Reads all dirty entries; the paths of those that hold something else than in the last snapshot.
pub(super) fn read_all(
    walk: &Walk<'_>,
    folders: &mut [Folder],
    objects: &mut Objects,
    scratch: &std::path::Path,
) -> Result<Vec<Vec<u8>>, Error> {
    let (mut tasks, mut changed) = (dirty(folders), Vec::new());
    if tasks.is_empty() {
        return Ok(changed);
    }
    convert::classify(walk, folders, &mut tasks)?;
    for round in 1..=TRIES_MAX {
        let mut converted = Vec::new();
        let outcomes = read(walk, &tasks, objects)?;
        for (task, outcome) in tasks.into_iter().zip(outcomes) {
            let Some(entry) = entry_of(folders, &task) else { continue };
            match outcome {
                Outcome::Gone => continue,
                Outcome::Missed(why, stat) => entry.miss(why, stat),
                Outcome::Read { stat, oid, convert, .. } => {
                    if walk.head.settings.file_mode && entry.kind != Kind::Link {
                        let exec = stat.mode & 0o100 != 0;
                        entry.kind = if exec { Kind::Exec } else { Kind::File };
                    }
                    if oid != task.known {
                        changed.push(task.path.clone());
                    }
                    (entry.stat, entry.oid, entry.raw) = (stat, oid, None);
                    if convert {
                        converted.push(task);
                        continue;
                    }
                }
            }
            entry.dirty = false;
        }
        tasks = clean(walk, folders, objects, scratch, converted, round == TRIES_MAX)?;
        if tasks.is_empty() {
            break;
        }
    }
    for folder in folders {
        if let Body::Listed(entries) = &mut folder.body {
            // What is still dirty went away before it could be read.
            entries.retain(|entry| !entry.dirty);
        }
    }
    Ok(changed)
}

impl Task {
    pub(super) fn set(&mut self, conversion: Conversion) {
        self.conversion = conversion;
    }
}

fn entry_of<'a>(folders: &'a mut [Folder], task: &Task) -> Option<&'a mut super::entry::Entry> {
    match &mut folders.get_mut(task.folder)?.body {
        Body::Listed(entries) => entries.get_mut(task.entry),
        Body::Same(_) => None,
    }
}

fn dirty(folders: &[Folder]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (place, folder) in folders.iter().enumerate() {
        let Body::Listed(entries) = &folder.body else { continue };
        for (at, entry) in entries.iter().enumerate().filter(|(_, e)| e.dirty) {
            let (path, known) = (join(&folder.path, &entry.name), entry.oid);
            tasks.push(Task {
                folder: place,
                entry: at,
                path,
                known,
                conversion: Conversion::None,
            });
        }
    }
    tasks
}

/// Lets git convert what it would convert; returns what changed in the meantime.
fn clean(
    walk: &Walk<'_>,
    folders: &mut [Folder],
    objects: &mut Objects,
    scratch: &std::path::Path,
    tasks: Vec<Task>,
    last: bool,
) -> Result<Vec<Task>, Error> {
    if tasks.is_empty() {
        return Ok(tasks);
    }
    let paths: Vec<&[u8]> = tasks.iter().map(|t| t.path.as_slice()).collect();
    let cleaned = convert::clean(walk, scratch, &paths, objects)?;
    let mut again = Vec::new();
    for (task, cleaned) in tasks.into_iter().zip(cleaned) {
        let now = Stat::at(&walk.full(&task.path));
        let Some(entry) = entry_of(folders, &task) else { continue };
        if now == Some(entry.stat) {
            entry.filter_failed = cleaned.is_none();
            if let Some(oid) = cleaned.filter(|oid| *oid != entry.oid) {
                entry.raw = Some(entry.oid);
                entry.oid = oid;
            }
            entry.dirty = false;
        } else if last {
            entry.miss(Why::Unstable, Stat::default());
            entry.dirty = false;
        } else {
            again.push(task);
        }
    }
    Ok(again)
}

fn read(walk: &Walk<'_>, tasks: &[Task], objects: &mut Objects) -> Result<Vec<Outcome>, Error> {
    if tasks.len() < PARALLEL_MIN {
        let mut outcomes = Vec::with_capacity(tasks.len());
        for task in tasks {
            let outcome = one(walk, task, &objects.there)?;
            outcomes.push(take(outcome, objects)?);
        }
        return Ok(outcomes);
    }
    let threads = super::walk::cores();
    let there = std::mem::take(&mut objects.there);
    let next = AtomicUsize::new(0);
    let mut outcomes: Vec<Option<Outcome>> = tasks.iter().map(|_| None).collect();
    let done = thread::scope(|scope| {
        let (send, receive) = sync_channel(WAITING_MAX);
        let mut readers = 0;
        for _ in 0..threads {
            let (send, next, there) = (send.clone(), &next, &there);
            let read = move || reader(walk, tasks, next, there, &send);
            readers += usize::from(thread::Builder::new().spawn_scoped(scope, read).is_ok());
        }
        drop(send);
        // Where no thread can be started, this one reads.
        let alone = tasks.iter().enumerate().filter(|_| readers == 0);
        for (at, task) in alone {
            outcomes[at] = Some(take(one(walk, task, &there)?, objects)?);
        }
        for (at, outcome) in receive {
            outcomes[at] = Some(take(outcome?, objects)?);
        }
        Ok(())
    });
    objects.there = there;
    done.map(|()| outcomes.into_iter().map(|o| o.unwrap_or(Outcome::Gone)).collect())
}

type Sent = (usize, Result<Outcome, Error>);

fn reader(
    walk: &Walk<'_>,
    tasks: &[Task],
    next: &AtomicUsize,
    there: &There,
    send: &SyncSender<Sent>,
) {
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(task) = tasks.get(at) else { return };
        // The receiver goes away only when another file failed.
        if send.send((at, one(walk, task, there))).is_err() {
            return;
        }
    }
}

fn take(mut outcome: Outcome, objects: &mut Objects) -> Result<Outcome, Error> {
    if let Outcome::Read { oid, packed, .. } = &mut outcome
        && let Some(packed) = packed.take()
    {
        objects.append(*oid, &packed)?;
    }
    Ok(outcome)
}

/// Reads one file until it holds still.
fn one(walk: &Walk<'_>, task: &Task, there: &There) -> Result<Outcome, Error> {
    for _ in 0..TRIES_MAX {
        let (stat, data) = match bytes(walk, &task.path) {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Outcome::Gone),
            Err(Errno::ACCESS | Errno::PERM | Errno::IO) => {
                let stat = Stat::at(&walk.full(&task.path)).unwrap_or_default();
                return Ok(Outcome::Missed(Why::Unreadable, stat));
            }
            Err(error) => return Err(Error::io(&walk.full(&task.path), error)),
        };
        if data.len() as u64 > walk.rules.file_bytes_max {
            return Ok(Outcome::Missed(Why::TooLarge, stat));
        }
        let is_file = stat.file_type() == FileType::RegularFile;
        let convert = is_file && task.conversion.touches(&data);
        let oid = Oid::hash(objects::Kind::Blob, &data);
        let is_new = oid != task.known && !there.contains(oid);
        let packed = is_new.then(|| Packed::new(oid, objects::Kind::Blob, &data)).transpose()?;
        return Ok(Outcome::Read { stat, oid, packed, convert });
    }
    Ok(Outcome::Missed(Why::Unstable, Stat::default()))
}

/// A file's bytes and the stamp that holds for them; `None` if it changed in the meantime.
fn bytes(walk: &Walk<'_>, path: &[u8]) -> Result<Option<(Stat, Vec<u8>)>, Errno> {
    let at = |path: &[u8]| {
        rustix::fs::statat(&walk.top, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
            .map(|s| Stat::new(&s))
    };
    let before = at(path)?;
    match before.file_type() {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&walk.top, path, Vec::new())?;
            Ok((at(path)? == before).then(|| (before, target.into_bytes())))
        }
        FileType::RegularFile => {
            // Without waiting: a FIFO may have taken the place in the meantime.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = match rustix::fs::openat(&walk.top, path, flags, Mode::empty()) {
                Ok(fd) => std::fs::File::from(fd),
                Err(Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error),
            };
            let opened = rustix::fs::fstat(&file).map(|s| Stat::new(&s))?;
            if opened != before {
                return Ok(None);
            }
            let limit = walk.rules.file_bytes_max.saturating_add(1);
            let capacity = usize::try_from(before.size.min(limit)).unwrap_or_default();
            let mut data = Vec::with_capacity(capacity + 1);
            let read = (&file).take(limit).read_to_end(&mut data);
            read.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
            let after = rustix::fs::fstat(&file).map(|s| Stat::new(&s))?;
            Ok((after == before && data.len() as u64 == before.size.min(limit))
                .then_some((before, data)))
        }
        _ => Ok(None),
    }
}
