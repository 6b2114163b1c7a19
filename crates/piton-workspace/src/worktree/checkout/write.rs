//! Objects become files: several threads, which read what lies in packs themselves. For what does
//! not, each has a `git cat-file` that reads ahead for it.

use std::fs::{self, File, Metadata};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};

use super::listing::{Kind, Listed, Listing};
use crate::files::os_path;
use crate::git::Git;
use crate::objects::{Location, Oid, Packs, Reader as PackReader};

/// How many files a thread takes at once. Two requests of that size fit in a pipe of 64 KiB, so
/// asking never blocks; and one is long enough that nobody waits for the next.
const TAKEN_AT_ONCE: usize = 256;

/// What the system says about a file, in the width an index keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stat {
    pub ctime: (u32, u32),
    pub mtime: (u32, u32),
    pub dev: u32,
    pub ino: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u32,
}

impl Stat {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index keeps the lower 32 bits of each number"
    )]
    fn of(found: &Metadata) -> Self {
        Self {
            ctime: (found.ctime() as u32, found.ctime_nsec() as u32),
            mtime: (found.mtime() as u32, found.mtime_nsec() as u32),
            dev: found.dev() as u32,
            ino: found.ino() as u32,
            uid: found.uid(),
            gid: found.gid(),
            size: found.size() as u32,
        }
    }
}

/// Writes all files of a listing; returns what the system says about each, or `None` if anything
/// is not as expected.
pub(super) fn all(
    dir: &Path,
    objects: &Path,
    listing: &Listing,
    workers: usize,
) -> Option<Vec<Stat>> {
    for folder in listing.folders.iter().skip(1) {
        let path = dir.join(os_path(listing.folder_path(folder)));
        match fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
    }
    let packs = &Packs::open(objects);
    let shared =
        Shared { dir, packs, listing, next: AtomicUsize::new(0), failed: AtomicBool::new(false) };
    let parts = std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, || shared.work()).ok();
        let threads: Vec<_> = (0..workers).filter_map(spawn).collect();
        if threads.is_empty() {
            return shared.work().map(|stats| vec![stats]);
        }
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Option<Vec<_>>>()
    })?;
    let mut stats = vec![Stat::default(); listing.files.len()];
    for (index, stat) in parts.into_iter().flatten() {
        *stats.get_mut(index)? = stat;
    }
    Some(stats)
}

struct Shared<'a> {
    dir: &'a Path,
    packs: &'a Packs,
    listing: &'a Listing,
    /// The first file nobody has taken.
    next: AtomicUsize,
    failed: AtomicBool,
}

impl Shared<'_> {
    /// One thread's share.
    fn work(&self) -> Option<Vec<(usize, Stat)>> {
        let packed = PackReader::new(self.packs);
        let mut worker = Worker { shared: self, packed, asked: None, folder: None };
        let stats = worker.share();
        let stats = worker.asked.take().map_or(Some(()), Reader::end).and(stats);
        if stats.is_none() {
            self.failed.store(true, Ordering::Relaxed);
        }
        stats
    }
}

/// One thread.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    packed: PackReader<'a>,
    /// The git that reads what lies in no pack, once there is something.
    asked: Option<Reader>,
    /// The folder of the last file: the next one is mostly in it too.
    folder: Option<(&'a [u8], OwnedFd)>,
}

impl<'a> Worker<'a> {
    fn share(&mut self) -> Option<Vec<(usize, Stat)>> {
        let mut stats = Vec::new();
        let mut content = Vec::new();
        let mut taken = self.take()?;
        while !taken.is_empty() {
            // What must be asked for next is asked for before these are written.
            let ahead = self.take()?;
            for (index, place) in taken {
                let file = self.shared.listing.files.get(index)?;
                match place {
                    Some(place) => self.packed.blob(place, &mut content)?,
                    None => self.asked.as_mut()?.content(&mut content)?,
                }
                stats.push((index, self.create(file, &content).ok()?));
            }
            if self.shared.failed.load(Ordering::Relaxed) {
                return None;
            }
            taken = ahead;
        }
        Some(stats)
    }

    /// Takes the next files, with where each lies if that is a pack; none when there are no more.
    fn take(&mut self) -> Option<Vec<(usize, Option<Location>)>> {
        let files = &self.shared.listing.files;
        let start = self.shared.next.fetch_add(TAKEN_AT_ONCE, Ordering::Relaxed).min(files.len());
        let range = start..(start + TAKEN_AT_ONCE).min(files.len());
        let places: Vec<_> =
            range.map(|at| (at, self.shared.packs.find(Oid(files[at].id)))).collect();
        let missing = places.iter().filter(|(_, place)| place.is_none());
        let missing: Vec<&Listed> = missing.map(|(at, _)| &files[*at]).collect();
        if !missing.is_empty() {
            let asked = match &mut self.asked {
                Some(asked) => asked,
                none => none.insert(Reader::start(self.shared.dir)?),
            };
            asked.ask(&missing)?;
        }
        Some(places)
    }

    fn create(&mut self, file: &Listed, content: &[u8]) -> std::io::Result<Stat> {
        let path = self.shared.listing.path(file);
        let mode = match file.kind {
            Kind::Link => {
                let path = self.shared.dir.join(os_path(path));
                symlink(os_path(content), &path)?;
                return fs::symlink_metadata(&path).map(|found| Stat::of(&found));
            }
            Kind::File => Mode::from_raw_mode(0o666),
            Kind::Program => Mode::from_raw_mode(0o777),
        };
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let folder = self.folder(&path[..path.len() - name.len()])?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut new = File::from(rustix::fs::openat(folder, os_path(name), flags, mode)?);
        new.write_all(content)?;
        new.metadata().map(|found| Stat::of(&found))
    }

    /// The folder that files are created in.
    fn folder(&mut self, path: &'a [u8]) -> std::io::Result<&OwnedFd> {
        if self.folder.as_ref().is_none_or(|(open, _)| *open != path) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = self.shared.dir.join(os_path(path));
            self.folder = Some((path, rustix::fs::open(dir, flags, Mode::empty())?));
        }
        let open = self.folder.as_ref().map(|(_, folder)| folder);
        open.ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

/// A `git cat-file` that is asked for objects.
struct Reader {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    line: String,
}

impl Reader {
    /// Room for answers: several small files, so that few reads are needed.
    const BUFFER_BYTES: usize = 128 * 1024;

    fn start(dir: &Path) -> Option<Self> {
        let git = Git::at(dir).args(["cat-file", "--batch-command", "--buffer"]);
        let mut child = git.spawn(Stdio::piped(), Stdio::piped()).ok()?;
        let (asks, answers) = (child.stdin.take()?, child.stdout.take()?);
        let answers = BufReader::with_capacity(Self::BUFFER_BYTES, answers);
        Some(Self { child, asks, answers, line: String::new() })
    }

    fn ask(&mut self, files: &[&Listed]) -> Option<()> {
        let mut text = Vec::with_capacity(files.len() * 50);
        for file in files {
            text.extend_from_slice(b"contents ");
            for byte in file.id {
                let digits = b"0123456789abcdef";
                text.push(digits[usize::from(byte >> 4)]);
                text.push(digits[usize::from(byte & 15)]);
            }
            text.push(b'\n');
        }
        text.extend_from_slice(b"flush\n");
        self.asks.write_all(&text).ok()
    }

    /// Reads the next answer: `ID blob SIZE`, the bytes, a line break.
    fn content(&mut self, content: &mut Vec<u8>) -> Option<()> {
        self.line.clear();
        self.answers.read_line(&mut self.line).ok()?;
        let mut words = self.line.trim_end().split(' ');
        let (_, kind, size) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        if kind != "blob" {
            return None;
        }
        content.resize(size, 0);
        self.answers.read_exact(content).ok()?;
        self.answers.read_exact(&mut [0]).ok()
    }

    fn end(self) -> Option<()> {
        let Self { mut child, asks, answers, .. } = self;
        drop((asks, answers));
        child.wait().ok().map(drop)
    }
}
