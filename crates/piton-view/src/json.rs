//! Events and notes as JSON, one object per line, for programs.
//!
//! The body of an event is what the ledger holds, with its place, time and tag in front. Notes have
//! no place in the ledger and are objects with a `note`.

use piton_core::{Event, RunState, Timestamp};
use piton_engine::Note;
use piton_formats::codec;
use serde::Serialize;

use crate::place::{At, Place};
use crate::words;

/// A value as JSON, with a newline at its end: readable, or on one line.
pub fn bytes(value: &impl Serialize, readable: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4096);
    let done = if readable {
        serde_json::to_writer_pretty(&mut bytes, value)
    } else {
        serde_json::to_writer(&mut bytes, value)
    };
    // Our own plain types serialise to memory without fail.
    debug_assert!(done.is_ok(), "a value that is no JSON");
    bytes.push(b'\n');
    bytes
}

/// A note as an object.
pub fn note(note: &Note, place: &Place) -> Vec<u8> {
    let (kind, note) = (words::note_kind(note), words::note(note, place));
    serde_json::json!({ "note": note, "kind": kind }).to_string().into_bytes()
}

/// One event as an object: the ledger's body with three keys in front.
pub fn line(seq: u64, at: Timestamp, event: &Event) -> Vec<u8> {
    let encoded = codec::encode(event);
    let (tag, at) = (encoded.tag, At(at));
    let mut line = format!("{{\"seq\":{seq},\"at\":\"{at}\",\"event\":\"{tag}\"").into_bytes();
    // The body is an object of ours: what follows its brace is spliced in, an empty one is not.
    let fields = encoded.body.strip_prefix(b"{").unwrap_or(b"}");
    if fields != b"}" {
        line.push(b',');
    }
    line.extend_from_slice(fields);
    line
}

/// The parts in which two states differ, by their keys.
pub fn differing(one: &RunState, other: &RunState) -> Vec<String> {
    let value = |state| serde_json::to_value(state).unwrap_or_default();
    let (one, other) = (value(one), value(other));
    let fields = one.as_object().into_iter().flatten();
    fields.filter(|(key, part)| other[key.as_str()] != **part).map(|(key, _)| key.clone()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::event::RunArchived;

    use super::*;

    #[test]
    fn an_event_is_one_object_on_one_line() {
        let event = Event::RunArchived(RunArchived { by: "ann\n".to_owned() });
        assert_eq!(
            String::from_utf8(line(9, Timestamp(1_767_323_045_678), &event)).unwrap(),
            "{\"seq\":9,\"at\":\"2026-01-02T03:04:05.678Z\",\"event\":\"run.archived\",\
             \"by\":\"ann\\n\"}"
        );
    }

    #[test]
    fn notes_are_marked() {
        let text = note(&Note::Warning("disk \"full\"".into()), &Place::default());
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["note"], "warning: disk \"full\"");
        assert_eq!(value["kind"], "warning");
    }
}
