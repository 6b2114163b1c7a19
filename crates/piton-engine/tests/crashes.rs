//! A driver that falls before and after every append and every action of a run.
//!
//! Promise 1: what was acknowledged is in the ledger after any fall, artifacts included.
//! Promise 2: a fall of the driver repeats nothing; a fall of keeper or machine repeats at most
//! what was in flight. The scenarios with a mechanism switched off are in `promises.rs`.

use piton_core::Millis;
use piton_core::event::{Event, Outcome, Verdict};
use piton_testkit::{Care, CrashPoint, Rig, Side, plans};

/// Nobody is there for so long after a fall: not at all, or until what ran has ended.
const GAPS: [Millis; 2] = [Millis(0), Millis(5_000)];

fn example() -> Rig {
    let (plan, script) = plans::example();
    Rig::new(plan, script)
}

/// The points of the scenario when nothing falls.
fn points() -> Vec<String> {
    let crash = CrashPoint::never();
    let ending = example().complete(crash.clone(), &|_| {}, Millis(0));
    assert_eq!(ending.expect("the scenario runs without a fall").verdict, Verdict::Complete);
    crash.names()
}

fn fall_everywhere(fall: &dyn Fn(&Rig)) {
    let names = points();
    for (index, name) in names.iter().enumerate() {
        for side in [Side::Before, Side::After] {
            for gap in GAPS {
                let rig = example();
                let ending = rig.complete(CrashPoint::at(index + 1, side), fall, gap);
                let place = format!("{side:?} {index} ({name}), gap {gap}");
                let ending = ending.unwrap_or_else(|stop| panic!("{place}: {stop:?}"));
                assert_eq!(ending.verdict, Verdict::Complete, "{place}");
                let violations = rig.violations(Care::NothingAgain);
                assert!(violations.is_empty(), "{place}: {violations:#?}");
                assert!(rig.lost.borrow().len() <= rig.options.limits.jobs, "{place}");
            }
        }
    }
}

#[test]
fn the_scenario_holds_what_it_should() {
    let names = points();
    let count = |word: &str| names.iter().filter(|n| n.contains(word)).count();
    assert_eq!(count("start P"), 7, "six steps, one of them twice: {names:#?}");
    assert_eq!(count("seal"), 2);
    assert!(count("append") > 8, "{names:#?}");
    assert!(count("acknowledge") > 4, "{names:#?}");
    assert_eq!(names.iter().filter(|n| *n == "create").count(), 1);
    assert_eq!(count("notify"), 2, "when it waits and when it is complete");
}

#[test]
fn a_driver_that_falls_anywhere_repeats_nothing() {
    fall_everywhere(&|_| {});
}

#[test]
fn driver_and_keeper_that_fall_together_repeat_at_most_what_was_in_flight() {
    fall_everywhere(&Rig::crash_keeper);
}

#[test]
fn a_power_cut_repeats_at_most_what_was_in_flight_and_undoes_nothing() {
    fall_everywhere(&Rig::power_cut);
}

#[test]
fn a_keeper_that_falls_alone_is_replaced_by_the_same_driver() {
    for (index, name) in points().iter().enumerate() {
        for side in [Side::Before, Side::After] {
            let rig = example();
            let falling = rig.clone();
            let crash = CrashPoint::at(index + 1, side).instead(move || falling.crash_keeper());
            let place = format!("{side:?} {index} ({name})");
            let ending = rig.complete(crash, &|_| {}, Millis(0));
            let ending = ending.unwrap_or_else(|stop| panic!("{place}: {stop:?}"));
            assert_eq!(ending.verdict, Verdict::Complete, "{place}");
            let violations = rig.violations(Care::NothingAgain);
            assert!(violations.is_empty(), "{place}: {violations:#?}");
        }
    }
}

#[test]
fn outcomes_are_those_of_the_script() {
    let rig = example();
    rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it completes");
    let finished: Vec<(String, u32, bool)> = rig
        .events()
        .expect("the ledger is readable")
        .into_iter()
        .filter_map(|(_, _, event)| match event {
            Event::StepFinished(e) => {
                Some((e.step.to_string(), e.attempt, e.outcome == Outcome::Succeeded))
            }
            _ => None,
        })
        .collect();
    let expected = [
        ("P1/A/build", 1, false),
        ("P1/B/lint", 1, true),
        ("P1/A/build", 2, true),
        ("P1/A/test", 1, true),
        ("P1/B/docs", 1, true),
        ("P2/C/pack", 1, true),
        ("P2/C/publish", 1, true),
    ];
    let expected: Vec<(String, u32, bool)> =
        expected.iter().map(|(step, n, ok)| ((*step).to_owned(), *n, *ok)).collect();
    assert_eq!(finished, expected);
}
