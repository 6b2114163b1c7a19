//! The lines of a file that grows, each given once.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Most bytes that are read in one look: the driver has other things to do.
const READ_MAX: u64 = 8 << 20;
/// Longest line that is kept while its end is missing: a longer one is no event of any program.
const LINE_MAX: usize = 64 << 20;
/// Deepest folder in which a record is looked for: programs sort them by year, month and day.
const DEPTH_MAX: usize = 6;

/// A file that is read as it grows.
pub(super) struct Tail {
    path: PathBuf,
    at: u64,
    rest: Vec<u8>,
    /// What is no longer in it, and reads as zeros.
    pub(super) dropped: Option<(u64, u64)>,
}

impl Tail {
    /// Reads from a place on.
    pub(super) fn new(path: PathBuf, at: u64) -> Self {
        Self { path, at, rest: Vec::new(), dropped: None }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that are complete since the last look. With an end, all up to there, the last one
    /// although it is cut.
    pub(super) fn lines(&mut self, end: Option<u64>) -> Vec<String> {
        let mut lines = Vec::new();
        while self.read(end).unwrap_or(0) > 0 {
            self.take(&mut lines);
            if end.is_none() {
                break;
            }
        }
        if end.is_some() && !self.rest.is_empty() {
            self.rest.push(b'\n');
            self.take(&mut lines);
        }
        lines
    }

    fn read(&mut self, end: Option<u64>) -> std::io::Result<usize> {
        let mut most = READ_MAX.min(end.map_or(u64::MAX, |end| end.saturating_sub(self.at)));
        if let Some((from, to)) = self.dropped {
            if (from..to).contains(&self.at) {
                self.rest.clear();
                most = most.saturating_sub(to - self.at);
                self.at = to;
            } else if self.at < from {
                most = most.min(from - self.at);
            }
        }
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.take(most).read_to_end(&mut self.rest)?;
        self.at += count as u64;
        Ok(count)
    }

    fn take(&mut self, lines: &mut Vec<String>) {
        let Some(last) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            if self.rest.len() > LINE_MAX {
                self.rest.clear();
            }
            return;
        };
        let after = self.rest.split_off(last + 1);
        let whole = std::mem::replace(&mut self.rest, after);
        lines.extend(String::from_utf8_lossy(&whole).lines().map(str::to_owned));
    }
}

/// The newest file below a folder whose name ends like this.
pub(super) fn find(folder: PathBuf, ending: &str) -> Option<PathBuf> {
    let mut folders = vec![(folder, 0)];
    let mut found = Vec::new();
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.is_ok_and(|kind| kind.is_dir()) {
                folders.extend((depth < DEPTH_MAX).then_some((path, depth + 1)));
            } else if path.to_str().is_some_and(|path| path.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    found.into_iter().max_by_key(|path| changed(path))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Lost: half an event is taken for nothing, or an event is counted twice.
    #[test]
    fn lines_come_once_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "of another\none\ntw").unwrap();
        let mut tail = Tail::new(path.clone(), 11);
        assert_eq!(tail.lines(None), ["one"]);
        assert_eq!(tail.lines(None), [""; 0]);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"o\nthree\nfour").unwrap();
        assert_eq!(tail.lines(None), ["two", "three"]);
        file.write_all(b"\nof the next\n").unwrap();
        assert_eq!(tail.lines(Some(29)), ["four"]);
        assert_eq!(tail.lines(Some(29)), [""; 0]);
    }

    /// Lost: the zeros of a dropped middle hide the event after it.
    #[test]
    fn what_was_dropped_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"a\nb\0\0\0\0\0\0c\nd\n").unwrap();
        let mut tail = Tail::new(path, 0);
        tail.dropped = Some((3, 9));
        let lines = tail.lines(Some(13));
        assert_eq!(lines, ["a", "c", "d"]);
    }
}
