//! The run log as a file: lines are appended; after a crash it is completed.
//!
//! Other tools append to the same file. Their lines are kept where they stand, and the file is
//! rewritten only if lines of ours are missing in its middle: an appender that has it open would go
//! on writing into a file that is gone.

use std::collections::HashMap;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use piton_protocols::files::Wanted;
use rustix::fs::OFlags;

use super::replace::{Replacer, named, read};

/// How far back the beginning of a torn line is looked for: longer than any line of ours.
const TORN_BYTES_MAX: u64 = 1 << 20;

/// Appends lines; a line that a crash cut off is completed or ended first.
pub fn append(files: &Replacer, path: &Path, lines: &str) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let hint = "look at the folder; the next event tries again";
    add(files, path, lines).map_err(|e| named(path, &e, hint))
}

fn add(files: &Replacer, path: &Path, lines: &str) -> io::Result<()> {
    let _held = files.hold()?;
    let mut file = files.spot(path)?.open(OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let length = about.len();
    let mut torn = Vec::new();
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.seek(SeekFrom::Start(length.saturating_sub(TORN_BYTES_MAX)))?;
            file.read_to_end(&mut torn)?;
            let start = torn.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            torn.drain(..start);
        }
    }
    // One call, so that readers see complete lines.
    match lines.as_bytes().strip_prefix(torn.as_slice()) {
        Some(rest) => file.write_all(rest),
        None => file.write_all(format!("\n{lines}").as_bytes()),
    }
}

/// Makes the log hold all lines of ours in their order.
pub fn rebuild(files: &mut Replacer, path: &Path, stamp: &str, expected: &str) -> io::Result<()> {
    {
        let _held = files.hold()?;
        let hint = "look at the file; the next event tries again";
        let spot = files.spot(path).map_err(|e| named(path, &e, hint))?;
        if let Some(there) = read(&spot)? {
            let whole = whole(&there, expected.as_bytes());
            if let Some(rest) = whole.strip_prefix(there.as_slice()) {
                if rest.is_empty() {
                    return Ok(());
                }
                return spot.open(OFlags::WRONLY | OFlags::APPEND)?.write_all(rest);
            }
        } else if expected.is_empty() {
            return Ok(());
        }
    }
    files.replace(path, stamp, &mut |there, _| {
        let text = whole(there.unwrap_or_default(), expected.as_bytes());
        // Foreign lines stand in no ledger.
        let sync = text != expected.as_bytes();
        Ok(if there == Some(&text) { Wanted::AsItIs } else { Wanted::Text { text, sync } })
    })
}

/// What is there, with the lines that are missing; ours in their order, others where they stood.
fn whole(there: &[u8], expected: &[u8]) -> Vec<u8> {
    let ours: Vec<&[u8]> = lines(expected).collect();
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    ours.iter().enumerate().for_each(|(at, line)| places.entry(bare(line)).or_default().push(at));
    let mut out = Vec::with_capacity(there.len().max(expected.len()));
    let mut next = 0;
    for line in lines(there) {
        let known = places.get(bare(line));
        let found = known.and_then(|all| all.get(all.partition_point(|at| *at < next)));
        match found {
            Some(at) => {
                ours[next..*at].iter().for_each(|missing| out.extend_from_slice(missing));
                next = at + 1;
            }
            // It is here again.
            None if known.is_some() => continue,
            // Torn: it is written again with the missing ones.
            None if is_torn(line) && ours[next..].iter().any(|own| own.starts_with(line)) => {
                continue;
            }
            None => {}
        }
        out.extend_from_slice(line);
        if is_torn(line) {
            out.push(b'\n');
        }
    }
    ours[next..].iter().for_each(|missing| out.extend_from_slice(missing));
    out
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

fn is_torn(line: &[u8]) -> bool {
    !line.ends_with(b"\n")
}

/// A line without its end, however that is written.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(there: &str, expected: &str) -> String {
        String::from_utf8_lossy(&whole(there.as_bytes(), expected.as_bytes())).into_owned()
    }

    #[test]
    fn missing_lines_come_back_in_order_and_foreign_ones_stay() {
        let ours = "a\nb\nc\nb\nd\n";
        for (there, wanted) in [
            ("", ours),
            (ours, ours),
            ("a\nb\n", ours),
            ("a\nx\nb\nc\n", "a\nx\nb\nc\nb\nd\n"),
            ("c\nx\nd\n", "a\nb\nc\nx\nb\nd\n"),
            ("d\na\n", ours),
            ("x", "x\na\nb\nc\nb\nd\n"),
            ("a\r\nb\r\n", "a\r\nb\r\nc\nb\nd\n"),
        ] {
            assert_eq!(made(there, ours), wanted, "{there:?}");
        }
    }

    #[test]
    fn a_torn_line_is_completed_wherever_it_was_cut() {
        let ours = "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n";
        for cut in 0..=ours.len() {
            assert_eq!(made(&ours[..cut], ours), ours, "{cut}");
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_named() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("logs"), "no folder")?;
        let path = dir.path().join("logs/r.jsonl");
        let error = append(&Replacer::new(dir.path(), dir.path()), &path, "{}\n").err();
        let said = error.map(|e| e.to_string()).unwrap_or_default();
        assert!(said.contains(&path.display().to_string()), "{said}");
        Ok(())
    }
}
