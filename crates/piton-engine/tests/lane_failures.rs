//! Lanes that do not go straight to base: conflicts, failing tests, a base that moves, a base that
//! is not clean. Every loop ends, and what went wrong is told to the next attempt.

mod lane_support;

use lane_support::{
    TEST, base_text, events, fall_everywhere, is_whole, lane, messages, path, plan, record, rig,
    run, starts, status, story, work, writes,
};
use piton_core::event::{Event, Verdict};
use piton_core::lane::{OnRetry, Stage, StageStatus};
use piton_core::lane_state::MERGE_ROUNDS_MAX;
use piton_core::request::Request;
use piton_core::{Status, StepPath};
use piton_ledger::Liveness;
use piton_testkit::{Behaviour, Care, Rig, Script};

/// Two lanes that change the same file; the second settles it when told.
fn conflict(retries: u32) -> Rig {
    let script = Script::default()
        .with("P/A/work", vec![writes("shared", "of A")])
        .with("P/B/work", vec![writes("shared", "of B"), writes("shared", "of A and B")]);
    rig(plan(vec![lane("A", 0), lane("B", retries)]), script)
}

fn reopenings(rig: &Rig) -> Vec<String> {
    let reopened = |e: Event| match e {
        Event::LaneReopened(e) => Some(e.error),
        _ => None,
    };
    events(rig).into_iter().filter_map(reopened).collect()
}

#[test]
fn a_conflict_lets_the_work_go_on_with_both_sides() {
    let rig = conflict(1);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "of A and B")]);
    assert_eq!(reopenings(&rig), ["conflict with base in shared"]);
    assert_eq!(messages(&rig), ["first", "A: A plan", "B: A plan"]);
    let retry = record(&ending.state, "P/B", Stage::RetryAttempt);
    assert_eq!((retry.retry_attempt, retry.max_retries), (Some(1), Some(1)));
    assert_eq!(retry.failure_context, ["Attempt 1: conflict with base in shared", "shared"]);
    assert_eq!(retry.status, StageStatus::Complete);
}

#[test]
fn a_conflict_is_settled_once_whoever_falls_when() {
    // Where the keeper never got the first attempt, the second is the first: it conflicts with
    // nobody's words.
    fall_everywhere(&|| conflict(1), &|_| {}, &|place, rig, ending| {
        let shared = base_text(rig, "shared").unwrap_or_default();
        assert!(shared == "of A and B", "{place}: {shared}\n{}", story(rig));
        is_whole(place, rig, ending, Care::MayRunAgain, &[]);
        assert!(reopenings(rig).len() <= 1, "{place}");
    });
}

#[test]
fn a_conflict_without_a_retry_left_waits_for_a_person() {
    let rig = conflict(0);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Blocked);
    let stopped = record(&ending.state, "P/B", Stage::PrePr);
    assert_eq!(stopped.status, StageStatus::Failed);
    assert!(stopped.notes.contains("conflict with base in shared"), "{}", stopped.notes);
    assert_eq!(stopped.target_branch.as_deref(), Some("main"));
    assert!(stopped.head_sha.is_some(), "{stopped:?}");
    assert_eq!(base_text(&rig, "shared").as_deref(), Some("of A"));

    // The person puts the lane's work onto base and settles it in the worktree.
    rig.machine.borrow_mut().resolve_as_person("lane/P/B", ".worktrees/P/B", "shared", "settled");
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "settled")]);
    assert_eq!(starts(&rig, "P/B/work"), 1);
}

#[test]
fn conflicts_end_with_the_retries() {
    let script = Script::default()
        .with("P/A/work", vec![writes("shared", "of A")])
        .with("P/B/work", vec![writes("shared", "of B, {attempt}")]);
    let rig = rig(plan(vec![lane("A", 0), lane("B", 2)]), script);
    // Whenever B is about to merge, somebody has changed the same file.
    let edits = (0..20).map(|n| ("shared".to_owned(), format!("person {n}")));
    rig.machine.borrow_mut().repo.as_mut().expect("a repository").meddling = edits.collect();
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Blocked, "{}", story(&rig));
    let blocked: Vec<&str> =
        ["P/A", "P/B"].into_iter().filter(|l| work(&ending.state, l).blocked.is_some()).collect();
    assert_eq!(blocked, ["P/A", "P/B"]);
    let stopped = record(&ending.state, "P/B", Stage::PrePr);
    assert_eq!(stopped.status, StageStatus::Failed);
    assert_eq!((stopped.retry_attempt, stopped.max_retries), (Some(2), Some(2)));
    let told: Vec<&String> =
        stopped.failure_context.iter().filter(|l| l.starts_with("Attempt")).collect();
    assert_eq!(told.len(), 3, "{:?}", stopped.failure_context);
    let retries = record(&ending.state, "P/B", Stage::RetryAttempt);
    assert_eq!(retries.status, StageStatus::Failed);
}

/// A lane whose tests fail on `bad` work.
fn tested(retries: u32, works: Vec<Behaviour>) -> Rig {
    let fails = Behaviour::ok().breaking_on("a", "bad").saying("expected good").lasting(SHORT);
    let script = Script::default().with("P/A/work", works).with("P/A/tests", vec![fails]);
    rig(plan(vec![lane("A", retries)]), script)
}

const SHORT: piton_core::Millis = piton_core::Millis(150);

fn bad_then_good() -> Rig {
    tested(1, vec![writes("a", "bad"), writes("a", "good")])
}

#[test]
fn a_failed_test_lets_the_work_go_on_with_what_it_said() {
    let rig = bad_then_good();
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "good")]);
    assert_eq!(reopenings(&rig), ["the test failed: exit code 1"]);
    assert_eq!((starts(&rig, "P/A/work"), starts(&rig, "P/A/tests")), (2, 2));
    let passed = record(&ending.state, "P/A", Stage::AfterLaneTests);
    assert_eq!(passed.status, StageStatus::Complete);
    assert_eq!((passed.test_command.as_deref(), passed.exit_code), (Some(TEST), Some(0)));
}

#[test]
fn a_failed_test_is_followed_by_one_attempt_whoever_falls_when() {
    fall_everywhere(&bad_then_good, &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, &[("a", "good")]);
        assert!(starts(rig, "P/A/work") <= 2, "{place}");
        assert!(reopenings(rig).len() <= 1, "{place}");
    });
}

#[test]
fn tests_that_go_on_failing_end_with_the_retries() {
    let rig = tested(2, vec![writes("a", "bad {attempt}")]);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Failed);
    assert_eq!((starts(&rig, "P/A/work"), starts(&rig, "P/A/tests")), (3, 3));
    let expected: Vec<String> = (1..=3)
        .flat_map(|n| {
            [format!("Attempt {n}: the test failed: exit code 1"), "expected good".to_owned()]
        })
        .collect();
    for stage in [Stage::AfterLaneTests, Stage::RetryAttempt] {
        let record = record(&ending.state, "P/A", stage);
        assert_eq!(record.status, StageStatus::Failed, "{stage}");
        assert_eq!((record.retry_attempt, record.max_retries), (Some(2), Some(2)), "{stage}");
        assert_eq!(record.failure_context, expected, "{stage}");
        assert_eq!(record.exit_code, Some(1), "{stage}");
    }
    let failed = record(&ending.state, "P/A", Stage::AfterLaneTests);
    assert_eq!(failed.test_command.as_deref(), Some(TEST));
    assert_eq!(base_text(&rig, "a"), None);

    // A person who grants further attempts gets as many again.
    let tests = StepPath::new("P", "A", "tests");
    let retry = Request::Retry { step: tests, again: false, downstream: false };
    ask(&rig, &retry);
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    assert_eq!(starts(&rig, "P/A/work"), 5);
}

#[test]
fn without_retries_a_failed_test_fails_the_lane() {
    let rig = tested(0, vec![writes("a", "bad")]);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Failed);
    let failed = record(&ending.state, "P/A", Stage::AfterLaneTests);
    assert_eq!(failed.status, StageStatus::Failed);
    assert_eq!((failed.retry_attempt, failed.max_retries), (None, None));
    assert_eq!(status(&ending.state, "P/A", Stage::RetryAttempt), None);
}

#[test]
fn every_attempt_is_told_of_all_before() {
    let rig = tested(2, vec![writes("a", "bad {attempt}")]);
    let ending = run(&rig);
    let step = ending.state.step(&StepPath::new("P", "A", "work")).expect("it is there");
    // It succeeded after the last reopening: nothing is to be told any more.
    assert_eq!(step.failure_context.len(), 0);
    let told = &work(&ending.state, "P/A").reopened.failures;
    assert_eq!(told.iter().map(|f| f.attempt).collect::<Vec<_>>(), [1, 2]);
}

/// Two lanes: the first is being merged when its driver falls; the second fails meanwhile.
fn half_merged() -> Rig {
    let make = || {
        let script = Script::default()
            .with("P/A/work", vec![writes("a", "of A")])
            .with("P/B/work", vec![Behaviour::fails(1).lasting(piton_core::Millis(900))]);
        rig(plan(vec![lane("A", 0), lane("B", 0)]), script)
    };
    let names = lane_support::points(&make);
    let at = names.iter().position(|n| n == "merge P/A: base moves").expect("it merges") + 1;
    let rig = make();
    let crash = piton_testkit::CrashPoint::at(at, piton_testkit::Side::After);
    assert!(rig.drive(&crash, piton_ledger::Acquire::IfFree).is_err());
    rig.machine.borrow_mut().pass(piton_core::Millis(2_000));
    rig
}

#[test]
fn a_merge_under_way_is_finished_although_nothing_new_may_start() {
    let whole = |rig: &Rig| {
        let found = rig.lane_violations(&[("a", "of A")]);
        assert!(found.is_empty(), "{found:#?}\n{}", story(rig));
        let state = rig.load().expect("it is there").state;
        assert!(work(&state, "P/A").merged().is_some());
    };
    // Another lane failed; a person lets nothing new start; another lane is asked for.
    let rig = half_merged();
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    whole(&rig);
    let rig = half_merged();
    assert_eq!(rig.finish().expect("it leaves").verdict, Verdict::Interrupted);
    whole(&rig);
    let mut rig = half_merged();
    rig.options.limits.lane = Some("B".to_owned());
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    whole(&rig);
}

#[test]
fn a_rollback_of_a_lane_that_was_being_merged_asks_again() {
    let rig = half_merged();
    let state = || rig.load().expect("it is there").state;
    let back = || {
        let events = rig.events().expect("the ledger is readable");
        piton_testkit::rollback_to(&state(), &events, &[path("P/A")], Stage::BeforeLaneStart)
            .expect("the stage was passed")
    };
    let never = piton_testkit::CrashPoint::never();
    let first = rig.rewind(&never, back()).expect("it leaves");
    assert!(first.refused.is_some_and(|why| why.code == "base-moved"), "{}", story(&rig));
    let second = rig.rewind(&never, back()).expect("it leaves");
    assert_eq!(second.refused, None);
    assert_eq!(base_text(&rig, "a"), None);
}

/// A lane, and a person who commits to base so often just before it merges.
fn meddled(times: usize) -> Rig {
    let script = Script::default().with("P/A/work", vec![writes("a", "of A")]);
    let rig = rig(plan(vec![lane("A", 0)]), script);
    let edits = (0..times).map(|n| (format!("person-{n}"), "mine".to_owned()));
    rig.machine.borrow_mut().repo.as_mut().expect("a repository").meddling = edits.collect();
    rig
}

#[test]
fn a_base_that_moves_sends_the_lane_round_again() {
    let rig = meddled(2);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "of A"), ("person-1", "mine")]);
    assert_eq!(messages(&rig), ["first", "person: person-0", "person: person-1", "A: A plan"]);
    // What is merged was tested as it is: once before each merge that was tried.
    assert_eq!(starts(&rig, "P/A/tests"), 3);
}

#[test]
fn a_base_that_moves_loses_nothing_whoever_falls_when() {
    fall_everywhere(&|| meddled(1), &|_| {}, &|place, rig, ending| {
        let files = [("a", "of A"), ("person-0", "mine")];
        is_whole(place, rig, ending, Care::MayRunAgain, &files);
        assert_eq!(messages(rig).len(), 3, "{place}");
    });
}

#[test]
fn a_base_that_does_not_rest_stops_the_lane_until_it_is_resumed() {
    let rounds = MERGE_ROUNDS_MAX as usize;
    let rig = meddled(rounds + 2);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Blocked);
    assert_eq!(status(&ending.state, "P/A", Stage::PrePr), Some(StageStatus::Failed));
    let missed = |e: &&Event| matches!(e, Event::MergeMissed(_));
    assert_eq!(events(&rig).iter().filter(missed).count(), rounds + 1);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "of A")]);
}

#[test]
fn merges_of_other_runs_count_for_no_round() {
    let rounds = MERGE_ROUNDS_MAX as usize;
    let rig = meddled(rounds + 2);
    rig.machine.borrow_mut().repo.as_mut().expect("a repository").meddled_by_runs = true;
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "of A")]);
    let missed = |e: &&Event| matches!(e, Event::MergeMissed(missed) if missed.by_runs);
    assert_eq!(events(&rig).iter().filter(missed).count(), rounds + 2);
}

#[test]
fn a_base_that_is_not_clean_stops_a_lane_before_anything_is_created() {
    let script = Script::default().with("P/A/work", vec![writes("a", "of A")]);
    let rig = rig(plan(vec![lane("A", 0)]), script);
    rig.machine.borrow_mut().put("shared", "half done");
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Blocked);
    let stopped = record(&ending.state, "P/A", Stage::BeforeLaneStart);
    assert_eq!(stopped.status, StageStatus::Blocked);
    assert_eq!(stopped.notes, "base is not clean: shared; commit it");
    assert!(rig.machine.borrow().repo.as_ref().expect("a repository").branches().is_empty());
    let phase = &ending.state.phases[0];
    let shown = piton_core::summary::lane_status(&ending.state, phase, &phase.lanes[0]);
    assert_eq!(shown, Status::Blocked);

    rig.machine.borrow_mut().commit_as_person("shared", "done");
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::NothingAgain, &[("a", "of A"), ("shared", "done")]);
    let begun = record(&ending.state, "P/A", Stage::BeforeLaneStart);
    assert_eq!(begun.status, StageStatus::Ready);
}

#[test]
fn open_gates_stop_a_lane_and_only_that() {
    let script = Script::default()
        .with("P/A/work", vec![writes("a", "of A")])
        .with("P/B/work", vec![writes("b", "of B")]);
    let mut rig = rig(plan(vec![lane("A", 0), lane("B", 0)]), script);
    rig.gates.open.insert(path("P/A"), vec!["IF-0-P1-AUTH".to_owned()]);
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Blocked);
    let stopped = record(&ending.state, "P/A", Stage::BeforeLaneStart);
    assert!(stopped.notes.starts_with("open gates: IF-0-P1-AUTH"), "{}", stopped.notes);
    assert_eq!(base_text(&rig, "b").as_deref(), Some("of B"));
    rig.gates.open.clear();
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::NothingAgain, &[("a", "of A"), ("b", "of B")]);
}

#[test]
fn changes_of_a_person_in_base_are_not_overwritten() {
    let script = Script::default().with("P/A/work", vec![writes("shared", "of A")]);
    let rig = rig(plan(vec![lane("A", 0)]), script);
    // The person begins to edit while the lane is at work.
    let names = lane_support::points(&{
        let (plan, machine) = (rig.plan.clone(), rig.machine.borrow().clone());
        move || {
            let rig = lane_support::rig(plan.clone(), Script::default());
            *rig.machine.borrow_mut() = machine.clone();
            rig
        }
    });
    let at = names.iter().position(|n| n == "start P/A/work#1").expect("it starts") + 1;
    let editing = rig.clone();
    let crash = piton_testkit::CrashPoint::at(at, piton_testkit::Side::After)
        .instead(move || editing.machine.borrow_mut().put("shared", "half done"));
    let ending = rig.drive(&crash, piton_ledger::Acquire::IfFree).expect("it leaves");
    assert_eq!(ending.verdict, Verdict::Blocked);
    assert_eq!(rig.machine.borrow().text("shared").as_deref(), Some("half done"));
    assert_eq!(status(&ending.state, "P/A", Stage::PrePr), Some(StageStatus::Failed));
    rig.machine.borrow_mut().put("shared", "base");
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "of A")]);
}

/// A lane whose first attempt leaves a file behind and fails.
fn leaving(on_retry: OnRetry) -> Rig {
    let mut lane = lane("A", 1);
    lane.rules.on_retry = on_retry;
    let first = Behaviour::fails(1).beginning("junk", "left").writing("z", "torn");
    let script = Script::default().with("P/A/work", vec![first, writes("a", "of A")]);
    rig(plan(vec![lane]), script)
}

#[test]
fn an_attempt_finds_what_the_one_before_left_unless_the_plan_says_otherwise() {
    let kept = leaving(OnRetry::Keep);
    let ending = run(&kept);
    is_whole("", &kept, &ending, Care::MayRunAgain, &[("junk", "left"), ("z", "torn")]);
    let reset = leaving(OnRetry::Reset);
    let ending = run(&reset);
    is_whole("", &reset, &ending, Care::MayRunAgain, &[("a", "of A"), ("z", "last")]);
    assert_eq!(base_text(&reset, "junk"), None);
}

#[test]
fn an_attempt_starts_afresh_whoever_falls_when() {
    for fall in [&(|_: &Rig| {}) as &dyn Fn(&Rig), &Rig::crash_keeper] {
        fall_everywhere(&|| leaving(OnRetry::Reset), fall, &|place, rig, ending| {
            is_whole(place, rig, ending, Care::MayRunAgain, &[("a", "of A"), ("z", "last")]);
            assert_eq!(base_text(rig, "junk"), None, "{place}");
        });
    }
}

fn ask(rig: &Rig, request: &Request) {
    rig.ask(request, Liveness::Dead).expect("it is answered");
}

/// Lane A brings a file with which the tests of B fail, once B's work is put on it.
fn breaks_b() -> Rig {
    let fails = Behaviour::ok().breaking_on("a", "bad").lasting(SHORT);
    let script = Script::default()
        .with("P/A/work", vec![writes("a", "bad")])
        .with("P/B/work", vec![writes("b", "work").lasting(piton_core::Millis(5_000))])
        .with("P/B/tests", vec![fails]);
    rig(plan(vec![lane("A", 0), lane("B", 0)]), script)
}

#[test]
fn what_a_person_puts_right_after_the_tests_failed_is_merged() {
    let rig = breaks_b();
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    rig.machine.borrow_mut().put(".worktrees/P/B/a", "put right");
    let step = StepPath::new("P", "B", "tests");
    ask(&rig, &Request::Retry { step, again: false, downstream: false });
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "put right"), ("b", "work")]);
    assert_eq!(starts(&rig, "P/B/work"), 1);
}

/// Lost: tests that failed because of base would fail for ever, whoever puts base right.
#[test]
fn tests_that_failed_because_of_base_run_again_on_the_base_of_now() {
    let rig = breaks_b();
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    rig.machine.borrow_mut().commit_as_person("a", "mended");
    let step = StepPath::new("P", "B", "tests");
    ask(&rig, &Request::Retry { step, again: false, downstream: false });
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "mended"), ("b", "work")]);
    assert_eq!((starts(&rig, "P/B/work"), starts(&rig, "P/B/tests")), (1, 3));
}

/// Two lanes whose tests leave a file each.
fn reporting(text: &str) -> Rig {
    let mut script = Script::default();
    for id in ["A", "B"] {
        let report = writes(&format!("report-{id}"), text).lasting(SHORT);
        script = script
            .with(&format!("P/{id}/work"), vec![writes(&id.to_lowercase(), "work")])
            .with(&format!("P/{id}/tests"), vec![report]);
    }
    rig(plan(vec![lane("A", 0), lane("B", 0)]), script)
}

#[test]
fn tests_that_write_into_the_work_tree_come_to_an_end() {
    // Each lane is tested on what its tests first left, and the second on base too.
    for text in ["attempt {attempt}", "always the same"] {
        let rig = reporting(text);
        let ending = run(&rig);
        is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "work"), ("b", "work")]);
        assert_eq!(starts(&rig, "P/A/tests") + starts(&rig, "P/B/tests"), 5, "{text}");
        let first = text.replace("{attempt}", "1");
        assert_eq!(base_text(&rig, "report-A"), Some(first.clone()));
        assert_eq!(base_text(&rig, "report-B"), Some(first));
    }
}

#[test]
fn only_what_was_tested_is_merged_whoever_falls_when() {
    for fall in [&(|_: &Rig| {}) as &dyn Fn(&Rig), &Rig::crash_keeper] {
        fall_everywhere(&|| reporting("attempt {attempt}"), fall, &|place, rig, ending| {
            is_whole(place, rig, ending, Care::MayRunAgain, &[("a", "work"), ("b", "work")]);
        });
    }
}

#[test]
fn a_lane_whose_tests_are_left_out_stays_on_its_branch() {
    let rig = breaks_b();
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    let step = StepPath::new("P", "B", "tests");
    ask(&rig, &Request::Skip { step: step.clone(), satisfy: false });
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Complete, "{}", story(&rig));
    assert_eq!(base_text(&rig, "b"), None);
    assert_eq!((starts(&rig, "P/B/tests"), work(&ending.state, "P/B").blocked), (2, None));
    assert!(rig.lane_violations(&[]).is_empty());
    assert!(rig.machine.borrow().text(".worktrees/P/B/b").is_some());
    // Tested after all, it is merged.
    rig.machine.borrow_mut().put(".worktrees/P/B/a", "put right");
    ask(&rig, &Request::Retry { step, again: true, downstream: false });
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("a", "put right"), ("b", "work")]);
}
