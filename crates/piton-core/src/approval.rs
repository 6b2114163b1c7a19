//! Approvals that are revoked with the work they were given for: nobody has seen the new result
//! yet.

use crate::event::{Event, GateReopened, RewindIntended, RewindKind};
use crate::id::{GateRef, LanePath};
use crate::state::{LaneState, PhaseState, RunState, StepState};

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
