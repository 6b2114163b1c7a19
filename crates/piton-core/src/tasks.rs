//! Tasks in worktrees of their own: which lanes are parts of which other, according to the state.
//!
//! A lane that does a task is a lane like all others, but for where it starts from and goes to: the
//! branch of the lane it is a part of. That lane waits for it at one of its steps. For a person both
//! are one: they are chosen, taken back and needed together.

use std::collections::BTreeSet;

use crate::id::{LanePath, StepPath};
use crate::lane_event::{RewindIntended, RewindKind};
use crate::lane_state::LaneWork;
use crate::state::{LaneState, PhaseState, RunState};

/// The lanes that count as done for what needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Satisfied<'a>(BTreeSet<(&'a str, &'a str)>);

impl Satisfied<'_> {
    /// Whether a lane is one of them.
    pub fn contains(&self, lane: &LanePath) -> bool {
        self.0.contains(&(lane.phase.as_str(), lane.lane.as_str()))
    }
}

impl LaneState {
    /// The lane that a person means by it: the one it is a part of, else itself.
    pub fn parent_id(&self) -> &str {
        self.task.as_ref().map_or(&self.id, |task| &task.lane)
    }
}

impl PhaseState {
    /// The lanes that do the tasks a step of a lane waits for.
    pub fn tasks_at<'a>(
        &'a self,
        lane: &'a str,
        step: &'a str,
    ) -> impl Iterator<Item = &'a LaneState> {
        self.parts_of(lane).filter(move |l| l.task.as_ref().is_some_and(|t| t.step == step))
    }

    /// The lanes that are parts of a lane.
    pub fn parts_of<'a>(&'a self, lane: &'a str) -> impl Iterator<Item = &'a LaneState> {
        self.lanes.iter().filter(move |l| l.task.as_ref().is_some_and(|t| t.lane == lane))
    }

    /// The lane that another one is a part of; itself where it is none.
    pub fn parent_of<'a>(&'a self, lane: &'a LaneState) -> &'a LaneState {
        let task = lane.task.as_ref();
        task.and_then(|t| self.lanes.iter().find(|l| l.id == t.lane)).unwrap_or(lane)
    }
}

impl RunState {
    /// The lane that a lane is a part of, and the step that waits for it.
    pub fn awaits(&self, lane: &LanePath) -> Option<StepPath> {
        let task = self.lane(lane)?.task.as_ref()?;
        Some(StepPath::new(&lane.phase, &task.lane, &task.step))
    }

    /// The lane that a person means by a path: the one it is a part of, else itself.
    pub fn parent_of(&self, lane: &LanePath) -> LanePath {
        self.awaits(lane).map_or_else(|| lane.clone(), |step| step.lane())
    }

    /// The lanes that do the tasks a step waits for; none where it waits for nothing.
    pub fn tasks_at(&self, step: &StepPath) -> Vec<LanePath> {
        let phase = self.phase(&step.phase);
        let lanes = phase.into_iter().flat_map(|p| p.tasks_at(&step.lane, &step.step));
        let path = |l: &LaneState| LanePath { phase: step.phase.clone(), lane: l.id.clone() };
        lanes.map(path).collect()
    }

    /// The lanes that are parts of a lane.
    pub fn parts_of(&self, lane: &LanePath) -> Vec<LanePath> {
        let phase = self.phase(&lane.phase);
        let parts = phase.into_iter().flat_map(|p| p.parts_of(&lane.lane));
        parts.map(|l| LanePath { phase: lane.phase.clone(), lane: l.id.clone() }).collect()
    }

    /// The tasks that start over with a rollback: their lanes go back behind what waits for them.
    /// `reverted` are lanes whose merges are taken back too.
    pub fn tasks_behind(&self, intent: &RewindIntended, reverted: &[LanePath]) -> Vec<LanePath> {
        if intent.kind != RewindKind::Rollback {
            return Vec::new();
        }
        let behind = |lane: &LanePath, part: &LanePath| {
            let waits = self.awaits(part).and_then(|step| self.step(&step));
            let stays =
                waits.is_some_and(|s| s.progress.is_over() && s.done_event <= intent.point(lane));
            !stays || reverted.contains(lane)
        };
        let parts = |lane: &LanePath| -> Vec<LanePath> {
            self.parts_of(lane).into_iter().filter(|part| behind(lane, part)).collect()
        };
        intent.lanes.iter().flat_map(parts).collect()
    }

    /// The tasks whose worktrees go with a rewind: those that start over, and those that had none
    /// when what is undone happened.
    pub fn tasks_leaving(&self, intent: &RewindIntended, reverted: &[LanePath]) -> Vec<LanePath> {
        let stands = |work: Option<&LaneWork>| work.is_some_and(LaneWork::has_worktree);
        let now = |path: &LanePath| stands(self.lane(path).and_then(|l| l.work.as_deref()));
        let mut all = self.tasks_behind(intent, reverted);
        let undone = self.undo.iter().find(|act| Some(act.id) == intent.undoes);
        for (path, before) in undone.iter().flat_map(|act| &act.lanes) {
            let is_task = self.lane(path).is_some_and(|l| l.task.is_some());
            if is_task && !stands(before.as_deref()) {
                all.push(path.clone());
            }
        }
        all.retain(now);
        all
    }

    /// All lanes that [`RunState::satisfies`]: for whoever asks about many, since each is looked for
    /// among all.
    pub fn satisfied(&self) -> Satisfied<'_> {
        let all = || self.phases.iter().flat_map(|p| p.lanes.iter().map(move |l| (p, l)));
        let done = all().filter(|(_, lane)| lane.satisfies());
        let mut found: BTreeSet<_> =
            done.map(|(phase, lane)| (phase.id.as_str(), lane.id.as_str())).collect();
        for (phase, part) in all().filter(|(_, lane)| lane.task.is_some() && !lane.satisfies()) {
            found.remove(&(phase.id.as_str(), part.parent_id()));
        }
        Satisfied(found)
    }

    /// Whether a lane and all its parts count as done for what needs it.
    pub fn satisfies(&self, lane: &LanePath) -> bool {
        let done = |l: &LaneState| l.satisfies();
        let parts = self.phase(&lane.phase).map(|p| p.parts_of(&lane.lane).all(done));
        self.lane(lane).is_some_and(done) && parts == Some(true)
    }
}
