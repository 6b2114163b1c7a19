//! The world as the driver sees it: observe, perform, probe.
//!
//! The real one (keeper, files, git) is wired by the program; a simulated one lives in the test
//! kit. Whatever must not happen twice is only ever performed after its intent is durable, and
//! [`World::attach`] is the probe that finds out what became of an intent.

use piton_core::agent::{self, Agent, Heard};
use piton_core::complexity::Complexity;
use piton_core::event::{Facts, FileHash, LogRanges};
use piton_core::evidence::Files;
use piton_core::redact::Redactor;
use piton_core::{Event, LanePath, Millis, Plan, RunState, StepPath, Timestamp};
use piton_formats::template::Given;

pub use crate::attempt::Attempt;
use crate::error::Result;
use crate::order::Order;

mod plans;
mod workspaces;

pub use plans::{NotAPlan, PlanRead, Plans, Version};
pub use workspaces::{
    Begin, Commit, MadeWorkspace, Merging, PullRequest, Rebase, Removed, Repaired, Rewind,
    RewindTarget, Workspaces,
};

/// Why an attempt's processes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By themselves, or by somebody else's signal.
    Exited,
    /// The attempt took too long.
    Timeout,
    /// The attempt was silent too long.
    IdleTimeout,
    /// We ended it.
    Ended,
    /// A later command of the attempt could not be started.
    NotStarted,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub attempt: Attempt,
    /// Index of the last command that ran: 0 is the work, 1 the test.
    pub part: usize,
    /// When that command began, in nanoseconds since 1970 by the clock that files are stamped with, if
    /// it was not the first: what is stamped earlier was there before it.
    pub part_began: Option<i64>,
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it ended.
    pub cause: Cause,
    /// What the system said, where a command could not be started.
    pub error: Option<String>,
    /// When it ended.
    pub at: Timestamp,
    /// How long it took.
    pub duration: Millis,
    /// Where its output lies.
    pub logs: LogRanges,
}

/// What the probe found of an attempt whose outcome is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It runs.
    Running,
    /// It is over.
    Ended(Box<Ended>),
    /// Its process was never started.
    NotStarted,
    /// It was started, and nobody knows how far it came; nothing of it lives any more.
    Lost(String),
}

/// What a driver finds when it attaches.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// What became of each attempt asked about.
    pub found: Vec<(Attempt, Found)>,
    /// Processes of the run that were ended because they had no keeper.
    pub strays: Vec<String>,
    /// Whether the keeper died while one of the attempts ran.
    pub keeper_died: bool,
}

/// What a step said about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// Facts for the ledger.
    pub facts: Facts,
    /// Whether it said what it cost, be it nothing.
    pub has_cost: bool,
    /// Artifacts it made beyond those declared.
    pub artifacts: Vec<String>,
    /// The command that it was about to run last, where it runs several.
    pub trying: Option<String>,
    /// How complex it found its phase to be.
    pub complexity: Option<Complexity>,
    /// What was wrong with what it wrote.
    pub problem: Option<String>,
}

/// Something that happened while the driver waited.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// An attempt is over.
    Ended(Box<Ended>),
    /// An attempt could not be started.
    NotStarted {
        /// Which.
        attempt: Attempt,
        /// What the system said.
        error: String,
        /// Whether there is no such program.
        no_such_program: bool,
    },
    /// The agent of an attempt said something.
    Said {
        /// Which attempt.
        attempt: Attempt,
        /// All that it has said so far.
        heard: Box<Heard>,
    },
    /// The agent of an attempt shows no sign of life: no output, no processor time, no changed file.
    Silent {
        /// Which attempt.
        attempt: Attempt,
        /// For how long.
        silence: Millis,
    },
    /// A person should know this.
    Warned(String),
    /// A signal came for the driver.
    Signal(i32),
    /// The keeper is gone.
    KeeperGone,
    /// A driver with a higher epoch is there: stop at once.
    Fenced,
}

/// What an agent whose attempt is over said of itself, and how it went by its own signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// All that it said.
    pub heard: Heard,
    /// How it went; nothing where only its exit code tells.
    pub verdict: Option<agent::Verdict>,
}

/// What the notify command gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The status of the run.
    pub status: String,
    /// One line about it.
    pub message: String,
}

/// How far the hashing of files is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// Bytes that are hashed.
    pub done: u64,
    /// Bytes there are.
    pub of: u64,
}

/// Why declared artifacts could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealError {
    /// Nothing is there: all declared artifacts without a file.
    Missing(Vec<String>),
    /// Something is there that can't be recorded: each in words, what is missing included.
    Unfit(Vec<String>),
    /// It could not be read or made durable, which says nothing about the step.
    Failed(String),
}

/// The files that the protocol of a run keeps.
pub trait Views {
    /// Takes durable events, to be shown with the next write; says whether one of them is to be shown
    /// before it is acted on.
    fn happened(&mut self, events: &[(u64, Timestamp, &Event)], state: &RunState) -> bool;
    /// Writes them as the ledger has the run, not where a driver of a higher epoch may have written
    /// them; says what a person should know about them.
    fn write(&mut self, plan: &Plan, state: &RunState) -> Result<Vec<String>>;
    /// The last that happened to a lane, in words, the newest last.
    fn recent(&self, _lane: &LanePath) -> Vec<String> {
        Vec::new()
    }
}

/// Everything outside the ledger.
pub trait World {
    /// The time now.
    fn now(&mut self) -> Timestamp;

    /// Time awake since some moment: it stands still while the machine sleeps, and nobody can set
    /// it.
    fn awake(&mut self) -> Millis {
        Millis(self.now().0.unsigned_abs())
    }

    /// What the clock on the wall is ahead of UTC, in seconds.
    fn utc_offset_secs(&mut self) -> i32 {
        0
    }

    /// Observes files: the hash of each, or nothing where it is missing.
    fn files(&mut self, paths: &[String]) -> Result<Files>;
    /// Observes which files paths and globs stand for, below a folder and as seen from it.
    fn paths(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<String>>;
    /// Has files below a folder (paths and globs) hashed beside the loop, where that takes long, and
    /// says how far that is; nothing when whoever asks for their hashes in this turn does not wait.
    fn hashed(&mut self, _dir: &str, _patterns: &[String]) -> Option<Hashing> {
        None
    }
    /// Observes declared inputs below a folder (the root where it is empty): paths and globs, those
    /// that exist.
    fn inputs(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<FileHash>>;
    /// Whether a file below a folder was changed after a moment, as far as its times tell.
    fn changed_after(&mut self, dir: &str, path: &str, at: Timestamp) -> bool;
    /// Observes the checked-out commit.
    fn head(&mut self) -> Option<String>;
    /// Observes the gates of the plan's document whose boxes are ticked, and the document.
    fn ticked(&mut self, _plan: &Plan) -> Option<(Vec<String>, piton_core::hash::Sha)> {
        None
    }
    /// Observes whether what a step makes is complete although its last attempt was cut short.
    fn is_complete(&mut self, _plan: &Plan, _state: &RunState, _attempt: &Attempt) -> bool {
        false
    }
    /// Observes why the result of an attempt is not accepted, although its program succeeded.
    fn rejects(&mut self, _plan: &Plan, _state: &RunState, _attempt: &Attempt) -> Option<String> {
        None
    }
    /// Whether the end of a successful step is recorded in full: the files that it changed, and its last
    /// lines where it wrote no notes.
    fn sums_up(&mut self, _state: &RunState) -> bool {
        false
    }
    /// Observes the last lines of an attempt's output, redacted before anything is cut: what is cut
    /// off may be what tells a secret.
    fn tail(&mut self, ended: &Ended, lines: usize, redactor: &Redactor) -> Vec<String>;
    /// The last line that an attempt wrote to its standard output and that is not blank: what a
    /// command answers. What it says to people goes to standard error.
    fn answer(&mut self, ended: &Ended, redactor: &Redactor) -> Option<String>;
    /// Observes what an attempt said about itself.
    fn reported(&mut self, attempt: &Attempt) -> Reported;

    /// Probes what became of attempts without an outcome. What nobody holds is ended first; the
    /// keeper obeys only this epoch from here on.
    fn attach(&mut self, epoch: u64, mark: &str, in_flight: &[Attempt]) -> Result<Attached>;

    /// Whether the keeper is gone, and nobody has attached since.
    fn has_lost_keeper(&mut self) -> bool {
        false
    }

    /// What the protocol of the run gives an attempt that is about to start.
    fn dispatch(&mut self, _plan: &Plan, _state: &RunState, _attempt: &Attempt) -> Given {
        Given::default()
    }
    /// The brief for a fresh agent that goes on with a step, in at most so many tokens.
    fn brief(
        &mut self,
        _plan: &Plan,
        _state: &RunState,
        _step: &StepPath,
        _tokens_max: usize,
    ) -> String {
        String::new()
    }
    /// May make a start ready while its intent is being made durable, as far as nothing of it runs
    /// and nothing of it is left if it never comes.
    fn prepare(&mut self, _order: &Order) {}
    /// Performs starts; their intents are durable.
    fn start(&mut self, orders: Vec<Order>) -> Result<()>;
    /// Follows what the agent of an attempt says that a driver before this one started. Of those that
    /// this one starts, the order says it.
    fn follow(&mut self, _attempt: &Attempt, _agent: &Agent) {}
    /// What an agent said whose attempt is over; nothing if it is not followed.
    fn judged(&mut self, _ended: &Ended) -> Option<Judged> {
        None
    }
    /// All that an agent said which was lost with its keeper; nothing if that is not known.
    fn heard_of_lost(&mut self, _attempt: &Attempt) -> Option<Heard> {
        None
    }
    /// Has an agent stop after the operation under way, by the means of its program; idempotent.
    fn stop_agent(&mut self, _attempt: &Attempt) -> Result<()> {
        Ok(())
    }
    /// Ends one running attempt with its process tree; it is reported as ended.
    fn end(&mut self, _attempt: &Attempt) -> Result<()> {
        Ok(())
    }
    /// Reports to the keeper that outcomes are durable.
    fn acknowledge(&mut self, attempts: &[Attempt]) -> Result<()>;
    /// Ends every running attempt with its process tree; each is reported as ended.
    fn end_all(&mut self) -> Result<()>;
    /// Hashes declared artifacts below a folder (the root where it is empty) and makes them durable.
    fn seal(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<FileHash>, SealError>;
    /// Notifies the person.
    fn notify(&mut self, notice: &Notice) -> Result<()>;
    /// Lets the keeper go; returns what steps had left running and was ended.
    fn leave(&mut self) -> Result<Vec<String>>;

    /// What it does for lanes; nothing where there is no repository.
    fn workspaces(&mut self) -> Option<&mut dyn Workspaces> {
        None
    }

    /// The files of the run's plan; nothing where they cannot be read again.
    fn plans(&mut self) -> Option<&mut dyn Plans> {
        None
    }

    /// The files that the run's protocol keeps; nothing where it keeps none.
    fn views(&mut self) -> Option<&mut dyn Views> {
        None
    }

    /// Waits until something happens or a time comes.
    fn wait(&mut self, until: Timestamp) -> Result<Vec<Happening>>;
}
