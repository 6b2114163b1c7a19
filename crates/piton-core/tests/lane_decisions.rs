//! What is decided about a lane before its work is committed and merged, without a disk.

use piton_core::decide::{BeforeCommit, before_commit, must_test, over_rounds, refused_beginning};
use piton_core::lane::{Role, SnapshotRef};
use piton_core::lane_state::{LaneTests, LaneWork, Latest, MERGE_ROUNDS_MAX};
use piton_core::plan::Lane;
use piton_core::state::{LaneState, Progress, StepState};
use piton_testkit::plans;

const TEST: &str = "make check";

fn tested_lane() -> Lane {
    plans::apart("A", vec![plans::step("work")], &[TEST])
}

/// A lane whose tests passed on `found` and left `tree`, so often in a row.
fn work(found: &str, tree: &str, changed_files: u32) -> LaneWork {
    let passed = vec![(TEST.to_owned(), found.to_owned())];
    let found = Some(SnapshotRef { tree: found.to_owned(), ..SnapshotRef::default() });
    let latest = Latest { tree: Some(tree.to_owned()), ..Latest::default() };
    let tests = LaneTests { passed, found, changed_files };
    LaneWork { tests, latest, ..LaneWork::default() }
}

/// Lost: something that no test has seen would be merged, or tests would run for ever.
#[test]
fn only_what_the_tests_passed_on_is_committed() {
    let (lane, path) = (tested_lane(), "P/A".parse().expect("a lane"));
    let mut state = LaneState::default();
    let decide = |state: &LaneState, work: &LaneWork, tree: &str, taken_out| match before_commit(
        &path, state, work, &lane, tree, taken_out,
    ) {
        BeforeCommit::Nothing => "commit".to_owned(),
        BeforeCommit::TakeOut(found) => format!("take out, back to {}", found.tree),
        BeforeCommit::Test(why) => why.to_owned(),
        BeforeCommit::Refuse(refusal) => refusal.code.into_owned(),
    };
    assert_eq!(decide(&state, &work("t", "t", 0), "t", false), "commit");
    let edited = decide(&state, &work("t", "t", 0), "edited", false);
    assert_eq!(edited, "files changed after the tests had run");
    assert_eq!(decide(&state, &work("t", "u", 1), "u", false), "its tests changed files");
    assert_eq!(decide(&state, &work("t", "u", 2), "u", false), "take out, back to t");
    assert_eq!(decide(&state, &work("t", "u", 2), "u", true), "its tests changed files");
    assert_eq!(decide(&state, &work("t", "u", 5), "u", true), "lane-tests-change-files");
    let progress = Progress::Skipped { satisfy: true };
    state.steps = vec![StepState { role: Role::Tests, progress, ..StepState::default() }];
    assert_eq!(decide(&state, &work("t", "u", 5), "edited", false), "commit", "a person's word");
    assert!(
        must_test(&lane, &work("t", "t", 0), "u") && !must_test(&lane, &work("t", "t", 0), "t")
    );
}

/// Lost: a lane that base always outruns would be rebased for ever.
#[test]
fn rounds_end_and_gates_hold() {
    let at = |rounds| LaneWork { rounds, ..LaneWork::default() };
    assert_eq!(over_rounds(&at(MERGE_ROUNDS_MAX), None), None);
    let code = over_rounds(&at(2), Some(1)).expect("it is over").code;
    assert_eq!(code, "lane-base-moving");
    let (lane, gate) = (tested_lane(), ["IF-0".to_owned()]);
    let refused = |open: &[String], doubted: &[String]| {
        refused_beginning("r", &lane, open, doubted).map(|r| r.code.into_owned())
    };
    assert_eq!(refused(&[], &[]), None);
    assert_eq!(refused(&gate, &gate).as_deref(), Some("lane-gates-open"));
    assert_eq!(refused(&[], &gate).as_deref(), Some("lane-gates-doubted"));
}
