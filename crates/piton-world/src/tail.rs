//! The last lines of an attempt's output, for people: redacted, then made harmless, then cut.
//!
//! In this order, and with what stands before them looked at: a line from the middle of a private key
//! is known only by how the key began, and half a token is not known at all.

use std::collections::VecDeque;
use std::io;

use piton_core::redact::{KEPT_BYTES_MIN, Key, REPLACEMENT, Redactor};
use piton_process::logs::{self, AttemptLog, Piece, Selection};

use super::text::sanitize;

/// How far from the end of each stream the last lines are looked for.
const SHOWN_BYTES: usize = 256 << 10;
/// The same where the lines there are too few because they are so long: enough for five of half a
/// megabyte and more, and still read in a moment.
const SHOWN_BYTES_MOST: usize = 4 << 20;
/// What is read before that, only to know where a secret began: as much as tells the end of a line
/// that began even earlier.
const BEFORE_BYTES: usize = 2 * KEPT_BYTES_MIN;
/// What replaces the beginning of a line that is left out.
const CUT: char = '…';

/// A line as written, and what must be known to show it.
struct Line {
    text: String,
    key: Key,
    /// Whether its beginning was not read.
    is_cut: bool,
}

/// How far a stream has been read.
#[derive(Clone, Copy, Default)]
struct Place {
    key: Key,
    bytes: usize,
}

/// The last `count` lines that are not empty, without secrets and harmless for a terminal or a prompt.
/// Of a private key one line stays.
pub fn last_lines(
    log: &AttemptLog,
    selection: Selection,
    count: usize,
    redactor: &Redactor,
) -> io::Result<Vec<String>> {
    let mut last = VecDeque::with_capacity(count);
    for bytes in [SHOWN_BYTES, SHOWN_BYTES_MOST] {
        last.clear();
        let (lines, is_all) = read(log, selection, bytes)?;
        for line in lines.iter().rev() {
            if last.len() == count {
                break;
            }
            if let Some(shown) = shown(line, redactor) {
                last.push_front(shown);
            }
        }
        if is_all || last.len() == count {
            break;
        }
    }
    Ok(last.into())
}

/// The lines near the end, and whether there are no others.
fn read(log: &AttemptLog, selection: Selection, shown: usize) -> io::Result<(Vec<Line>, bool)> {
    let end = logs::near_end(log, selection, (shown + BEFORE_BYTES) as u64)?;
    let cut = end.cut;
    let mut places = [Place::default(); 2];
    let mut lines = Vec::new();
    for piece in end.pieces {
        match piece? {
            Piece::Line { stream, bytes, .. } => {
                let (place, cut) = (&mut places[stream as usize], cut[stream as usize]);
                let is_cut = cut && place.bytes == 0;
                place.bytes += bytes.len();
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
                let key = place.key;
                place.key = key.after(&text);
                if !cut || place.bytes > BEFORE_BYTES {
                    lines.push(Line { text, key, is_cut });
                }
            }
            Piece::Dropped { stream, bytes } => {
                let place = &mut places[stream as usize];
                place.key = place.key.behind_gap();
                place.bytes =
                    place.bytes.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
        }
    }
    Ok((lines, cut == [false, false]))
}

fn shown(line: &Line, redactor: &Redactor) -> Option<String> {
    let clean = if line.is_cut {
        format!("{CUT}{}", redactor.redact_end(&line.text)?)
    } else {
        let clean = redactor.redact_line(line.key, line.text.trim_end_matches('\n'));
        if matches!(line.key, Key::Inside(_)) && clean == REPLACEMENT {
            // Its first line is shown for the key.
            return None;
        }
        clean.into_owned()
    };
    // Once more: whatever a terminal makes of the line, what is shown holds no secret.
    let harmless = sanitize(&clean);
    (!harmless.is_empty()).then(|| redactor.redact(&harmless).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use piton_core::redact::Names;
    use piton_process::protocol::Range;

    use super::*;

    const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
    const END: &str = "-----END OPENSSH PRIVATE KEY-----";

    fn tail(out: &[u8], err: &[u8], count: usize) -> io::Result<Vec<String>> {
        tail_without(None, out, err, count)
    }

    fn tail_without(
        hole: Option<Range>,
        out: &[u8],
        err: &[u8],
        count: usize,
    ) -> io::Result<Vec<String>> {
        let dir = tempfile::tempdir()?;
        let (stdout, stderr) = (dir.path().join("out"), dir.path().join("err"));
        fs::write(&stdout, out)?;
        fs::write(&stderr, err)?;
        let redactor = Redactor::new([("MY_TOKEN", "hunter2hunter2")], &Names::default());
        let mut log = AttemptLog::of_running(&stdout, &stderr, 0, 0);
        log.dropped.stdout = hole;
        last_lines(&log, Selection::Both, count, &redactor)
    }

    /// What stays behind a hole is shown, however large the hole; the rest of a key is not.
    #[test]
    fn holes_are_passed_over() -> io::Result<()> {
        let key = format!("{}\n", "b3BlbnNz".repeat(8)).repeat(3);
        for bytes in [10_000, 1_000_000] {
            let out = format!("head\n{}{key}one\n{END}\ntwo\n", "\0".repeat(bytes));
            let hole = Range { start: 5, end: 5 + bytes as u64 };
            let shown = tail_without(Some(hole), out.as_bytes(), b"", 2)?;
            assert_eq!(shown, [REPLACEMENT, "two"], "{bytes}");
            let all = tail_without(Some(hole), out.as_bytes(), b"", 20)?;
            assert!(!all.iter().any(|line| line.contains("b3Bl")), "{all:?}");
        }
        Ok(())
    }

    /// Lost: of an agent that answers in lines of hundreds of kilobytes only the last would be shown.
    #[test]
    fn long_lines_count_as_others_do() -> io::Result<()> {
        let long = "x ".repeat(150_000);
        let out = ["0", "1", "2", "3", "4", "5", "6"].map(|n| format!("{n} {long}\n")).concat();
        let shown = tail(out.as_bytes(), b"", 5)?;
        let first: Vec<&str> = shown.iter().map(|line| &line[..1]).collect();
        assert_eq!(first, ["2", "3", "4", "5", "6"]);
        Ok(())
    }

    /// Failure context is the last lines that say something.
    #[test]
    fn empty_lines_are_skipped() -> io::Result<()> {
        let out = b"one\n\n  \ntwo\n\x1b[31mthree\x1b[0m\r\n\n";
        assert_eq!(tail(out, b"", 2)?, ["two", "three"]);
        let nested = b"one\n  two\n\tthree\n";
        assert_eq!(tail(nested, b"", 3)?, ["one", "  two", "\tthree"], "as they were written");
        assert_eq!(tail(b"", b"", 2)?, [""; 0]);
        Ok(())
    }

    /// Lost: the last lines of a key, whose first line was no longer among them, in the ledger.
    #[test]
    fn a_key_is_known_by_how_it_began() -> io::Result<()> {
        let body =
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2g\n".repeat(30);
        let key = format!("start\n{BEGIN}\n{body}");
        assert_eq!(tail(format!("{key}{END}\n").as_bytes(), b"", 5)?, ["start", REPLACEMENT]);
        assert_eq!(tail(key.as_bytes(), b"", 1)?, [REPLACEMENT]);
        assert_eq!(tail(format!("{key}{END} x\ny").as_bytes(), b"", 2)?, ["[redacted] x", "y"]);
        // Each stream has its own keys.
        assert_eq!(tail(key.as_bytes(), b"b3BlbnNz\n", 1)?, ["b3BlbnNz"]);
        Ok(())
    }

    /// The same where lines are so long that what is shown begins in the middle of the key.
    #[test]
    fn what_may_belong_to_a_key_before_is_not_shown() -> io::Result<()> {
        let body = format!("{}\n", "b3BlbnNz".repeat(1000)).repeat(8);
        let filler = format!("{} \n", "-".repeat(100_000));
        for before in (0..40).step_by(6) {
            let rest = "x".repeat(before * 10_000);
            let out = format!("{BEGIN}\n{body}{END}\n{filler}{filler}{rest}\n");
            let shown = tail(out.as_bytes(), b"", 20)?;
            assert!(!shown.iter().any(|line| line.contains("b3BlbnNz")), "{before}");
        }
        Ok(())
    }

    /// Lost: half a token where a line is cut for people, or where reading began.
    #[test]
    fn cuts_show_no_half_secret() -> io::Result<()> {
        let long = format!("{}hunter2hunter2\n", "x ".repeat(245));
        assert!(!tail(long.as_bytes(), b"", 1)?[0].contains("hunter"));
        for before in [0, 7, 14] {
            let read = SHOWN_BYTES + BEFORE_BYTES - before;
            let line = format!("hunter2hunter2{}\n", "y ".repeat(read / 2));
            let shown = tail(line.as_bytes(), b"", 1)?.pop().unwrap_or_default();
            assert!(shown.starts_with("…y") || shown.starts_with("… y"), "{shown}");
        }
        // As a program that marks what it found writes it.
        let marked = b"\x1b[1mhunter2\x1b[0mhunter2\n";
        assert_eq!(tail(marked, b"", 1)?, [REPLACEMENT]);
        Ok(())
    }
}
