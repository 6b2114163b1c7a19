//! The run log: one JSON object per line, appended and never changed.
//!
//! Reading accepts unknown events, statuses and fields, any time offset, and a last line that was cut
//! off by a crash; writing emits the fields of the contract in their order.

use std::ops::Range;

use piton_core::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::NONE;
use crate::time;
use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::sink::Sink;

/// Largest run log: hundreds of thousands of entries.
pub const RUN_LOG_BYTES_MAX: usize = 128 << 20;

words! {
    /// How an event ended.
    Status {
        /// Well.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// It waits for something.
        Blocked = "blocked",
        /// It was left out.
        Skipped = "skipped",
        /// It failed.
        Failed = "failed",
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One entry; its fields are written in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// When, as written.
    pub ts: String,
    /// The run.
    pub run_id: String,
    /// The phase.
    pub phase: String,
    /// The lane; `-` for none.
    pub lane: String,
    /// The task; `-` for none.
    pub task: String,
    /// What happened, in any word.
    pub event: String,
    /// How it ended.
    pub status: Status,
    /// The command it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<String>,
    /// How the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// Anything a person should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

impl Entry {
    /// An entry about a phase, or with lane and task about a part of it; `None` is written as `-`.
    pub fn new(at: Timestamp, run_id: &str, phase: &str, lane: Option<&str>, event: &str) -> Self {
        Self {
            ts: time::write(at),
            run_id: run_id.to_owned(),
            phase: phase.to_owned(),
            lane: lane.unwrap_or(NONE).to_owned(),
            task: NONE.to_owned(),
            event: event.to_owned(),
            status: Status::Ok,
            cmd: None,
            exit_code: None,
            notes: None,
        }
    }

    /// When, as a point in time.
    pub fn at(&self) -> Option<Timestamp> {
        time::read(&self.ts)
    }
}

/// An entry as a line, with its newline.
pub fn line(entry: &Entry) -> String {
    let mut text = serde_json::to_string(entry).unwrap_or_default();
    debug_assert!(!text.is_empty(), "texts and numbers are always JSON");
    text.push('\n');
    text
}

/// Reads as much of a log as possible, and all its problems.
pub fn read(file: &str, text: &str) -> (Vec<Entry>, Vec<Diagnostic>) {
    let mut sink = Sink::new(file, text);
    if text.len() > RUN_LOG_BYTES_MAX {
        let message = format!("the log is larger than {RUN_LOG_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "check that this is the right file");
        return (Vec::new(), sink.finish());
    }
    let mut found: Vec<Entry> = Vec::new();
    let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
    for raw in text[start..].split_inclusive('\n') {
        let span = start..start + raw.trim_end().len();
        start += raw.len();
        if raw.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Map<String, Value>>(raw.trim()) {
            Ok(object) => {
                let entry = entry(&object);
                check(&entry, found.first(), &span, &mut sink);
                found.push(entry);
            }
            Err(_) if !raw.ends_with('\n') => {
                let message = "the last line is cut off and was ignored";
                let hint = "no action is needed: the lines before it are complete";
                sink.warn(code::TORN_LINE, &span, message, hint);
            }
            Err(error) => {
                let words = error.to_string();
                let words = words.split(" at line ").next().unwrap_or_default();
                let message = format!("the line is not a JSON object: {words}");
                sink.error(code::BAD_JSON, &span, message, "correct or remove this line");
            }
        }
    }
    (found, sink.finish())
}

fn entry(object: &Map<String, Value>) -> Entry {
    let text = |name: &str| match object.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Bool(flag)) => Some(flag.to_string()),
        // What should be text but is a structure is kept as its JSON.
        Some(other @ (Value::Array(_) | Value::Object(_))) => Some(other.to_string()),
        Some(Value::Null) | None => None,
    };
    let or_none = |name| text(name).filter(|t| !t.is_empty()).unwrap_or_else(|| NONE.to_owned());
    Entry {
        ts: text("ts").or_else(|| text("timestamp")).unwrap_or_default(),
        run_id: text("run_id").unwrap_or_default(),
        phase: text("phase").unwrap_or_default(),
        lane: or_none("lane"),
        task: or_none("task"),
        event: text("event").unwrap_or_default(),
        status: Status::read(&text("status").unwrap_or_default()),
        cmd: text("cmd"),
        exit_code: text("exit_code").and_then(|code| code.trim().parse().ok()),
        notes: text("notes"),
    }
}

fn check(entry: &Entry, first: Option<&Entry>, span: &Range<usize>, sink: &mut Sink<'_>) {
    let fields = [("ts", &entry.ts), ("run_id", &entry.run_id), ("event", &entry.event)];
    let missing: Vec<&str> =
        fields.iter().filter(|(_, text)| text.is_empty()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let message = format!("the entry lacks {}", missing.join(", "));
        sink.error(code::BAD_RECORD, span, message, "every entry needs ts, run_id and event");
    } else if entry.at().is_none() {
        let message = format!("{} is not a time", quoted(&entry.ts));
        sink.warn(code::BAD_RECORD, span, message, "write it like 2025-12-27T10:30:00Z");
    }
    if let Status::Unknown(word) = &entry.status {
        let message = format!("unknown status {}", quoted(word));
        let hint = "known statuses: ok, error, blocked, skipped, failed";
        sink.warn(code::BAD_RECORD, span, message, hint);
    }
    let first = first.map(|first| &first.run_id);
    if let Some(first) = first.filter(|first| **first != entry.run_id && !entry.run_id.is_empty()) {
        let message =
            format!("the entry belongs to run {}, not to {}", quoted(&entry.run_id), quoted(first));
        sink.warn(code::BAD_RECORD, span, message, "use one log per run");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use piton_formats::diagnostic::Severity;

    const LOG: &str = concat!(
        r#"{"ts":"2026-01-02T02:16:23+01:00","run_id":"P1-1","phase":"P1","lane":"-","event":"phase_start","status":"ok"}"#,
        "\r\n",
        r#"{"ts":"2026-01-02T01:16:39Z","run_id":"P1-1","phase":"P1","lane":"SL-1","task":"T1","event":"odd_event","status":"odd","exit_code":"7","cmd":"make","notes":null,"more":[1]}"#,
        "\n",
    );

    #[test]
    fn offsets_unknown_words_and_texts_for_numbers_are_read() {
        let (found, problems) = read("x.jsonl", LOG);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].at(), time::read("2026-01-02T01:16:23Z"));
        assert_eq!((found[0].lane.as_str(), found[0].task.as_str()), ("-", "-"));
        let second = &found[1];
        assert_eq!((second.event.as_str(), second.status.as_str()), ("odd_event", "odd"));
        assert_eq!((second.exit_code, second.notes.clone()), (Some(7), None));
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].severity, problems[0].line), (Severity::Warning, 2));
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_left_out() {
        let (found, problems) = read("x.jsonl", &format!("{LOG}{{\"ts\":\"2026"));
        assert_eq!(found.len(), 2);
        assert_eq!((problems[1].code, problems[1].severity), (code::TORN_LINE, Severity::Warning));
    }

    #[test]
    fn a_bad_line_within_is_an_error_and_the_rest_is_read() {
        let (found, problems) = read("x.jsonl", &format!("\u{feff}nonsense\n\n{LOG}"));
        assert_eq!(found.len(), 2);
        assert_eq!((problems[0].severity, problems[0].line), (Severity::Error, 1));
        let (_, problems) = read("x.jsonl", "{\"ts\":\"2026-01-02T01:16:39Z\"}\n");
        assert!(problems[0].message.contains("run_id, event"), "{problems:?}");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut entry = Entry::new(Timestamp(1_766_831_400_000), "P1-1", "P1", None, "phase_start");
        assert_eq!(
            line(&entry),
            "{\"ts\":\"2025-12-27T10:30:00.000Z\",\"run_id\":\"P1-1\",\"phase\":\"P1\",\
             \"lane\":\"-\",\"task\":\"-\",\"event\":\"phase_start\",\"status\":\"ok\"}\n"
        );
        entry.cmd = Some("echo \"a\nb\"".to_owned());
        entry.exit_code = Some(-1);
        entry.notes = Some("ä".to_owned());
        entry.status = Status::Failed;
        let (found, problems) = read("x.jsonl", &line(&entry));
        assert_eq!((found[0].clone(), problems), (entry, vec![]));
    }
}
