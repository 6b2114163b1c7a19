//! Tasks of a lane in worktrees of their own: at work at once, back in their lane in order, each once,
//! whoever falls when.

mod lane_support;

use lane_support::{
    TEST, base_text, events, fall_everywhere, is_whole, messages, path, plan, rig, run, starts,
    story, writes,
};
use piton_core::event::{Event, Verdict};
use piton_core::lane::{Stage, StageStatus};
use piton_core::plan::Step;
use piton_core::request::Request;
use piton_core::state::Progress;
use piton_core::summary::{lane_status, step_status};
use piton_core::{Millis, Plan, RunState, Status};
use piton_engine::world::Rewind;
use piton_ledger::Liveness;
use piton_testkit::{
    Behaviour, Care, CrashPoint, Rig, Script, Side, plans, rollback_to, undo_last,
};

const FILES: &[(&str, &str)] =
    &[("first", "of A"), ("one", "of T1"), ("two", "of T2"), ("three", "of T3")];

/// A lane with three tasks beside another lane.
fn planned(retries: u32) -> Plan {
    let task = || Step { retries, ..plans::step("work") };
    let tasks = [("T1", task()), ("T2", task()), ("T3", task())];
    let mut lanes = plans::with_tasks("A", &tasks, 1, &[TEST]);
    lanes.push(lane_support::lane("B", 0));
    plan(lanes)
}

fn script() -> Script {
    Script::default()
        .with("P/A/first", vec![writes("first", "of A")])
        .with("P/A.T1/work", vec![writes("one", "of T1").lasting(Millis(900))])
        .with("P/A.T2/work", vec![writes("two", "of T2")])
        .with("P/A.T3/work", vec![Behaviour::fails(2), writes("three", "of T3")])
        .with("P/B/work", vec![writes("b", "of B").lasting(Millis(300))])
}

fn three() -> Rig {
    rig(planned(1), script())
}

/// A lane with two tasks and nothing beside it: falls everywhere are many.
fn two() -> Rig {
    let task = || Step { retries: 1, ..plans::step("work") };
    let lanes = plans::with_tasks("A", &[("T1", task()), ("T3", task())], 1, &[TEST]);
    rig(plan(lanes), script())
}

const TWO: &[(&str, &str)] = &[("first", "of A"), ("one", "of T1"), ("three", "of T3")];

fn progress(state: &RunState, step: &str) -> Progress {
    state.step(&step.parse().expect("a step")).expect("it is in the plan").progress
}

fn status(state: &RunState, lane: &str) -> Status {
    let phase = state.phase("P").expect("there is one phase");
    lane_status(state, phase, state.lane(&path(lane)).expect("a lane"))
}

/// Asks while nobody drives.
fn ask(rig: &Rig, request: &Request) {
    rig.ask(request, Liveness::Dead).expect("it is answered");
}

/// What happened to lanes, in order.
fn merges(rig: &Rig) -> Vec<String> {
    let told = |e: Event| match e {
        Event::LaneMerged(e) => Some(format!("{} merged", e.lane)),
        Event::LaneForked(e) => Some(format!("{} forked", e.step)),
        Event::LaneJoined(e) => Some(format!("{} joined", e.step)),
        _ => None,
    };
    events(rig).into_iter().filter_map(told).filter(|t| !t.starts_with("P/B ")).collect()
}

#[test]
fn tasks_run_at_once_and_come_back_in_order() {
    let rig = three();
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, FILES);
    let expected = [
        "P/A/tasks forked",
        "P/A.T1 merged",
        "P/A.T2 merged",
        "P/A.T3 merged",
        "P/A/tasks joined",
        "P/A merged",
    ];
    assert_eq!(merges(&rig), expected);
    assert_eq!(branches(&rig), Vec::<String>::new());
    // The first was at work while the others were; nobody had to mend anything.
    let begun = |step: &str| {
        let at = |(_, at, e): &(u64, _, Event)| match e {
            Event::StepStarted(e) if e.step.to_string() == step => Some(*at),
            _ => None,
        };
        rig.events().expect("the ledger is readable").iter().find_map(at).expect("it started")
    };
    assert!(begun("P/A.T2/work").since(begun("P/A.T1/work")).0 < 900);
    assert_eq!(starts(&rig, "P/A/mend"), 0);
    // A task's merge and worktree are its lane's business: what is undone is the lane's.
    let words: Vec<&str> = ending.state.undo.iter().map(|u| u.words.as_str()).collect();
    assert!(words.iter().all(|w| !w.contains("A.T")), "{words:?}");
}

#[test]
fn a_driver_that_falls_anywhere_brings_each_task_back_once() {
    fall_everywhere(&two, &|_| {}, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, TWO);
        for (task, most) in [("T1", 1), ("T3", 2)] {
            assert!(starts(rig, &format!("P/A.{task}/work")) <= most, "{place}: {task}");
        }
        let mut told = messages(rig);
        told.retain(|m| m.starts_with("A.T"));
        assert_eq!(told.len(), 2, "{place}: {told:?}");
    });
}

#[test]
fn driver_and_keeper_that_fall_together_bring_each_task_back_once() {
    fall_everywhere(&two, &Rig::crash_keeper, &|place, rig, ending| {
        is_whole(place, rig, ending, Care::MayRunAgain, TWO);
    });
}

#[test]
fn a_task_that_fails_is_its_lanes_failure_and_goes_on_when_retried() {
    let rig = rig(planned(0), script());
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Failed);
    let state = &ending.state;
    assert_eq!((status(state, "P/A"), status(state, "P/A.T3")), (Status::Failed, Status::Failed));
    let waits = "P/A/tasks".parse().expect("a step");
    let phase = state.phase("P").expect("there is one phase");
    let (lane, step) = (&phase.lanes[0], &phase.lanes[0].steps[1]);
    assert_eq!(step_status(state, phase, lane, step), Status::Failed);
    assert_eq!(progress(state, "P/A/tasks"), Progress::Pending);
    let told = lane_support::record(state, "P/A", Stage::AfterLaneStart);
    assert_eq!(told.status, StageStatus::Failed);
    assert!(told.notes.contains("exit code 2"), "{}", told.notes);
    // Whoever means the step that waits means the tasks.
    ask(&rig, &Request::Retry { step: waits, again: false, downstream: false });
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, FILES);
    assert_eq!((starts(&rig, "P/A.T1/work"), starts(&rig, "P/A.T3/work")), (1, 2));
}

#[test]
fn tasks_that_are_left_out_leave_the_rest() {
    let rig = rig(planned(0), script());
    run(&rig);
    let step = "P/A/tasks".parse().expect("a step");
    ask(&rig, &Request::Skip { step, satisfy: false });
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Complete, "{}", story(&rig));
    assert_eq!(base_text(&rig, "three"), None);
    assert_eq!(base_text(&rig, "one").as_deref(), Some("of T1"));
    assert!(!ending.state.satisfies(&path("P/A")));
    assert!(ending.state.satisfies(&path("P/B")));
}

#[test]
fn tasks_that_change_the_same_lines_are_settled_by_the_later_one() {
    let task = || Step { retries: 1, ..plans::step("work") };
    let lanes = plans::with_tasks("A", &[("T1", task()), ("T2", task())], 0, &[TEST]);
    let script = Script::default()
        .with("P/A.T1/work", vec![writes("shared", "one")])
        .with("P/A.T2/work", vec![writes("shared", "two"), writes("shared", "one and two")]);
    let rig = rig(plan(lanes), script);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "one and two")]);
    assert_eq!((starts(&rig, "P/A.T1/work"), starts(&rig, "P/A.T2/work")), (1, 2));
    let told = lane_support::record(&ending.state, "P/A", Stage::RetryAttempt);
    assert_eq!(told.status, StageStatus::Complete);
}

#[test]
fn what_goes_wrong_after_the_tasks_is_mended_in_the_lane() {
    let tasks = [("T1", plans::step("work"))];
    let mut lanes = plans::with_tasks("A", &tasks, 1, &[TEST]);
    lanes.push(lane_support::lane("B", 0));
    let script = Script::default()
        .with("P/A.T1/work", vec![writes("shared", "of A").lasting(Millis(3_000))])
        .with("P/B/work", vec![writes("shared", "of B")])
        .with("P/A/mend", vec![writes("shared", "of both")]);
    let rig = rig(plan(lanes), script);
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, &[("shared", "of both")]);
    assert_eq!((starts(&rig, "P/A/mend"), starts(&rig, "P/A.T1/work")), (1, 1));
}

#[test]
fn a_task_that_runs_again_goes_through_its_lane_again() {
    let rig = three();
    run(&rig);
    let step = "P/A.T2/work".parse().expect("a step");
    ask(&rig, &Request::Retry { step, again: true, downstream: false });
    let ending = run(&rig);
    assert_eq!(ending.verdict, Verdict::Complete, "{}", story(&rig));
    assert_eq!((starts(&rig, "P/A.T2/work"), starts(&rig, "P/A.T1/work")), (2, 1));
    assert_eq!(merges(&rig).last().map(String::as_str), Some("P/A merged"));
}

#[test]
fn tasks_of_a_lane_that_runs_alone_run_beside_each_other_only() {
    let mut made = planned(1);
    made.phases[0].lanes[0].rules.alone = true;
    let rig = rig(made, script());
    let ending = run(&rig);
    is_whole("", &rig, &ending, Care::MayRunAgain, FILES);
}

/// A run whose second task has failed, so that the first, though done, did not come back.
fn half_done() -> Rig {
    let tasks = [("T1", plans::step("work")), ("T3", plans::step("work"))];
    let rig = rig(plan(plans::with_tasks("A", &tasks, 1, &[TEST])), script());
    assert_eq!(run(&rig).verdict, Verdict::Failed);
    rig
}

fn to_the_start(rig: &Rig) -> Rewind {
    let events = rig.events().expect("the ledger is readable");
    let state = rig.load().expect("the run is there").state;
    let lanes = [path("P/A")];
    rollback_to(&state, &events, &lanes, Stage::BeforeLaneStart).expect("the lane began")
}

fn branches(rig: &Rig) -> Vec<String> {
    rig.machine.borrow().repo.as_ref().map(piton_testkit::SimRepo::branches).unwrap_or_default()
}

#[test]
fn a_rollback_that_falls_anywhere_lets_tasks_start_over() {
    let whole = half_done();
    assert_eq!(branches(&whole), ["lane-task/P/A.T1", "lane-task/P/A.T3", "lane/P/A"]);
    let count = CrashPoint::never();
    whole.rewind(&count, to_the_start(&whole)).expect("it goes back");
    assert_eq!(branches(&whole), ["lane/P/A"]);
    for (index, name) in count.names().iter().enumerate() {
        for side in [Side::Before, Side::After] {
            let (rig, place) = (half_done(), format!("{side:?} {index} ({name})"));
            let fell = rig.rewind(&CrashPoint::at(index + 1, side), to_the_start(&rig));
            let all = events(&rig);
            if fell.is_err() && !all.iter().any(|e| matches!(e, Event::RewindIntended(_))) {
                // Nothing was intended yet: the person asks again.
                rig.rewind(&CrashPoint::never(), to_the_start(&rig)).expect("it goes back");
            }
            rig.finish().expect("what was begun is finished");
            assert_eq!(branches(&rig), ["lane/P/A"], "{place}\n{}", story(&rig));
            let ending = run(&rig);
            is_whole(&place, &rig, &ending, Care::MayRunAgain, TWO);
            assert_eq!(starts(&rig, "P/A.T1/work"), 2, "{place}");
        }
    }
}

#[test]
fn an_undo_that_falls_anywhere_brings_tasks_back_as_they_were() {
    let taken_back = || {
        let rig = half_done();
        rig.rewind(&CrashPoint::never(), to_the_start(&rig)).expect("it goes back");
        rig
    };
    let undo = |rig: &Rig| undo_last(&rig.load().expect("the run is there").state).expect("an act");
    let all = ["lane-task/P/A.T1", "lane-task/P/A.T3", "lane/P/A"];
    let (whole, count) = (taken_back(), CrashPoint::never());
    whole.rewind(&count, undo(&whole)).expect("it comes back");
    assert_eq!(branches(&whole), all);
    // And back again, and forth.
    whole.rewind(&CrashPoint::never(), undo(&whole)).expect("it goes back again");
    assert_eq!(branches(&whole), ["lane/P/A"]);
    whole.rewind(&CrashPoint::never(), undo(&whole)).expect("it comes back again");
    assert_eq!(branches(&whole), all);
    for (index, name) in count.names().iter().enumerate() {
        for side in [Side::Before, Side::After] {
            let (rig, place) = (taken_back(), format!("{side:?} {index} ({name})"));
            let fell = rig.rewind(&CrashPoint::at(index + 1, side), undo(&rig));
            let intents =
                events(&rig).into_iter().filter(|e| matches!(e, Event::RewindIntended(_)));
            if fell.is_err() && intents.count() == 1 {
                rig.rewind(&CrashPoint::never(), undo(&rig)).expect("it comes back");
            }
            rig.finish().expect("what was begun is finished");
            assert_eq!(branches(&rig), all, "{place}\n{}", story(&rig));
            let state = rig.load().expect("the run is there").state;
            assert_eq!(progress(&state, "P/A.T1/work"), Progress::Done, "{place}");
            let step = "P/A.T3/work".parse().expect("a step");
            ask(&rig, &Request::Retry { step, again: false, downstream: false });
            let ending = run(&rig);
            is_whole(&place, &rig, &ending, Care::MayRunAgain, TWO);
            assert_eq!(starts(&rig, "P/A.T1/work"), 1, "{place}");
        }
    }
}
