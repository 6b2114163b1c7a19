//! Writes our records into `checkpoints.json` and leaves everything else as it is.
//!
//! A record is replaced where it stands, or appended; the text between and within other records
//! stays byte for byte. Fields that people added to a record of ours follow ours. With no file and the
//! same records in the same order, the same bytes come out: the file can be rebuilt.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use piton_core::Timestamp;
use serde_json::Value;

use super::record::{Key, Record, Stage, Status, fields};
use super::{elements, records};
use crate::diagnostic::Diagnostic;
use crate::lanes::time;

/// A record that Piton writes; every field of the contract is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRecord {
    /// The run.
    pub run_id: String,
    /// The phase.
    pub phase: String,
    /// The lane; `-` for the phase as a whole.
    pub lane: String,
    /// How far it came.
    pub stage: Stage,
    /// How it stands there.
    pub status: Status,
    /// The branch that lanes are merged into.
    pub base_branch: String,
    /// Absolute path of the worktree, or of the repository's root for a lane in place.
    pub worktree_path: String,
    /// Absolute path of the run log.
    pub log_path: String,
    /// When it was written.
    pub timestamp: Timestamp,
    /// Anything a person should know.
    pub notes: String,
    /// How to go on, for a shell.
    pub resume_hint: String,
    /// How to go back, for a shell.
    pub rollback_hint: String,
    /// The number of the retry, from 1, once one happened.
    pub retry_attempt: Option<u32>,
    /// How many retries there may be, once one happened.
    pub max_retries: Option<u32>,
    /// What failed in the attempts before, once one did.
    pub failure_context: Option<Vec<String>>,
    /// The test that ran.
    pub test_command: Option<String>,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// The commit the lane started from.
    pub base_sha: Option<String>,
    /// The lane's commit.
    pub head_sha: Option<String>,
    /// The branch it goes to.
    pub target_branch: Option<String>,
    /// The command that ran last.
    pub last_command: Option<String>,
}

/// Names of all fields that Piton writes; any other belongs to somebody else.
const OWN_FIELDS: [&str; 21] = [
    "run_id",
    "phase",
    "lane",
    "stage",
    "status",
    "base_branch",
    "worktree_path",
    "log_path",
    "timestamp",
    "notes",
    "resume_hint",
    "rollback_hint",
    "retry_attempt",
    "max_retries",
    "failure_context",
    "test_command",
    "exit_code",
    "base_sha",
    "head_sha",
    "target_branch",
    "last_command",
];

impl OwnRecord {
    fn key(&self) -> Key<'_> {
        (&self.run_id, &self.phase, &self.lane, self.stage.as_str())
    }

    /// Its fields in the order of the contract, values as JSON; those it does not have are left out.
    fn values(&self) -> Vec<(&'static str, Value)> {
        let text = |text: &String| Some(Value::from(text.as_str()));
        let maybe = |text: &Option<String>| text.as_deref().map(Value::from);
        let values = [
            text(&self.run_id),
            text(&self.phase),
            text(&self.lane),
            Some(Value::from(self.stage.as_str())),
            Some(Value::from(self.status.as_str())),
            text(&self.base_branch),
            text(&self.worktree_path),
            text(&self.log_path),
            Some(Value::from(time::write(self.timestamp))),
            text(&self.notes),
            text(&self.resume_hint),
            text(&self.rollback_hint),
            self.retry_attempt.map(Value::from),
            self.max_retries.map(Value::from),
            self.failure_context.as_ref().map(|lines| Value::from(lines.as_slice())),
            maybe(&self.test_command),
            self.exit_code.map(Value::from),
            maybe(&self.base_sha),
            maybe(&self.head_sha),
            maybe(&self.target_branch),
            maybe(&self.last_command),
        ];
        let named = OWN_FIELDS.into_iter().zip(values);
        named.filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The record as text, as an element of the array, with foreign fields after ours.
    fn render(&self, foreign: &[(String, String)]) -> String {
        let ours = self.values().into_iter().map(|(name, value)| (name.to_owned(), json(&value)));
        let mut out = String::from("{");
        for (at, (name, value)) in ours.chain(foreign.iter().cloned()).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\n    {}: {value}", Value::from(name));
        }
        out.push_str("\n  }");
        out
    }
}

/// A value as text; a list has one line per item.
fn json(value: &Value) -> String {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let lines: Vec<String> = items.iter().map(|item| format!("      {item}")).collect();
            format!("[\n{}\n    ]", lines.join(",\n"))
        }
        other => other.to_string(),
    }
}

/// The file with our records in it; `text` is what it holds now, if it exists.
///
/// Of several records of ours with one key the last counts. A file that cannot be read is refused:
/// what to do with it is the caller's decision.
pub fn update(
    file: &str,
    text: Option<&str>,
    ours: &[OwnRecord],
) -> Result<String, Box<Diagnostic>> {
    let text = text.unwrap_or_default();
    let elements = elements(file, text)?;
    let found = records(text, &elements);
    let mut twins: BTreeMap<Key<'_>, Vec<&Record>> = BTreeMap::new();
    for record in &found {
        twins.entry(record.key()).or_default().push(record);
    }
    let newest: BTreeMap<Key<'_>, &OwnRecord> = ours.iter().map(|own| (own.key(), own)).collect();

    let mut changed = false;
    // Pieces of the array: the text before an element, and the element.
    let mut pieces: Vec<(&str, String)> = Vec::new();
    let mut end = text.len() - text.trim_start_matches('\u{feff}').len();
    for ((start, raw), record) in elements.iter().zip(&found) {
        let gap = &text[end..*start];
        end = start + raw.len();
        let Some(own) = newest.get(&record.key()) else {
            pieces.push((gap, (*raw).to_owned()));
            continue;
        };
        let twins = &twins[&record.key()];
        if twins[0].span != record.span {
            // The contract knows one record per key; the fields added here went into the first.
            changed = true;
            continue;
        }
        let new = own.render(&foreign(twins));
        let keep = same(&new, raw);
        changed |= !keep;
        pieces.push((gap, if keep { (*raw).to_owned() } else { new }));
    }
    let mut written: BTreeSet<Key<'_>> = twins.keys().copied().collect();
    let appended: Vec<String> = ours
        .iter()
        .filter(|own| written.insert(own.key()))
        .map(|own| newest[&own.key()].render(&[]))
        .collect();
    if !changed && appended.is_empty() && !text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    Ok(join(&pieces, &appended, &text[end..]))
}

/// Fields of the records with one key that are not ours.
fn foreign(twins: &[&Record]) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::new();
    for (name, value) in twins.iter().flat_map(|record| &record.fields) {
        if !OWN_FIELDS.contains(&name.as_str()) {
            kept.retain(|(known, _)| known != name);
            kept.push((name.clone(), value.clone()));
        }
    }
    kept
}

/// Tells whether two records say the same, whatever their form.
fn same(new: &str, old: &str) -> bool {
    let names = |raw: &str| fields(raw).len();
    let value = |raw: &str| serde_json::from_str::<Value>(raw).ok();
    names(new) == names(old) && value(new) == value(old)
}

/// The array: its elements with what stood between them, then the new ones.
fn join(pieces: &[(&str, String)], appended: &[String], tail: &str) -> String {
    if pieces.is_empty() {
        if appended.is_empty() {
            return "[]\n".to_owned();
        }
        return format!("[\n  {}\n]\n", appended.join(",\n  "));
    }
    let mut out = String::new();
    for (gap, element) in pieces {
        out.push_str(gap);
        out.push_str(element);
    }
    for element in appended {
        let _ = write!(out, ",\n  {element}");
    }
    out.push_str(tail);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}
