//! The one error type of the program: a kind that picks the exit code, a code for `piton explain`,
//! the cause, and what to do next.

use std::fmt;

use piton_ledger::Owner;
use piton_protocols::protocol::Refusal;

/// What a driver that lost its run can still do.
const TAKEN_OVER_NEXT: &str = "nothing more was done here; watch the run with `piton attach`";

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
    /// The code that `piton explain` knows; empty where the message was printed already.
    pub code: &'static str,
    /// What went wrong.
    pub message: String,
    /// What to do next, one line each.
    pub hints: Vec<String>,
}

/// Shorthand for results of commands.
pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    /// Makes an error.
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), hints: Vec::new() }
    }

    /// A failure.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, code, message)
    }

    /// A wrong command line or document.
    pub fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, code, message)
    }

    /// An ending whose words were printed already: only the exit code remains.
    pub fn silent(kind: Kind) -> Self {
        Self::new(kind, "", "")
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The refusal to go on with a ledger that is older than it was.
    pub fn behind(message: String) -> Self {
        Self::new(Kind::Blocked, "ledger-behind", message)
            .hint("copy its folder away, then restore the last backup")
            .hint("`piton doctor --restored` goes on with a backup, or with the ledger as it is: what was recorded since counts as never done")
            .hint("`piton doctor --new-ledger` sets it aside and begins a new one")
    }

    /// The refusal to touch a run that another process drives, with the commands that watch that one
    /// and that take the run from it.
    pub fn driven(what: &str, owner: Option<&Owner>, watch: &str, take: &str) -> Self {
        let name = owner.map_or("another process".to_owned(), ToString::to_string);
        let mut message = format!("{what} is driven by {name}");
        let mut first = format!("watch it with `{watch}`");
        if let Some(owner) = owner.filter(|owner| owner.is_stopped()) {
            message.push_str(", which is stopped");
            first = format!("let it go on with `kill -CONT {}`", owner.pid);
        }
        let error = Self::new(Kind::Driven, "run-driven", message);
        error.hint(first).hint(format!("take it over with `{take}`"))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        let kind = if refusal.blocked { Kind::Blocked } else { Kind::Usage };
        refusal.remedies.into_iter().fold(Self::new(kind, refusal.code, refusal.cause), Self::hint)
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
        match error {
            L::NoLedger { .. } => {
                Self::usage("no-ledger", message).hint("start a run with `piton run PLAN`")
            }
            L::Newer { .. } => Self::new(Kind::Blocked, "ledger-newer", message),
            L::Corrupt { .. } => Self::new(Kind::Blocked, "ledger-corrupt", message)
                .hint("`piton doctor` says what is wrong")
                .hint("`piton doctor --new-ledger` sets it aside and begins a new one"),
            L::Behind { .. } => Self::behind(message),
            L::Held { owner } => {
                Self::driven("the run", Some(&owner), "piton attach", "--takeover")
            }
            L::Fenced { .. } | L::NotHeld => {
                Self::new(Kind::Driven, "run-taken-over", message).hint(TAKEN_OVER_NEXT)
            }
            L::Unreadable { .. } => Self::new(Kind::Blocked, "state-unreadable", message),
            L::Unwritable { .. } | L::Frozen { .. } => {
                Self::new(Kind::Blocked, "state-read-only", message)
            }
            L::TooLong { .. } => Self::new(Kind::Blocked, "ledger", message),
            L::RunExists { .. } => Self::usage("run-exists", message),
            _ => Self::failed("ledger", message).hint("`piton doctor` says what is wrong"),
        }
    }
}

impl From<piton_engine::Error> for CommandError {
    fn from(error: piton_engine::Error) -> Self {
        use piton_engine::Error as E;
        match error {
            E::Ledger(inner) => inner.into(),
            E::Gap { .. } => Self::new(Kind::Blocked, "ledger-corrupt", error.to_string())
                .hint("`piton doctor` says what is wrong"),
            E::NoRun(_) => Self::usage("no-run", error.to_string())
                .hint("`piton runs` lists the runs of this project"),
            E::Refused(refusal) => Self::usage("refused", refusal.to_string()),
            E::TakenOver => {
                Self::new(Kind::Driven, "run-taken-over", error.to_string()).hint(TAKEN_OVER_NEXT)
            }
            E::Codec { source: piton_formats::codec::Error::Newer(_), .. } => {
                Self::new(Kind::Blocked, "ledger-newer", error.to_string())
            }
            E::Codec { .. } | E::Illegal { .. } | E::NoPlan(_) => {
                Self::new(Kind::Blocked, "ledger-content", error.to_string())
                    .hint("`piton doctor` says what is wrong")
            }
            E::OtherVersion(_) => Self::new(Kind::Blocked, "keeper-version", error.to_string())
                .hint("`piton --version` says which one a program is"),
            E::Interrupted(signal) => {
                Self::new(Kind::Interrupted(signal), "interrupted", error.to_string())
            }
            E::World(_) => Self::failed("world", error.to_string()),
        }
    }
}
