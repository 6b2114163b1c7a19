//! The checkpoint file of a session: `latest.json`, its backups and emergency saves.

use piton_core::Timestamp;
use piton_core::event::Reason;
use piton_formats::Diagnostic;
use piton_formats::diagnostic::code;
use piton_formats::json::{Object, Tree};
use piton_formats::sink::Sink;
use serde_json::{Value, json};

use crate::time;

/// The version that is written.
const VERSION: &str = "1.0";
/// The remark in a file without a checkpoint.
const NOTES: &str =
    "This file is automatically managed. Empty state indicates no active checkpoint.";

/// A checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Its time as it is written; empty if there is no checkpoint.
    pub timestamp: String,
    /// Why it was made.
    pub reason: String,
    /// Tokens of the conversation, and how full it was in percent.
    pub tokens: (u64, u64),
    /// How much context the agent had loaded.
    pub mode: String,
    /// Tasks that are done.
    pub completed: Vec<String>,
    /// Tasks in progress.
    pub in_progress: Vec<String>,
    /// The next tasks: id and title.
    pub backlog: Vec<(String, String)>,
    /// The phase of the project.
    pub phase: String,
    /// The stack.
    pub stack_id: String,
    /// The sprint.
    pub sprint: String,
    /// The objective.
    pub objective: String,
    /// What to do next.
    pub next_steps: Vec<String>,
    /// Changes that were not written to the files yet.
    pub deltas: Vec<Value>,
    /// How to go on, in a sentence.
    pub instructions: String,
    /// The run and the session that it is of, if Piton made it.
    pub owner: Option<(String, String)>,
}

impl Checkpoint {
    /// Tells whether it is a checkpoint at all.
    pub fn is_active(&self) -> bool {
        !self.timestamp.is_empty()
    }

    /// Its time.
    pub fn at(&self) -> Option<Timestamp> {
        time::read(&self.timestamp)
    }

    /// Reads a file, and says what is odd about it.
    pub fn read(file: &str, text: &str) -> Result<(Self, Vec<Diagnostic>), Box<Diagnostic>> {
        let object = Object::new(file, text)?;
        let mut sink = Sink::new(file, text);
        let get = |path: &[&str]| object.get(path);
        let word = |path: &[&str]| text_of(get(path).as_ref());
        let list = |path: &[&str]| ids(get(path).as_ref());
        let number = |path: &[&str]| get(path).as_ref().and_then(Value::as_f64).unwrap_or(0.0);
        let backlog = get(&["state", "backlogSnapshot"]).unwrap_or_default();
        let backlog = backlog.as_array().into_iter().flatten().map(|item| match item {
            Value::String(id) => (id.clone(), String::new()),
            item => (text_of(item.get("id")), text_of(item.get("title"))),
        });
        let deltas = get(&["deltaChanges"]).unwrap_or_default();
        let owner = (word(&["piton", "run"]), word(&["piton", "session"]));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
        let found = Self {
            timestamp: word(&["timestamp"]).trim().to_owned(),
            reason: word(&["reason"]),
            tokens: (
                number(&["tokenUsage", "total"]) as u64,
                number(&["tokenUsage", "percentage"]) as u64,
            ),
            mode: word(&["tokenUsage", "mode"]),
            completed: list(&["state", "completedTasks"]),
            in_progress: list(&["state", "inProgress"]),
            backlog: backlog.collect(),
            phase: word(&["state", "currentPhase"]),
            stack_id: word(&["context", "STACK_ID"]),
            sprint: word(&["context", "currentSprint"]),
            objective: word(&["context", "activeObjective"]),
            next_steps: list(&["nextSteps"]),
            deltas: deltas.as_array().cloned().unwrap_or_default(),
            instructions: word(&["resumeInstructions"]),
            owner: (!owner.0.is_empty()).then_some(owner),
        };
        let mut odd = |path: &[&str], words: String, hint: &str| {
            let span = object.span(path).unwrap_or(0..0);
            sink.warn(code::BAD_VALUE, &span, words, hint);
        };
        if found.is_active() && found.at().is_none() {
            odd(
                &["timestamp"],
                "the timestamp is not a time".to_owned(),
                "write it like 2025-10-30T15:30:00Z",
            );
        }
        let is_known = Reason::ALL.iter().any(|reason| reason.as_str() == found.reason);
        if found.is_active() && !is_known {
            let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
            let words = format!("unknown reason `{}`", found.reason);
            odd(&["reason"], words, &format!("the protocol has {}", known.join(", ")));
        }
        Ok((found, sink.finish()))
    }

    /// The bytes of its file, with the members in the order of the protocol.
    pub fn write(&self) -> String {
        let list = |all: &[String]| Tree::List(all.iter().map(|one| one.as_str().into()).collect());
        let in_progress = match self.in_progress.as_slice() {
            [] => "".into(),
            [one] => one.as_str().into(),
            many => list(many),
        };
        let task = |(id, title): &(String, String)| {
            Tree::object([("id", id.as_str().into()), ("title", title.as_str().into())])
        };
        let text = |text: &String| Tree::from(text.as_str());
        let mut members = vec![
            ("version", VERSION.into()),
            ("timestamp", text(&self.timestamp)),
            ("reason", text(&self.reason)),
            (
                "tokenUsage",
                Tree::object([
                    ("total", self.tokens.0.into()),
                    ("percentage", self.tokens.1.into()),
                    ("mode", text(&self.mode)),
                ]),
            ),
            (
                "state",
                Tree::object([
                    ("completedTasks", list(&self.completed)),
                    ("inProgress", in_progress),
                    ("backlogSnapshot", Tree::List(self.backlog.iter().map(task).collect())),
                    ("currentPhase", text(&self.phase)),
                ]),
            ),
            (
                "context",
                Tree::object([
                    ("STACK_ID", text(&self.stack_id)),
                    ("currentSprint", text(&self.sprint)),
                    ("activeObjective", text(&self.objective)),
                ]),
            ),
            ("nextSteps", list(&self.next_steps)),
        ];
        let deltas = Tree::List(self.deltas.iter().cloned().map(Tree::from).collect());
        let rest = [("deltaChanges", deltas), ("resumeInstructions", text(&self.instructions))];
        if let Some((run, session)) = &self.owner {
            members.extend(rest);
            let owner = Tree::object([("run", text(run)), ("session", text(session))]);
            members.push(("piton", owner));
        } else {
            // Byte for byte the file that memory banks come with: a project that has it in git sees no
            // change.
            members.extend(rest.into_iter().rev());
            members.push(("notes", NOTES.into()));
        }
        // An empty object is one, so there is a text.
        let Ok(mut object) = Object::new("", "{}") else { return String::new() };
        for (name, value) in members {
            object.set(&[name], value);
        }
        let mut text = object.into_text();
        text.push('\n');
        text
    }

    /// The file without a checkpoint.
    pub fn empty() -> Self {
        Self { mode: "standard".to_owned(), ..Self::default() }
    }

    /// The same for `piton inspect`.
    pub fn to_json(&self) -> Value {
        json!({
            "active": self.is_active(),
            "reason": self.reason,
            "timestamp": self.timestamp,
            "stack_id": self.stack_id,
            "completed": self.completed,
            "in_progress": self.in_progress,
            "next_steps": self.next_steps,
            "deltas": self.deltas.len(),
        })
    }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Ids: a list, or one as a string; a task with more about it has its id as a member.
fn ids(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::Object(task) => text_of(task.get("id")),
        value => text_of(Some(value)),
    };
    let all: Vec<String> = match value {
        Some(Value::Array(items)) => items.iter().map(one).collect(),
        Some(value) => vec![one(value)],
        None => Vec::new(),
    };
    all.into_iter().filter(|id| !id.trim().is_empty()).collect()
}
