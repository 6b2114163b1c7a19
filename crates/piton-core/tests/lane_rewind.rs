//! A rollback of several lanes: each goes back to its own point; and where failed tests stand.

mod lane_events;
mod support;

use lane_events::{TEST, begun, committed, lane_path, ready, snapshot};
use piton_core::Status;
use piton_core::event::{
    Class, DriverLeft, Event, Next, Outcome, RewindIntended, RewindKind, Rewound, Verdict,
};
use piton_core::lane::{Isolation, Stage, StageStatus};
use piton_core::state::Progress;
use piton_core::summary::run_status;
use piton_testkit::plans;
use support::{Run, failed, finished, path};

const LANES: [&str; 2] = ["P/A", "P/B"];

fn attempt(run: &mut Run, step: &str) {
    let number = run.start(step, Vec::new());
    let Event::StepFinished(mut event) = finished(step, number, Outcome::Succeeded, vec![]) else {
        unreachable!("it is the end of a step")
    };
    event.after = Some(snapshot("made"));
    event.tests = vec![TEST.to_owned()];
    run.take(Event::StepFinished(event));
}

/// One lane after the other gets as far as its tests.
fn tested() -> Run {
    let lane = |id| plans::apart(id, vec![plans::step("work")], &[TEST]);
    let plan = plans::plan(vec![plans::phase("P", vec![lane("A"), lane("B")])]);
    let mut run = Run::new(plan);
    for lane in LANES {
        run.take(begun(lane, Isolation::Worktree));
        run.take(ready(lane, "start"));
        attempt(&mut run, &format!("{lane}/work"));
        attempt(&mut run, &format!("{lane}/tests"));
        run.take(committed(lane, "made", true));
    }
    run
}

fn rolled_back(run: &mut Run, own: bool) {
    let reached = |lane: &str| {
        let work = run.state.lane(&lane_path(lane)).and_then(|l| l.work.as_ref());
        work.and_then(|w| w.record(Stage::AfterLaneTests)).map_or(0, |r| r.event)
    };
    let points: Vec<_> = LANES.iter().map(|lane| (lane_path(lane), reached(lane))).collect();
    let after_event = points.iter().map(|(_, event)| *event).min().unwrap_or_default();
    run.take(Event::RewindIntended(Box::new(RewindIntended {
        kind: RewindKind::Rollback,
        to: "after_lane_tests".to_owned(),
        stage: Some(Stage::AfterLaneTests),
        after_event,
        points: if own { points } else { Vec::new() },
        lanes: LANES.iter().map(|lane| lane_path(lane)).collect(),
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: "ada".to_owned(),
    })));
    run.take(Event::Rewound(Rewound::default()));
}

fn status(run: &Run, lane: &str, stage: Stage) -> Option<StageStatus> {
    let work = run.state.lane(&lane_path(lane)).and_then(|l| l.work.as_ref());
    work.and_then(|w| w.record(stage)).map(|r| r.status)
}

#[test]
fn a_lane_keeps_what_it_did_before_its_own_point() {
    let mut run = tested();
    rolled_back(&mut run, true);
    for lane in LANES {
        let step = run.state.step(&path(&format!("{lane}/work")));
        assert!(step.is_some_and(|s| s.progress.is_over()), "{lane} works again");
        let start = status(&run, lane, Stage::AfterLaneStart);
        assert_eq!(start, Some(StageStatus::InProgress), "{lane}");
        let tests = status(&run, lane, Stage::AfterLaneTests);
        assert_eq!(tests, Some(StageStatus::Complete), "{lane}");
    }
}

#[test]
fn an_intent_of_an_older_program_goes_back_to_the_earliest_point() {
    let mut run = tested();
    rolled_back(&mut run, false);
    let step = run.state.step(&path("P/B/work"));
    assert!(step.is_some_and(|s| s.progress == Progress::Pending));
}

#[test]
fn tests_that_take_too_long_are_recorded_as_tests() {
    let lane = plans::apart("A", vec![plans::step("work")], &[TEST]);
    let mut run = Run::new(plans::plan(vec![plans::phase("P", vec![lane])]));
    run.take(begun("P/A", Isolation::Worktree));
    run.take(ready("P/A", "start"));
    attempt(&mut run, "P/A/work");
    run.attempt("P/A/tests", failed(Class::Timeout, Next::Fail));
    assert_eq!(status(&run, "P/A", Stage::AfterLaneTests), Some(StageStatus::Failed));
    assert_eq!(status(&run, "P/A", Stage::AfterLaneStart), Some(StageStatus::InProgress));
}

/// Lost: a run whose rollback was undone, or that a file was restored in, would count as rolled back
/// although its lanes stand where they stood.
#[test]
fn a_run_is_rolled_back_only_while_a_lane_is() {
    let lane = plans::apart("A", vec![plans::step("work")], &[TEST]);
    let mut run = Run::new(plans::plan(vec![plans::phase("P", vec![lane])]));
    run.take(begun("P/A", Isolation::Worktree));
    run.take(ready("P/A", "start"));
    run.start("P/A/work", Vec::new());
    run.take(finished("P/A/work", 1, failed(Class::Command, Next::Fail), vec![]));
    let left = |run: &mut Run, verdict| {
        run.take(Event::DriverLeft(DriverLeft {
            verdict,
            head: None,
            signal: None,
            driven_until: None,
        }));
        run_status(&run.state, false)
    };
    let rewind = |run: &mut Run, kind, undoes| {
        run.take(Event::RewindIntended(Box::new(RewindIntended {
            kind,
            to: "after_lane_start".to_owned(),
            stage: Some(Stage::AfterLaneStart),
            after_event: 0,
            points: Vec::new(),
            lanes: vec![lane_path("P/A")],
            workspaces: Vec::new(),
            reverts: Vec::new(),
            undoes,
            by: "ada".to_owned(),
        })));
        run.take(Event::Rewound(Rewound::default()));
    };
    assert_eq!(left(&mut run, Verdict::Failed), Status::Failed);
    rewind(&mut run, RewindKind::Restore, None);
    assert_eq!(left(&mut run, Verdict::RolledBack), Status::Failed, "a restore");
    rewind(&mut run, RewindKind::Rollback, None);
    assert_eq!(left(&mut run, Verdict::RolledBack), Status::RolledBack);
    let act = run.state.undo.last().map(|u| u.id);
    rewind(&mut run, RewindKind::Undo, act);
    assert_eq!(left(&mut run, Verdict::RolledBack), Status::Failed, "an undo");
}

/// Lost: a retry that was taken back would be on record as one that the lane needed to complete.
#[test]
fn a_retry_that_was_taken_back_stays_so_when_the_lane_needs_none() {
    let lane = plans::apart("A", vec![plans::step("work")], &[TEST]);
    let mut run = Run::new(plans::plan(vec![plans::phase("P", vec![lane])]));
    let begins = |run: &mut Run| {
        run.take(begun("P/A", Isolation::Worktree));
        run.take(ready("P/A", "start"));
    };
    begins(&mut run);
    run.start("P/A/work", Vec::new());
    let outcome = failed(Class::Command, Next::Retry { at: piton_core::Timestamp(2_000_000) });
    let Event::StepFinished(mut event) = finished("P/A/work", 1, outcome, vec![]) else {
        unreachable!("it is the end of a step")
    };
    event.retries_max = Some(1);
    run.take(Event::StepFinished(event));
    assert_eq!(status(&run, "P/A", Stage::RetryAttempt), Some(StageStatus::Retrying));
    let work = run.state.lane(&lane_path("P/A")).and_then(|l| l.work.as_ref());
    let start = work.and_then(|w| w.record(Stage::BeforeLaneStart)).map_or(0, |r| r.event);
    run.take(Event::RewindIntended(Box::new(RewindIntended {
        kind: RewindKind::Rollback,
        to: "before_lane_start".to_owned(),
        stage: Some(Stage::BeforeLaneStart),
        after_event: start,
        points: vec![(lane_path("P/A"), start)],
        lanes: vec![lane_path("P/A")],
        workspaces: Vec::new(),
        reverts: Vec::new(),
        undoes: None,
        by: "ada".to_owned(),
    })));
    run.take(Event::Rewound(Rewound::default()));
    begins(&mut run);
    attempt(&mut run, "P/A/work");
    assert_eq!(status(&run, "P/A", Stage::RetryAttempt), Some(StageStatus::RolledBack));
}
