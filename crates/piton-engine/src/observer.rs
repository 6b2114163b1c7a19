//! Who watches a driver: the terminal, a plain log, a JSON stream.
//!
//! The same observers are fed from the ledger by `piton attach`, so live and replay look alike.

use piton_core::refusal::Remedy;
use piton_core::request::Reply;
use piton_core::{Event, RunState, StepPath, Timestamp};

use crate::world::Hashing;

/// Something worth saying that is not an event of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The first Ctrl-C: running steps may finish.
    Draining {
        /// How many steps run.
        running: usize,
    },
    /// The second Ctrl-C, a signal or an abort: running steps are ended.
    Ending {
        /// How many steps run.
        running: usize,
    },
    /// An attempt that a former driver started was found.
    Recovered {
        /// Which step.
        step: StepPath,
        /// Which attempt.
        attempt: u32,
        /// How it was found: `running`, `finished`, `lost`, `not started`.
        found: &'static str,
        /// Who fell that had it in hand: `driver` or `keeper`.
        fallen: &'static str,
    },
    /// Processes of the run that had lost their keeper were ended.
    StraysEnded {
        /// Their names and ids.
        names: Vec<String>,
    },
    /// Steps left processes running; they were ended with the run.
    LeftoversEnded {
        /// Their names and ids.
        names: Vec<String>,
    },
    /// The keeper died and was replaced.
    KeeperReplaced,
    /// A request from another process was carried out or refused.
    Request {
        /// What came of it.
        answer: Reply,
    },
    /// Files of a step take long to hash.
    Hashing {
        /// Which step.
        step: StepPath,
        /// How far that is.
        hashing: Hashing,
    },
    /// Anything else a person should know.
    Warning(Remedy),
}

/// Watches a driver. Called in the order of events, after they are durable.
pub trait Observer {
    /// An event is durable; `state` is the state after it (and after those committed with it).
    fn event(&mut self, seq: u64, at: Timestamp, event: &Event, state: &RunState);
    /// Something is worth saying.
    fn note(&mut self, note: &Note);
    /// Time passed; called a few times a second while steps run, if [`Observer::wants_ticks`].
    fn tick(&mut self, _now: Timestamp, _state: &RunState) {}
    /// Whether [`Observer::tick`] does anything.
    fn wants_ticks(&self) -> bool {
        false
    }
}
