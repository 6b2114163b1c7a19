//! Approvals that are revoked with the work they were given for: nobody has seen the new result
//! yet.

use crate::event::{Event, GateReopened, RewindIntended, RewindKind};
use crate::id::{GateRef, LanePath, StepPath};
use crate::lane::Role;
use crate::state::{LaneState, PhaseState, Progress, RunState, StepState};

/// The approved gates of the phases and lanes with this work, and those that come after it.
pub fn of_work(state: &RunState, lanes: &[LanePath]) -> Vec<GateRef> {
    let mut later: Vec<LanePath> = lanes.iter().map(|lane| state.parent_of(lane)).collect();
    let mut phases: Vec<&str> = Vec::new();
    let own = |phase: &PhaseState| lanes.iter().any(|lane| lane.phase == phase.id);
    // Lanes and phases are few: repeat until nothing is added.
    loop {
        let before = later.len() + phases.len();
        for phase in &state.phases {
            let needs = |id: &String| later.iter().any(|lane| lane.phase == *id);
            let follows = phase.needs.iter().chain(&phase.after).any(needs);
            if follows && !phases.contains(&&*phase.id) {
                phases.push(&phase.id);
            }
            for lane in &phase.lanes {
                let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
                let depends = follows || lane.needs.iter().any(|n| later.contains(n));
                if depends && !later.contains(&path) {
                    later.push(path);
                }
            }
        }
        if later.len() + phases.len() == before {
            break;
        }
    }
    let of_phases = state.phases.iter().filter(|p| own(p) || phases.contains(&&*p.id));
    let of_phases = of_phases.map(|phase| GateRef(phase.id.clone()));
    let all = of_phases.chain(later.iter().map(|lane| GateRef(lane.to_string())));
    all.filter(|gate| state.approved(gate)).collect()
}

/// The steps whose work is reviewed at a gate, which run again if changes are wanted: the last one of
/// each lane right before the place that it guards, and the step itself that asks a person.
pub fn reviewed(state: &RunState, gate: &GateRef) -> Vec<StepPath> {
    if let Ok(path) = StepPath::try_from(gate.0.clone()) {
        let asks = state.step(&path).is_some_and(|s| s.progress == Progress::Escalated);
        return if asks { vec![path] } else { Vec::new() };
    }
    let (phase, lane) = gate.0.split_once('/').map_or((&*gate.0, None), |(p, l)| (p, Some(l)));
    let Some(phase) = state.phase(phase) else { return Vec::new() };
    let lane = lane.and_then(|id| phase.lanes.iter().find(|l| l.id == id));
    let needs = lane.map(|lane| lane.needs.clone()).unwrap_or_default();
    if !needs.is_empty() {
        return needs.iter().filter_map(|path| last_step(state, path)).collect();
    }
    let before = if phase.needs.is_empty() { &phase.after } else { &phase.needs };
    let phases = before.iter().filter_map(|id| state.phase(id));
    let lanes = phases.flat_map(|phase| {
        phase
            .lanes
            .iter()
            .filter(|lane| lane.task.is_none())
            .map(|lane| LanePath { phase: phase.id.clone(), lane: lane.id.clone() })
    });
    lanes.filter_map(|path| last_step(state, &path)).collect()
}

/// The snapshot of a run that was taken last.
pub fn newest_snapshot(state: &RunState) -> Option<String> {
    let taken = state.lanes().filter_map(|(_, lane)| {
        let work = lane.work.as_ref()?;
        Some((work.records.iter().map(|record| record.at).max(), work.latest.snapshot.clone()?))
    });
    taken.max_by_key(|(at, _)| *at).map(|(_, snapshot)| snapshot)
}

/// What the work before a gate is compared with: the snapshot that a person decided about last, at
/// this gate or the one before it, and what they decided. Without one, what was there when it began.
pub fn decided_before(state: &RunState, gate: &GateRef) -> Option<(Last, String)> {
    let approved = state.approved.as_ref().and_then(|last| Some((last, last.seen.clone()?)));
    let review = state.reviews.get(gate).and_then(|last| Some((last, last.seen.clone()?)));
    if let Some((last, seen)) = review {
        return Some((Last::Changes { by: last.by.clone() }, seen));
    }
    if let Some((last, seen)) = approved {
        return Some((Last::Approved { by: last.by.clone(), name: last.name.clone() }, seen));
    }
    let records = state.lanes().filter_map(|(_, lane)| lane.work.as_ref()?.records.first());
    let first = records.min_by_key(|record| record.event)?;
    Some((Last::Nothing, first.snapshot.clone()?))
}

/// What a person decided last about work that is decided about now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    /// They wanted changes.
    Changes {
        /// Who.
        by: String,
    },
    /// They approved a gate.
    Approved {
        /// Who.
        by: String,
        /// What was asked there.
        name: String,
    },
    /// Nobody decided yet.
    Nothing,
}

/// The last step of a lane that does its work, if it was done.
fn last_step(state: &RunState, path: &LanePath) -> Option<StepPath> {
    let lane = state.lane(path)?;
    let works = |s: &&StepState| s.role == Role::Work && s.progress == Progress::Done;
    let step = lane.steps.iter().rev().find(works)?;
    Some(StepPath::new(&path.phase, &path.lane, &step.id))
}

/// The approved gates that a rollback reopens, from the state before it.
pub fn taken_back(state: &RunState, intent: &RewindIntended) -> Vec<GateRef> {
    if intent.kind != RewindKind::Rollback {
        return Vec::new();
    }
    let goes = |path: &&LanePath| {
        let over = intent.reverts.iter().any(|revert| revert.lane == **path);
        let stays = |s: &StepState| s.progress.is_over() && s.done_event <= intent.point(path);
        let redone = |s: &StepState| s.attempts > 0 && (over || !stays(s));
        state.lane(path).is_some_and(|lane: &LaneState| lane.steps.iter().any(redone))
    };
    let lanes: Vec<LanePath> = intent.lanes.iter().filter(goes).cloned().collect();
    of_work(state, &lanes)
}

/// The events that reopen gates.
pub fn reopened(gates: Vec<GateRef>, by: &str, why: &str, act: Option<u64>) -> Vec<Event> {
    let (by, why) = (by.to_owned(), why.to_owned());
    let reopens =
        |gate| Event::GateReopened(GateReopened { gate, by: by.clone(), why: why.clone(), act });
    gates.into_iter().map(reopens).collect()
}
