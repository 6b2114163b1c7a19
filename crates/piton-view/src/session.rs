//! What the commands of a session answer, and what a recovery cost.

use piton_core::Millis;
use piton_core::event::{Cause, Event, Reason, SessionOpened};
use piton_core::session_state::{Cost, SessionState};
use piton_core::text::first_few;
use serde::Serialize;

use crate::shape::shapes;
use crate::text::{count, sanitize};

/// What is said when everything is written: it is part of what a recovery costs.
pub const SYNCED: &str =
    "all changes are written, and the checkpoint is removed: load the standard context";

/// Artifacts that are named in one line.
const ARTIFACTS_SHOWN_MAX: usize = 5;

/// How a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// There is no checkpoint.
    Fresh,
    /// It goes on from a checkpoint.
    Resumed,
    /// A person is asked whether it does.
    Asks,
    /// The checkpoint is too old.
    TooOld,
    /// The checkpoint does not fit any more.
    Failed,
    /// The protocol is switched off.
    Disabled,
    /// There is no memory bank.
    NoBank,
}

/// Why there is no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsaved {
    /// The conversation is not full enough.
    NotDue,
    /// This trigger made one in this session already.
    Done,
    /// The trigger is off.
    Off,
    /// No work is in progress.
    NoWork,
    /// The protocol is switched off.
    Disabled,
    /// There is no memory bank.
    NoBank,
}

shapes! {
    /// How a session started.
    Started {
        start: Start, run_id: Option<String>, session: Option<String>, task: Option<String>,
        /// Changes of the checkpoint that were applied.
        applied: usize,
        /// What a person should know.
        remarks: Vec<String>,
        /// What the agent reads first.
        context: Option<String>,
    }

    /// What came of a checkpoint.
    Saved {
        saved: bool, why: Option<Unsaved>, run_id: Option<String>, session: Option<String>,
        checkpoint: Option<String>, reason: Option<Reason>, task: Option<String>,
        files: Vec<String>,
        /// Whether the agent stops after its current operation.
        halt: bool,
        /// What a person is told.
        talk: String,
    }

    /// A task that moved.
    #[derive(Default)]
    Moved {
        run_id: Option<String>, task: String, column: Option<&'static str>,
        /// Whether the work of a checkpoint is finished with it.
        synced: bool,
        checkpoint: Option<String>,
        /// The next task.
        next: Option<String>,
    }

    /// A phase of the work of a session.
    Phase {
        run_id: String, session: String, phase: String, ended: bool,
        /// The phase that is under way now.
        current: Option<String>,
    }

    /// A file that a session made.
    Artifact {
        run_id: String, session: String, path: String, sha256: String, bytes: u64,
        task: Option<String>, message: String,
    }

    /// A session that ended.
    #[derive(Default)]
    Ended {
        run_id: Option<String>, session: Option<String>, checkpoint: Option<String>,
        task: Option<String>,
    }
}

impl Started {
    /// One that says only how it started.
    pub fn new(start: Start, remarks: Vec<String>) -> Self {
        let (run_id, session, task, context) = (None, None, None, None);
        Self { start, run_id, session, task, applied: 0, remarks, context }
    }

    /// Tells whether a checkpoint is there that the session does not continue from.
    pub fn needs_a_person(&self) -> bool {
        matches!(self.start, Start::Asks | Start::TooOld | Start::Failed)
    }

    /// What a person reads, line by line.
    pub fn warnings(&self) -> Vec<String> {
        let remarks = self.remarks.iter().map(|remark| sanitize(remark));
        let (lead, next) = match self.start {
            Start::Fresh => return vec!["no checkpoint: the session starts normally".to_owned()],
            Start::NoBank => return vec!["there is no memory bank here".to_owned()],
            Start::Disabled => return vec!["the session protocol is switched off here".to_owned()],
            Start::Resumed => ("warning", None),
            Start::Asks => ("question", Some("hint: resume with `piton session start --resume`")),
            Start::TooOld => {
                ("warning", Some("the checkpoint is kept; the session starts normally"))
            }
            Start::Failed => (
                "warning: the checkpoint cannot be resumed",
                Some(
                    "the checkpoint is kept, and progress.md says why; the session starts normally\n\
                     hint: fix this and start again, or continue without the checkpoint",
                ),
            ),
        };
        let lines = remarks.map(|remark| format!("{lead}: {remark}"));
        lines.chain(next.map(str::to_owned)).collect()
    }
}

impl Saved {
    /// One that was not made.
    pub fn not(why: Unsaved) -> Self {
        let (run_id, session, checkpoint, reason, task) = Default::default();
        let (why, files, talk) = (Some(why), Vec::new(), String::new());
        Self {
            saved: false,
            why,
            run_id,
            session,
            checkpoint,
            reason,
            task,
            files,
            halt: false,
            talk,
        }
    }

    /// What a person reads.
    pub fn words(&self) -> String {
        let Some(why) = self.why else {
            let name = self.checkpoint.as_deref().unwrap_or_default();
            let reason = self.reason.map_or("", Reason::as_str);
            let line = format!("recorded checkpoint {name} ({reason})");
            return if self.talk.is_empty() { line } else { format!("{line}\n\n{}", self.talk) };
        };
        let line = match why {
            Unsaved::NotDue => "no checkpoint is due",
            Unsaved::Done => "this session has that checkpoint already",
            Unsaved::Off => "the protocol file switches this trigger off",
            Unsaved::NoWork => "no work is in progress",
            Unsaved::Disabled => "the session protocol is switched off here",
            Unsaved::NoBank => "there is no memory bank here",
        };
        if self.talk.is_empty() { line.to_owned() } else { format!("{line}\n\n{}", self.talk) }
    }
}

impl Moved {
    /// What a person reads.
    pub fn words(&self) -> String {
        let Self { task, column, synced, next, .. } = self;
        let mut lines =
            vec![format!("{} is in {}", sanitize(task), column.unwrap_or("inProgress"))];
        if *synced {
            lines.push(SYNCED.to_owned());
        }
        lines.extend(next.as_ref().map(|next| format!("next: {}", sanitize(next))));
        lines.join("\n")
    }
}

impl Ended {
    /// What a person reads.
    pub fn words(&self) -> String {
        match (&self.run_id, &self.checkpoint, &self.task) {
            (None, ..) => "nothing to save".to_owned(),
            (_, Some(name), Some(task)) => {
                format!("recorded checkpoint {name}; {} is in progress", sanitize(task))
            }
            (_, Some(name), None) => format!("recorded checkpoint {name}"),
            (_, None, Some(task)) => {
                format!("the session ended without a checkpoint; {} is in progress", sanitize(task))
            }
            _ => "the session ended with nothing in progress".to_owned(),
        }
    }
}

/// A part of a recovery: its tokens, and what the protocol allows for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is called.
    pub name: &'static str,
    /// Its tokens; none if it did not happen yet, or nobody counted.
    pub tokens: Option<u64>,
    /// What the protocol allows.
    pub budget: u64,
}

impl Part {
    /// Tells whether it takes twice its budget.
    pub fn is_over(&self) -> bool {
        self.tokens.is_some_and(|tokens| tokens >= 2 * self.budget)
    }
}

/// What is said of a part that takes twice its budget.
pub const OVER: &str = "warning: twice its budget";
/// What the protocol allows for a whole recovery.
const TOTAL_TOKENS: u64 = 19_000;

/// What the last recovery of a session cost, part by part; nothing before its first checkpoint.
pub fn parts(session: &SessionState) -> Vec<Part> {
    let Cost { creation, load, context, completion, sync } = session.cost;
    if session.cost.total() == 0 {
        return Vec::new();
    }
    let happened = |tokens: u64| (tokens > 0).then_some(tokens);
    let all = [
        ("checkpoint creation", happened(creation), 500),
        ("checkpoint load", happened(load), 300),
        ("recovery context", happened(context), 2_000),
        ("task completion", completion, 15_000),
        ("full sync", happened(sync), 1_000),
        ("total", happened(session.cost.total()), TOTAL_TOKENS),
    ];
    all.into_iter().map(|(name, tokens, budget)| Part { name, tokens, budget }).collect()
}

/// The same for a person, line by line.
pub fn cost(session: &SessionState) -> Vec<String> {
    let line = |part: &Part| {
        let Part { name, tokens, budget } = part;
        let warning = if part.is_over() { format!("  {OVER}") } else { String::new() };
        let tokens = tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string());
        format!("{name:<20} {tokens:>7} of {budget:>6} tokens{warning}")
    };
    parts(session).iter().map(line).collect()
}

/// How far a session is.
pub fn progress(session: &SessionState, ago: Millis) -> String {
    let tasks = count(session.finished as usize, "task");
    format!("{tasks} finished, last event {ago} ago")
}

/// What a session is about, line by line, each with its name.
pub fn lines(session: &SessionState) -> Vec<(&'static str, String)> {
    let number = match session.sessions {
        0 | 1 => String::new(),
        number => format!(" (session {number} of this run)"),
    };
    let mut lines = vec![("session", format!("{}{number}", sanitize(&session.session)))];
    lines.extend(session.phase.as_ref().map(|phase| ("phase", sanitize(phase))));
    lines.extend(
        session.task.as_ref().map(|task| ("task", format!("{} is in progress", sanitize(task)))),
    );
    let artifacts = session.artifacts.iter().map(|artifact| sanitize(&artifact.path));
    lines.extend(first_few(artifacts, ARTIFACTS_SHOWN_MAX).map(|all| ("files", all)));
    lines
}

/// An event of a session in words.
pub fn event(event: &Event) -> Option<String> {
    Some(match event {
        Event::SessionOpened(SessionOpened { session, resumed: Some(resumed), .. }) => {
            let at = sanitize(&resumed.timestamp);
            format!("session {} resumed from the checkpoint of {at}", sanitize(session))
        }
        Event::SessionOpened(e) => format!("session {} began", sanitize(&e.session)),
        Event::SessionNotResumed(e) => {
            format!("the checkpoint was not resumed: {}", sanitize(&e.why))
        }
        Event::SessionChanged(e) => match (e.cause, &e.task) {
            (Cause::TaskStarted, Some(task)) => format!("task {} started", sanitize(task)),
            (Cause::TaskFinished, Some(task)) => format!("task {} finished", sanitize(task)),
            (Cause::Decomposed, Some(task)) => {
                format!("the task was split; {} is in progress", sanitize(task))
            }
            _ if e.changes.is_empty() => return None,
            _ => format!("{} applied", count(e.changes.len(), "change")),
        },
        Event::SessionPhase(e) => {
            let verb = if e.ended { "finished" } else { "started" };
            format!("phase {} {verb}", sanitize(&e.phase))
        }
        Event::SessionArtifact(e) => {
            let message = sanitize(&e.message);
            let message = if message.is_empty() { message } else { format!(": {message}") };
            format!("artifact {} recorded{message}", sanitize(&e.path))
        }
        Event::SessionSynced(_) => {
            "all changes are written, and the checkpoint is removed".to_owned()
        }
        Event::SessionEnded(e) => format!("session {} ended", sanitize(&e.session)),
        _ => return None,
    })
}
