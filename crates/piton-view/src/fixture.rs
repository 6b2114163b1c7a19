//! A run in the middle of its work, for the tests of everything that shows one.

use piton_core::event::{Class, Event, FileHash, Outcome, StepFinished, StepStarted};
use piton_core::hash::Sha;
use piton_core::state::{FailedAttempt, GateState, LaneState, PhaseState, Progress, StepState};
use piton_core::{GateRef, Millis, RunId, RunState, StepPath, Timestamp};

use crate::place::Place;
use crate::run::{Driver, Seen};

/// A pending step.
pub(crate) fn step(id: &str) -> StepState {
    StepState { id: id.to_owned(), ..StepState::default() }
}

/// A step that finished in 65 seconds, with one artifact.
pub(crate) fn done(id: &str) -> StepState {
    StepState {
        progress: Progress::Done,
        attempts: 1,
        successes: 1,
        exit_code: Some(0),
        duration_ms: Millis(65_000),
        artifacts: vec![FileHash { path: "a.txt".to_owned(), sha256: Sha("aa".to_owned()) }],
        ..step(id)
    }
}

/// A step in its second attempt, running since second 5.
pub(crate) fn running(id: &str) -> StepState {
    StepState {
        progress: Progress::Running { since: Timestamp(5_000) },
        attempts: 2,
        failures: 1,
        exit_code: Some(1),
        ..step(id)
    }
}

/// A step that failed for good.
pub(crate) fn failed(id: &str) -> StepState {
    StepState {
        progress: Progress::Failed,
        attempts: 2,
        failures: 2,
        exit_code: Some(7),
        duration_ms: Millis(1_500),
        failure_context: vec![FailedAttempt {
            attempt: 2,
            class: Class::Command,
            error: "the linker said no".to_owned(),
            lines: vec!["ld: no".to_owned()],
            budget: None,
            command: None,
            exit_code: None,
        }],
        ..step(id)
    }
}

/// A lane.
pub(crate) fn lane(id: &str, steps: Vec<StepState>) -> LaneState {
    LaneState { id: id.to_owned(), steps, ..LaneState::default() }
}

/// A phase.
pub(crate) fn phase(id: &str, lanes: Vec<LaneState>) -> PhaseState {
    PhaseState { id: id.to_owned(), lanes, ..PhaseState::default() }
}

/// P1: lane A has fetched and builds for the second time, lane B is pending; P2 waits for its gate.
pub(crate) fn state() -> RunState {
    let mut state = RunState {
        run_id: Some(RunId("r-1".to_owned())),
        plan_path: "plan.toml".to_owned(),
        title: "Authentication".to_owned(),
        driven: true,
        epoch: 3,
        created_at: Timestamp(0),
        last_at: Timestamp(5_000),
        phases: vec![
            phase(
                "P1",
                vec![
                    lane("A", vec![done("fetch"), running("build"), step("pack")]),
                    lane("B", vec![step("work")]),
                ],
            ),
            phase("P2", vec![lane("main", vec![step("work")])]),
        ],
        ..RunState::default()
    };
    state.phases[1].gate = Some("Spec approval".to_owned());
    let gate =
        GateState { name: "Spec approval".to_owned(), asked_at: Timestamp(2_000), decision: None };
    state.gates.insert(GateRef("P2".to_owned()), gate);
    state
}

/// What is seen beside it at second 17: its driver lives, or is gone.
pub(crate) fn seen(place: &Place, alive: bool) -> Seen<'_> {
    let (host, heard_at) = ("box".to_owned(), Timestamp(5_000));
    let driver = Some(Driver { pid: 42, host, alive, stopped: false, heard_at });
    let (rerun, left, moved, now) = (&[], &[], &[], Timestamp(17_000));
    Seen { run_id: "r-1", seq: 9, driver, rerun, left, moved, now, place }
}

/// A step of P1/A starts.
pub(crate) fn start(step: &str, attempt: u32) -> Event {
    Event::StepStarted(StepStarted::new(
        StepPath::new("P1", "A", step),
        attempt,
        Sha("d".to_owned()),
    ))
}

/// The first attempt of a step of P1/A ends after 3.2 seconds with exit code 1.
pub(crate) fn finish(step: &str, outcome: Outcome) -> Event {
    Event::StepFinished(Box::new(StepFinished {
        exit_code: Some(1),
        duration_ms: Millis(3_200),
        ..StepFinished::new(StepPath::new("P1", "A", step), 1, outcome)
    }))
}
