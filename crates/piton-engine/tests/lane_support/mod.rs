//! Runs with lanes on a simulated repository, and falls at every point of them.
#![allow(dead_code, reason = "each test file uses its own part of this one")]

use std::cell::RefCell;
use std::rc::Rc;

use piton_core::event::{Event, Verdict};
use piton_core::lane::{Stage, StageStatus};
use piton_core::lane_state::{LaneWork, StageRecord};
use piton_core::plan::{Lane, Step};
use piton_core::{LanePath, Millis, Plan, RunState, Timestamp};
use piton_engine::Ending;
use piton_formats::codec;
use piton_ledger::Acquire;
use piton_testkit::{
    Behaviour, Care, CrashPoint, Effect, Rig, Script, Side, SimMachine, Stop, plans,
};

/// The test of a lane.
pub const TEST: &str = "make check";

/// Files of base before a run.
pub const BASE_FILES: &[(&str, &str)] = &[("README", "hello"), ("shared", "base"), ("z", "last")];

pub fn path(text: &str) -> LanePath {
    let (phase, lane) = text.split_once('/').expect("tests name lanes as PHASE/LANE");
    LanePath { phase: phase.to_owned(), lane: lane.to_owned() }
}

/// A lane `A` in a worktree with one step `work` and a test.
pub fn lane(id: &str, retries: u32) -> Lane {
    plans::apart(id, vec![Step { retries, ..plans::step("work") }], &[TEST])
}

/// A plan of one phase.
pub fn plan(lanes: Vec<Lane>) -> Plan {
    plans::plan(vec![plans::phase("P", lanes)])
}

/// A step that writes one file.
pub fn writes(path: &str, text: &str) -> Behaviour {
    Behaviour::ok().writing(path, text)
}

/// A run on a machine with a repository.
pub fn rig(plan: Plan, script: Script) -> Rig {
    let mut rig = Rig::new(plan, Script::default());
    let machine = SimMachine::new(script).with_repo(BASE_FILES);
    rig.machine = Rc::new(RefCell::new(machine));
    rig
}

/// A lane's work, as recorded.
pub fn work(state: &RunState, lane: &str) -> LaneWork {
    let work = state.lane(&path(lane)).and_then(|l| l.work.as_deref());
    work.expect("the lane began").clone()
}

/// A lane's record of a stage.
pub fn record(state: &RunState, lane: &str, at: Stage) -> StageRecord {
    work(state, lane).record(at).expect("the stage is recorded").clone()
}

pub fn status(state: &RunState, lane: &str, at: Stage) -> Option<StageStatus> {
    work(state, lane).record(at).map(|r| r.status)
}

/// All events of a run.
pub fn events(rig: &Rig) -> Vec<Event> {
    rig.events().expect("the ledger is readable").into_iter().map(|(_, _, e)| e).collect()
}

/// What happened, one event a line.
pub fn story(rig: &Rig) -> String {
    let line = |(seq, at, event): &(u64, Timestamp, Event)| {
        let encoded = codec::encode(event);
        format!("{seq} {} {} {}", at.0, encoded.tag, String::from_utf8_lossy(&encoded.body))
    };
    let all = rig.events().expect("the ledger is readable");
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// How often a step was started.
pub fn starts(rig: &Rig, step: &str) -> usize {
    let of = |e: &&Effect| matches!(e, Effect::Started { attempt, .. } if attempt.step.to_string() == step);
    rig.machine.borrow().log.iter().filter(of).count()
}

/// What base holds of a file.
pub fn base_text(rig: &Rig, file: &str) -> Option<String> {
    let machine = rig.machine.borrow();
    let repo = machine.repo.as_ref().expect("there is a repository");
    repo.tree(&repo.head("main").expect("base is there")).get(file).cloned()
}

/// The messages of base, the oldest first.
pub fn messages(rig: &Rig) -> Vec<String> {
    rig.machine.borrow().repo.as_ref().expect("there is a repository").messages()
}

/// Runs a scenario once without a fall; the points of its first driver.
pub fn points(make: &dyn Fn() -> Rig) -> Vec<String> {
    let crash = CrashPoint::never();
    let ended = make().drive(&crash, Acquire::IfFree);
    ended.expect("the scenario runs without a fall");
    crash.names()
}

/// Lets a driver fall before and after every point, with what else falls, and the next one finish.
pub fn fall_everywhere(
    make: &dyn Fn() -> Rig,
    fall: &dyn Fn(&Rig),
    verify: &dyn Fn(&str, &Rig, &Ending),
) {
    let names = points(make);
    for (index, name) in names.iter().enumerate() {
        // Nobody is there for a while after every second fall: what ran has ended by then.
        let gaps = [Millis(0), Millis(5_000)];
        for (nth, side) in [Side::Before, Side::After].into_iter().enumerate() {
            let rig = make();
            let gap = gaps[(index + nth) % gaps.len()];
            let place = format!("{side:?} {index} ({name}), gap {gap}");
            let ending = rig.complete(CrashPoint::at(index + 1, side), fall, gap);
            let ending = ending.unwrap_or_else(|stop| panic!("{place}: {stop:?}\n{}", story(&rig)));
            verify(&place, &rig, &ending);
        }
    }
}

/// A run that is complete, with nothing broken; what may run again is said by `care`.
pub fn is_whole(place: &str, rig: &Rig, ending: &Ending, care: Care, files: &[(&str, &str)]) {
    assert_eq!(ending.verdict, Verdict::Complete, "{place}\n{}", story(rig));
    let mut violations = rig.violations(care);
    violations.extend(rig.lane_violations(files));
    assert!(violations.is_empty(), "{place}: {violations:#?}\n{}", story(rig));
}

/// Drives to the end of one driver.
pub fn run(rig: &Rig) -> Ending {
    rig.run().unwrap_or_else(|stop: Stop| panic!("the driver comes to its end: {stop:?}"))
}
