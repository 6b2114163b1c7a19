//! Marks: how far both logs of a lane had grown at some moment, to put the streams together again.
//!
//! A file of fixed-size records, only ever appended to, whose numbers never decrease: the marks of
//! an attempt are found by binary search, and the end can be read alone.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::protocol::Range;

/// The size of one mark on disk: three little-endian `u64`: wall time in milliseconds, size of
/// the standard output log, size of the standard error log.
pub(crate) const MARK_BYTES: usize = 24;

/// Marks that are read for the last lines: a minute and a half of output without a pause, and one
/// read of the disk.
const LAST_MARKS: u64 = 2048;

/// The file of marks that belongs to a standard output log.
pub fn marks_path(stdout: &Path) -> PathBuf {
    let mut name = stdout.as_os_str().to_owned();
    name.push(".marks");
    name.into()
}

/// How far both logs had grown at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) wall_ms: u64,
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
}

impl Mark {
    pub(crate) fn to_bytes(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&self.wall_ms.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stdout.to_le_bytes());
        bytes[16..].copy_from_slice(&self.stderr.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Self { wall_ms: number(0)?, stdout: number(8)?, stderr: number(16)? })
    }
}

/// The marks that cut these ranges of the logs; none if there is no such file.
pub(crate) fn within(stdout: &Path, out: Range, err: Range) -> Vec<Mark> {
    let Some(file) = Marks::open(stdout) else { return Vec::new() };
    let first = file.first(|mark| mark.stdout > out.start || mark.stderr > err.start);
    let over = file.first(|mark| mark.stdout >= out.end && mark.stderr >= err.end);
    file.read(first, over.max(first))
}

/// The last marks: enough to put the last lines in order.
pub(crate) fn last(stdout: &Path) -> Vec<Mark> {
    let Some(file) = Marks::open(stdout) else { return Vec::new() };
    file.read(file.count.saturating_sub(LAST_MARKS), file.count)
}

/// A file of marks being read.
struct Marks {
    file: File,
    count: u64,
}

impl Marks {
    fn open(stdout: &Path) -> Option<Self> {
        let file = File::open(marks_path(stdout)).ok()?;
        let count = file.metadata().ok()?.len() / MARK_BYTES as u64;
        Some(Self { file, count })
    }

    /// The place of the first mark for which something holds that then holds for all after it.
    fn first(&self, holds: impl Fn(Mark) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            // A mark that cannot be read counts as old: without marks the order is only less exact.
            if self.read(middle, middle + 1).first().is_some_and(|mark| holds(*mark)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn read(&self, from: u64, to: u64) -> Vec<Mark> {
        let length = usize::try_from((to - from) * MARK_BYTES as u64).unwrap_or(0);
        let mut bytes = vec![0; length];
        if self.file.read_exact_at(&mut bytes, from * MARK_BYTES as u64).is_err() {
            return Vec::new();
        }
        bytes.chunks_exact(MARK_BYTES).filter_map(Mark::from_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(dir: &Path, count: u64) -> std::io::Result<PathBuf> {
        let stdout = dir.join("out");
        let bytes: Vec<u8> = (1..=count)
            .flat_map(|n| Mark { wall_ms: n, stdout: n * 10, stderr: n }.to_bytes())
            .collect();
        std::fs::write(marks_path(&stdout), bytes)?;
        Ok(stdout)
    }

    /// A lane's hundredth attempt must not cost a hundred times the first.
    #[test]
    fn only_the_marks_of_the_attempt_are_read() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let stdout = marks(dir.path(), 10_000)?;
        let (out, err) = (Range { start: 500, end: 530 }, Range { start: 50, end: 53 });
        let found: Vec<u64> = within(&stdout, out, err).iter().map(|m| m.wall_ms).collect();
        assert_eq!(found, [51, 52]);
        let quiet = within(&stdout, Range { start: 500, end: 530 }, Range { start: 0, end: 0 });
        assert_eq!(quiet.last().map(|m| m.wall_ms), Some(52));
        Ok(())
    }

    #[test]
    fn the_end_is_read_alone() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let found = last(&marks(dir.path(), 10_000)?);
        assert_eq!(found.len() as u64, LAST_MARKS);
        assert_eq!(found.last().map(|m| m.wall_ms), Some(10_000));
        assert_eq!(last(&marks(dir.path(), 3)?).len(), 3);
        assert_eq!(last(&dir.path().join("none")), []);
        Ok(())
    }
}
