//! What happened: the only things that are written down, never edited.
//!
//! Tags, field names and the words of enums are frozen: they are on disk for ever. A new field gets a
//! default, a new event a new tag, a new variant a new word. Readers pass over fields that they do not
//! know. An event with a word that they do not know is refused by the codec as one of a newer program:
//! the codec answers for all enums, so none has a variant that stands for such words and that somebody
//! could act on. The same holds for recorded plans and requests.

use serde::{Deserialize, Serialize};

pub use crate::agent_event::*;
pub use crate::gate_event::*;
use crate::hash::Sha;
use crate::id::{RunId, StepPath};
use crate::lane::SnapshotRef;
pub use crate::lane_event::*;
pub use crate::replan_event::*;
pub use crate::session_event::*;
pub use crate::shape::{Shape, ShapeLane, ShapePhase, ShapeStep};
pub use crate::step_event::*;
use crate::time::{Millis, Timestamp};

/// One thing that happened to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run exists; always the first event.
    RunCreated(Box<RunCreated>),
    /// A driver began to advance the run.
    DriverAttached(DriverAttached),
    /// A driver stopped by its own will.
    DriverLeft(DriverLeft),
    /// The intent to start an attempt; committed before its program begins.
    StepStarted(StepStarted),
    /// The outcome of an attempt.
    StepFinished(Box<StepFinished>),
    /// A finished step is to run again.
    StepReset(StepReset),
    /// A person gave a failed step further attempts.
    StepRetried(StepRetried),
    /// A person left a step out.
    StepSkipped(StepSkipped),
    /// A gate was reached and a person is asked.
    GateAsked(GateAsked),
    /// An agent asks a person; nothing of the run waits for the answer.
    ApprovalAsked(Box<ApprovalAsked>),
    /// A person decided about a gate, or answered an agent.
    GateDecided(GateDecided),
    /// A person took an approval back, with what it was given for.
    GateReopened(GateReopened),
    /// A person wants the work before a gate changed.
    ChangesWanted(Box<ChangesWanted>),
    /// Boxes of a phase document were found ticked.
    TicksSeen(Box<TicksSeen>),
    /// A changed plan took effect.
    PlanAccepted(Box<PlanAccepted>),
    /// A changed spec was accepted by a person.
    SpecAccepted(SpecAccepted),
    /// Outputs that were changed from outside the run were accepted by a person.
    OutputsAccepted(OutputsAccepted),
    /// A person or a tool recorded a checkpoint.
    CheckpointRecorded(CheckpointRecorded),
    /// A budget is used up.
    BudgetExhausted(BudgetExhausted),
    /// Most of a budget is used: a person is told, once.
    BudgetWarned(BudgetWarned),
    /// The agent of a step named its session, or used more.
    AgentSaid(Box<AgentSaid>),
    /// The window of an agent is fuller than it should be.
    ContextFilled(ContextFilled),
    /// An agent's window is full: a fresh one goes on.
    AgentHandedOff(AgentHandedOff),
    /// The account of an agent is at a limit.
    AgentLimited(AgentLimited),
    /// The machine slept, or its clock was set: that time counts for no budget.
    TimeSkipped(TimeSkipped),
    /// A person ended the run.
    RunAborted(RunAborted),
    /// A person set the run aside.
    RunArchived(RunArchived),
    /// A step tried a command that only a person may give.
    CommandRefused(CommandRefused),
    /// A lane's preconditions hold.
    LaneBegun(Box<LaneBegun>),
    /// A lane can't go on before a person changed something.
    LaneBlocked(LaneBlocked),
    /// A lane's workspace is there.
    LaneReady(Box<LaneReady>),
    /// A step is done without running.
    StepProven(StepProven),
    /// How far another tool came with a step is taken over.
    StepImported(Box<StepImported>),
    /// A lane's work is a commit.
    LaneCommitted(LaneCommitted),
    /// A lane's work stands on a newer base.
    LaneRebased(LaneRebased),
    /// A lane's work goes on after a conflict or a failed test.
    LaneReopened(Box<LaneReopened>),
    /// The intent to move base.
    MergeIntended(MergeIntended),
    /// Base was moved by somebody else.
    MergeMissed(MergeMissed),
    /// A lane's work is in base.
    LaneMerged(LaneMerged),
    /// A pull request exists.
    PullRequestOpened(PullRequestOpened),
    /// A lane's worktree is gone.
    LaneRemoved(LaneRemoved),
    /// A lane's worktree stays.
    LaneKept(LaneKept),
    /// What a lane did is committed, and its tasks may start from it.
    LaneForked(Box<LaneForked>),
    /// The tasks of a lane are back in it.
    LaneJoined(Box<LaneJoined>),
    /// What another tool recorded of a lane is taken over.
    LaneImported(Box<LaneImported>),
    /// The intent to take files and steps back.
    RewindIntended(Box<RewindIntended>),
    /// Files and steps were taken back.
    Rewound(Rewound),
    /// A step or a person wants a phase planned again.
    ReplanWanted(ReplanWanted),
    /// The intent to plan a phase again: it counts from here on.
    ReplanBegun(Box<ReplanBegun>),
    /// What came of a replan.
    ReplanEnded(Box<ReplanEnded>),
    /// A replan is not done, and a person is asked.
    ReplanRefused(Box<ReplanRefused>),
    /// The replans that another tool recorded are taken over.
    ReplansImported(Box<ReplansImported>),
    /// A session began to work.
    SessionOpened(SessionOpened),
    /// Files of a session are to be changed.
    SessionChanged(SessionChanged),
    /// The content of a checkpoint of a session.
    SessionSaved(Box<SessionSaved>),
    /// A session could not go on from a checkpoint.
    SessionNotResumed(Box<SessionNotResumed>),
    /// A phase of the work of a session began or ended.
    SessionPhase(SessionPhase),
    /// A session made a file that matters.
    SessionArtifact(SessionArtifact),
    /// The work that a session went on with is finished and written.
    SessionSynced(SessionSynced),
    /// A session ended.
    SessionEnded(SessionEnded),
}

impl Event {
    /// The step whose progress it changes.
    pub fn step(&self) -> Option<&StepPath> {
        match self {
            Self::StepStarted(e) => Some(&e.step),
            Self::StepFinished(e) => Some(&e.step),
            Self::StepReset(e) => Some(&e.step),
            Self::StepRetried(e) => Some(&e.step),
            Self::StepSkipped(e) => Some(&e.step),
            Self::StepProven(e) => Some(&e.step),
            Self::StepImported(e) => Some(&e.step),
            Self::LaneJoined(e) => Some(&e.step),
            _ => None,
        }
    }
}

/// See [`Event::RunCreated`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCreated {
    /// The stable name.
    pub run_id: RunId,
    /// The protocol that it follows.
    pub protocol: ProtocolRef,
    /// Path of the plan, relative to the project's root where it lies below it.
    pub plan_path: String,
    /// Hash of the plan as resolved.
    pub plan_hash: Sha,
    /// Title of the plan.
    pub title: String,
    /// The spec and its bytes at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<FileHash>,
    /// The project's root: where steps run.
    pub root: String,
    /// Whether that is a linked work tree of a repository that lies elsewhere.
    #[serde(default, skip_serializing_if = "is_false")]
    pub linked: bool,
    /// A random word in the environment of every child, to find strays by.
    pub mark: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The record of the run that it starts over, a file of its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The plan's structure.
    pub shape: Shape,
}

/// The protocol of a run, as recorded when it was created: nothing is guessed afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolRef {
    /// Its frozen name.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// The protocol that reads the run's plan: a `plan.toml` may follow another than its reader.
    pub reader: String,
}

/// See [`Event::DriverAttached`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverAttached {
    /// The epoch of its lease.
    pub epoch: u64,
    /// Its process id.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Whether it took the lease from a driver that may still live.
    #[serde(default, skip_serializing_if = "is_false")]
    pub takeover: bool,
    /// The branch that lanes start from and go to, as asked for; holds until another is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The retries of each step, as asked for; hold until others are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Whether lanes start from uncommitted changes, as asked for; holds for the run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub seed_dirty: bool,
    /// Whether it goes on after failures, as asked for; holds for the run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_going: bool,
    /// Until when the driver before it, if that fell, may have been at work: the time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_until: Option<Timestamp>,
}

/// See [`Event::DriverLeft`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverLeft {
    /// Why it stopped.
    pub verdict: Verdict,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The signal that stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Until when it was at work, where it fell and another process says so for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_until: Option<Timestamp>,
}

/// How a driver's work on a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// All is done.
    #[serde(rename = "complete")]
    Complete,
    /// What was selected is done, the rest is not.
    #[serde(rename = "selection_done")]
    SelectionDone,
    /// A step failed for good, or a gate was rejected.
    #[serde(rename = "failed")]
    Failed,
    /// A person must decide.
    #[serde(rename = "waiting")]
    Waiting,
    /// What remains depends on skipped work.
    #[serde(rename = "blocked")]
    Blocked,
    /// A budget is used up.
    #[serde(rename = "budget")]
    Budget,
    /// A signal asked it to stop.
    #[serde(rename = "interrupted")]
    Interrupted,
    /// A person ended the run.
    #[serde(rename = "aborted")]
    Aborted,
    /// Work was taken back to an earlier checkpoint.
    #[serde(rename = "rolled_back")]
    RolledBack,
}

/// See [`Event::PlanAccepted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanAccepted {
    /// The plan before.
    pub from: Sha,
    /// The plan now.
    pub to: Sha,
    /// Title of the plan now.
    pub title: String,
    /// Its structure.
    pub shape: Shape,
    /// Who accepted it; empty where nothing finished was touched and nobody had to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// See [`Event::TicksSeen`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TicksSeen {
    /// The gates whose boxes are ticked, as the document calls them.
    pub gates: Vec<String>,
    /// Whether they count as closed. Ticks that came while steps of the run were at work may be a
    /// step's own: they count once a person says so.
    pub count: bool,
    /// Whose they are, in words.
    pub by: String,
    /// The bytes of the document that had them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Sha>,
    /// Those that are not ticked any more: the next tick is a new one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
}

/// See [`Event::SpecAccepted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpecAccepted {
    /// The recorded bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FileHash>,
    /// The bytes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FileHash>,
    /// Who accepted it.
    pub by: String,
}

/// See [`Event::OutputsAccepted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputsAccepted {
    /// The step that made them.
    pub step: StepPath,
    /// The files as they are now, from where the step worked.
    pub files: Vec<FileHash>,
    /// Who accepted them.
    pub by: String,
}

/// See [`Event::CheckpointRecorded`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointRecorded {
    /// Its name, unique within the run.
    pub name: String,
    /// What a person said of it.
    pub message: String,
    /// Who recorded it.
    pub by: String,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The files of the workspaces at that point, with the lane of each; none for the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<(Option<crate::id::LanePath>, SnapshotRef)>,
}

/// See [`Event::BudgetExhausted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetExhausted {
    /// Its name.
    pub budget: String,
    /// What was used.
    pub used: u64,
    /// What was allowed.
    pub limit: u64,
    /// The step, lane or phase that it limits, or the day; empty for the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

impl BudgetExhausted {
    /// A budget of the whole run.
    pub fn of_run(budget: &str, used: u64, limit: u64) -> Self {
        Self { budget: budget.to_owned(), used, limit, place: String::new() }
    }
}

/// See [`Event::TimeSkipped`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeSkipped {
    /// How much the clock went ahead of the time the driver was awake.
    pub ms: Millis,
}

/// See [`Event::RunAborted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunAborted {
    /// Who asked.
    pub by: String,
    /// What they said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it is for good.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancel: bool,
}

/// See [`Event::RunArchived`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunArchived {
    /// Who asked.
    pub by: String,
}

/// See [`Event::CommandRefused`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRefused {
    /// The command, without its arguments.
    pub command: String,
    /// The step, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepPath>,
    /// Its attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The user that it ran as.
    pub by: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
