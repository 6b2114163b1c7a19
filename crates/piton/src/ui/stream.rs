//! A line for each event as it happens: in words on stderr, or as JSON on stdout.
//!
//! Each line is one write, so lines of several processes do not mix; a reader that went away is no
//! reason to stop a run.

use std::io::Write;

use piton_core::{Event, RunState, Timestamp};
use piton_engine::{Note, Observer};
use piton_view::layout::PLAIN;
use piton_view::{Layout, json, words};

use super::terminal::place;

/// Writes a line per event.
pub struct Stream {
    out: Box<dyn Write>,
    json: bool,
    broken: bool,
}

impl Stream {
    /// Words on stderr, for logs and for terminals that can't be drawn on.
    pub fn words() -> Self {
        Self { out: Box::new(std::io::stderr()), json: false, broken: false }
    }

    /// JSON on stdout, for programs.
    pub fn json() -> Self {
        Self { out: Box::new(std::io::stdout()), json: true, broken: false }
    }

    fn write(&mut self, mut lines: Vec<u8>) {
        if !lines.ends_with(b"\n") {
            lines.push(b'\n');
        }
        self.broken = self.broken || self.out.write_all(&lines).is_err();
    }
}

impl Observer for Stream {
    fn event(&mut self, seq: u64, at: Timestamp, event: &Event, state: &RunState) {
        let lines = match event {
            _ if self.json => json::line(seq, at, event),
            // A step that runs again says why when it starts.
            Event::StepReset(_) => return,
            _ => {
                let plain = (&Layout::plain(0), PLAIN);
                words::lines(at, event, state, place(), plain).into_bytes()
            }
        };
        if !lines.is_empty() {
            self.write(lines);
        }
    }

    fn note(&mut self, note: &Note) {
        self.write(if self.json {
            json::note(note, place())
        } else {
            words::note(note, place()).into_bytes()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_left_ends_the_stream_not_the_run() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut stream = Stream { out: Box::new(Gone), ..Stream::json() };
        stream.note(&Note::KeeperReplaced);
        assert!(stream.broken);
        stream.note(&Note::KeeperReplaced);
    }
}
