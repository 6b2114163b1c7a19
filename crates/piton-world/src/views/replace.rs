//! Replaces files that others write too: completely or not at all, and without losing what they saved.
//!
//! The new text is written beside the file and changes places with it; then what was displaced is
//! looked at. If it is not what had been read, somebody saved in between: their text is the input of
//! another round. The name of the file beside says what was expected, so that whoever comes after a
//! crash can tell a save of somebody else from our own leavings.
//!
//! Nothing is synced unless the caller asks for it: a view that holds nothing of others can be
//! written again from the ledger. A program that rewrites an open file in place, instead of
//! replacing it, can still lose what it writes after the exchange; nobody can see that.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use piton_core::hash::Sha;
use piton_protocols::files::Wanted;
use piton_workspace::files::beneath::{AnchoredPath, LinkLeadsOut};
use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

/// The lock of all who write views of a project, in its state folder.
const LOCK: &str = "views.lock";
/// How long to wait for the lock: writing a view takes a millisecond, so whoever holds it longer is
/// stopped, and the next event writes the view.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause of those who wait for the lock: about as long as it is held.
const PAUSE: Duration = Duration::from_millis(1);
/// Rounds against others who save at the same moment: each needs another save within microseconds.
const ROUNDS_MAX: usize = 16;
/// How often an unfinished file is looked at again, and how long between: somebody who writes in
/// place is done within a fifth of a second, or not at it at all.
const LOOKS_MAX: usize = 10;
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// Largest file that is replaced: the largest that the formats read, a run log.
const BYTES_MAX: usize = 128 << 20;
/// Copies of one name that are kept aside; more than that is a loop.
const ASIDE_MAX: usize = 100;
/// Characters of a hash in a name: 64 bits tell the few texts of one file apart.
const HASH_CHARS: usize = 16;

/// Why a text is kept that could not be merged.
const SAVED: &str = "somebody saved it while it was replaced, and their text could not be merged";

/// Decides the new content of a file from its bytes, and from whether they stopped changing.
pub type Merge<'m> = dyn FnMut(Option<&[u8]>, bool) -> io::Result<Wanted> + 'm;

/// Replaces files of a project, below one lock.
#[derive(Debug)]
pub struct Replacer {
    root: PathBuf,
    lock: PathBuf,
    swept: BTreeSet<PathBuf>,
    /// What a person should know, until somebody takes it.
    pub warnings: Vec<String>,
}

/// What came of an exchange.
enum Put {
    Done,
    /// The file came or went in the meantime.
    Raced,
    /// A save by somebody else was displaced; it is kept there until it is merged.
    Displaced(Vec<u8>, AnchoredPath),
}

impl Replacer {
    /// Makes one for what is below `root`; `lock_dir` is a folder that outlives all runs.
    pub fn new(root: &Path, lock_dir: &Path) -> Self {
        let (root, lock) = (root.to_owned(), lock_dir.join(LOCK));
        Self { root, lock, swept: BTreeSet::new(), warnings: Vec::new() }
    }

    /// Where a file is written: one reached by a link stays there, and the link stays one. A plan
    /// outside of the project is where the user says.
    pub fn spot(&self, path: &Path) -> io::Result<AnchoredPath> {
        let root = if path.starts_with(&self.root) { &self.root } else { folder(path) };
        AnchoredPath::behind(root, path)
    }

    /// Waits for the lock; it is free again when the file is dropped.
    pub fn hold(&self) -> io::Result<File> {
        let file =
            OpenOptions::new().append(true).create(true).mode(0o600).open(&self.lock).map_err(
                |e| named(&self.lock, &e, "make the folder writable, or name another state folder"),
            )?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                    thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let words = format!(
                        "{}: another piton has held this lock for {} s; the next event tries again",
                        self.lock.display(),
                        PATIENCE.as_secs()
                    );
                    return Err(io::Error::new(io::ErrorKind::TimedOut, words));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Replaces a file by what `merge` makes of it. `stamp` names copies that are kept aside.
    pub fn replace(&mut self, path: &Path, stamp: &str, merge: &mut Merge<'_>) -> io::Result<()> {
        let _held = self.hold()?;
        let hint = "look at the file; the next event tries again";
        let spot = self.spot(path);
        spot.and_then(|spot| self.rounds(&spot, stamp, merge)).map_err(|e| named(path, &e, hint))
    }

    fn rounds(
        &mut self,
        path: &AnchoredPath,
        stamp: &str,
        merge: &mut Merge<'_>,
    ) -> io::Result<()> {
        let is_new = self.swept.insert(path.path().to_owned());
        let mut saved = if is_new { self.sweep(path, stamp)? } else { None };
        let (mut rounds, mut looks) = (0, 0);
        while rounds < ROUNDS_MAX {
            let there = read(path)?;
            let input = saved.as_ref().map(|(bytes, _)| bytes).or(there.as_ref());
            let (text, sync) = match merge(input.map(Vec::as_slice), looks == LOOKS_MAX)? {
                Wanted::Text { text, sync } => (text, sync),
                Wanted::Instead { text, why } => {
                    let bytes = input.cloned().unwrap_or_default();
                    self.keep(path, &bytes, "corrupt", stamp, &why)?;
                    (text, false)
                }
                Wanted::Refused(why) => return Err(io::Error::other(why)),
                Wanted::AsItIs => match &saved {
                    Some((bytes, _)) => (bytes.clone(), true),
                    None => return Ok(()),
                },
                Wanted::Unfinished => {
                    looks = (looks + 1).min(LOOKS_MAX);
                    thread::sleep(LOOK_PAUSE);
                    continue;
                }
            };
            rounds += 1;
            let put = if there.as_ref() == Some(&text) {
                Put::Done
            } else {
                put(path, there.as_deref(), &text, sync)?
            };
            match put {
                Put::Done => {
                    if let Some((_, aside)) = saved {
                        aside.remove()?;
                    }
                    return Ok(());
                }
                Put::Raced => {}
                Put::Displaced(bytes, aside) => {
                    if let Some((_, merged)) = saved.replace((bytes, aside)) {
                        merged.remove()?;
                    }
                }
            }
        }
        if let Some((bytes, aside)) = saved {
            self.keep(path, &bytes, "saved", stamp, SAVED)?;
            aside.remove()?;
        }
        Err(io::Error::other("others change this file all the time"))
    }

    /// Clears what a killed writer left beside a file; a save of somebody else that it had displaced
    /// comes back as the input of the next round.
    fn sweep(
        &mut self,
        path: &AnchoredPath,
        stamp: &str,
    ) -> io::Result<Option<(Vec<u8>, AnchoredPath)>> {
        let prefix = beside(path, "");
        let Some(prefix) = prefix.name().to_str() else {
            return Ok(None);
        };
        let mut saved = None;
        for name in path.names()? {
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else {
                continue;
            };
            let left = path.beside(&name);
            let Some((old, new)) = rest.strip_prefix("swap-").and_then(|r| r.split_once('-'))
            else {
                if rest == "part" {
                    left.remove()?;
                }
                continue;
            };
            let Some(bytes) = read(&left)? else { continue };
            let is_new = |bytes: &[u8]| short(bytes) == new;
            if short(&bytes) == old || is_new(&bytes) {
                left.remove()?;
            } else if saved.is_none() && read(path)?.is_some_and(|there| is_new(&there)) {
                saved = Some((bytes, left));
            } else {
                self.keep(path, &bytes, "saved", stamp, SAVED)?;
                left.remove()?;
            }
        }
        Ok(saved)
    }

    /// Keeps a text beside its file as `NAME.WORD-STAMP`, and says so.
    fn keep(
        &mut self,
        path: &AnchoredPath,
        bytes: &[u8],
        word: &str,
        stamp: &str,
        why: &str,
    ) -> io::Result<()> {
        for number in 1..=ASIDE_MAX {
            let mut name = path.name().to_owned();
            name.push(format!(".{word}-{stamp}"));
            if number > 1 {
                name.push(format!("-{number}"));
            }
            let aside = path.beside(name);
            match aside.create() {
                Ok(mut file) => {
                    file.write_all(bytes)?;
                    file.sync_data()?;
                    let (path, aside) = (path.path().display(), aside.path().display());
                    self.warnings.push(format!("{path}: {why}; it is kept in {aside}"));
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if read(&aside)?.as_deref() == Some(bytes) {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!("{ASIDE_MAX} copies of it lie there; remove some")))
    }
}

/// The bytes of a file; none where there is none.
pub fn read(path: &AnchoredPath) -> io::Result<Option<Vec<u8>>> {
    match path.open(OFlags::RDONLY).and_then(|file| crate::read::regular(file, BYTES_MAX)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a text in the place of what was read, and looks at what it displaced.
fn put(path: &AnchoredPath, there: Option<&[u8]>, text: &[u8], sync: bool) -> io::Result<Put> {
    let part = beside(path, "part");
    part.remove()?;
    let mut file = part.create()?;
    file.write_all(text)?;
    if let (Some(_), Ok(found)) = (there, path.open(OFlags::RDONLY).and_then(|f| f.metadata())) {
        file.set_permissions(found.permissions())?;
    }
    if sync {
        file.sync_data()?;
    }
    let Some(old) = there else {
        return match part.rename(path, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Put::Done),
            Err(Errno::EXIST) => Ok(Put::Raced),
            Err(error) if is_unsupported(error) => plainly(&part, path, None),
            Err(error) => Err(error.into()),
        };
    };
    // Only a complete text has this name.
    let swap = beside(path, &format!("swap-{}-{}", short(old), short(text)));
    part.rename(&swap, RenameFlags::empty())?;
    match swap.rename(path, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(Errno::NOENT) => {
            swap.remove()?;
            return Ok(Put::Raced);
        }
        Err(error) if is_unsupported(error) => return plainly(&swap, path, there),
        Err(error) => return Err(error.into()),
    }
    let displaced = read(&swap)?.unwrap_or_default();
    if displaced == old {
        swap.remove()?;
        return Ok(Put::Done);
    }
    Ok(Put::Displaced(displaced, swap))
}

/// Replaces on a filesystem that can't exchange: whoever saves between look and rename is lost.
fn plainly(new: &AnchoredPath, path: &AnchoredPath, there: Option<&[u8]>) -> io::Result<Put> {
    if read(path)?.as_deref() != there {
        new.remove()?;
        return Ok(Put::Raced);
    }
    new.rename(path, RenameFlags::empty())?;
    Ok(Put::Done)
}

fn is_unsupported(error: Errno) -> bool {
    error == Errno::INVAL || error == Errno::NOSYS || error == Errno::NOTSUP
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A helper file beside a file.
fn beside(path: &AnchoredPath, rest: &str) -> AnchoredPath {
    let mut name = OsString::from(".");
    name.push(path.name());
    name.push(format!(".piton-{rest}"));
    path.beside(name)
}

fn short(bytes: &[u8]) -> String {
    Sha::of(bytes).0.chars().take(HASH_CHARS).collect()
}

pub(super) fn named(path: &Path, error: &io::Error, hint: &str) -> io::Error {
    if LinkLeadsOut::is(error) {
        // It names the link, and what to do.
        return io::Error::other(error.to_string());
    }
    io::Error::new(error.kind(), format!("{}: {error}; {hint}", path.display()))
}

#[cfg(test)]
mod tests;
