//! Promise 4: at most one driver advances a run.
//!
//! A second driver takes the run over at every point of the first one's work and completes it; the
//! first then goes on, unaware, and must change neither ledger nor world. That the scenarios notice
//! is shown with both fences switched off.

use std::cell::RefCell;
use std::rc::Rc;

use piton_core::Millis;
use piton_core::event::Verdict;
use piton_core::request::Request;
use piton_engine::Error;
use piton_ledger::{Acquire, Liveness};
use piton_testkit::{Care, CrashPoint, LedgerFaults, Rig, Side, Stop, plans};

/// What ledger and world looked like when the second driver was done.
type Marks = Rc<RefCell<Option<(usize, u64)>>>;

fn example() -> Rig {
    let (plan, script) = plans::example();
    Rig::new(plan, script)
}

fn mark(rig: &Rig) -> (usize, u64) {
    let effects = rig.machine.borrow().log.len();
    (effects, rig.load().map_or(0, |l| l.seq))
}

/// A rig whose next driver is the first one, or the one after the approval.
fn at_stage(stage: usize, prepare: &dyn Fn(&Rig)) -> Rig {
    let rig = example();
    if stage > 0 {
        assert_eq!(rig.run().expect("it waits").verdict, Verdict::Waiting);
        let approve =
            Request::Decide { gate: "P2".to_owned(), approved: true, message: String::new() };
        rig.ask(&approve, Liveness::Dead).expect("it is approved");
    }
    prepare(&rig);
    rig
}

/// Takes over at one point; returns what the first driver broke afterwards.
fn takeover_at(rig: &Rig, n: usize, side: Side) -> Vec<String> {
    let marks = Marks::default();
    let (second, seen) = (rig.clone(), Rc::clone(&marks));
    let crash = CrashPoint::at(n, side).instead(move || {
        let first = second.drive(&CrashPoint::never(), Acquire::Takeover);
        if matches!(first, Ok(ending) if ending.verdict != Verdict::Complete) {
            let _ = second.complete(CrashPoint::never(), &|_| {}, Millis(0));
        }
        *seen.borrow_mut() = Some(mark(&second));
    });
    let last = "leave";
    let ended = rig.drive(&crash, Acquire::IfFree);
    let mut found = rig.violations(Care::NothingAgain);
    match &ended {
        Err(Stop::Failed(error)) if error.is_fenced() => {}
        // Somebody else created the run first.
        Err(Stop::Failed(Error::Ledger(piton_ledger::Error::RunExists { .. }))) => {}
        // It had left before.
        Ok(_) if crash.names().get(n - 1).is_some_and(|name| name == last) => {}
        other => found.push(format!("the first driver ended with {other:?}")),
    }
    match *marks.borrow() {
        Some(before) if before == mark(rig) => {}
        other => found.push(format!("a stale driver went on: {other:?} became {:?}", mark(rig))),
    }
    found
}

fn takeover_everywhere(prepare: &dyn Fn(&Rig)) -> Vec<String> {
    let mut found = Vec::new();
    for stage in 0..2 {
        let crash = CrashPoint::never();
        at_stage(stage, &|_| {})
            .drive(&crash, Acquire::IfFree)
            .expect("it runs without a takeover");
        for (index, name) in crash.names().iter().enumerate() {
            for side in [Side::Before, Side::After] {
                let rig = at_stage(stage, prepare);
                for text in takeover_at(&rig, index + 1, side) {
                    found.push(format!("{stage} {side:?} {index} ({name}): {text}"));
                }
            }
        }
    }
    found
}

#[test]
fn a_stale_driver_adds_no_event_and_does_nothing() {
    let found = takeover_everywhere(&|_| {});
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn without_the_fences_the_scenarios_notice() {
    let found = takeover_everywhere(&|rig| {
        rig.machine.borrow_mut().switches.keeper_fence = false;
        let faults = LedgerFaults { no_fence: true, ..LedgerFaults::default() };
        rig.faults.set(faults);
    });
    assert!(found.iter().any(|text| text.contains("stale driver went on")), "{found:#?}");
    assert!(found.iter().any(|text| text.contains("times")), "{found:#?}");
}

#[test]
fn without_the_ledgers_fence_alone_the_scenarios_notice() {
    let found = takeover_everywhere(&|rig| {
        let faults = LedgerFaults { no_fence: true, ..LedgerFaults::default() };
        rig.faults.set(faults);
    });
    assert!(!found.is_empty());
}

#[test]
fn a_stale_driver_whose_keeper_died_asks_the_ledger_before_it_starts_anything() {
    let alone = || {
        let mut rig = example();
        rig.options.limits.jobs = 1;
        // The keeper no longer tells it that it is stale: only the ledger can.
        rig.machine.borrow_mut().switches.keeper_fence = false;
        rig
    };
    let crash = CrashPoint::never();
    alone().drive(&crash, Acquire::IfFree).expect("it runs without a takeover");
    let at = crash.names().iter().position(|n| n == "start P1/A/test#1").expect("it is started");

    let rig = alone();
    let (second, marks) = (rig.clone(), Marks::default());
    let seen = Rc::clone(&marks);
    let crash = CrashPoint::at(at + 1, Side::Before).instead(move || {
        second.crash_keeper();
        second.abort().expect("the run is aborted");
        *seen.borrow_mut() = Some(mark(&second));
    });
    let ended = rig.drive(&crash, Acquire::IfFree);
    assert!(matches!(&ended, Err(Stop::Failed(e)) if e.is_fenced()), "{ended:?}");
    assert_eq!(*marks.borrow(), Some(mark(&rig)));
}

#[test]
fn a_living_driver_is_not_pushed_aside() {
    let rig = example();
    let asking = rig.clone();
    let crash = CrashPoint::at(6, Side::After).instead(move || {
        let mut store = asking.store(&CrashPoint::never()).expect("the ledger opens");
        let row = asking.load().expect("the run is there").row;
        let owner = piton_ledger::Owner::current();
        let alive = |_: &piton_ledger::Owner| Liveness::Alive;
        let taken = store.ledger().acquire(row.run, &owner, 0, Acquire::IfFree, &alive);
        assert!(matches!(taken, Err(piton_ledger::Error::Held { .. })), "{taken:?}");
    });
    let ending = rig.complete(crash, &|_| {}, Millis(0)).expect("it completes");
    assert_eq!(ending.verdict, Verdict::Complete);
}
