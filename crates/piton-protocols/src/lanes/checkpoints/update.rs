//! Writes our records into `checkpoints.json` and leaves everything else as it is.
//!
//! The text between and within other records stays byte for byte, and so do their places. Our own
//! records are in the order of the arguments: the same records always give the same bytes, so the file
//! can be rebuilt. Fields that people added to one of our records follow our fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use piton_core::Timestamp;
use serde_json::Value;

use super::record::{Key, Record, Stage, Status, fields};
use super::{elements, records};
use crate::time;
use piton_formats::diagnostic::Diagnostic;

/// A record that Piton writes; every field of the contract is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRecord {
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
    /// The shell command that resumes.
    pub resume_hint: String,
    /// The shell command that rolls back.
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

/// The field that keeps what people set in fields of ours.
const EDITED: &str = "edited";
/// Between two records, as they are written.
const BETWEEN: &str = ",\n  ";
/// About what a record takes.
const RECORD_BYTES: usize = 1024;

impl OwnRecord {
    pub(super) fn key(&self) -> Key<'_> {
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
    pub(super) fn render(&self, foreign: &[(String, String)]) -> String {
        let mut out = String::with_capacity(RECORD_BYTES);
        out.push('{');
        for (at, (name, value)) in self.values().into_iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\n    \"{name}\": ");
            json(&value, &mut out);
        }
        for (name, value) in foreign {
            let _ = write!(out, ",\n    {}: {value}", Value::from(name.as_str()));
        }
        out.push_str("\n  }");
        out
    }
}

/// Appends a value; a list has one line per item.
fn json(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                let _ = write!(out, "{}\n      {item}", if at == 0 { "[" } else { "," });
            }
            out.push_str("\n    ]");
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// The fields of our records as they were written last, by run, phase, lane and stage: what differs from
/// them in the file is a person's.
#[derive(Clone, Debug, Default)]
pub struct Written(BTreeMap<[String; 4], BTreeMap<&'static str, Value>>);

impl Written {
    /// Takes note of what is written now.
    pub fn keep(&mut self, ours: &[OwnRecord]) {
        let key = |(run, phase, lane, stage): Key<'_>| [run, phase, lane, stage].map(str::to_owned);
        let record = |own: &OwnRecord| (key(own.key()), own.values().into_iter().collect());
        self.0 = ours.iter().map(record).collect();
    }

    /// The fields of ours that somebody else set in a record, with their values.
    fn edited(&self, own: &OwnRecord, there: &[&Record]) -> Vec<(String, Value)> {
        let (run, phase, lane, stage) = own.key();
        let before = self.0.get(&[run, phase, lane, stage].map(str::to_owned));
        let ours: BTreeMap<&str, Value> = own.values().into_iter().collect();
        let mut found = Vec::new();
        for (name, raw) in there.iter().flat_map(|record| &record.fields) {
            let Some(name) = OWN_FIELDS.into_iter().find(|own| own == name) else { continue };
            let Ok(value) = serde_json::from_str::<Value>(raw) else { continue };
            let wrote = match before {
                Some(before) => before.get(name),
                // Written by an earlier process: only a record of this very moment can be compared.
                None if is_of_moment(there, &ours) => ours.get(name),
                None => continue,
            };
            if wrote != Some(&value) && ours.get(name) != Some(&value) {
                found.push((name.to_owned(), value));
            }
        }
        found
    }
}

/// Whether a record was written when ours was.
fn is_of_moment(there: &[&Record], ours: &BTreeMap<&str, Value>) -> bool {
    let written = ours.get("timestamp").and_then(Value::as_str);
    there.iter().any(|record| Some(record.timestamp.as_str()) == written)
}

/// Fields that somebody set in a record of ours, beside those that are there of an earlier time.
fn with_edited(
    mut added: Vec<(String, String)>,
    edited: Vec<(String, Value)>,
) -> Vec<(String, String)> {
    if edited.is_empty() {
        return added;
    }
    let at = added.iter().position(|(name, _)| name == EDITED);
    let old = at.map(|at| added.remove(at).1);
    let mut all: serde_json::Map<String, Value> =
        old.and_then(|raw| serde_json::from_str(&raw).ok()).unwrap_or_default();
    all.extend(edited);
    added.push((EDITED.to_owned(), Value::Object(all).to_string()));
    added
}

/// The file with our records in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The text.
    pub text: String,
    /// Whether records of other runs are in it.
    pub others: bool,
}

/// Puts our records into the file; `text` is its present content, if it exists.
///
/// `ours` is all there is to say about the lanes it names: a record of such a lane at a known stage
/// that is not among them is out of date and goes, unless a person added a field to it. Of several
/// records of ours with one key the last counts. A file that cannot be read is refused: what to do
/// with it is the caller's decision.
pub fn update(
    file: &str,
    text: Option<&str>,
    ours: &[OwnRecord],
    written: &Written,
) -> Result<Updated, Box<Diagnostic>> {
    let text = text.unwrap_or_default();
    let elements = elements(file, text)?;
    let found = records(text, &elements);
    let mut twins: BTreeMap<Key<'_>, Vec<&Record>> = BTreeMap::new();
    for record in &found {
        twins.entry(record.key()).or_default().push(record);
    }
    let newest: BTreeMap<Key<'_>, &OwnRecord> = ours.iter().map(|own| (own.key(), own)).collect();
    let mut order: Vec<Key<'_>> = Vec::new();
    let mut rank: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    for own in ours {
        rank.entry(own.key()).or_insert_with(|| {
            order.push(own.key());
            order.len() - 1
        });
    }

    let mut array = Array::default();
    let mut end = text.len() - text.trim_start_matches('\u{feff}').len();
    for ((start, raw), record) in elements.iter().zip(&found) {
        let gap = &text[end..*start];
        end = start + raw.len();
        let own = rank.get(&record.key()).copied();
        // The contract knows one record per key; the fields added here go into the first.
        let is_twin = own.is_some() && twins[&record.key()][0].span != record.span;
        if is_twin || (own.is_none() && is_stale(record, &newest)) {
            array.dropped(gap);
        } else {
            array.items.push(Item { gap: Some(gap), raw, own });
        }
    }
    array.set_in_order();
    array.insert_missing(order.len());
    let content = |item: &Item<'_>| {
        let Some(own) = item.own else { return item.raw.to_owned() };
        let key = order[own];
        let there: &[&Record] = twins.get(&key).map_or(&[], |twins| twins.as_slice());
        let added = with_edited(foreign(there), written.edited(newest[&key], there));
        let new = newest[&key].render(&added);
        if new != item.raw && same(&new, item.raw) { item.raw.to_owned() } else { new }
    };
    let written = array.write(content, &text[end..]);
    // Without records, or if only a byte order mark or the last newline differs, nothing changes.
    let body = text.trim_start_matches('\u{feff}');
    let is_idle = order.is_empty() && elements.is_empty() && !body.trim().is_empty();
    let is_same = written == body || written.strip_suffix('\n') == Some(body);
    let own_run = ours.first().map(|own| own.run_id.as_str());
    let is_stranger = |record: &Record| {
        !rank.contains_key(&record.key()) && Some(record.run_id.as_str()) != own_run
    };
    let others = found.iter().any(is_stranger);
    let text = if is_idle || is_same { text.to_owned() } else { written };
    Ok(Updated { text, others })
}

/// Whether a record is one that we would have written, and no longer do.
fn is_stale(record: &Record, ours: &BTreeMap<Key<'_>, &OwnRecord>) -> bool {
    let (run_id, phase, lane, _) = record.key();
    let of_lane = ours.range((run_id, phase, lane, "")..).next();
    let is_ours = of_lane.is_some_and(|(key, _)| (key.0, key.1, key.2) == (run_id, phase, lane));
    let known = !matches!(record.stage, Stage::Unknown(_));
    is_ours && known && foreign(&[record]).is_empty()
}

/// The array in the making.
#[derive(Default)]
struct Array<'t> {
    /// What stood before the first element, if that is gone.
    open: Option<&'t str>,
    items: Vec<Item<'t>>,
}

/// An element, of ours by its rank, or of others.
struct Item<'t> {
    /// What stood before it; none for a new one.
    gap: Option<&'t str>,
    raw: &'t str,
    own: Option<usize>,
}

impl<'t> Array<'t> {
    fn dropped(&mut self, gap: &'t str) {
        if gap.contains('[') {
            self.open = Some(gap);
        }
    }

    /// Sorts our records among their places.
    fn set_in_order(&mut self) {
        let mut present: Vec<(usize, &'t str)> =
            self.items.iter().filter_map(|item| Some((item.own?, item.raw))).collect();
        present.sort_unstable_by_key(|(own, _)| *own);
        let slots = self.items.iter_mut().filter(|item| item.own.is_some());
        for (item, (own, raw)) in slots.zip(present) {
            (item.own, item.raw) = (Some(own), raw);
        }
    }

    /// Adds those of ours that are not there: each behind the one before it, or else before the first.
    fn insert_missing(&mut self, count: usize) {
        let present: BTreeSet<usize> = self.items.iter().filter_map(|item| item.own).collect();
        let mut missing = (0..count).filter(|own| !present.contains(own)).peekable();
        let mut items = Vec::with_capacity(self.items.len() + count);
        let mut add_before = |end: usize, items: &mut Vec<Item<'t>>| {
            while let Some(own) = missing.next_if(|own| *own < end) {
                items.push(Item { gap: None, raw: "", own: Some(own) });
            }
        };
        for item in std::mem::take(&mut self.items) {
            let own = item.own;
            if let Some(own) = own {
                add_before(own, &mut items);
            }
            items.push(item);
            if let Some(own) = own {
                let next = present.range(own + 1..).next().copied();
                add_before(next.unwrap_or(count), &mut items);
            }
        }
        add_before(count, &mut items);
        self.items = items;
    }

    /// The text: elements with what stood between them.
    fn write(&self, content: impl Fn(&Item<'_>) -> String, tail: &str) -> String {
        if self.items.is_empty() {
            return "[]\n".to_owned();
        }
        // Between elements there is a comma, before the first the bracket.
        let first = || self.items.iter().find_map(|item| item.gap.filter(|gap| gap.contains('[')));
        let opened = self.open.or_else(first);
        let mut out = String::new();
        for (index, item) in self.items.iter().enumerate() {
            let gap = match item.gap {
                _ if index == 0 => opened.unwrap_or("[\n  "),
                Some(gap) if gap.contains(',') => gap,
                _ => BETWEEN,
            };
            out.push_str(gap);
            out.push_str(&content(item));
        }
        out.push_str(if opened.is_some() { tail } else { "\n]\n" });
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out
    }
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
