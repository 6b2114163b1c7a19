//! One record of `checkpoints.json`: the known fields typed, and every field as it was written.
//!
//! Numbers may be strings and strings numbers; unknown stages and statuses are kept.

use std::fmt;
use std::ops::Range;

use piton_core::Timestamp;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::time;

words! {
    /// How far a lane came.
    Stage {
        /// Preconditions passed, nothing made yet.
        BeforeLaneStart = "before_lane_start",
        /// Worktree and branch are there.
        AfterLaneStart = "after_lane_start",
        /// The lane's tests ran.
        AfterLaneTests = "after_lane_tests",
        /// Before the merge or pull request.
        PrePr = "pre_pr",
        /// An attempt failed and another follows; never advances progress.
        RetryAttempt = "retry_attempt",
    }
}

words! {
    /// The status of a stage.
    Status {
        /// It can continue.
        Ready = "ready",
        /// It is being worked on.
        InProgress = "in_progress",
        /// Failed.
        Failed = "failed",
        /// Something must change first.
        Blocked = "blocked",
        /// Done.
        Complete = "complete",
        /// Undone.
        RolledBack = "rolled_back",
        /// Another attempt follows.
        Retrying = "retrying",
    }
}

impl From<piton_core::lane::Stage> for Stage {
    fn from(stage: piton_core::lane::Stage) -> Self {
        Self::read(stage.as_str())
    }
}

impl From<piton_core::lane::StageStatus> for Status {
    fn from(status: piton_core::lane::StageStatus) -> Self {
        Self::read(status.as_str())
    }
}

/// The key of a record: run, phase, lane and stage.
pub type Key<'r> = (&'r str, &'r str, &'r str, &'r str);

/// Fields that every reader needs.
const REQUIRED: [&str; 6] = ["run_id", "phase", "lane", "stage", "status", "timestamp"];

/// One record as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The run.
    pub run_id: String,
    /// The phase.
    pub phase: String,
    /// The lane; `-` for the phase itself.
    pub lane: String,
    /// How far it came.
    pub stage: Stage,
    /// The status of that stage.
    pub status: Status,
    /// When it was written, as written.
    pub timestamp: String,
    /// The same as a time, if it is valid.
    pub at: Option<Timestamp>,
    /// Its line, from 1.
    pub line: usize,
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// Every field in its order, the value as JSON text.
    pub fields: Vec<(String, String)>,
}

impl Record {
    /// Reads one element of the array; one that is not an object has no fields.
    pub(super) fn read(line: usize, start: usize, raw: &str) -> Self {
        let fields = fields(raw);
        let field = |name: &str| text_of(&fields, name).unwrap_or_default();
        let timestamp = field("timestamp");
        Self {
            run_id: field("run_id"),
            phase: field("phase"),
            lane: field("lane"),
            stage: Stage::read(&field("stage")),
            status: Status::read(&field("status")),
            at: time::read(&timestamp),
            timestamp,
            line,
            span: start..start + raw.len(),
            fields,
        }
    }

    /// The key of a record: run, phase, lane and stage.
    pub fn key(&self) -> Key<'_> {
        (&self.run_id, &self.phase, &self.lane, self.stage.as_str())
    }

    /// The required fields it lacks.
    pub fn missing(&self) -> Vec<&'static str> {
        let lacks = |name: &&str| text_of(&self.fields, name).is_none_or(|text| text.is_empty());
        REQUIRED.into_iter().filter(lacks).collect()
    }

    /// A field as text; numbers and booleans too.
    pub fn text(&self, name: &str) -> Option<String> {
        text_of(&self.fields, name)
    }

    /// A field as a whole number, also one written as text.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name)?.trim().parse().ok()
    }

    /// A field as a list of texts; a single text is a list of one.
    pub fn texts(&self, name: &str) -> Vec<String> {
        match value_of(&self.fields, name) {
            Some(Value::Array(items)) => items.iter().filter_map(scalar).collect(),
            Some(value) => scalar(&value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// The number of the retry, from 1.
    pub fn retry_attempt(&self) -> Option<u32> {
        self.number("retry_attempt").and_then(|n| u32::try_from(n).ok())
    }

    /// How many retries there may be.
    pub fn max_retries(&self) -> Option<u32> {
        self.number("max_retries").and_then(|n| u32::try_from(n).ok())
    }

    /// What failed before.
    pub fn failure_context(&self) -> Vec<String> {
        self.texts("failure_context")
    }

    /// The first byte of the record, to point at in a message.
    pub(super) fn head(&self) -> Range<usize> {
        self.span.start..(self.span.start + 1).min(self.span.end)
    }
}

/// The last value of a name: of a field written twice the later one counts.
fn value_of(fields: &[(String, String)], name: &str) -> Option<Value> {
    let (_, raw) = fields.iter().rev().find(|(key, _)| key == name)?;
    serde_json::from_str(raw).ok()
}

fn text_of(fields: &[(String, String)], name: &str) -> Option<String> {
    scalar(&value_of(fields, name)?)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The fields of an object in their order; empty if it is not an object.
pub(super) fn fields(raw: &str) -> Vec<(String, String)> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<(String, String)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                found.push((name, value.get().to_owned()));
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(raw).deserialize_map(Fields).unwrap_or_default()
}
