//! The one error type of the program: a kind that picks the exit code, a code for `piton explain`,
//! the cause, and what to do next.

use std::borrow::Cow;
use std::fmt;

use piton_core::refusal::{Refusal, Remedy};
use piton_core::remedy;
use piton_ledger::Owner;
use piton_world::workspaces;

/// What kind of ending this is; each has one exit code, documented in `docs/exit-codes.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something failed.
    Failed,
    /// The command line or a document is wrong.
    Usage,
    /// A person must decide.
    Waiting,
    /// A check on resume or a precondition holds the run back.
    Blocked,
    /// Another process drives the run.
    Driven,
    /// A budget is used up.
    Budget,
    /// A signal ended the work.
    Interrupted(i32),
}

impl Kind {
    /// The exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Waiting => 3,
            Self::Blocked => 4,
            Self::Driven => 5,
            Self::Budget => 6,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(130),
        }
    }
}

/// An error as a user meets it.
#[derive(Debug)]
pub struct CommandError {
    /// Picks the exit code.
    pub kind: Kind,
    /// The code that `piton explain` knows; empty if the message was already printed.
    pub code: Cow<'static, str>,
    /// What went wrong.
    pub message: String,
    /// What to do next, one line each.
    pub hints: Vec<Remedy>,
}

/// Shorthand for results of commands.
pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    /// Makes an error.
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code: code.into(), message: message.into(), hints: Vec::new() }
    }

    /// A failure.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, code, message)
    }

    /// A wrong command line or document.
    pub fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, code, message)
    }

    /// A refusal.
    pub fn refused(kind: Kind, refusal: impl Into<Refusal>) -> Self {
        let Refusal { code, cause, remedies } = refusal.into();
        Self { kind, code, message: cause, hints: remedies }
    }

    /// An ending whose words were already printed: only the exit code remains.
    pub fn silent(kind: Kind) -> Self {
        Self::new(kind, "", "")
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Remedy>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The refusal to use a ledger that is older than it was.
    pub fn behind(message: String) -> Self {
        Self::new(Kind::Blocked, "ledger-behind", message)
            .hint("copy its folder away, then restore the last backup")
            .hint(remedy![
                Piton "doctor --restored",
                Words " accepts a backup, or the ledger as it is: what was recorded since counts as \
                       never done"
            ])
            .hint(new_ledger())
    }

    /// The refusal to touch a run that another process drives, with what watches that process and
    /// what takes the run over from it.
    pub fn driven(what: &str, owner: Option<&Owner>, watch: &str, take: Remedy) -> Self {
        let name = owner.map_or("another process".to_owned(), ToString::to_string);
        let mut message = format!("{what} is driven by {name}");
        let mut first = remedy![Words "watch it with ", Piton "{watch}"];
        if let Some(Owner { pid, .. }) = owner.filter(|owner| owner.is_stopped()) {
            message.push_str(", which is stopped");
            first = remedy![Words "let it continue with ", Shell "kill -CONT {pid}"];
        }
        let error = Self::new(Kind::Driven, "run-driven", message);
        error.hint(first).hint(remedy![Words "take it over with "].and(take))
    }

    /// What to do about a driver that is stopped.
    pub fn wake(Owner { pid, .. }: &Owner, run: &str) -> Remedy {
        remedy![
            Words "let it continue with ",
            Shell "kill -CONT {pid}",
            Words ", or replace it with ",
            Piton "resume {run} --takeover",
        ]
    }

    fn taken_over(message: String) -> Self {
        Self::new(Kind::Driven, "run-taken-over", message)
            .hint(remedy![Words "nothing more was done here; watch the run with ", Piton "attach"])
    }
}

/// Where to find out what is wrong.
fn doctor() -> Remedy {
    remedy![Piton "doctor", Words " shows what is wrong"]
}

fn new_ledger() -> Remedy {
    remedy![Piton "doctor --new-ledger", Words " sets it aside and starts a new one"]
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        Self::refused(Kind::Failed, refusal)
    }
}

impl From<workspaces::Error> for CommandError {
    fn from(error: workspaces::Error) -> Self {
        piton_engine::Error::from(error).into()
    }
}

impl From<piton_core::Illegal> for CommandError {
    fn from(error: piton_core::Illegal) -> Self {
        Self::failed("ledger-content", error.to_string())
    }
}

impl From<piton_ledger::Error> for CommandError {
    fn from(error: piton_ledger::Error) -> Self {
        use piton_ledger::Error as L;
        let message = error.to_string();
        let blocked = |code, message: String| Self::new(Kind::Blocked, code, message);
        match error {
            L::NoLedger { .. } => Self::usage("no-ledger", message)
                .hint(remedy![Words "start one with ", Piton "run PLAN"]),
            L::Newer { .. } => blocked("ledger-newer", message),
            L::Corrupt { .. } => {
                let backup = remedy![
                    Words "copy its folder away, then restore a backup and run ",
                    Piton "doctor --restored"
                ];
                let error = blocked("ledger-corrupt", message).hint(doctor());
                error.hint(backup).hint(new_ledger())
            }
            L::Behind { .. } => Self::behind(message),
            L::Held { owner } => {
                Self::driven("the run", Some(&owner), "attach", remedy![Option "--takeover"])
            }
            L::Fenced { .. } | L::NotHeld => Self::taken_over(message),
            L::Unreadable { .. } => blocked("state-unreadable", message),
            L::Unwritable { .. } => blocked("state-read-only", message),
            L::TooLong { .. } => blocked("ledger", message),
            L::RunExists { .. } => Self::usage("run-exists", message),
            _ => Self::failed("ledger", message).hint(doctor()),
        }
    }
}

impl From<piton_engine::Error> for CommandError {
    fn from(error: piton_engine::Error) -> Self {
        use piton_engine::Error as E;
        let message = error.to_string();
        match error {
            E::Ledger(inner) => inner.into(),
            E::Gap { .. } => Self::new(Kind::Blocked, "ledger-corrupt", message).hint(doctor()),
            E::NoRun(_) => Self::usage("no-run", message)
                .hint(remedy![Piton "runs", Words " lists the runs of this project"]),
            E::Refused(refused) => Self::refused(Kind::Usage, refused),
            E::TakenOver => Self::taken_over(message),
            E::Codec { source: piton_formats::codec::Error::Newer(_), .. } => {
                Self::new(Kind::Blocked, "ledger-newer", message)
            }
            E::Codec { .. } | E::Illegal { .. } | E::NoPlan(_) => {
                Self::new(Kind::Blocked, "ledger-content", message).hint(doctor())
            }
            E::OtherVersion(_) => Self::new(Kind::Blocked, "keeper-version", message)
                .hint(remedy![Piton "--version", Words " prints the version of a program"]),
            E::Interrupted(signal) => Self::new(Kind::Interrupted(signal), "interrupted", message)
                .hint(remedy![Piton "resume", Words " continues the run"]),
            E::World(refusal) => refusal.into(),
        }
    }
}
