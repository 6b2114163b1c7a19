//! The log files that children write to: kept open between the steps of a lane, measured at
//! ticks, and bounded by freeing the middle of what an attempt wrote.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::marks::{Mark, marks_path};
use crate::os;
use crate::protocol::Range;

/// How many log files stay open at most between steps: more lanes than that are not busy at once,
/// and the usual limit of descriptors is 1,024.
const OPEN_MAX: usize = 128;

/// Holes are freed in whole pages of the file system; a common multiple of their usual sizes.
const HOLE_ALIGN: u64 = 4096;

/// Marks an attempt makes before it makes them half as often: three and a half minutes of output
/// without a pause, 98 KB.
const MARKS_PER_STAGE: u32 = 4096;

/// The thinnest marks: one in this many ticks, as a power of two.
const STAGE_MAX: u32 = 16;

/// How often one attempt marks its logs. Each stage halves the rate, so the marks of a step that
/// writes for a week stay below two megabytes, and the order of its streams stays exact in
/// proportion to how long it has written.
#[derive(Default)]
pub(super) struct Marking {
    made: u32,
    passed: u32,
}

impl Marking {
    /// Whether to mark growth that was seen now.
    pub(super) fn is_due(&mut self) -> bool {
        self.passed += 1;
        let due = self.passed >= 1 << (self.made / MARKS_PER_STAGE).min(STAGE_MAX);
        if due {
            self.passed = 0;
            self.made = self.made.saturating_add(1);
        }
        due
    }
}

/// One open log.
pub(super) struct LogFile {
    pub(super) file: File,
    path: PathBuf,
    marks: RefCell<Option<File>>,
    no_holes: Cell<bool>,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                open()?
            }
            other => other?,
        };
        let (path, marks) = (path.to_owned(), RefCell::new(None));
        Ok(Self { file, path, marks, no_holes: Cell::new(false) })
    }

    /// Its size now; `None` if it was deleted meanwhile.
    fn size_if_linked(&self) -> Option<u64> {
        let stat = rustix::fs::fstat(&self.file).ok()?;
        (stat.st_nlink > 0).then(|| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Appends a mark to the file beside this one (which is the standard output log).
    pub(super) fn mark(&self, mark: Mark) -> io::Result<()> {
        let mut open = self.marks.borrow_mut();
        if open.is_none() {
            let path = marks_path(&self.path);
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            *open = Some(file);
        }
        match open.as_mut() {
            Some(file) => file.write_all(&mark.to_bytes()),
            None => Ok(()),
        }
    }
}

/// All open logs by path.
#[derive(Default)]
pub(super) struct LogFiles(HashMap<PathBuf, Rc<LogFile>>);

impl LogFiles {
    /// Gives the log at a path, and its size.
    pub(super) fn open(&mut self, path: &Path) -> io::Result<(Rc<LogFile>, u64)> {
        if let Some(log) = self.0.get(path)
            && let Some(size) = log.size_if_linked()
        {
            return Ok((Rc::clone(log), size));
        }
        if self.0.len() >= OPEN_MAX {
            self.0.retain(|_, log| Rc::strong_count(log) > 1);
        }
        let log = Rc::new(LogFile::open(path)?);
        let size = log.size_if_linked().unwrap_or(0);
        self.0.insert(path.to_owned(), Rc::clone(&log));
        Ok((log, size))
    }
}

/// One stream of an attempt: where its bytes are.
pub(super) struct Output {
    pub(super) log: Rc<LogFile>,
    pub(super) range: Range,
    pub(super) dropped: Option<Range>,
}

impl Output {
    pub(super) fn new((log, size): (Rc<LogFile>, u64)) -> Self {
        Self { log, range: Range { start: size, end: size }, dropped: None }
    }

    /// Checks how far the file has grown; returns whether it has.
    pub(super) fn measure(&mut self) -> bool {
        let Ok(stat) = rustix::fs::fstat(&self.log.file) else {
            return false;
        };
        let size = u64::try_from(stat.st_size).unwrap_or(0).max(self.range.start);
        let grew = size != self.range.end;
        self.range.end = size;
        grew
    }

    /// Frees the middle if there is more than `max`, keeping the first quarter and the last three.
    pub(super) fn bound(&mut self, max: u64) -> io::Result<()> {
        if max == 0 || self.range.len() <= max || self.log.no_holes.get() {
            return Ok(());
        }
        let Some(hole) = hole(self.range, max) else {
            return Ok(());
        };
        let done = self.dropped.map_or(hole.start, |dropped| dropped.end);
        if hole.end <= done {
            return Ok(());
        }
        if let Err(error) = os::punch_hole(&self.log.file, done, hole.end - done) {
            self.log.no_holes.set(true);
            return Err(error);
        }
        self.dropped = Some(hole);
        Ok(())
    }
}

/// What to free of a range so that at most `max` bytes stay; nothing smaller than a page.
fn hole(range: Range, max: u64) -> Option<Range> {
    let start = (range.start + max / 4).next_multiple_of(HOLE_ALIGN);
    // What the head has beyond its quarter, to the end of a page, the tail has not; but the last
    // lines say why a step failed, and a limit of a few pages is passed for them.
    let tail = max.saturating_sub(start - range.start).max(max / 2);
    let end = range.end.saturating_sub(tail);
    let is_exact = tail >= 2 * HOLE_ALIGN;
    let end =
        if is_exact { end.next_multiple_of(HOLE_ALIGN) } else { end / HOLE_ALIGN * HOLE_ALIGN };
    // What comes after the range belongs to the next attempt.
    let end = end.min(range.end / HOLE_ALIGN * HOLE_ALIGN);
    (end > start).then_some(Range { start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A week of output without a pause, twenty looks a second: marks are no log of their own.
    #[test]
    fn marks_of_a_talkative_step_are_bounded() {
        let mut marking = Marking::default();
        let week = 7 * 24 * 3600 * 20;
        let made = (0..week).filter(|_| marking.is_due()).count();
        assert!(made * crate::marks::MARK_BYTES < 2_000_000, "{made} marks");
        let mut first = Marking::default();
        assert!((0..MARKS_PER_STAGE).all(|_| first.is_due()), "the first minutes are exact");
    }

    /// The first error and the last lines of a noisy step must both survive.
    #[test]
    fn holes_leave_head_and_tail() {
        let range = Range { start: 1000, end: 1_000_000 };
        let hole = hole(range, 100_000);
        assert_eq!(hole, Some(Range { start: 28_672, end: 929_792 }));
        assert_eq!(super::hole(Range { start: 0, end: 5000 }, 4000), None);
    }

    /// However small the limit, the reason of a failure is in the last lines.
    #[test]
    fn a_small_limit_keeps_the_last_lines() {
        for (start, end) in (0..9000).step_by(257).zip((100_000..).step_by(1237)) {
            for max in [1000, 4096, 5000, 8192, 12_000] {
                let range = Range { start, end };
                let tail = hole(range, max).map_or(range.len(), |hole| range.end - hole.end);
                let least = HOLE_ALIGN.min(max / 2);
                assert!((least..max + 2 * HOLE_ALIGN).contains(&tail), "{range:?} {max}: {tail}");
            }
        }
    }

    /// A limit that is passed by a little, attempt after attempt, is none.
    #[test]
    fn no_more_stays_than_the_limit_says() {
        for (start, end) in (0..9000).step_by(257).zip((300_000..).step_by(1237)) {
            for max in [16_384, 65_536, 100_000] {
                let range = Range { start, end };
                let kept = hole(range, max).map(|hole| range.len() - hole.len());
                let least = max - HOLE_ALIGN;
                assert!(
                    kept.is_some_and(|kept| (least..=max).contains(&kept)),
                    "{range:?}: {kept:?}"
                );
            }
        }
    }
}
