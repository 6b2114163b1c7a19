//! Files of the project: finding them by path or glob, hashing them, making them durable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use globset::{GlobBuilder, GlobMatcher};
use piton_core::Timestamp;
use piton_core::event::FileHash;
use piton_core::hash::Sha;
use piton_engine::world::SealError;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use walkdir::{DirEntry, WalkDir};

/// Bytes read at once while hashing.
const CHUNK: usize = 1 << 16;

/// The hash of a file, or nothing if there is none. A link that does not lead to a file is hashed itself;
/// pipes, sockets and devices have no bytes to record, and reading one might never end. Known hashes are
/// not computed again.
pub fn hash(root: &Path, path: &str, known: &Known) -> io::Result<Option<Sha>> {
    hash_and(root, path, known, |_| Ok(()))
}

fn hash_and(
    root: &Path,
    path: &str,
    known: &Known,
    then: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<Option<Sha>> {
    let full = root.join(path);
    let found = (|| {
        let itself = std::fs::symlink_metadata(&full)?;
        if !target(&full)?.is_some_and(|target| target.is_file()) {
            let link = itself.is_symlink().then(|| std::fs::read_link(&full)).transpose()?;
            return Ok(link.map(|target| Sha::of(target.as_os_str().as_encoded_bytes())));
        }
        let file = File::open(&full)?;
        let known = known.get(&full).filter(|(seen, _)| *seen == stamp(&full));
        let sha256 = match known.map(|(_, hash)| hash) {
            Some(Ok(sha256)) => sha256.clone(),
            Some(Err(error)) => return Err(io::Error::new(error.kind(), error.to_string())),
            None => hash_open(&file, &mut |_| Ok(()))?,
        };
        then(&file)?;
        Ok(Some(sha256))
    })();
    match found {
        Err(error) if is_missing(&error) => Ok(None),
        other => other.map_err(|error| named(path, &error)),
    }
}

/// Hashes and syncs a file; counts the bytes, and stops when it is asked to.
pub fn hash_slowly(path: &Path, done: &AtomicU64, stop: &AtomicBool) -> io::Result<Sha> {
    let file = File::open(path)?;
    let sha256 = hash_open(&file, &mut |count| {
        done.fetch_add(count as u64, Ordering::Relaxed);
        let stopped = stop.load(Ordering::Relaxed);
        if stopped { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    })?;
    // It is synced again when it is recorded, which then takes no time and reports an error.
    let _ = file.sync_all();
    Ok(sha256)
}

/// The length of a file; nothing where there is none.
pub fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.len())
}

/// What tells a file from another, and from what it was.
pub type Stamp = (u64, u64, u64, (i64, i64), (i64, i64));

/// Hashes by path, or why a file could not be read, with what the file looked like then.
pub type Known = BTreeMap<PathBuf, (Option<Stamp>, io::Result<Sha>)>;

/// What a file looks like now; nothing where there is none.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    let (modified, changed) =
        ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    Some((found.dev(), found.ino(), found.len(), modified, changed))
}

/// What a path leads to; nothing where that does not exist or may not be read.
fn target(path: &Path) -> io::Result<Option<fs::Metadata>> {
    let is_loop = |error: &io::Error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(e) if is_missing(&e) || is_loop(&e) || e.kind() == io::ErrorKind::PermissionDenied => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn named(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

fn hash_open(mut file: &File, counted: &mut dyn FnMut(usize) -> io::Result<()>) -> io::Result<Sha> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(Sha::finish(hasher)),
            count => {
                hasher.update(&chunk[..count]);
                counted(count)?;
            }
        }
    }
}

/// The files that declared inputs match now; what is missing is left out. `own` is what Piton writes
/// itself.
pub fn observe(
    root: &Path,
    patterns: &[String],
    own: &[PathBuf],
    known: &Known,
) -> io::Result<Vec<FileHash>> {
    let mut found = Vec::new();
    for path in expand_all(root, patterns, own)? {
        if let Some(sha256) = hash(root, &path, known)? {
            found.push(FileHash { path, sha256 });
        }
    }
    Ok(found)
}

/// Whether a file was changed after a moment: its contents, or what leads to them.
pub fn changed_after(path: &Path, at: Timestamp) -> bool {
    // The moment is known to the millisecond: what changed within it was there.
    let changed =
        |about: &fs::Metadata| about.ctime() * 1000 + about.ctime_nsec() / 1_000_000 > at.0;
    fs::metadata(path).is_ok_and(|about| changed(&about))
        || fs::symlink_metadata(path).is_ok_and(|about| changed(&about))
}

/// Hashes artifacts and syncs them with the folders that lead to them. `own` is what Piton writes
/// itself.
pub fn seal(
    root: &Path,
    patterns: &[String],
    own: &[PathBuf],
    known: &Known,
) -> Result<Vec<FileHash>, SealError> {
    use io::ErrorKind::{InvalidFilename, InvalidInput, PermissionDenied};
    // These stay as they are if it is tried again; other errors may go away.
    let failed = |e: io::Error| match e.kind() {
        PermissionDenied | InvalidInput | InvalidFilename => {
            SealError::Unfit(vec![format!("an artifact can't be read: {e}")])
        }
        _ => SealError::Failed(e.to_string()),
    };
    let (mut paths, mut missing) = (BTreeSet::new(), Vec::new());
    for pattern in patterns {
        let found = expand(root, pattern, own).map_err(failed)?;
        if found.is_empty() {
            missing.push(pattern.clone());
        }
        paths.extend(found);
    }
    if !missing.is_empty() {
        return Err(SealError::Missing(missing));
    }
    let mut sealed = Vec::new();
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for path in paths {
        let full = root.join(&path);
        let Some(sha256) = hash_and(root, &path, known, File::sync_all).map_err(failed)? else {
            return Err(SealError::Missing(vec![path]));
        };
        folders.extend(
            full.ancestors().skip(1).take_while(|a| a.starts_with(root)).map(Path::to_owned),
        );
        sealed.push(FileHash { path, sha256 });
    }
    for folder in folders {
        File::open(&folder).and_then(|f| f.sync_all()).map_err(failed)?;
    }
    Ok(sealed)
}

/// The files that paths and globs match, relative to the root.
pub fn expand_all(
    root: &Path,
    patterns: &[String],
    own: &[PathBuf],
) -> io::Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for pattern in patterns {
        all.extend(expand(root, pattern, own)?);
    }
    Ok(all)
}

/// Paths and globs, to be matched with names: the files need not be there.
pub struct Patterns(Vec<(String, Option<GlobMatcher>)>);

impl Patterns {
    /// Reads them.
    pub fn new(patterns: &[String]) -> io::Result<Self> {
        let read = |pattern: &String| {
            let pattern = tidied(pattern);
            let is_glob = pattern.contains(['*', '?', '[', '{']);
            let glob = is_glob.then(|| glob(pattern)).transpose()?;
            Ok((pattern.to_owned(), glob))
        };
        patterns.iter().map(read).collect::<io::Result<_>>().map(Self)
    }

    /// Whether one of them matches a file; a folder matches all in it.
    pub fn matches(&self, path: &str) -> bool {
        self.0.iter().any(|(pattern, glob)| {
            let below =
                path.strip_prefix(pattern.as_str()).is_some_and(|rest| rest.starts_with('/'));
            path == pattern || below || glob.as_ref().is_some_and(|glob| glob.is_match(path))
        })
    }
}

fn tidied(pattern: &str) -> &str {
    pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/')
}

fn glob(pattern: &str) -> io::Result<GlobMatcher> {
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = built.map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
    Ok(glob.compile_matcher())
}

/// The files that a path or glob matches, relative to the root. A folder matches all in it.
fn expand(root: &Path, pattern: &str, own: &[PathBuf]) -> io::Result<Vec<String>> {
    let pattern = tidied(pattern);
    let full = root.join(pattern);
    // Brackets and braces are common in names (`pages/[id].tsx`): a file of that name is meant.
    let is_name = !pattern.contains(['*', '?']) && full.exists();
    if is_name || !pattern.contains(['*', '?', '[', '{']) {
        return Ok(match target(&full)? {
            Some(found) if found.is_dir() => walk(root, &full, own, &|_| true)?,
            Some(found) if found.is_file() => vec![pattern.to_owned()],
            _ => Vec::new(),
        });
    }
    let glob = glob(pattern)?;
    // Only the part before the first wild card has to be walked.
    let literal: PathBuf =
        pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{'])).collect();
    let start = root.join(literal);
    if !target(&start)?.is_some_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    walk(root, &start, own, &|path| glob.is_match(path))
}

/// The files below a folder that are wanted. What Piton writes itself is not a file of the project: its
/// state, its views and the worktrees of lanes change by themselves, and work that counted them in
/// would never stay finished. Who names such a folder means it.
fn walk(
    root: &Path,
    start: &Path,
    own: &[PathBuf],
    wanted: &dyn Fn(&str) -> bool,
) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let walker = WalkDir::new(start).sort_by_file_name().into_iter();
    let is_own = |e: &DirEntry| e.depth() > 0 && own.iter().any(|own| own == e.path());
    for entry in walker.filter_entry(|e| e.file_name() != ".git" && !is_own(e)) {
        let entry = match entry {
            Ok(entry) => entry,
            // Steps of other lanes are at work here: what vanishes under our eyes is not there.
            Err(error) if error.io_error().is_some_and(is_missing) => continue,
            Err(error) => return Err(error.into()),
        };
        if !entry.file_type().is_file() && !entry.file_type().is_symlink() {
            continue;
        }
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        if let Some(text) = relative.to_str().filter(|t| wanted(t)) {
            found.push(text.to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("out/deep")).unwrap();
        for path in ["out/a.txt", "out/deep/b.txt", "out/c.bin"] {
            std::fs::write(dir.path().join(path), path).unwrap();
        }
        dir
    }

    /// Lost: a step whose glob takes in the ledger, a view or a worktree runs again on every resume.
    #[test]
    fn what_piton_writes_itself_is_in_no_glob_unless_it_is_named() {
        let dir = project();
        let own = [dir.path().join("out/deep"), dir.path().join("out/c.bin")];
        let find = |p: &str| expand(dir.path(), p, &own).unwrap();
        for all in ["**", "out", "out/**/*", "*/**"] {
            assert_eq!(find(all), ["out/a.txt"], "{all}");
        }
        assert_eq!(find("out/deep/*.txt"), ["out/deep/b.txt"]);
        assert_eq!(find("out/deep"), ["out/deep/b.txt"]);
        assert_eq!(find("out/c.bin"), ["out/c.bin"]);
    }

    #[test]
    fn globs_stay_within_their_folder_and_folders_mean_all() {
        let dir = project();
        let find = |p: &str| expand(dir.path(), p, &[]).unwrap();
        assert_eq!(find("out/*.txt"), ["out/a.txt"]);
        assert_eq!(find("out/**/*.txt"), ["out/a.txt", "out/deep/b.txt"]);
        assert_eq!(find("out"), ["out/a.txt", "out/c.bin", "out/deep/b.txt"]);
        assert!(find("none/*.txt").is_empty());
    }

    #[test]
    fn all_missing_artifacts_are_named_and_nothing_is_sealed() {
        let dir = project();
        let patterns = ["out/none", "out/a.txt", "no/*.txt"].map(str::to_owned);
        let missing = SealError::Missing(vec!["out/none".to_owned(), "no/*.txt".to_owned()]);
        assert_eq!(seal(dir.path(), &patterns, &[], &Known::new()), Err(missing));
    }

    /// Lost: a driver would wait for ever for somebody to write into a pipe.
    #[test]
    fn what_has_no_bytes_is_no_file_and_a_link_without_one_stands_for_itself() {
        let dir = project();
        let at = |path: &str| dir.path().join(path);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("out/pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        for (target, link) in [("deep", "out/folder"), ("nowhere", "out/dangling")] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
        }
        assert_eq!(hash(dir.path(), "out/pipe", &Known::new()).unwrap(), None);
        assert_eq!(hash(dir.path(), "out/deep", &Known::new()).unwrap(), None);
        let pipe = ["out/pipe".to_owned()];
        let missing = Err(SealError::Missing(pipe.to_vec()));
        assert_eq!(seal(dir.path(), &pipe, &[], &Known::new()), missing);
        let sealed = seal(dir.path(), &["out".to_owned()], &[], &Known::new()).unwrap();
        let paths: Vec<&str> = sealed.iter().map(|f| f.path.as_str()).collect();
        let all = ["out/a.txt", "out/c.bin", "out/dangling", "out/deep/b.txt", "out/folder"];
        assert_eq!(paths, all);
        assert_eq!(sealed[2].sha256, Sha::of(b"nowhere"));
    }

    #[test]
    fn brackets_in_the_name_of_a_file_are_no_glob() {
        let dir = project();
        std::fs::write(dir.path().join("out/[id].txt"), "x").unwrap();
        assert_eq!(expand(dir.path(), "out/[id].txt", &[]).unwrap(), ["out/[id].txt"]);
        assert_eq!(expand(dir.path(), "out/[ab].txt", &[]).unwrap(), ["out/a.txt"]);
    }

    #[test]
    fn sealing_hashes_the_bytes() {
        let dir = project();
        let sealed = seal(dir.path(), &["out/a.txt".to_owned()], &[], &Known::new()).unwrap();
        assert_eq!(sealed[0].sha256, Sha::of(b"out/a.txt"));
    }
}
