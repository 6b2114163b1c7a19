//! What the ledger stores, to bytes and back: events with frozen tags and a version each, plans,
//! requests; all bodies are JSON.
//!
//! Readers tolerate a field that they do not know. A tag, a version or a word of an enum that they do
//! not know is [`Error::Newer`], because what is not understood must neither be passed over nor be
//! taken for damage. Tags and words are never reused.

use std::fmt::Arguments;

use piton_core::request::Request;
use piton_core::{Event, Plan};
use serde::de::DeserializeOwned;

mod words;

/// Why stored bytes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tag, version or word of a newer program.
    #[error("{0}: it was written by a newer Piton; use that version")]
    Newer(String),
    /// A body that is not what it should be.
    #[error("{item} is damaged: {source}")]
    Damaged {
        /// The tag of an event, or what else it is.
        item: String,
        /// What the reader said.
        source: serde_json::Error,
    },
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its frozen tag.
    pub tag: &'static str,
    /// The version of its body.
    pub version: u32,
    /// Its body.
    pub body: Vec<u8>,
}

/// Makes everything that knows all events from one table of variant, frozen tag and version.
macro_rules! events {
    ($($variant:ident = $tag:literal, $version:literal;)+) => {
        /// The frozen tag of every event, and the version of its body that is written today.
        pub const TAGS: &[(&str, u32)] = &[$(($tag, $version)),+];

        /// The frozen tag of an event.
        pub fn tag(event: &Event) -> &'static str {
            match event {
                $(Event::$variant(_) => $tag,)+
            }
        }

        /// Encodes an event for the ledger.
        pub fn encode(event: &Event) -> Encoded {
            match event {
                $(Event::$variant(x) => Encoded { tag: $tag, version: $version, body: write(x) },)+
            }
        }

        /// Decodes an event of the ledger.
        pub fn decode(tag: &str, version: u32, body: &[u8]) -> Result<Event, Error> {
            let item = format_args!("`{tag}`");
            match tag {
                $($tag => read(item, (version, $version), body).map(Event::$variant),)+
                _ => Err(Error::Newer(format!("this Piton does not know the event {item}"))),
            }
        }
    };
}

events! {
    RunCreated = "run.created", 1;
    DriverAttached = "driver.attached", 1;
    DriverLeft = "driver.left", 1;
    StepStarted = "step.started", 1;
    StepFinished = "step.finished", 1;
    StepReset = "step.reset", 1;
    StepRetried = "step.retried", 1;
    StepSkipped = "step.skipped", 1;
    StepProven = "step.proven", 1;
    StepImported = "step.imported", 1;
    GateAsked = "gate.asked", 1;
    ApprovalAsked = "approval.asked", 1;
    GateDecided = "gate.decided", 1;
    GateReopened = "gate.reopened", 1;
    ChangesWanted = "gate.changes_wanted", 1;
    PlanAccepted = "plan.accepted", 1;
    SpecAccepted = "spec.accepted", 1;
    OutputsAccepted = "outputs.accepted", 1;
    TicksSeen = "ticks.seen", 1;
    CheckpointRecorded = "checkpoint.recorded", 1;
    BudgetExhausted = "budget.exhausted", 1;
    BudgetWarned = "budget.warned", 1;
    AgentSaid = "agent.said", 1;
    ContextFilled = "agent.context_filled", 1;
    AgentHandedOff = "agent.handed_off", 1;
    AgentLimited = "agent.limited", 1;
    TimeSkipped = "time.skipped", 1;
    RunAborted = "run.aborted", 1;
    RunArchived = "run.archived", 1;
    CommandRefused = "command.refused", 1;
    LaneBegun = "lane.begun", 1;
    LaneBlocked = "lane.blocked", 1;
    LaneReady = "lane.ready", 1;
    LaneCommitted = "lane.committed", 1;
    LaneRebased = "lane.rebased", 1;
    LaneReopened = "lane.reopened", 1;
    LaneMerged = "lane.merged", 1;
    LaneRemoved = "lane.removed", 1;
    LaneKept = "lane.kept", 1;
    LaneForked = "lane.forked", 1;
    LaneJoined = "lane.joined", 1;
    LaneImported = "lane.imported", 1;
    MergeIntended = "merge.intended", 1;
    MergeMissed = "merge.missed", 1;
    PullRequestOpened = "pull_request.opened", 1;
    RewindIntended = "rewind.intended", 1;
    Rewound = "rewind.done", 1;
    ReplanWanted = "replan.wanted", 1;
    ReplanBegun = "replan.begun", 1;
    ReplanEnded = "replan.ended", 1;
    ReplanRefused = "replan.refused", 1;
    ReplansImported = "replan.imported", 1;
    SessionOpened = "session.opened", 1;
    SessionChanged = "session.changed", 1;
    SessionSaved = "session.saved", 1;
    SessionNotResumed = "session.not_resumed", 1;
    SessionPhase = "session.phase", 1;
    SessionArtifact = "session.artifact", 1;
    SessionSynced = "session.synced", 1;
    SessionEnded = "session.ended", 1;
}

/// Decodes a plan that the ledger keeps.
pub fn decode_plan(body: &[u8]) -> Result<Plan, Error> {
    read(format_args!("the recorded plan"), (1, 1), body)
}

/// Decodes a request of an inbox; any other content was written by a newer program.
pub fn decode_request(tag: &str, version: u32, body: &[u8]) -> Result<Request, Error> {
    if tag != Request::TAG {
        return Err(Error::Newer(format!("this Piton does not know the request `{tag}`")));
    }
    read(format_args!("the request"), (version, Request::VERSION), body)
}

fn write(body: &impl serde::Serialize) -> Vec<u8> {
    // Our own plain types serialise to memory without fail; `decode` would name an empty body.
    serde_json::to_vec(body).unwrap_or_default()
}

fn read<T: DeserializeOwned>(
    item: Arguments<'_>,
    (found, known): (u32, u32),
    body: &[u8],
) -> Result<T, Error> {
    if found > known {
        let message = format!("{item} has version {found}, and this Piton knows {known}");
        return Err(Error::Newer(message));
    }
    serde_json::from_slice(body).map_err(|source| match words::unknown::<T>(body) {
        Some(word) => Error::Newer(format!("{item} says `{word}`, which this Piton does not know")),
        None => Error::Damaged { item: item.to_string(), source },
    })
}
