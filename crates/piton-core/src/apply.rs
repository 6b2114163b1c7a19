//! How an event changes the state: total, checked, the same live and on replay.
//!
//! An event that cannot follow the state is [`Illegal`], and the state stays as it was. Nothing here
//! decides anything; [`crate::decide()`] does.

use crate::event::{Event, ReplanBegun, RunCreated, Shape, ShapeStep, StepFinished, StepStarted};
use crate::id::{GateRef, LanePath, StepPath};
use crate::lane_progress::{self, Change, LaneProgress};
use crate::session_state;
use crate::shape::ShapeLane;
use crate::state::{
    CHECKPOINTS_KEPT_MAX, Checkpoint, LaneState, PhaseState, Progress, RunState, StepState,
};
use crate::status::Status;
use crate::time::Timestamp;

mod agents;
mod driven;
mod gates;
mod import;
mod lanes;
mod records;
mod replans;
mod rewind;
mod steps;
mod tasks;

/// Stamps cached states: a state made by another version of this file is not used.
pub const APPLY_VERSION: u32 = 31;

/// An event that cannot follow the state it meets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// Something happened before the run was created.
    #[error("the first event is not the creation of the run")]
    NotCreated,
    /// A run was created twice.
    #[error("the run was created a second time")]
    CreatedTwice,
    /// A run that is over for good changed.
    #[error("the run is {0} and cannot change")]
    Over(Status),
    /// An event names a step that the plan does not have.
    #[error("there is no step {0}")]
    NoStep(StepPath),
    /// An event names a gate that the plan does not have.
    #[error("there is no gate at {0}")]
    NoGate(GateRef),
    /// A step is not where the event needs it to be.
    #[error("step {step} is {status} and cannot be {verb}")]
    Step {
        /// Which step.
        step: StepPath,
        /// Where it stands.
        status: Status,
        /// What the event would do.
        verb: &'static str,
    },
    /// An attempt's number does not follow.
    #[error("step {step}: attempt {found} does not follow, {expected} does")]
    Attempt {
        /// Which step.
        step: StepPath,
        /// The number that would follow.
        expected: u32,
        /// The number found.
        found: u32,
    },
    /// A driver attached with an epoch that is not newer.
    #[error("epoch {found} is not above {current}")]
    Epoch {
        /// The epoch of the state.
        current: u64,
        /// The epoch found.
        found: u64,
    },
    /// An event names a lane that the plan does not have.
    #[error("there is no lane {0}")]
    NoLane(LanePath),
    /// Something happened to a lane that did not begin.
    #[error("lane {0} has not begun")]
    LaneNotBegun(LanePath),
    /// A lane is not where the event needs it to be.
    #[error("{lane}: {source}")]
    Lane {
        /// Which lane.
        lane: LanePath,
        /// Where it is, and what the event would do.
        source: lane_progress::Illegal,
    },
    /// A rewind ended that was never intended.
    #[error("no rollback, restore or undo is under way")]
    NotRewinding,
    /// An event names a phase that the plan does not have.
    #[error("there is no phase {0}")]
    NoPhase(String),
    /// A replan began while another was under way.
    #[error("a replan of {0} is under way")]
    Replanning(String),
    /// A replan ended that was never begun.
    #[error("no such replan is under way")]
    NotReplanning,
}

/// Applies one event that happened at a time.
pub fn apply(state: &mut RunState, at: Timestamp, event: &Event) -> Result<(), Illegal> {
    if let Event::RunCreated(created) = event {
        return create(state, at, created);
    }
    if state.run_id.is_none() {
        return Err(Illegal::NotCreated);
    }
    if let Some(status) = state.ended.filter(|s| s.is_final() && !comes_back(*s, event)) {
        return Err(Illegal::Over(status));
    }
    check(state, event)?;
    let moved = lanes::moved(state, event)?;
    driven::account(state, at, event);
    state.events += 1;
    change(state, at, event);
    if let Some(moved) = moved {
        lanes::advance(state, event, moved);
    }
    if let Some(step) = event.step() {
        state.skip_done(step);
    }
    tasks::reopen_waiting(state, event);
    Ok(())
}

/// Whether an event brings back a run that was set aside.
fn comes_back(status: Status, event: &Event) -> bool {
    status == Status::Archived && matches!(event, Event::DriverAttached(_))
}

/// Applies many events to the empty state.
pub fn replay<'a>(
    events: impl IntoIterator<Item = (Timestamp, &'a Event)>,
) -> Result<RunState, Illegal> {
    let mut state = RunState::default();
    for (at, event) in events {
        apply(&mut state, at, event)?;
    }
    Ok(state)
}

fn create(state: &mut RunState, at: Timestamp, created: &RunCreated) -> Result<(), Illegal> {
    if state.run_id.is_some() {
        return Err(Illegal::CreatedTwice);
    }
    *state = RunState {
        run_id: Some(created.run_id.clone()),
        protocol: created.protocol.clone(),
        previous: created.previous.clone(),
        plan_path: created.plan_path.clone(),
        plan_hash: Some(created.plan_hash.clone()),
        title: created.title.clone(),
        spec: created.spec.clone(),
        root: created.root.clone(),
        linked: created.linked,
        mark: created.mark.clone(),
        head: created.head.clone(),
        created_at: at,
        last_at: at,
        counted_at: at,
        events: 1,
        phases: phases_of(&created.shape, &RunState::default()),
        ..RunState::default()
    };
    Ok(())
}

/// Builds phases from a shape, keeping what the old state knows of steps with the same path.
fn phases_of(shape: &Shape, old: &RunState) -> Vec<PhaseState> {
    let step = |phase: &str, lane: &str, step: &ShapeStep| {
        let (id, role) = (step.id.clone(), step.role);
        let path = StepPath::new(phase, lane, &id);
        let attempts = old.gone.get(&path).copied().unwrap_or_default();
        let known = old.step(&path).cloned();
        let known = known.unwrap_or_else(|| StepState { attempts, ..StepState::default() });
        StepState { id, role, escalation: step.escalation.clone(), ..known }
    };
    shape
        .phases
        .iter()
        .map(|p| PhaseState {
            id: p.id.clone(),
            needs: p.needs.clone(),
            after: p.after.clone(),
            gate: p.gate.clone(),
            driven_ms: old.phase(&p.id).map(|o| o.driven_ms).unwrap_or_default(),
            lanes: p
                .lanes
                .iter()
                .map(|l| {
                    let steps = l.steps.iter().map(|s| step(&p.id, &l.id, s)).collect();
                    let (id, needs, gate) = (l.id.clone(), l.needs.clone(), l.gate.clone());
                    let path = LanePath { phase: p.id.clone(), lane: l.id.clone() };
                    let work = old.lane(&path).and_then(|o| o.work.clone());
                    let ShapeLane { isolation, commits, alone, .. } = *l;
                    let task = l.task.clone();
                    let lane =
                        LaneState { id, needs, gate, steps, isolation, ..LaneState::default() };
                    let mut lane = LaneState { commits, alone, task, work, ..lane };
                    lane.skip_done(0);
                    lane
                })
                .collect(),
        })
        .collect()
}

fn check(state: &RunState, event: &Event) -> Result<(), Illegal> {
    match event {
        Event::DriverAttached(e) if e.epoch <= state.epoch => {
            Err(Illegal::Epoch { current: state.epoch, found: e.epoch })
        }
        Event::StepStarted(e) => check_started(state, e),
        Event::StepFinished(e) => check_finished(state, e),
        Event::StepReset(e) => {
            expect(state, &e.step, "reset", |p| !matches!(p, Progress::Running { .. }))
        }
        Event::StepRetried(e) => expect(state, &e.step, "retried", |p| {
            !matches!(p, Progress::Running { .. } | Progress::Done)
        }),
        Event::StepSkipped(e) => expect(state, &e.step, "skipped", |p| {
            !matches!(p, Progress::Running { .. } | Progress::Done)
        }),
        Event::GateAsked(e) => known_gate(state, &e.gate),
        Event::ApprovalAsked(e) => match state.asked(&e.gate) {
            Some(_) => Err(Illegal::NoGate(e.gate.clone())),
            None => Ok(()),
        },
        Event::GateDecided(e) if state.questions.contains_key(&e.gate) => Ok(()),
        Event::GateDecided(e) => known_gate(state, &e.gate),
        Event::GateReopened(e) => known_gate(state, &e.gate),
        Event::ChangesWanted(e) => {
            known_gate(state, &e.gate)?;
            e.steps.iter().try_for_each(|step| {
                expect(state, step, "changed", |p| !matches!(p, Progress::Running { .. }))
            })
        }
        Event::OutputsAccepted(e) => expect(state, &e.step, "accepted", Progress::is_over),
        Event::StepImported(e) => expect(state, &e.step, "taken over", |p| *p == Progress::Pending),
        Event::StepProven(e) => {
            expect(state, &e.step, "proven", |p| !matches!(p, Progress::Running { .. }))
        }
        Event::ReplanWanted(e) => known_phase(state, &e.phase),
        Event::ReplanRefused(e) => known_phase(state, &e.phase),
        Event::ReplanBegun(e) => check_begun(state, e),
        Event::ReplanEnded(e) => {
            let process = state.replans.process().map(|(_, attempt)| attempt);
            if process == Some(e.attempt) { Ok(()) } else { Err(Illegal::NotReplanning) }
        }
        other => agents::attempt_of(other)
            .map_or(Ok(()), |(step, attempt)| check_attempt(state, step, attempt)),
    }
}

fn known_phase(state: &RunState, phase: &str) -> Result<(), Illegal> {
    state.phase(phase).map(|_| ()).ok_or_else(|| Illegal::NoPhase(phase.to_owned()))
}

/// One at a time, each with a process of its own; one that was cut short begins again.
fn check_begun(state: &RunState, event: &ReplanBegun) -> Result<(), Illegal> {
    known_phase(state, &event.phase)?;
    let Some(under_way) = &state.replans.under_way else { return Ok(()) };
    let same = under_way.begun.phase == event.phase && under_way.begun.number == event.number;
    if under_way.interrupted && same {
        Ok(())
    } else {
        Err(Illegal::Replanning(under_way.begun.phase.clone()))
    }
}

fn expect(
    state: &RunState,
    path: &StepPath,
    verb: &'static str,
    allowed: impl Fn(&Progress) -> bool,
) -> Result<(), Illegal> {
    let step = state.step(path).ok_or_else(|| Illegal::NoStep(path.clone()))?;
    if allowed(&step.progress) {
        Ok(())
    } else {
        Err(Illegal::Step { step: path.clone(), status: step.status(), verb })
    }
}

fn check_started(state: &RunState, event: &StepStarted) -> Result<(), Illegal> {
    expect(state, &event.step, "started", |p| {
        matches!(p, Progress::Pending | Progress::Waiting { .. })
    })?;
    let expected = state.step(&event.step).map_or(1, |s| s.attempts + 1);
    if event.attempt != expected {
        return Err(Illegal::Attempt { step: event.step.clone(), expected, found: event.attempt });
    }
    Ok(())
}

fn check_finished(state: &RunState, event: &StepFinished) -> Result<(), Illegal> {
    expect(state, &event.step, "finished", |p| matches!(p, Progress::Running { .. }))?;
    check_attempt(state, &event.step, event.attempt)
}

/// Whether an event is about the last attempt of its step.
fn check_attempt(state: &RunState, step: &StepPath, found: u32) -> Result<(), Illegal> {
    let expected = state.step(step).ok_or_else(|| Illegal::NoStep(step.clone()))?.attempts;
    if found != expected {
        return Err(Illegal::Attempt { step: step.clone(), expected, found });
    }
    Ok(())
}

fn known_gate(state: &RunState, gate: &GateRef) -> Result<(), Illegal> {
    gate_name(state, gate).map(|_| ()).ok_or_else(|| Illegal::NoGate(gate.clone()))
}

fn gate_name(state: &RunState, gate: &GateRef) -> Option<String> {
    if let Some((phase, trigger)) = replans::place_of(gate) {
        return crate::replan::question(state, phase, trigger);
    }
    planned_gate(state, gate).cloned()
}

fn planned_gate<'a>(state: &'a RunState, gate: &GateRef) -> Option<&'a String> {
    let mut parts = gate.0.splitn(3, '/');
    let phase = state.phase(parts.next()?)?;
    let Some(lane) = parts.next() else { return phase.gate.as_ref() };
    let lane = phase.lanes.iter().find(|l| l.id == lane)?;
    let Some(step) = parts.next() else { return lane.gate.as_ref() };
    lane.steps.iter().find(|s| s.id == step)?.escalation.as_ref()
}

fn change(state: &mut RunState, at: Timestamp, event: &Event) {
    match event {
        // A command that was refused changes nothing.
        Event::RunCreated(_) | Event::CommandRefused(_) => {}
        Event::DriverAttached(e) => {
            state.driven = true;
            state.epoch = e.epoch;
            state.verdict = None;
            state.exhausted = None;
            state.ended = None;
            state.head.clone_from(&e.head);
            state.base = e.base.clone().or_else(|| state.base.take());
            state.retries = e.retries.or(state.retries);
            state.seed_dirty |= e.seed_dirty;
            state.keep_going |= e.keep_going;
            // What blocked a lane is looked at again.
            let works = state.phases.iter_mut().flat_map(|p| &mut p.lanes);
            for work in works.filter_map(|l| l.work.as_mut()) {
                let held_back = matches!(work.progress, LaneProgress::HeldBack(_));
                if held_back || work.blocked.take().is_none() {
                    continue;
                }
                work.rounds = 0;
                work.take(Change::Unblocked);
            }
        }
        Event::DriverLeft(e) => {
            state.driven = false;
            state.verdict = Some(e.verdict);
            state.head.clone_from(&e.head);
        }
        Event::StepStarted(e) => {
            if let Some(step) = state.step_mut(&e.step) {
                (step.progress, step.interrupted) = (Progress::Running { since: at }, false);
                step.attempts = e.attempt;
                step.definition = Some(e.definition.clone());
                step.inputs.clone_from(&e.inputs);
                step.tests_only = e.tests_only;
                step.secrets.clone_from(&e.secrets);
                agents::begun(step, e.attempt, e.agent.as_ref());
                let found = e.before.as_ref().map(|before| before.commit.clone());
                step.scope_from = step.scope_from.take().or(found);
            }
            lanes::started(state, at, e);
        }
        Event::StepFinished(e) => {
            steps::finish(state, at, e);
            state.skip_done(&e.step);
            lanes::finished(state, at, e);
            replans::finished(state, e);
        }
        Event::StepReset(e) => {
            gates::answered(state, &e.step);
            if let Some(step) = state.step_mut(&e.step) {
                steps::grant(step);
                step.rerun = Some(e.reason.clone());
            }
            lanes::tested_again(state, &e.step);
        }
        Event::StepRetried(e) => {
            gates::answered(state, &e.step);
            if let Some(step) = state.step_mut(&e.step) {
                steps::grant(step);
            }
            if let Some(work) = state.lane_mut(&e.step.lane()).and_then(|l| l.work.as_mut()) {
                work.reopened.count = 0;
            }
            lanes::tested_again(state, &e.step);
        }
        Event::StepSkipped(e) => {
            gates::answered(state, &e.step);
            lanes::skipped(state, at, &e.step);
            if let Some(step) = state.step_mut(&e.step) {
                step.progress = Progress::Skipped { satisfy: e.satisfy };
            }
        }
        Event::GateAsked(e) => gates::asked(state, at, &e.gate, &e.name),
        Event::ApprovalAsked(e) => gates::question(state, at, &e.gate, &e.question),
        Event::GateDecided(e) => gates::decided(state, at, e),
        Event::GateReopened(e) => {
            // What is ticked now was ticked for the approval that is taken back.
            state.ticks.extend(gate_name(state, &e.gate));
            state.reopened.insert(e.gate.clone());
            let taken = state.gates.remove(&e.gate);
            if let Some(act) = state.undo.iter_mut().find(|act| Some(act.id) == e.act) {
                act.gates.push((e.gate.clone(), taken));
            }
        }
        Event::ChangesWanted(e) => gates::changes_wanted(state, e),
        Event::PlanAccepted(e) => {
            replans::put_plan(state, (&e.to, &e.title), &e.shape);
            replans::answered_by_hand(state);
        }
        Event::TicksSeen(e) if e.count => {
            state.doubted.retain(|gate| !e.gates.contains(gate) && !e.gone.contains(gate));
            state.ticks.retain(|gate| !e.gone.contains(gate));
            state.ticks.extend(e.gates.iter().cloned());
        }
        Event::TicksSeen(e) => state.doubted.extend(e.gates.iter().cloned()),
        Event::SpecAccepted(e) => steps::accept_spec(state, e),
        Event::OutputsAccepted(e) => steps::accept(state, e),
        Event::CheckpointRecorded(e) => {
            if state.checkpoints.len() == CHECKPOINTS_KEPT_MAX {
                state.checkpoints.remove(0);
            }
            state.checkpoints.push(Checkpoint {
                name: e.name.clone(),
                message: e.message.clone(),
                at,
                head: e.head.clone(),
                event: state.events,
                snapshots: e.snapshots.clone(),
            });
        }
        Event::BudgetExhausted(e) => state.exhausted = Some(e.budget.clone()),
        Event::TimeSkipped(e) => state.counted_at = state.counted_at.after(e.ms).min(at),
        Event::RunAborted(e) => {
            state.ended = Some(if e.cancel { Status::Cancelled } else { Status::Aborted });
        }
        Event::RunArchived(_) => state.ended = Some(Status::Archived),
        Event::StepProven(e) => steps::prove(state, e),
        Event::StepImported(e) => steps::import(state, e),
        Event::RewindIntended(e) => state.rewinding = Some(e.clone()),
        Event::Rewound(e) => rewind::rewound(state, at, e),
        Event::ReplanWanted(e) => replans::wanted(state, e),
        Event::ReplanBegun(e) => replans::begun(state, at, e),
        Event::ReplanEnded(e) => replans::ended(state, at, e),
        Event::ReplanRefused(e) => replans::refused(state, e),
        Event::ReplansImported(e) => replans::imported(state, at, e),
        _ if agents::change(state, at, event) => {}
        Event::SessionOpened(_)
        | Event::SessionChanged(_)
        | Event::SessionSaved(_)
        | Event::SessionNotResumed(_)
        | Event::SessionPhase(_)
        | Event::SessionArtifact(_)
        | Event::SessionSynced(_)
        | Event::SessionEnded(_) => session_state::change(&mut state.session, at, event),
        _ => lanes::change(state, at, event),
    }
}
