//! Files of the project: finding them by path or glob, hashing them, making them durable.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use piton_core::event::FileHash;
use piton_core::hash::Sha;
use piton_engine::world::SealError;
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

/// Bytes read at once while hashing.
const CHUNK: usize = 1 << 16;

/// The hash of a file, or nothing if there is none.
pub fn hash(root: &Path, path: &str) -> io::Result<Option<Sha>> {
    match File::open(root.join(path)) {
        Ok(file) => hash_open(&file).map(Some).map_err(|e| named(path, &e)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(named(path, &error)),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn named(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

fn hash_open(mut file: &File) -> io::Result<Sha> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(Sha::finish(hasher)),
            count => hasher.update(&chunk[..count]),
        }
    }
}

/// The files that declared inputs stand for, as they are now; what is missing is left out.
pub fn observe(root: &Path, patterns: &[String]) -> io::Result<Vec<FileHash>> {
    let mut found = Vec::new();
    for path in expand_all(root, patterns)? {
        if let Some(sha256) = hash(root, &path)? {
            found.push(FileHash { path, sha256 });
        }
    }
    Ok(found)
}

/// Hashes artifacts and syncs them with the folders that lead to them.
pub fn seal(root: &Path, patterns: &[String]) -> Result<Vec<FileHash>, SealError> {
    let failed = |e: io::Error| SealError::Failed(e.to_string());
    let mut paths = BTreeSet::new();
    for pattern in patterns {
        let found = expand(root, pattern).map_err(failed)?;
        if found.is_empty() {
            return Err(SealError::Missing(pattern.clone()));
        }
        paths.extend(found);
    }
    let mut sealed = Vec::new();
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for path in paths {
        let full = root.join(&path);
        let file = match File::open(&full) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Err(SealError::Missing(path)),
            Err(error) => return Err(failed(named(&path, &error))),
        };
        let sha256 = hash_open(&file).map_err(|e| failed(named(&path, &e)))?;
        file.sync_all().map_err(|e| failed(named(&path, &e)))?;
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

fn expand_all(root: &Path, patterns: &[String]) -> io::Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for pattern in patterns {
        all.extend(expand(root, pattern)?);
    }
    Ok(all)
}

/// The files a path or glob stands for, relative to the root. A folder stands for all in it.
fn expand(root: &Path, pattern: &str) -> io::Result<Vec<String>> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
    if !pattern.contains(['*', '?', '[', '{']) {
        let full = root.join(pattern);
        return Ok(match std::fs::metadata(&full) {
            Ok(found) if found.is_dir() => walk(root, &full, &|_| true)?,
            Ok(_) => vec![pattern.to_owned()],
            Err(_) => Vec::new(),
        });
    }
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?
        .compile_matcher();
    // Only the part before the first wild card has to be walked.
    let literal: PathBuf =
        pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{'])).collect();
    let start = root.join(literal);
    if !start.is_dir() {
        return Ok(Vec::new());
    }
    walk(root, &start, &|path| glob.is_match(path))
}

fn walk(root: &Path, start: &Path, wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let walker = WalkDir::new(start).sort_by_file_name().into_iter();
    for entry in walker.filter_entry(|e| e.file_name() != ".git") {
        let entry = entry?;
        if entry.file_type().is_dir() {
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

    #[test]
    fn globs_stay_within_their_folder_and_folders_mean_all() {
        let dir = project();
        let find = |p: &str| expand(dir.path(), p).unwrap();
        assert_eq!(find("out/*.txt"), ["out/a.txt"]);
        assert_eq!(find("out/**/*.txt"), ["out/a.txt", "out/deep/b.txt"]);
        assert_eq!(find("out"), ["out/a.txt", "out/c.bin", "out/deep/b.txt"]);
        assert!(find("none/*.txt").is_empty());
    }

    #[test]
    fn a_missing_artifact_is_named_and_nothing_is_sealed() {
        let dir = project();
        let patterns = ["out/a.txt".to_owned(), "out/none".to_owned()];
        let missing = SealError::Missing("out/none".to_owned());
        assert_eq!(seal(dir.path(), &patterns), Err(missing));
    }

    #[test]
    fn sealing_hashes_the_bytes() {
        let dir = project();
        let sealed = seal(dir.path(), &["out/a.txt".to_owned()]).unwrap();
        assert_eq!(sealed[0].sha256, Sha::of(b"out/a.txt"));
    }
}
