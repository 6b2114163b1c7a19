//! Reads the output of an attempt: one stream or both together, all of it or the end.
//!
//! The two log files of a lane hold the bytes exactly as written. The keeper adds marks (how far
//! both files had grown, at the ticks in which they grew), by which the streams are put together
//! again: exact from tick to tick, standard output first within one. What was dropped to bound
//! the logs is shown as such, never as the zeros that the file reads there.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use crate::marks::marks_path;

use crate::marks::{self, Mark};
use crate::protocol::{Dropped, Range};

/// The longest line that is given whole; a longer one comes in pieces. Agents write JSON with whole
/// files in one line, which is of use only whole; this much is held in memory for each stream.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// Bytes read from a log at once.
const READ_BYTES: u64 = 64 << 10;

/// One of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Which streams to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// Both, in the approximate order in which they were written.
    #[default]
    Both,
    /// Standard output only.
    Stdout,
    /// Standard error only.
    Stderr,
}

/// The place of an attempt's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptLog {
    /// The lane's standard output log.
    pub stdout: PathBuf,
    /// The lane's standard error log.
    pub stderr: PathBuf,
    /// The attempt's bytes in the first.
    pub stdout_range: Range,
    /// The attempt's bytes in the second.
    pub stderr_range: Range,
    /// What was dropped.
    pub dropped: Dropped,
}

impl AttemptLog {
    /// The output so far of an attempt that runs (or whose end nobody saw), from where its
    /// output starts to where the files end.
    pub fn of_running(stdout: &Path, stderr: &Path, stdout_start: u64, stderr_start: u64) -> Self {
        let end = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
        Self {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            stdout_range: Range { start: stdout_start, end: end(stdout).max(stdout_start) },
            stderr_range: Range { start: stderr_start, end: end(stderr).max(stderr_start) },
            dropped: Dropped::default(),
        }
    }
}

/// A piece of an attempt's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A line as written, with its line feed if it has one.
    Line {
        /// Where it was written.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether the line continues in the next piece of this stream: it is too long for one.
        more: bool,
    },
    /// Bytes that were dropped to bound the log.
    Dropped {
        /// Where.
        stream: Stream,
        /// How many.
        bytes: u64,
    },
}

/// Reads an attempt's output piece by piece.
pub fn read(log: &AttemptLog, selection: Selection) -> io::Result<Pieces> {
    let marks = match selection {
        Selection::Both => marks::within(&log.stdout, log.stdout_range, log.stderr_range),
        Selection::Stdout | Selection::Stderr => Vec::new(),
    };
    read_with(log, selection, &marks)
}

fn read_with(log: &AttemptLog, selection: Selection, marks: &[Mark]) -> io::Result<Pieces> {
    Ok(Pieces {
        stdout: Source::open(&log.stdout, Stream::Stdout, log.dropped.stdout)?,
        stderr: Source::open(&log.stderr, Stream::Stderr, log.dropped.stderr)?,
        segments: segments(log, selection, marks),
        ready: VecDeque::new(),
    })
}

/// The end of an attempt's output.
#[derive(Debug)]
pub struct End {
    /// The pieces, in order.
    pub pieces: Pieces,
    /// Whether there is more before it in standard output, and in standard error: then its first line
    /// there has no beginning.
    pub cut: [bool; 2],
}

/// Reads the end of an attempt's output: up to this many bytes of each stream.
pub fn near_end(log: &AttemptLog, selection: Selection, bytes: u64) -> io::Result<End> {
    let near = |range: Range| {
        let start = range.start.max(range.end.saturating_sub(bytes));
        Range { start, end: range.end }
    };
    let mut near_end = log.clone();
    near_end.stdout_range = near(log.stdout_range);
    near_end.stderr_range = near(log.stderr_range);
    // The live tree calls this many times a second: reading all marks would be too slow.
    let marks = match selection {
        Selection::Both => marks::last(&log.stdout),
        Selection::Stdout | Selection::Stderr => Vec::new(),
    };
    Ok(End {
        cut: [near_end.stdout_range != log.stdout_range, near_end.stderr_range != log.stderr_range],
        pieces: read_with(&near_end, selection, &marks)?,
    })
}

/// Cuts the ranges of both streams at the marks.
fn segments(log: &AttemptLog, selection: Selection, marks: &[Mark]) -> VecDeque<(Stream, Range)> {
    let mut segments = VecDeque::new();
    let (mut out, mut err) = (log.stdout_range, log.stderr_range);
    let mut upto = |range: &mut Range, stream, end: u64| {
        let end = end.clamp(range.start, range.end.max(range.start));
        if end > range.start {
            segments.push_back((stream, Range { start: range.start, end }));
            range.start = end;
        }
    };
    for mark in marks {
        upto(&mut out, Stream::Stdout, mark.stdout);
        upto(&mut err, Stream::Stderr, mark.stderr);
    }
    if selection != Selection::Stderr {
        upto(&mut out, Stream::Stdout, u64::MAX);
    }
    if selection != Selection::Stdout {
        upto(&mut err, Stream::Stderr, u64::MAX);
    }
    segments
}

/// One log file being read: its hole, and the line that is not complete yet.
#[derive(Debug)]
struct Source {
    file: Option<File>,
    stream: Stream,
    dropped: Option<Range>,
    /// Whether the hole was already returned as a piece.
    said: bool,
    partial: Vec<u8>,
}

impl Source {
    /// Opens a log; one that does not exist is empty.
    fn open(path: &Path, stream: Stream, dropped: Option<Range>) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file, stream, dropped, said: false, partial: Vec::new() })
    }

    /// Reads the next stretch of a range into pieces; gives what remains of the range.
    fn advance(&mut self, range: Range, ready: &mut VecDeque<Piece>) -> io::Result<Range> {
        let mut end = range.end.min(range.start + READ_BYTES);
        if let Some(hole) = self.dropped.filter(|hole| !hole.is_empty()) {
            if (hole.start..hole.end).contains(&range.start) {
                let skipped = hole.end.min(range.end);
                // Reported once, however many marks are in the hole.
                if !std::mem::replace(&mut self.said, true) {
                    self.flush(ready);
                    let bytes = hole.end - range.start;
                    ready.push_back(Piece::Dropped { stream: self.stream, bytes });
                }
                return Ok(Range { start: skipped, end: range.end });
            }
            if range.start < hole.start {
                end = end.min(hole.start);
            }
        }
        let mut chunk = vec![0; usize::try_from(end - range.start).unwrap_or(0)];
        let count = match &self.file {
            Some(file) => file.read_at(&mut chunk, range.start)?,
            None => 0,
        };
        if count == 0 {
            return Ok(Range { start: range.end, end: range.end });
        }
        for line in chunk[..count].split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(line);
            if line.ends_with(b"\n") {
                self.flush(ready);
            } else if self.partial.len() >= LINE_BYTES_MAX {
                let rest = self.partial.split_off(whole_chars(&self.partial));
                let bytes = std::mem::replace(&mut self.partial, rest);
                ready.push_back(Piece::Line { stream: self.stream, bytes, more: true });
            }
        }
        Ok(Range { start: range.start + count as u64, end: range.end })
    }

    fn flush(&mut self, ready: &mut VecDeque<Piece>) {
        if !self.partial.is_empty() {
            let bytes = std::mem::take(&mut self.partial);
            ready.push_back(Piece::Line { stream: self.stream, bytes, more: false });
        }
    }
}

/// How many of the bytes come before a character that is not complete yet.
fn whole_chars(bytes: &[u8]) -> usize {
    let starts = |b: &u8| b & 0xc0 != 0x80;
    let Some(at) = bytes.iter().rev().take(4).position(starts) else { return bytes.len() };
    let start = bytes.len() - 1 - at;
    let length = match bytes[start] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
        _ => 1,
    };
    if at + 1 < length { start } else { bytes.len() }
}

/// The pieces of an attempt's output, in order.
#[derive(Debug)]
pub struct Pieces {
    stdout: Source,
    stderr: Source,
    segments: VecDeque<(Stream, Range)>,
    ready: VecDeque<Piece>,
}

impl Iterator for Pieces {
    type Item = io::Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() {
            let Some((stream, range)) = self.segments.pop_front() else {
                // Last lines without a line feed.
                self.stdout.flush(&mut self.ready);
                self.stderr.flush(&mut self.ready);
                break;
            };
            let source = match stream {
                Stream::Stdout => &mut self.stdout,
                Stream::Stderr => &mut self.stderr,
            };
            match source.advance(range, &mut self.ready) {
                Ok(rest) if rest.is_empty() => {}
                Ok(rest) => self.segments.push_front((stream, rest)),
                Err(error) => {
                    self.segments.clear();
                    return Some(Err(error));
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn log(dir: &Path, out: &[u8], err: &[u8], marks: &[(u64, u64)]) -> io::Result<AttemptLog> {
        let (stdout, stderr) = (dir.join("out"), dir.join("err"));
        fs::write(&stdout, out)?;
        fs::write(&stderr, err)?;
        let marks: Vec<u8> = marks
            .iter()
            .flat_map(|&(stdout, stderr)| Mark { wall_ms: 0, stdout, stderr }.to_bytes())
            .collect();
        fs::write(marks_path(&stdout), marks)?;
        Ok(AttemptLog::of_running(&stdout, &stderr, 0, 0))
    }

    fn shown(pieces: Pieces) -> io::Result<Vec<String>> {
        pieces
            .map(|piece| {
                Ok(match piece? {
                    Piece::Line { stream, bytes, .. } => {
                        format!("{stream:?} {}", String::from_utf8_lossy(&bytes).trim_end())
                    }
                    Piece::Dropped { stream, bytes } => format!("{stream:?} dropped {bytes}"),
                })
            })
            .collect()
    }

    /// An error must appear after the output that led to it, and lines must not be cut by ticks.
    #[test]
    fn streams_come_together_at_the_marks() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let marks = [(3, 0), (3, 6), (12, 6)];
        let log = log(dir.path(), b"a\nbb\nccc\nend", b"E1\nE2\nE3", &marks)?;
        let pieces = shown(read(&log, Selection::Both)?)?;
        let expected = [
            "Stdout a",
            "Stderr E1",
            "Stderr E2",
            "Stdout bb",
            "Stdout ccc",
            "Stdout end",
            "Stderr E3",
        ];
        assert_eq!(pieces, expected);
        let apart = shown(read(&log, Selection::Stderr)?)?;
        assert_eq!(apart, ["Stderr E1", "Stderr E2", "Stderr E3"]);
        Ok(())
    }

    /// Marks of earlier attempts of the lane, and a torn mark, must not disturb.
    #[test]
    fn foreign_marks_are_harmless() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let mut log = log(dir.path(), b"old\nnew\n", b"old\nnew\n", &[(4, 4), (900, 900)])?;
        log.stdout_range = Range { start: 4, end: 8 };
        log.stderr_range = Range { start: 4, end: 8 };
        assert_eq!(shown(read(&log, Selection::Both)?)?, ["Stdout new", "Stderr new"]);
        Ok(())
    }

    /// What was dropped must be said, and its zeros must not be shown as output.
    #[test]
    fn holes_are_named() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let mut log = log(dir.path(), b"head\n\0\0\0\0\0tail\n", b"", &[])?;
        log.dropped.stdout = Some(Range { start: 5, end: 10 });
        assert_eq!(
            shown(read(&log, Selection::Both)?)?,
            ["Stdout head", "Stdout dropped 5", "Stdout tail"]
        );
        Ok(())
    }

    /// A long line must stay one line for readers, with complete characters.
    #[test]
    fn a_line_is_whole_or_says_that_it_goes_on() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let long = format!("x{}\n", "ä".repeat(LINE_BYTES_MAX));
        let log = log(dir.path(), format!("{}\n{long}", "y".repeat(3 << 20)).as_bytes(), b"", &[])?;
        let (mut parts, mut whole) = (Vec::new(), String::new());
        for piece in read(&log, Selection::Both)? {
            let Piece::Line { bytes, more, .. } = piece? else { continue };
            parts.push((bytes.len() >> 20, more));
            whole.push_str(std::str::from_utf8(&bytes).map_err(io::Error::other)?);
        }
        assert_eq!(parts, [(3, false), (4, true), (3, false)]);
        assert!(whole.ends_with(&long));
        Ok(())
    }

    #[test]
    fn the_end_says_whether_there_is_more() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let log = log(dir.path(), b"one\ntwo\nthree\n", b"E\n", &[])?;
        let end = near_end(&log, Selection::Both, 7)?;
        assert_eq!(end.cut, [true, false]);
        assert_eq!(shown(end.pieces)?, ["Stdout ", "Stdout three", "Stderr E"]);
        Ok(())
    }
}
