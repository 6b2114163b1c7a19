//! What can go wrong while driving.

use piton_core::refusal::Refusal;
use piton_core::request::Refused;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger refused or failed.
    #[error(transparent)]
    Ledger(#[from] piton_ledger::Error),
    /// A stored event or plan could not be read.
    #[error("{place}: {source}")]
    Codec {
        /// Which run and event.
        place: String,
        /// Why.
        source: piton_formats::codec::Error,
    },
    /// The ledger holds an event that cannot follow.
    #[error("run {run_id}, event {seq}: {source}")]
    Illegal {
        /// Which run.
        run_id: String,
        /// Which event.
        seq: u64,
        /// Why.
        source: Box<piton_core::Illegal>,
    },
    /// The ledger lacks an event.
    #[error(
        "run {run_id} lacks event {seq}: the ledger is damaged and was not changed; copy its \
         folder, then restore a backup"
    )]
    Gap {
        /// Which run.
        run_id: String,
        /// The first event that is missing.
        seq: u64,
    },
    /// There is no such run.
    #[error("there is no run `{0}` here")]
    NoRun(String),
    /// The recorded plan is not in the ledger.
    #[error("the recorded plan of run {0} is missing or damaged")]
    NoPlan(String),
    /// The world failed: keeper, files, git.
    #[error("{0}")]
    World(Refusal),
    /// A request was refused.
    #[error("{}", Refusal::from(.0.clone()))]
    Refused(Refused),
    /// The run's keeper is another version of the program.
    #[error("{0}")]
    OtherVersion(String),
    /// A signal came before the driver had found out what its run does.
    #[error(
        "a signal came while an earlier keeper was still ending its steps; nothing was started"
    )]
    Interrupted(i32),
    /// Another driver took over: this one must stop without touching anything.
    #[error("another driver took over this run")]
    TakenOver,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Error {
    /// A failure of the world that has no code of its own.
    pub fn world(cause: impl std::fmt::Display) -> Self {
        Self::World(Refusal::new("world", cause.to_string()))
    }

    /// Whether another driver holds the run now.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::TakenOver | Self::Ledger(piton_ledger::Error::Fenced { .. }))
    }
}
