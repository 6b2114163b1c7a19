//! Artifacts that the driver has trouble with, on the simulated machine: what a step did is done once,
//! whatever keeps the driver from recording it.

use piton_core::Millis;
use piton_core::event::{Event, Verdict};
use piton_core::plan::Step;
use piton_engine::Note;
use piton_testkit::{Behaviour, Care, CrashPoint, Effect, Rig, Script, Side, plans};

const MADE: &str = "out/made.txt";

/// A lane with a step that makes an artifact and may be tried again, and one beside it.
fn rig() -> Rig {
    let made = vec![MADE.to_owned()];
    let make = Step { artifacts: made, retries: 3, ..plans::step("make") };
    let lanes = vec![
        plans::lane("A", vec![make, plans::step("use")]),
        plans::lane_of("B", &["one", "two", "three"]),
    ];
    let script = Script::default().with("P/A/make", vec![Behaviour::ok().writing(MADE, "made")]);
    Rig::new(plans::plan(vec![plans::phase("P", lanes)]), script)
}

/// The steps that were started, in order.
fn started(rig: &Rig) -> Vec<String> {
    let machine = rig.machine.borrow();
    let steps = machine.log.iter().filter_map(|effect| match effect {
        Effect::Started { attempt, .. } => Some(attempt.to_string()),
        _ => None,
    });
    steps.collect()
}

fn times_made(rig: &Rig) -> usize {
    started(rig).iter().filter(|step| step.starts_with("P/A/make")).count()
}

/// Lost: a moment without file descriptors, or a bad sector, runs a step again that succeeded.
#[test]
fn an_artifact_that_the_driver_can_not_read_runs_no_step_again() {
    let rig = rig();
    rig.machine.borrow_mut().unreadable.insert(MADE.to_owned());
    for _ in 0..2 {
        assert_eq!(rig.run().expect("it leaves").verdict, Verdict::Blocked);
        let lane = "P/A".parse().expect("a lane");
        let state = rig.load().expect("it is there").state;
        let work = state.lane(&lane).and_then(|l| l.work.clone()).expect("it is blocked");
        let why = work.blocked.expect("it is blocked").cause;
        assert!(why.contains("make succeeded and does not run again"), "{why}");
        assert!(why.contains("Input/output error"), "{why}");
    }
    rig.machine.borrow_mut().unreadable.clear();
    assert_eq!(rig.run().expect("it completes").verdict, Verdict::Complete);
    assert_eq!(times_made(&rig), 1);
    let finished = |(_, _, event): &(_, _, Event)| matches!(event, Event::StepFinished(e) if !e.artifacts.is_empty());
    assert_eq!(rig.events().expect("it is readable").iter().filter(|e| finished(e)).count(), 1);
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

/// Lost: a run with an artifact that nobody can read could not be ended.
#[test]
fn a_run_that_waits_for_its_artifacts_to_be_read_can_be_aborted() {
    let rig = rig();
    rig.machine.borrow_mut().unreadable.insert(MADE.to_owned());
    assert_eq!(rig.run().expect("it leaves").verdict, Verdict::Blocked);
    assert_eq!(rig.abort().expect("it ends").verdict, Verdict::Aborted);
    assert!(rig.load().expect("it is there").state.running().is_empty());
}

/// The same with an artifact that takes longer to hash than all else takes.
fn large() -> Rig {
    let rig = rig();
    rig.machine.borrow_mut().large.insert(MADE.to_owned(), Millis(5_000));
    rig
}

fn finished(rig: &Rig) -> Vec<String> {
    let events = rig.events().expect("it is readable").into_iter();
    let steps = events.filter_map(|(_, _, event)| match event {
        Event::StepFinished(e) => Some(e.step.to_string()),
        _ => None,
    });
    steps.collect()
}

/// Lost: one huge artifact stalls every lane, and nobody is told why.
#[test]
fn a_large_artifact_is_hashed_while_other_lanes_go_on() {
    let rig = large();
    assert_eq!(rig.run().expect("it completes").verdict, Verdict::Complete);
    let order = ["P/B/one", "P/B/two", "P/B/three", "P/A/make", "P/A/use"];
    assert_eq!(finished(&rig), order);
    let told = |note: &Note| matches!(note, Note::Hashing { step, .. } if step.step == "make");
    assert!(rig.notes.borrow().iter().any(told));
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}

/// Lost: the same for an input of a step that is about to begin.
#[test]
fn a_large_input_is_hashed_while_other_lanes_go_on() {
    let mut rig = large();
    rig.plan.phases[0].lanes[0].steps[1].inputs.push("given".to_owned());
    rig.machine.borrow_mut().put("given", "so much");
    rig.machine.borrow_mut().large = [("given".to_owned(), Millis(5_000))].into();
    assert_eq!(rig.run().expect("it completes").verdict, Verdict::Complete);
    let order = ["P/A/make", "P/B/one", "P/B/two", "P/B/three", "P/A/use"];
    assert_eq!(finished(&rig), order);
}

/// Lost: a signal waits until the file is hashed, or the step that made it runs again.
#[test]
fn a_signal_ends_the_driver_while_a_file_is_hashed_and_nothing_runs_again() {
    for signal in [2, 15] {
        let rig = large();
        let at = rig.machine.borrow().now.after(Millis(2_000));
        rig.machine.borrow_mut().signal_at(at, signal);
        assert_eq!(rig.run().expect("it leaves").verdict, Verdict::Interrupted);
        assert!(rig.machine.borrow().now < at.after(Millis(1_000)), "it waited");
        assert!(!finished(&rig).contains(&"P/A/make".to_owned()));
        assert_eq!(rig.run().expect("it completes").verdict, Verdict::Complete);
        assert_eq!(times_made(&rig), 1);
        assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
    }
}

/// Lost: a run that hashes a large file could not be ended before that is done.
#[test]
fn a_run_whose_artifact_is_left_unhashed_can_be_aborted() {
    let rig = large();
    let at = rig.machine.borrow().now.after(Millis(2_000));
    rig.machine.borrow_mut().signal_at(at, 2);
    assert_eq!(rig.run().expect("it leaves").verdict, Verdict::Interrupted);
    assert_eq!(rig.abort().expect("it ends").verdict, Verdict::Aborted);
    assert!(rig.load().expect("it is there").state.running().is_empty());
}

/// Lost: a driver or keeper that falls while a file is hashed has its step run again.
#[test]
fn a_fall_while_a_file_is_hashed_runs_nothing_again() {
    let falls: [&dyn Fn(&Rig); 2] = [&|_| {}, &Rig::crash_keeper];
    let crash = CrashPoint::never();
    large().complete(crash.clone(), &|_| {}, Millis(0)).expect("it runs without a fall");
    for (n, fall) in (1..=crash.names().len()).flat_map(|n| falls.map(|fall| (n, fall))) {
        for side in [Side::Before, Side::After] {
            let rig = large();
            rig.complete(CrashPoint::at(n, side), fall, Millis(0)).expect("it completes");
            assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new(), "{n}");
        }
    }
}
