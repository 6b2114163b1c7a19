//! Events as JSON on stdout, one object per line, for programs.
//!
//! The body of an event is what the ledger holds, with its place, time and tag in front. Notes have
//! no place in the ledger and are objects with a `note`. A reader that went away does not stop the
//! run; the stream just ends.

use std::io::Write;

use piton_core::{Event, RunState, Timestamp};
use piton_engine::{Note, Observer};
use piton_formats::codec;

use super::{time, words};

/// Streams events to stdout.
pub struct JsonStream {
    out: Box<dyn Write>,
    broken: bool,
}

impl Default for JsonStream {
    fn default() -> Self {
        Self::new()
    }
}

impl JsonStream {
    /// Writes to stdout.
    pub fn new() -> Self {
        Self::to(Box::new(std::io::stdout()))
    }

    /// Writes elsewhere.
    pub fn to(out: Box<dyn Write>) -> Self {
        Self { out, broken: false }
    }

    fn write(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        // Stdout is line buffered: a whole line goes out in one call.
        self.broken = self.broken || self.out.write_all(&line).is_err();
    }
}

impl Observer for JsonStream {
    fn event(&mut self, seq: u64, at: Timestamp, event: &Event, _state: &RunState) {
        if !self.broken {
            self.write(line(seq, at, event));
        }
    }

    fn note(&mut self, note: &Note) {
        if !self.broken {
            let value =
                serde_json::json!({ "note": words::note(note), "kind": words::note_kind(note) });
            self.write(value.to_string().into_bytes());
        }
    }
}

/// One event as an object: the ledger's body with three keys in front.
pub fn line(seq: u64, at: Timestamp, event: &Event) -> Vec<u8> {
    let encoded = codec::encode(event);
    let (tag, at) = (encoded.tag, time::rfc3339(at));
    let mut line = format!("{{\"seq\":{seq},\"at\":\"{at}\",\"event\":\"{tag}\"").into_bytes();
    // The body is an object of ours: what follows its brace is spliced in, an empty one is not.
    let fields = encoded.body.strip_prefix(b"{").unwrap_or(b"}");
    if fields != b"}" {
        line.push(b',');
    }
    line.extend_from_slice(fields);
    line
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::event::RunArchived;

    use super::super::fixture::{Shared, state};
    use super::*;

    #[test]
    fn an_event_is_one_object_on_one_line() {
        let out = Shared::default();
        let mut stream = JsonStream::to(Box::new(out.clone()));
        let event = Event::RunArchived(RunArchived { by: "ann\n".to_owned() });
        stream.event(9, Timestamp(1_767_323_045_678), &event, &state());
        assert_eq!(
            out.text(),
            "{\"seq\":9,\"at\":\"2026-01-02T03:04:05.678Z\",\"event\":\"run.archived\",\
             \"by\":\"ann\\n\"}\n"
        );
    }

    #[test]
    fn every_line_is_json_and_notes_are_marked() {
        let out = Shared::default();
        let mut stream = JsonStream::to(Box::new(out.clone()));
        stream.note(&Note::Warning("disk \"full\"".to_owned()));
        let value: serde_json::Value = serde_json::from_str(&out.text()).unwrap();
        assert_eq!(value["note"], "warning: disk \"full\"");
        assert_eq!(value["kind"], "warning");
    }

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
        let mut stream = JsonStream::to(Box::new(Gone));
        stream.note(&Note::KeeperReplaced);
        assert!(stream.broken);
        stream.note(&Note::KeeperReplaced);
    }
}
