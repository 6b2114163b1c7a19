//! Objects become files: several threads, each with a `git cat-file` that reads ahead for it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::listing::{Kind, Listed, Listing, as_path};
use crate::git::Git;

/// How many objects a thread asks for at once. Two requests of that size fit in a pipe of 64 KiB,
/// so asking never blocks; and one is long enough that nobody waits for the next.
const ASKED_AT_ONCE: usize = 256;

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
pub(super) fn all(dir: &Path, listing: &Listing, workers: usize) -> Option<Vec<Stat>> {
    for folder in listing.folders.iter().skip(1) {
        let path = dir.join(as_path(listing.folder_path(folder)));
        match fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
    }
    let shared = Shared { dir, listing, next: AtomicUsize::new(0), failed: AtomicBool::new(false) };
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(|| shared.work())).collect();
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
    listing: &'a Listing,
    /// The first file nobody has asked for.
    next: AtomicUsize,
    failed: AtomicBool,
}

impl Shared<'_> {
    /// One thread's share.
    fn work(&self) -> Option<Vec<(usize, Stat)>> {
        let stats = Reader::start(self.dir).and_then(|mut reader| {
            let stats = self.share(&mut reader);
            reader.end().and(stats)
        });
        if stats.is_none() {
            self.failed.store(true, Ordering::Relaxed);
        }
        stats
    }

    fn share(&self, reader: &mut Reader) -> Option<Vec<(usize, Stat)>> {
        let mut stats = Vec::new();
        let mut content = Vec::new();
        let mut asked = self.ask(reader)?;
        while !asked.is_empty() {
            // The next request goes out before this one's answers are used.
            let ahead = self.ask(reader)?;
            for index in asked {
                let file = self.listing.files.get(index)?;
                reader.content(&mut content)?;
                stats.push((index, self.create(file, &content).ok()?));
            }
            if self.failed.load(Ordering::Relaxed) {
                return None;
            }
            asked = ahead;
        }
        Some(stats)
    }

    /// Asks for the next files; an empty range when there are none.
    fn ask(&self, reader: &mut Reader) -> Option<std::ops::Range<usize>> {
        let count = self.listing.files.len();
        let start = self.next.fetch_add(ASKED_AT_ONCE, Ordering::Relaxed).min(count);
        let range = start..(start + ASKED_AT_ONCE).min(count);
        reader.ask(self.listing.files.get(range.clone())?)?;
        Some(range)
    }

    fn create(&self, file: &Listed, content: &[u8]) -> std::io::Result<Stat> {
        let path = self.dir.join(as_path(self.listing.path(file)));
        let mode = match file.kind {
            Kind::Link => {
                symlink(as_path(content), &path)?;
                return fs::symlink_metadata(&path).map(|found| Stat::of(&found));
            }
            Kind::File => 0o666,
            Kind::Program => 0o777,
        };
        let mut new: File =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        new.write_all(content)?;
        new.metadata().map(|found| Stat::of(&found))
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

    fn ask(&mut self, files: &[Listed]) -> Option<()> {
        if files.is_empty() {
            return Some(());
        }
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
