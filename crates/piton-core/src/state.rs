//! Where a run stands: what all its events add up to.
//!
//! Its size follows the plan, not the history: a step keeps its counters and its last attempt, and
//! lists that could grow have a limit. It is stored now and then as a cache, stamped with
//! [`crate::APPLY_VERSION`]; the events remain the truth.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::agent_state::Day;
use crate::event::{FileHash, ProtocolRef, RewindIntended, Verdict};
pub use crate::gate::{Approved, Decision, GateState, Reviewed};
use crate::hash::Sha;
use crate::id::{GateRef, LanePath, RunId, StepPath};
use crate::lane::{Isolation, Role, SnapshotRef, TaskOf};
use crate::lane_state::{LaneWork, Undoable};
pub use crate::replan_state::Replans;
use crate::replan_state::{self, PhaseReplans, REPLAN_LANE};
use crate::session_state::SessionState;
use crate::status::Status;
use crate::step_state;
pub use crate::step_state::{Cluster, FailedAttempt, Progress, StepState};
use crate::time::{Millis, Timestamp};

/// Most failed attempts that are passed on to the next one.
pub const FAILURES_KEPT_MAX: usize = 20;
/// Most manual checkpoints in the state; the ledger keeps all.
pub const CHECKPOINTS_KEPT_MAX: usize = 50;

/// The state of one run.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, stored by its name")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// Its name; empty before the first event.
    pub run_id: Option<RunId>,
    /// The protocol that it follows.
    pub protocol: ProtocolRef,
    /// The record of the run that it starts over.
    pub previous: Option<String>,
    /// Path of its plan.
    pub plan_path: String,
    /// Hash of its plan.
    pub plan_hash: Option<Sha>,
    /// Title of its plan.
    pub title: String,
    /// Its spec as recorded or accepted.
    pub spec: Option<FileHash>,
    /// Where its steps run.
    pub root: String,
    /// Whether that is a linked work tree: its repository may be there when it is gone.
    pub linked: bool,
    /// The word in its children's environment.
    pub mark: String,
    /// The commit that was last seen checked out.
    pub head: Option<String>,
    /// The branch that was asked for as base of its lanes.
    pub base: Option<String>,
    /// The retries that were asked for, whatever the plan says.
    pub retries: Option<u32>,
    /// Whether its lanes were asked to start from uncommitted changes.
    pub seed_dirty: bool,
    /// Whether it was asked to go on after failures.
    pub keep_going: bool,
    /// When it began.
    pub created_at: Timestamp,
    /// When something last happened.
    pub last_at: Timestamp,
    /// Up to when the time it was driven is counted.
    pub counted_at: Timestamp,
    /// Whether a driver is attached, as far as the events tell.
    pub driven: bool,
    /// Epoch of the last driver.
    pub epoch: u64,
    /// How the last driver left.
    pub verdict: Option<Verdict>,
    /// Whether a person ended it: aborted, cancelled or archived.
    pub ended: Option<Status>,
    /// What it used.
    pub used: Used,
    /// Its phases, in the plan's order.
    pub phases: Vec<PhaseState>,
    /// Its gates that were asked or decided.
    pub gates: BTreeMap<GateRef, GateState>,
    /// What agents asked a person, by what each question is called.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<GateRef, GateState>,
    /// The gates at which changes were wanted.
    pub reviews: BTreeMap<GateRef, Reviewed>,
    /// Its last approval.
    pub approved: Option<Approved>,
    /// The gates whose approval a person took back, until they decide again.
    pub reopened: BTreeSet<GateRef>,
    /// Gates of its phase document whose ticks count.
    pub ticks: BTreeSet<String>,
    /// Those that were ticked while its steps were at work: a step may have done it.
    pub doubted: BTreeSet<String>,
    /// The hash last recorded for each artifact, and which step recorded it.
    pub recorded: BTreeMap<String, Recorded>,
    /// Manual checkpoints, the newest last.
    pub checkpoints: Vec<Checkpoint>,
    /// The budget that stopped the last driver.
    pub exhausted: Option<String>,
    /// Events so far: the number of the last one.
    pub events: u64,
    /// The rewind that is under way.
    pub rewinding: Option<Box<RewindIntended>>,
    /// What can be undone, the newest last.
    pub undo: Vec<Undoable>,
    /// Attempts of steps that the plan has no more: their numbers are never used again.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gone: BTreeMap<StepPath, u32>,
    /// Its replans: how many each phase has had, and what asks for another.
    #[serde(skip_serializing_if = "Replans::is_empty")]
    pub replans: Replans,
    /// Agents whose accounts are at a limit, and until when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limited: BTreeMap<String, Timestamp>,
    /// Budgets that a person was warned of, each with its place and its limit then.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub warned: BTreeSet<(String, String, u64)>,
    /// The session that it is of, if it has no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<SessionState>>,
}

/// What a run used of its budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Time it was driven.
    pub driven_ms: Millis,
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a dollar.
    pub money_micros: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// What was used of tokens and money on the last day that some were.
    #[serde(default, skip_serializing_if = "Day::is_empty")]
    pub day: Day,
}

/// The state of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseState {
    /// Its id.
    pub id: String,
    /// Phases it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Phases it follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Time it was driven.
    #[serde(default)]
    pub driven_ms: Millis,
    /// Its lanes.
    pub lanes: Vec<LaneState>,
}

/// The state of a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneState {
    /// Its id.
    pub id: String,
    /// Lanes it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<LanePath>,
    /// Its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Its steps.
    #[serde(deserialize_with = "step_state::short::read_all")]
    pub steps: Vec<StepState>,
    /// So many steps at its beginning are surely over; where to look first. A hint for speed: it may
    /// be lower than the truth, never higher.
    #[serde(default, skip_serializing_if = "none")]
    pub over: usize,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Isolation::is_in_place")]
    pub isolation: Isolation,
    /// Whether what it leaves in place is committed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commits: bool,
    /// Whether no other lane may run beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The task it does, where it is a part of another lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskOf>,
    /// Its workspace, stages and way to base, once it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<LaneWork>>,
}

/// A recorded artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Hash of its bytes.
    pub sha256: Sha,
    /// Which step recorded it last.
    pub by: StepPath,
}

/// A manual checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its name.
    pub name: String,
    /// What was said.
    pub message: String,
    /// When.
    pub at: Timestamp,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The number of its event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub event: u64,
    /// The files at that point, with the lane of each workspace; none for the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<(Option<LanePath>, SnapshotRef)>,
}

impl LaneState {
    /// Whether all its steps are finished or left out, and its work is where it belongs.
    pub fn is_over(&self) -> bool {
        self.current().is_none()
            && (self.stays_in_place() || self.work.as_ref().is_none_or(|w| w.is_over()))
    }

    /// Whether what it does stays in the project's root as it is: nothing is committed or merged.
    pub fn stays_in_place(&self) -> bool {
        self.isolation.is_in_place() && !self.commits
    }

    /// Whether it is the validation of its phase.
    pub fn is_validation(&self) -> bool {
        !self.steps.is_empty() && self.steps.iter().all(|s| s.role == Role::Validation)
    }

    /// Its step of a role; of several the first.
    pub fn step_for(&self, role: Role) -> Option<&StepState> {
        self.steps.iter().find(|s| s.role == role)
    }

    /// The files that its steps recorded, as seen from its folder.
    pub fn artifacts(&self) -> Vec<String> {
        self.steps.iter().flat_map(|s| &s.artifacts).map(|file| file.path.clone()).collect()
    }

    /// The folder it works in; empty for the project's root.
    pub fn dir(&self) -> &str {
        let own = self.work.as_ref().filter(|w| !w.isolation.is_in_place());
        own.map_or("", |w| w.dir.as_str())
    }

    /// Whether it counts as done for what needs it.
    pub fn satisfies(&self) -> bool {
        self.is_over() && self.steps.iter().all(StepState::satisfies)
    }

    /// The first step that is not over.
    pub fn current(&self) -> Option<usize> {
        let open = self.steps.iter().skip(self.over).position(|s| !s.progress.is_over())?;
        Some(open + self.over)
    }

    /// Whether a step of it is at work.
    pub fn is_running(&self) -> bool {
        let running = |s: &StepState| matches!(s.progress, Progress::Running { .. });
        self.steps.iter().skip(self.over).any(running)
    }

    /// Where a step stands in it; those at work are found without a search.
    pub fn position(&self, id: &str) -> Option<usize> {
        let is = |at: &usize| self.steps.get(*at).is_some_and(|s| s.id == id);
        let near = [self.over, self.over.wrapping_sub(1), self.over + 1].into_iter().find(is);
        near.or_else(|| self.steps.iter().position(|s| s.id == id))
    }

    /// Brings [`LaneState::over`] up to date after a step changed.
    pub(crate) fn skip_done(&mut self, changed: usize) {
        self.over = self.over.min(changed);
        while self.steps.get(self.over).is_some_and(|s| s.progress.is_over()) {
            self.over += 1;
        }
    }
}

impl PhaseState {
    /// Whether all its lanes are over.
    pub fn is_over(&self) -> bool {
        self.lanes.iter().all(LaneState::is_over)
    }

    /// Whether it counts as done for what needs it.
    pub fn satisfies(&self) -> bool {
        self.lanes.iter().all(LaneState::satisfies)
    }
}

impl RunState {
    /// Finds a phase.
    pub fn phase(&self, id: &str) -> Option<&PhaseState> {
        self.phases.iter().find(|p| p.id == id)
    }

    /// Finds a lane.
    pub fn lane(&self, path: &LanePath) -> Option<&LaneState> {
        self.phase(&path.phase)?.lanes.iter().find(|l| l.id == path.lane)
    }

    /// Whether the work of a lane is where it belongs.
    pub fn is_merged(&self, path: &LanePath) -> bool {
        let work = self.lane(path).and_then(|lane| lane.work.as_deref());
        work.is_some_and(|work| work.merged().is_some())
    }

    /// Finds a lane to change.
    pub(crate) fn lane_mut(&mut self, path: &LanePath) -> Option<&mut LaneState> {
        let phase = self.phases.iter_mut().find(|p| p.id == path.phase)?;
        phase.lanes.iter_mut().find(|l| l.id == path.lane)
    }

    /// Where a file of a step lies: below the root, or in the worktree of its lane.
    pub fn place_of(&self, step: &StepPath, path: &str) -> String {
        let dir = self.lane(&step.lane()).map_or("", LaneState::dir);
        if dir.is_empty() { path.to_owned() } else { format!("{dir}/{path}") }
    }

    /// All lanes with their paths, in the plan's order.
    pub fn lanes(&self) -> impl Iterator<Item = (LanePath, &LaneState)> {
        self.phases.iter().flat_map(|phase| {
            phase.lanes.iter().map(move |lane| {
                (LanePath { phase: phase.id.clone(), lane: lane.id.clone() }, lane)
            })
        })
    }

    /// Where a step stands: indices of phase, lane and step, the same as in its plan.
    pub fn position(&self, path: &StepPath) -> Option<(usize, usize, usize)> {
        let phase = self.phases.iter().position(|p| p.id == path.phase)?;
        let lane = self.phases[phase].lanes.iter().position(|l| l.id == path.lane)?;
        let step = self.phases[phase].lanes[lane].position(&path.step)?;
        Some((phase, lane, step))
    }

    /// Finds a step.
    pub fn step(&self, path: &StepPath) -> Option<&StepState> {
        let (phase, lane, step) = self.position(path)?;
        Some(&self.phases[phase].lanes[lane].steps[step])
    }

    /// The step whose failures an attempt is told: the one it is of, or that a replan is about.
    pub fn failing(&self, path: &StepPath) -> Option<&StepState> {
        if path.lane != REPLAN_LANE {
            return self.step(path);
        }
        self.step(self.replans.under_way.as_ref()?.begun.step.as_ref()?)
    }

    /// What a step is for; work where there is no such step.
    pub fn role(&self, path: &StepPath) -> Role {
        self.step(path).map(|s| s.role).unwrap_or_default()
    }

    pub(crate) fn step_mut(&mut self, path: &StepPath) -> Option<&mut StepState> {
        let (phase, lane, step) = self.position(path)?;
        Some(&mut self.phases[phase].lanes[lane].steps[step])
    }

    /// Brings the hint of a step's lane up to date.
    pub(crate) fn skip_done(&mut self, path: &StepPath) {
        if let Some((phase, lane, step)) = self.position(path) {
            self.phases[phase].lanes[lane].skip_done(step);
        }
    }

    /// All steps with their paths, in the plan's order.
    pub fn steps(&self) -> impl Iterator<Item = (StepPath, &StepState)> {
        self.steps_that(|_| true)
    }

    /// Those of them of which something is true; a path is made for no other.
    pub fn steps_that<'s>(
        &'s self,
        is: impl Fn(&StepState) -> bool + Copy + 's,
    ) -> impl Iterator<Item = (StepPath, &'s StepState)> {
        self.phases.iter().flat_map(move |phase| {
            phase.lanes.iter().flat_map(move |lane| {
                let found = lane.steps.iter().filter(move |step| is(step));
                found.map(move |s| (StepPath::new(&phase.id, &lane.id, &s.id), s))
            })
        })
    }

    /// The steps that were started and have no outcome yet.
    pub fn running(&self) -> Vec<(StepPath, u32)> {
        let running = self.steps_that(|s| matches!(s.progress, Progress::Running { .. }));
        running.map(|(path, step)| (path, step.attempts)).collect()
    }

    /// Whether everything is finished or left out, no approval that was taken back is missing, and
    /// nothing that was done asks for another plan.
    pub fn is_over(&self) -> bool {
        self.phases.iter().all(PhaseState::is_over)
            && !self.reopened.iter().any(|g| self.guards(g))
            && !self.is_plan_in_doubt()
    }

    /// Whether a replan is under way, or due for what a finished step did, and nobody has answered.
    fn is_plan_in_doubt(&self) -> bool {
        let is_done =
            |path: &StepPath| self.step(path).is_some_and(|s| s.progress == Progress::Done);
        let asks = |(phase, replans): (&String, &PhaseReplans)| {
            let due = replans.due.as_ref().filter(|due| due.step.as_ref().is_some_and(is_done));
            due.is_some_and(|due| !self.approved(&replan_state::gate(phase, due.trigger)))
        };
        // A driver that left a complete run knew of it, or belongs to a version that did not ask.
        let was_complete = self.verdict == Some(Verdict::Complete);
        !was_complete && (self.replans.under_way.is_some() || self.replans.phases.iter().any(asks))
    }

    /// Whether a gate is one of the plan's.
    fn guards(&self, gate: &GateRef) -> bool {
        let lane = |(path, lane): (LanePath, &LaneState)| {
            lane.gate.is_some() && path.to_string() == gate.0
        };
        self.phase(&gate.0).is_some_and(|phase| phase.gate.is_some()) || self.lanes().any(lane)
    }

    /// The gates that were asked and not decided.
    pub fn open_gates(&self) -> impl Iterator<Item = (&GateRef, &GateState)> {
        self.gates.iter().filter(|(_, g)| g.decision.is_none())
    }

    /// The gates and questions that were asked and not decided.
    pub fn open_decisions(&self) -> impl Iterator<Item = (&GateRef, &GateState)> {
        let open = self.questions.iter().filter(|(_, question)| question.decision.is_none());
        self.open_gates().chain(open)
    }

    /// A gate that was asked or decided, or a question.
    pub fn asked(&self, place: &GateRef) -> Option<&GateState> {
        self.gates.get(place).or_else(|| self.questions.get(place))
    }

    /// Whether the gate of a place was approved.
    pub fn approved(&self, gate: &GateRef) -> bool {
        self.gates.get(gate).and_then(|g| g.decision.as_ref()).is_some_and(|d| d.approved)
    }

    /// Whether the gate of a place was rejected.
    pub fn rejected(&self, gate: &GateRef) -> bool {
        self.gates.get(gate).and_then(|g| g.decision.as_ref()).is_some_and(|d| !d.approved)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn none(value: &usize) -> bool {
    *value == 0
}
