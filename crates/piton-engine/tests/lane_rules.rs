//! Rules that hold for lanes as a whole: who begins from what, and how often work is tried again.

mod lane_support;

use lane_support::{is_whole, lane, plan, record, rig, run, starts, story, writes};
use piton_core::event::Verdict;
use piton_core::lane::{Stage, StageStatus};
use piton_testkit::{Behaviour, Care, Rig, Script};

/// Lost: lanes that run alone would begin without what the one before brought, and be at odds with
/// it.
#[test]
fn a_lane_that_runs_alone_begins_when_the_others_are_in_base() {
    let of = |id: &str| vec![writes("shared", &format!("of {id}"))];
    let script = Script::default()
        .with("P/A/work", of("A"))
        .with("P/B/work", of("B"))
        .with("P/C/work", of("C"));
    let mut lanes = vec![lane("A", 0), lane("B", 0), lane("C", 0)];
    lanes[1].rules.alone = true;
    lanes[2].rules.alone = true;
    let rig = rig(plan(lanes), script);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "of C")]);
}

/// Lost: one that is not parallel safe would have another begin beside it from an older base.
#[test]
fn nobody_begins_while_a_lane_that_ran_alone_is_on_its_way_to_base() {
    let script = Script::default()
        .with("P/A/work", vec![writes("shared", "of A")])
        .with("P/B/work", vec![writes("shared", "of B")]);
    let mut lanes = vec![lane("A", 0), lane("B", 0)];
    lanes[0].rules.alone = true;
    let rig = rig(plan(lanes), script);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "of B")]);
}

/// A lane with one retry whose tests fail on `bad` work.
fn tested(works: Vec<Behaviour>) -> Rig {
    let fails = Behaviour::ok().breaking_on("a", "bad");
    let script = Script::default().with("P/A/work", works).with("P/A/tests", vec![fails]);
    rig(plan(vec![lane("A", 1)]), script)
}

#[track_caller]
fn failed_after_two(rig: &Rig) {
    let ending = run(rig);
    assert_eq!(ending.verdict, Verdict::Failed, "{}", story(rig));
    assert_eq!(starts(rig, "P/A/work"), 2, "{}", story(rig));
    let retry = record(&ending.state, "P/A", Stage::RetryAttempt);
    assert_eq!(retry.status, StageStatus::Failed);
    assert_eq!((retry.retry_attempt, retry.max_retries), (Some(1), Some(1)));
    let told = retry.failure_context.iter().filter(|l| l.starts_with("Attempt ")).count();
    assert_eq!(told, 2, "{:?}", retry.failure_context);
}

/// Lost: a failed test would give the work all its retries again.
#[test]
fn retries_after_a_failed_test_are_those_of_the_work() {
    failed_after_two(&tested(vec![writes("a", "bad"), Behaviour::fails(1), writes("a", "good")]));
}

/// Lost: a retry that was spent before the work succeeded would be there again for its tests.
#[test]
fn retries_before_a_failed_test_count_too() {
    let rig = tested(vec![Behaviour::fails(1), writes("a", "bad"), writes("a", "good")]);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Failed, "{}", story(&rig));
    assert_eq!(starts(&rig, "P/A/work"), 2, "{}", story(&rig));
    let retry = record(&ending.state, "P/A", Stage::RetryAttempt);
    assert_eq!((retry.retry_attempt, retry.max_retries), (Some(1), Some(1)));
    assert_eq!(retry.status, StageStatus::Failed);
}
