//! A lane that another tool worked on: what its import makes of the state, and what follows.

mod lane_events;
mod support;

use lane_events::{TEST, begun, lane_path, merged, proven, ready, snapshot};
use piton_core::decide::LaneAct;
use piton_core::event::{Class, Event, LaneImported, MergedBy};
use piton_core::lane::{Isolation, Stage, StageStatus};
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::plan::Step;
use piton_core::state::FailedAttempt;
use piton_core::{Action, Illegal, Limits, Timestamp, decide};
use piton_testkit::plans;
use support::Run;

const LANE: &str = "P/A";

fn run() -> Run {
    let lane = plans::apart("A", vec![Step { retries: 2, ..plans::step("work") }], &[TEST]);
    Run::new(plans::plan(vec![plans::phase("P", vec![lane])]))
}

fn record(stage: Stage, status: StageStatus, at: i64) -> StageRecord {
    let notes = "theirs".to_owned();
    StageRecord { notes, ..StageRecord::blank(stage, status, Timestamp(at), 0) }
}

fn imported(records: Vec<StageRecord>) -> LaneImported {
    LaneImported {
        lane: lane_path(LANE),
        records,
        snapshot: None,
        merged: None,
        stays: false,
        base_branch: String::new(),
        outstanding: None,
        failures: Vec::new(),
        retried: None,
        retries: None,
        note: String::new(),
    }
}

fn work(run: &Run) -> &LaneWork {
    let lane = run.state.lane(&lane_path(LANE)).expect("the lane");
    lane.work.as_ref().expect("it was imported")
}

fn acts(run: &Run) -> Vec<Action> {
    let limits = Limits { jobs: 4, checkpoints: true, ..Limits::default() };
    let mut all = decide(&run.plan, &run.state, &limits, Timestamp(1_000_000));
    all.retain(|action| !matches!(action, Action::WakeAt(_)));
    all
}

fn act(act: LaneAct) -> Action {
    Action::Lane { lane: lane_path(LANE), act }
}

/// Lost: a lane that only passed its preconditions elsewhere would skip them here.
#[test]
fn a_lane_that_did_not_begin_here_checks_its_preconditions() {
    let mut run = run();
    let start = record(Stage::BeforeLaneStart, StageStatus::Ready, 5);
    run.take(Event::LaneImported(Box::new(imported(vec![start]))));
    assert_eq!(work(&run).stage(), Some(Stage::BeforeLaneStart));
    assert_eq!(work(&run).records[0].at, Timestamp(5));
    assert_eq!(acts(&run), [act(LaneAct::Begin)]);
}

/// Lost: finished work would be done again, or merged without a test.
#[test]
fn a_tested_lane_goes_on_with_its_tests_and_keeps_its_records() {
    let mut run = run();
    run.take(begun(LANE, Isolation::Worktree));
    run.take(ready(LANE, "start"));
    run.take(proven("P/A/work", ""));
    let tested = record(Stage::AfterLaneTests, StageStatus::Complete, 5);
    let event = LaneImported { snapshot: Some(snapshot("now")), ..imported(vec![tested]) };
    run.take(Event::LaneImported(Box::new(event)));
    let work = work(&run);
    assert_eq!(work.stage(), Some(Stage::AfterLaneTests), "older ones do not count as newer");
    assert_eq!(work.latest.tree.as_deref(), Some("now"));
    let events: Vec<u64> = work.records.iter().map(|r| r.event).collect();
    assert_eq!(events, [3, 4, 6], "where a rollback looks for what came later");
    let start = work.record(Stage::AfterLaneStart).expect("where a rollback goes");
    assert_eq!(start.snapshot.as_deref(), Some("snapshot of start"));
    let next = acts(&run);
    assert!(matches!(&next[..], [Action::Start { step, .. }] if step.step == "tests"), "{next:?}");
}

/// Lost: what another tool merged would be merged again, or its worktree be removed.
#[test]
fn a_merged_lane_is_over() {
    for stays in [true, false] {
        let mut run = run();
        run.take(proven("P/A/work", ""));
        run.take(proven("P/A/tests", ""));
        let Event::LaneMerged(done) = merged(LANE, MergedBy::Queue) else { unreachable!() };
        let records = vec![record(Stage::PrePr, StageStatus::Complete, 5)];
        let event = LaneImported { merged: Some(done), stays, ..imported(records) };
        run.take(Event::LaneImported(Box::new(event)));
        assert!(run.state.is_over() && run.state.undo.is_empty());
        assert_eq!((work(&run).has_workspace(), work(&run).is_removed()), (stays, !stays));
    }
}

/// Lost: the next attempt would repeat the mistakes of those before.
#[test]
fn failures_are_told_to_the_next_attempt() {
    let mut run = run();
    let failed = FailedAttempt {
        attempt: 2,
        class: Class::Command,
        error: "no".to_owned(),
        lines: vec!["line".to_owned()],
        budget: None,
        command: None,
        exit_code: None,
    };
    let event = LaneImported { failures: vec![failed.clone()], ..imported(Vec::new()) };
    run.take(Event::LaneImported(Box::new(event)));
    assert_eq!(run.state.phases[0].lanes[0].steps[0].failure_context, [failed]);
    let elsewhere = LaneImported { lane: lane_path("P/none"), ..imported(Vec::new()) };
    let refused = run.apply(Event::LaneImported(Box::new(elsewhere)));
    assert_eq!(refused, Err(Illegal::NoLane(lane_path("P/none"))));
}
