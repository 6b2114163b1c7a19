//! Statuses of lanes, phases and runs, derived from their steps: nothing here is stored.

use crate::decide::{is_in_line, lane_ready, phase_ready};
use crate::event::Verdict;
use crate::id::{GateRef, StepPath};
use crate::state::{LaneState, PhaseState, Progress, RunState, StepState};
use crate::status::Status;

/// The status of a lane.
pub fn lane_status(state: &RunState, phase: &PhaseState, lane: &LaneState) -> Status {
    unless_ended(state, begun_status(state, phase, lane))
}

/// In a run that a person ended nothing waits any more: what did stands as the run does.
fn unless_ended(state: &RunState, status: Status) -> Status {
    match (state.ended, status) {
        (Some(ended), Status::Retrying | Status::Parked | Status::Waiting) => ended,
        _ => status,
    }
}

fn begun_status(state: &RunState, phase: &PhaseState, lane: &LaneState) -> Status {
    if lane.is_over() {
        let skipped = lane.steps.iter().all(|s| matches!(s.progress, Progress::Skipped { .. }));
        return if skipped { Status::Skipped } else { Status::Complete };
    }
    let current = lane.current().map(|i| &lane.steps[i]);
    if let Some(status) = current.and_then(|step| tasks_status(state, phase, lane, &step.id)) {
        return status;
    }
    let begun = lane.work.is_some() || lane.steps.iter().any(|s| s.attempts > 0);
    if let Some(work) = &lane.work {
        if work.blocked.is_some() {
            return Status::Blocked;
        }
        if work.rolled_back.is_some() && !lane.is_running() {
            return Status::RolledBack;
        }
    }
    match current.map(crate::state::StepState::status) {
        Some(Status::Pending) => {
            let own = GateRef(format!("{}/{}", phase.id, lane.id));
            if waits(state, &own) || waits(state, &GateRef(phase.id.clone())) {
                Status::Waiting
            } else if held_by_skip(state, phase, lane) {
                Status::Blocked
            } else if begun {
                Status::Running
            } else {
                Status::Pending
            }
        }
        Some(status) => status,
        // Its steps are over, its work is on the way to base.
        None if lane.work.as_ref().is_some_and(|w| w.pull_request.is_some()) => Status::Waiting,
        None if is_in_line(state, phase, lane) => Status::Waiting,
        None => Status::Running,
    }
}

/// The status of a lane that waits for its tasks: what holds one of them up holds it up.
fn tasks_status(
    state: &RunState,
    phase: &PhaseState,
    lane: &LaneState,
    step: &str,
) -> Option<Status> {
    lane.work.as_ref().filter(|w| w.is_forked_at(step) && w.blocked.is_none())?;
    let open = phase.tasks_at(&lane.id, step).filter(|task| !task.is_over());
    let tasks: Vec<Status> = open.map(|task| lane_status(state, phase, task)).collect();
    Some(match combine(&tasks) {
        Status::Pending | Status::Complete | Status::Skipped => Status::Running,
        status => status,
    })
}

/// The status of a step in words; one that waits for tasks is at work while they are.
pub fn step_status(
    state: &RunState,
    phase: &PhaseState,
    lane: &LaneState,
    step: &StepState,
) -> Status {
    // In this order: each look at whether it runs goes through all its steps.
    if lane.work.as_ref().is_some_and(|w| w.blocked.is_some()) && lane.is_running() {
        let ended = matches!(step.progress, Progress::Running { .. });
        return if ended { Status::Blocked } else { unless_ended(state, step.status()) };
    }
    let waits = || tasks_status(state, phase, lane, &step.id);
    let open = Some(step).filter(|s| s.progress == Progress::Pending);
    let status = open.and_then(|_| waits()).unwrap_or_else(|| step.status());
    if status == Status::Pending && step.interrupted {
        return Status::Interrupted;
    }
    unless_ended(state, status)
}

fn waits(state: &RunState, gate: &GateRef) -> bool {
    state.gates.get(gate).is_some_and(|g| g.decision.is_none())
}

/// Whether a lane can't start because something it needs was left out, or its gate was rejected.
fn held_by_skip(state: &RunState, phase: &PhaseState, lane: &LaneState) -> bool {
    let own = GateRef(format!("{}/{}", phase.id, lane.id));
    if state.rejected(&own) || state.rejected(&GateRef(phase.id.clone())) {
        return true;
    }
    let lane_held = !lane_ready(state, lane)
        && lane
            .needs
            .iter()
            .any(|n| state.lane(n).is_some_and(LaneState::is_over) && !state.satisfies(n));
    let phase_held = !phase_ready(state, phase)
        && phase
            .needs
            .iter()
            .any(|n| state.phase(n).is_some_and(|p| p.is_over() && !p.satisfies()));
    lane_held || phase_held
}

/// The status of a phase.
pub fn phase_status(state: &RunState, phase: &PhaseState) -> Status {
    let lanes: Vec<Status> = phase.lanes.iter().map(|l| lane_status(state, phase, l)).collect();
    combine(&lanes)
}

/// The status of a lane or phase of a run that stands still: what would go on was ended with it.
/// Steps that still run without a driver are at work.
///
/// `acts` says whether a driver may be at work on it beside its steps. Where nothing of it is at
/// work it waits for its turn, or was not chosen, although something of the run goes on.
pub fn standing(part: Status, run: Status, steps_run: bool, acts: bool) -> Status {
    if part != Status::Running || steps_run {
        return part;
    }
    match run {
        Status::Interrupted | Status::Aborted | Status::Cancelled | Status::Archived => run,
        Status::Pending => Status::Pending,
        // It would go on, if something else had not stopped the run.
        Status::Failed | Status::Blocked | Status::Waiting | Status::RolledBack => {
            Status::Interrupted
        }
        _ if acts => part,
        _ => Status::Pending,
    }
}

/// Whether a live driver may be working on a lane although none of its steps runs: it creates the
/// workspace, or merges the lane into base.
pub fn may_act(lane: &LaneState) -> bool {
    let making_workspace =
        lane.work.as_ref().is_some_and(|w| !w.has_workspace() && w.blocked.is_none());
    !lane.is_over() && (making_workspace || lane.current().is_none())
}

fn combine(parts: &[Status]) -> Status {
    let any = |wanted: Status| parts.contains(&wanted);
    if parts.iter().all(|s| *s == Status::Skipped) && !parts.is_empty() {
        return Status::Skipped;
    }
    if parts.iter().all(|s| matches!(s, Status::Complete | Status::Skipped)) {
        return Status::Complete;
    }
    for status in [
        Status::Failed,
        Status::Running,
        Status::Retrying,
        Status::Parked,
        Status::Waiting,
        Status::Aborted,
        Status::Cancelled,
        Status::Archived,
        Status::Blocked,
        Status::RolledBack,
    ] {
        if any(status) {
            return status;
        }
    }
    if any(Status::Complete) || any(Status::Skipped) { Status::Running } else { Status::Pending }
}

/// The status of a run. `driver_lives` says whether a process advances it now.
pub fn run_status(state: &RunState, driver_lives: bool) -> Status {
    if state.run_id.is_none() {
        // Its creation is not recorded yet: nothing of it has begun, so nothing of it is over.
        return Status::Pending;
    }
    if let Some(ended) = state.ended {
        return ended;
    }
    if let Some(session) = &state.session {
        return session.status();
    }
    let phases: Vec<Status> = state.phases.iter().map(|p| phase_status(state, p)).collect();
    let combined = combine(&phases);
    let is_done = matches!(combined, Status::Complete | Status::Skipped);
    // What is done may still ask for another plan.
    if is_done && state.is_over() {
        return Status::Complete;
    }
    if driver_lives {
        return match combined {
            Status::Pending | Status::Failed | Status::Blocked | Status::Waiting => Status::Running,
            _ if is_done => Status::Running,
            other => other,
        };
    }
    match standing_verdict(state) {
        Some(Verdict::Failed) => Status::Failed,
        Some(Verdict::Waiting) => Status::Waiting,
        Some(Verdict::Blocked | Verdict::Budget) => Status::Blocked,
        Some(Verdict::SelectionDone) => Status::Pending,
        Some(Verdict::RolledBack) => Status::RolledBack,
        Some(Verdict::Complete) if state.is_over() => Status::Complete,
        _ => Status::Interrupted,
    }
}

/// The verdict of the last driver, unless a person has decided since about what it rested on: then
/// the run only waits to go on.
pub fn standing_verdict(state: &RunState) -> Option<Verdict> {
    let any = |of: fn(&StepState) -> bool| state.steps().any(|(_, step)| of(step));
    let rejected = || state.gates.keys().any(|g| state.rejected(g));
    let back =
        || state.lanes().any(|(_, l)| l.work.as_ref().is_some_and(|w| w.rolled_back.is_some()));
    match state.verdict? {
        Verdict::Failed if !any(|s| s.progress == Progress::Failed) && !rejected() => None,
        Verdict::Blocked if any(|s| s.progress == Progress::Pending && s.rerun.is_some()) => None,
        Verdict::Blocked if is_free(state) && !is_held(state) => None,
        // Every gate that was asked about is decided.
        Verdict::Waiting if rejected() && state.open_gates().next().is_none() => {
            Some(Verdict::Failed)
        }
        Verdict::Waiting if is_decided(state) && is_free(state) && !is_held(state) => None,
        // Finished work is to run again.
        Verdict::Complete if !state.is_over() => None,
        // A restore, or an undo that brought everything back: the run stands where its lanes do.
        Verdict::RolledBack if !back() => {
            let phases: Vec<Status> = state.phases.iter().map(|p| phase_status(state, p)).collect();
            match combine(&phases) {
                Status::Failed => Some(Verdict::Failed),
                _ if rejected() => Some(Verdict::Failed),
                Status::Blocked => Some(Verdict::Blocked),
                Status::Waiting => Some(Verdict::Waiting),
                _ => None,
            }
        }
        verdict => Some(verdict),
    }
}

/// Whether gates were asked about, and none is left open.
fn is_decided(state: &RunState) -> bool {
    !state.gates.is_empty() && state.open_gates().next().is_none()
}

/// Whether a lane could go on: nothing that it needs is missing.
fn is_free(state: &RunState) -> bool {
    let pending = |lane: &LaneState| {
        lane.current().is_some_and(|at| lane.steps[at].progress == Progress::Pending)
    };
    let ready = |phase: &PhaseState| {
        phase_ready(state, phase) && phase.lanes.iter().any(|l| pending(l) && lane_ready(state, l))
    };
    state.phases.iter().any(ready)
}

/// Whether a lane can't go on before a person acts.
fn is_held(state: &RunState) -> bool {
    let blocked = |phase: &PhaseState| {
        phase.lanes.iter().any(|lane| lane_status(state, phase, lane) == Status::Blocked)
    };
    state.phases.iter().any(blocked)
}

/// The step where the run stands, or would go on: the first that runs, else the first that is not over.
pub fn current(state: &RunState) -> Option<StepPath> {
    let running = state.running().into_iter().next().map(|(path, _)| path);
    running.or_else(|| state.steps_that(|s| !s.progress.is_over()).next().map(|(path, _)| path))
}

/// How many steps are over, and how many there are; of a session its tasks so far.
pub fn progress(state: &RunState) -> (usize, usize) {
    if let Some(session) = &state.session {
        let finished = session.finished as usize;
        return (finished, finished + usize::from(session.task.is_some()));
    }
    let all = state.phases.iter().flat_map(|p| &p.lanes).flat_map(|l| &l.steps);
    all.fold((0, 0), |(over, count), s| (over + usize::from(s.progress.is_over()), count + 1))
}
