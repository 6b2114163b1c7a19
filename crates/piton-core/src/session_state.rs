//! Where a session stands: what its events add up to.

use serde::{Deserialize, Serialize};

use crate::event::{
    Cause, CheckpointRecorded, Event, Reason, Resumed, SessionArtifact, SessionChanged,
    SessionEnded, SessionNotResumed, SessionOpened, SessionPhase, SessionSaved, SessionSynced,
};
use crate::hash::Sha;
use crate::lane::SnapshotRef;
use crate::status::Status;
use crate::time::Timestamp;

/// Most checkpoints of a session in the state; the ledger keeps all.
const POINTS_KEPT_MAX: usize = 50;

/// Most artifacts of a session in the state, the newest; the ledger keeps all.
const ARTIFACTS_KEPT_MAX: usize = 100;

/// The state of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// The session that worked last.
    pub session: String,
    /// When it began.
    pub opened_at: Timestamp,
    /// How many sessions worked on this.
    pub sessions: u32,
    /// The task in progress.
    pub task: Option<String>,
    /// Tasks that were finished.
    pub finished: u32,
    /// The phase of its work, if the agent named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Files that it made, the newest last, each as it was recorded last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<SessionArtifact>,
    /// Its checkpoints, the newest last.
    pub points: Vec<Point>,
    /// The checkpoint that the next session goes on from, by its name.
    pub active: Option<String>,
    /// The checkpoint that the session goes on from, until its work is synced.
    pub resumed: Option<Resumed>,
    /// The time of the checkpoint whose changes were applied.
    pub applied: Option<String>,
    /// The time of the checkpoint that could not be resumed from.
    pub not_resumed: Option<String>,
    /// The hash of its bytes: one that cannot be read has no time.
    pub not_resumed_hash: Option<Sha>,
    /// The last checkpoint that this session made because of its tokens.
    pub trigger: Option<Reason>,
    /// Tokens of the conversation when it began.
    pub used_at_start: Option<u64>,
    /// Whether it ended.
    pub ended: bool,
    /// The task that was in progress when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// Whether files were taken back since its last event.
    pub rewound: bool,
    /// The active checkpoint and the task before files were taken back.
    pub before_rewind: Option<(Option<String>, Option<String>)>,
    /// What the last recovery cost.
    pub cost: Cost,
}

/// A checkpoint of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Reason,
    /// The task in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Tokens of the conversation, and how many fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<(u64, u64)>,
    /// Tokens that it took to make it.
    #[serde(default)]
    pub creation: u64,
    /// The time in the names of its files.
    #[serde(default)]
    pub stamp: String,
}

/// Tokens that a recovery cost, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// To make the checkpoint.
    pub creation: u64,
    /// To read it.
    pub load: u64,
    /// The context that a fresh agent is given.
    pub context: u64,
    /// To finish the task; none if nobody counted.
    pub completion: Option<u64>,
    /// To write everything and go back to normal.
    pub sync: u64,
}

impl Cost {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.creation + self.load + self.context + self.completion.unwrap_or(0) + self.sync
    }
}

impl SessionState {
    /// Where it stands. Nobody can see whether an agent works: it does until it ended or was stopped.
    pub fn status(&self) -> Status {
        if self.rewound {
            return Status::RolledBack;
        }
        let is_stopped = self.trigger == Some(Reason::TokenCritical);
        match (self.ended, &self.active) {
            (_, Some(_)) if self.ended || is_stopped => Status::Interrupted,
            (true, _) if self.left.is_some() => Status::Interrupted,
            (true, _) => Status::Complete,
            _ => Status::Running,
        }
    }

    /// The checkpoint that the next session goes on from.
    pub fn active(&self) -> Option<&Point> {
        let name = self.active.as_ref()?;
        self.points.iter().rev().find(|point| point.name == *name)
    }

    /// Files were taken back to a checkpoint: the next session goes on from the one that they are of.
    pub(crate) fn rolled_back(&mut self, to: &str) {
        self.rewound = true;
        self.before_rewind = Some((self.active.clone(), self.task.clone()));
        if let Some(point) = self.points.iter().rev().find(|point| point.name == to) {
            self.active = Some(point.name.clone());
            self.task.clone_from(&point.task);
        }
    }

    /// A rollback was undone, or that was undone in turn: what stood before is back.
    pub(crate) fn turned(&mut self, is_back: bool) {
        self.rewound = is_back;
        if let Some((active, task)) = self.before_rewind.take() {
            self.before_rewind = Some((self.active.take(), self.task.take()));
            (self.active, self.task) = (active, task);
        }
    }
}

/// Applies an event of a session.
pub(crate) fn change(state: &mut Option<Box<SessionState>>, at: Timestamp, event: &Event) {
    if let Event::SessionOpened(e) = event {
        return opened(state.get_or_insert_default(), at, e);
    }
    let Some(state) = state else { return };
    match event {
        Event::SessionChanged(e) => changed(state, e),
        Event::SessionSaved(e) => saved(state, at, e),
        Event::SessionNotResumed(e) => not_resumed(state, e),
        Event::SessionSynced(e) => synced(state, e),
        Event::SessionPhase(e) => phase(state, e),
        Event::SessionArtifact(e) => artifact(state, e),
        Event::SessionEnded(SessionEnded { session, task }) if *session == state.session => {
            state.ended = true;
            state.left.clone_from(task);
        }
        _ => {}
    }
}

fn opened(state: &mut SessionState, at: Timestamp, event: &SessionOpened) {
    let creation = state.active().map_or(state.cost.creation, |point| point.creation);
    state.left = None;
    state.session.clone_from(&event.session);
    state.opened_at = at;
    state.sessions += 1;
    (state.trigger, state.ended, state.rewound) = (None, false, false);
    state.used_at_start = event.used;
    state.resumed.clone_from(&event.resumed);
    if let Some(resumed) = &event.resumed {
        state.task = resumed.task.clone().or(state.task.take());
        state.cost = Cost {
            creation,
            load: resumed.load_tokens,
            context: resumed.context_tokens,
            ..Cost::default()
        };
    }
}

fn changed(state: &mut SessionState, event: &SessionChanged) {
    state.rewound = false;
    match event.cause {
        Cause::TaskStarted | Cause::Decomposed => state.task.clone_from(&event.task),
        Cause::TaskFinished => {
            state.finished += 1;
            if state.task == event.task {
                state.task = None;
            }
        }
        Cause::Resume => {
            state.applied = state.resumed.as_ref().map(|resumed| resumed.timestamp.clone());
        }
        Cause::Flush => {}
    }
}

fn saved(state: &mut SessionState, at: Timestamp, event: &SessionSaved) {
    if state.points.len() == POINTS_KEPT_MAX {
        state.points.remove(0);
    }
    let SessionSaved { name, reason, stamp, task, tokens, .. } = event.clone();
    if matches!(reason, Reason::TokenWarning | Reason::TokenCritical) {
        state.trigger = Some(reason);
    }
    state.rewound = false;
    state.active = Some(name.clone());
    let creation = event.cost_tokens;
    // A recovery that is under way goes on, however often its work is saved.
    if state.resumed.is_none() {
        state.cost = Cost { creation, ..Cost::default() };
    }
    state.points.push(Point { name, at, reason, task, tokens, creation, stamp });
}

fn not_resumed(state: &mut SessionState, event: &SessionNotResumed) {
    state.session.clone_from(&event.session);
    state.not_resumed = Some(event.timestamp.clone());
    state.not_resumed_hash = Some(Sha::of(event.document.as_bytes()));
    state.resumed = None;
}

fn synced(state: &mut SessionState, event: &SessionSynced) {
    // Where nobody said how many there were at its start, these were counted since then.
    let before = state.used_at_start.unwrap_or(0);
    state.cost.completion = event.used.map(|now| now.saturating_sub(before));
    state.cost.sync = event.cost_tokens;
    (state.active, state.resumed, state.trigger) = (None, None, None);
}

fn phase(state: &mut SessionState, event: &SessionPhase) {
    if !event.ended {
        state.phase = Some(event.phase.clone());
    } else if state.phase.as_ref() == Some(&event.phase) {
        state.phase = None;
    }
}

fn artifact(state: &mut SessionState, event: &SessionArtifact) {
    state.artifacts.retain(|known| known.path != event.path);
    if state.artifacts.len() == ARTIFACTS_KEPT_MAX {
        state.artifacts.remove(0);
    }
    state.artifacts.push(event.clone());
}

/// What the commands of a session ask to record, together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "act")]
pub enum SessionAct {
    /// A session begins.
    #[serde(rename = "open")]
    Open(SessionOpened),
    /// Files are changed.
    #[serde(rename = "change")]
    Change(SessionChanged),
    /// A checkpoint is made; its name is given by the run.
    #[serde(rename = "save")]
    Save {
        /// Its content.
        saved: SessionSaved,
        /// What a person says about it.
        message: String,
        /// The commit that is checked out.
        head: Option<String>,
        /// The files at that point.
        snapshots: Vec<(Option<crate::id::LanePath>, SnapshotRef)>,
    },
    /// A checkpoint could not be resumed from.
    #[serde(rename = "not_resumed")]
    NotResumed(SessionNotResumed),
    /// The work of a checkpoint is finished and written.
    #[serde(rename = "sync")]
    Sync(SessionSynced),
    /// A phase begins or ends.
    #[serde(rename = "phase")]
    Phase(SessionPhase),
    /// A file was made.
    #[serde(rename = "artifact")]
    Artifact(SessionArtifact),
    /// A session ends.
    #[serde(rename = "end")]
    End(SessionEnded),
}

/// The events of what a session asks to record; checkpoints are numbered after the last one.
pub(crate) fn turn(acts: &[SessionAct], mut last: u32, by: &str) -> Vec<Event> {
    let mut events = Vec::new();
    for act in acts {
        match act.clone() {
            SessionAct::Open(e) => events.push(Event::SessionOpened(e)),
            SessionAct::Change(e) => events.push(Event::SessionChanged(e)),
            SessionAct::Save { mut saved, message, head, snapshots } => {
                last += 1;
                let (name, by) = (format!("session-{last}"), by.to_owned());
                saved.name.clone_from(&name);
                let recorded = CheckpointRecorded { name, message, by, head, snapshots };
                events.push(Event::CheckpointRecorded(recorded));
                events.push(Event::SessionSaved(Box::new(saved)));
            }
            SessionAct::NotResumed(e) => events.push(Event::SessionNotResumed(Box::new(e))),
            SessionAct::Sync(e) => events.push(Event::SessionSynced(e)),
            SessionAct::Phase(e) => events.push(Event::SessionPhase(e)),
            SessionAct::Artifact(e) => events.push(Event::SessionArtifact(e)),
            SessionAct::End(e) => events.push(Event::SessionEnded(e)),
        }
    }
    events
}
