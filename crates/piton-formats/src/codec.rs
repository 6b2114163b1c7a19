//! Events to bytes and back: frozen tags, a version each, JSON bodies.
//!
//! Readers tolerate fields they do not know; a tag or version they do not know is an error with the
//! way out, because an event that is not understood must not be passed over. Tags are never reused.

use piton_core::Event;
use piton_core::event as e;

/// The version of every body written today.
const VERSION: u32 = 1;

/// Why stored bytes are no event.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tag or version of a newer program.
    #[error("event `{tag}` of version {version} was written by a newer piton; use that one")]
    Newer {
        /// The tag.
        tag: String,
        /// The version.
        version: u32,
    },
    /// A body that is not what its tag says.
    #[error("event `{tag}` is damaged: {source}")]
    Damaged {
        /// The tag.
        tag: String,
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

/// The frozen tag of an event.
pub fn tag(event: &Event) -> &'static str {
    match event {
        Event::RunCreated(_) => "run.created",
        Event::DriverAttached(_) => "driver.attached",
        Event::DriverLeft(_) => "driver.left",
        Event::StepStarted(_) => "step.started",
        Event::StepFinished(_) => "step.finished",
        Event::StepReset(_) => "step.reset",
        Event::StepRetried(_) => "step.retried",
        Event::StepSkipped(_) => "step.skipped",
        Event::GateAsked(_) => "gate.asked",
        Event::GateDecided(_) => "gate.decided",
        Event::GateReopened(_) => "gate.reopened",
        Event::PlanAccepted(_) => "plan.accepted",
        Event::SpecAccepted(_) => "spec.accepted",
        Event::TicksSeen(_) => "ticks.seen",
        Event::CheckpointRecorded(_) => "checkpoint.recorded",
        Event::BudgetExhausted(_) => "budget.exhausted",
        Event::TimeSkipped(_) => "time.skipped",
        Event::RunAborted(_) => "run.aborted",
        Event::RunArchived(_) => "run.archived",
        Event::LaneBegun(_) => "lane.begun",
        Event::LaneBlocked(_) => "lane.blocked",
        Event::LaneReady(_) => "lane.ready",
        Event::StepProven(_) => "step.proven",
        Event::LaneCommitted(_) => "lane.committed",
        Event::LaneRebased(_) => "lane.rebased",
        Event::LaneReopened(_) => "lane.reopened",
        Event::MergeIntended(_) => "merge.intended",
        Event::MergeMissed(_) => "merge.missed",
        Event::LaneMerged(_) => "lane.merged",
        Event::PullRequestOpened(_) => "pull_request.opened",
        Event::LaneRemoved(_) => "lane.removed",
        Event::LaneForked(_) => "lane.forked",
        Event::LaneJoined(_) => "lane.joined",
        Event::LaneImported(_) => "lane.imported",
        Event::RewindIntended(_) => "rewind.intended",
        Event::Rewound(_) => "rewind.done",
    }
}

/// Encodes an event for the ledger.
pub fn encode(event: &Event) -> Encoded {
    // Our own plain types serialise to memory without fail; `decode` would name an empty body.
    let body = match event {
        Event::RunCreated(x) => serde_json::to_vec(x),
        Event::DriverAttached(x) => serde_json::to_vec(x),
        Event::DriverLeft(x) => serde_json::to_vec(x),
        Event::StepStarted(x) => serde_json::to_vec(x),
        Event::StepFinished(x) => serde_json::to_vec(x),
        Event::StepReset(x) => serde_json::to_vec(x),
        Event::StepRetried(x) => serde_json::to_vec(x),
        Event::StepSkipped(x) => serde_json::to_vec(x),
        Event::GateAsked(x) => serde_json::to_vec(x),
        Event::GateDecided(x) => serde_json::to_vec(x),
        Event::GateReopened(x) => serde_json::to_vec(x),
        Event::PlanAccepted(x) => serde_json::to_vec(x),
        Event::SpecAccepted(x) => serde_json::to_vec(x),
        Event::TicksSeen(x) => serde_json::to_vec(x),
        Event::CheckpointRecorded(x) => serde_json::to_vec(x),
        Event::BudgetExhausted(x) => serde_json::to_vec(x),
        Event::TimeSkipped(x) => serde_json::to_vec(x),
        Event::RunAborted(x) => serde_json::to_vec(x),
        Event::RunArchived(x) => serde_json::to_vec(x),
        Event::LaneBegun(x) => serde_json::to_vec(x),
        Event::LaneBlocked(x) => serde_json::to_vec(x),
        Event::LaneReady(x) => serde_json::to_vec(x),
        Event::StepProven(x) => serde_json::to_vec(x),
        Event::LaneCommitted(x) => serde_json::to_vec(x),
        Event::LaneRebased(x) => serde_json::to_vec(x),
        Event::LaneReopened(x) => serde_json::to_vec(x),
        Event::MergeIntended(x) => serde_json::to_vec(x),
        Event::MergeMissed(x) => serde_json::to_vec(x),
        Event::LaneMerged(x) => serde_json::to_vec(x),
        Event::PullRequestOpened(x) => serde_json::to_vec(x),
        Event::LaneRemoved(x) => serde_json::to_vec(x),
        Event::LaneForked(x) => serde_json::to_vec(x),
        Event::LaneJoined(x) => serde_json::to_vec(x),
        Event::LaneImported(x) => serde_json::to_vec(x),
        Event::RewindIntended(x) => serde_json::to_vec(x),
        Event::Rewound(x) => serde_json::to_vec(x),
    }
    .unwrap_or_default();
    Encoded { tag: tag(event), version: VERSION, body }
}

/// Decodes an event of the ledger.
pub fn decode(tag: &str, version: u32, body: &[u8]) -> Result<Event, Error> {
    let newer = || Error::Newer { tag: tag.to_owned(), version };
    if version > VERSION {
        return Err(newer());
    }
    let event = match tag {
        "run.created" => read::<e::RunCreated>(body).map(|x| Event::RunCreated(Box::new(x))),
        "driver.attached" => read(body).map(Event::DriverAttached),
        "driver.left" => read(body).map(Event::DriverLeft),
        "step.started" => read(body).map(Event::StepStarted),
        "step.finished" => read::<e::StepFinished>(body).map(|x| Event::StepFinished(Box::new(x))),
        "step.reset" => read(body).map(Event::StepReset),
        "step.retried" => read(body).map(Event::StepRetried),
        "step.skipped" => read(body).map(Event::StepSkipped),
        "gate.asked" => read(body).map(Event::GateAsked),
        "gate.decided" => read(body).map(Event::GateDecided),
        "gate.reopened" => read(body).map(Event::GateReopened),
        "plan.accepted" => read::<e::PlanAccepted>(body).map(|x| Event::PlanAccepted(Box::new(x))),
        "spec.accepted" => read(body).map(Event::SpecAccepted),
        "ticks.seen" => read(body).map(Event::TicksSeen),
        "checkpoint.recorded" => read(body).map(Event::CheckpointRecorded),
        "budget.exhausted" => read(body).map(Event::BudgetExhausted),
        "time.skipped" => read(body).map(Event::TimeSkipped),
        "run.aborted" => read(body).map(Event::RunAborted),
        "run.archived" => read(body).map(Event::RunArchived),
        "lane.begun" => read::<e::LaneBegun>(body).map(|x| Event::LaneBegun(Box::new(x))),
        "lane.blocked" => read(body).map(Event::LaneBlocked),
        "lane.ready" => read::<e::LaneReady>(body).map(|x| Event::LaneReady(Box::new(x))),
        "step.proven" => read(body).map(Event::StepProven),
        "lane.committed" => read(body).map(Event::LaneCommitted),
        "lane.rebased" => read(body).map(Event::LaneRebased),
        "lane.reopened" => read::<e::LaneReopened>(body).map(|x| Event::LaneReopened(Box::new(x))),
        "merge.intended" => read(body).map(Event::MergeIntended),
        "merge.missed" => read(body).map(Event::MergeMissed),
        "lane.merged" => read(body).map(Event::LaneMerged),
        "pull_request.opened" => read(body).map(Event::PullRequestOpened),
        "lane.removed" => read(body).map(Event::LaneRemoved),
        "lane.forked" => read::<e::LaneForked>(body).map(|x| Event::LaneForked(Box::new(x))),
        "lane.joined" => read::<e::LaneJoined>(body).map(|x| Event::LaneJoined(Box::new(x))),
        "lane.imported" => read::<e::LaneImported>(body).map(|x| Event::LaneImported(Box::new(x))),
        "rewind.intended" => {
            read::<e::RewindIntended>(body).map(|x| Event::RewindIntended(Box::new(x)))
        }
        "rewind.done" => read(body).map(Event::Rewound),
        _ => return Err(newer()),
    };
    event.map_err(|source| Error::Damaged { tag: tag.to_owned(), source })
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(body)
}
