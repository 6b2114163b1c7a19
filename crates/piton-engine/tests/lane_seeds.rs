//! Lanes by chance: random plans, steps, falls and people, each from a seed that a failure names.
//!
//! Drivers fall again and again, keepers with them now and then, a person commits to base between.
//! Whatever comes: the history can be replayed, base holds each lane at most once and only what its
//! tests have seen, the root follows base, and the run comes to an end.

mod lane_support;

use lane_support::{TEST, rig, story, writes};
use piton_core::event::Verdict;
use piton_core::lane::{Merge, OnRetry};
use piton_core::plan::{Command, Lane, OnFailure, Step};
use piton_core::{Millis, Plan};
use piton_ledger::Acquire;
use piton_testkit::{Behaviour, Care, CrashPoint, Rig, Script, Side, plans};

/// Seeds that are tried; each takes a few falls.
const SEEDS: u64 = 120;
/// Drivers that fall before one is left in peace.
const FALLS_MAX: u64 = 6;

/// A small generator of numbers, the same for a seed on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // The constants of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

fn lane(dice: &mut Dice, id: &str) -> Lane {
    let retries = u32::try_from(dice.roll(3)).unwrap_or_default();
    let test = dice.one_in(3).then(|| Command::Shell(TEST.to_owned()));
    let mut steps = vec![Step { retries, test, ..plans::step("work") }];
    if dice.one_in(3) {
        steps.insert(0, Step { retries, ..plans::step("first") });
    }
    let tests: &[&str] = if dice.one_in(4) { &[] } else { &[TEST] };
    let mut lane = plans::apart(id, steps, tests);
    lane.rules.alone = dice.one_in(6);
    lane.rules.on_retry = if dice.one_in(3) { OnRetry::Reset } else { OnRetry::Keep };
    lane.rules.merge = if dice.one_in(6) { Merge::None } else { Merge::Queue };
    lane
}

fn behaviour(dice: &mut Dice, id: &str) -> Behaviour {
    let done = match dice.roll(7) {
        0 => Behaviour::fails(1).writing("junk", id),
        1 => writes("shared", &format!("of {id} {{attempt}}")),
        2 => Behaviour::ok(),
        3 => writes(id, "bad"),
        _ => writes(id, &format!("of {id} {{attempt}}")),
    };
    done.beginning("begun", id).lasting(Millis(100 + 100 * dice.roll(9)))
}

fn scenario(dice: &mut Dice) -> (Plan, Script) {
    let ids: Vec<String> = (0..2 + dice.roll(3)).map(|n| format!("L{n}")).collect();
    let lanes: Vec<Lane> = ids.iter().map(|id| lane(dice, id)).collect();
    let mut script = Script::default();
    for id in &ids {
        for step in ["first", "work"] {
            let attempts = (0..3).map(|_| behaviour(dice, id)).collect();
            script = script.with(&format!("P/{id}/{step}"), attempts);
        }
        let tests = Behaviour::ok().breaking_on(id, "bad").lasting(Millis(200));
        script = script.with(&format!("P/{id}/tests"), vec![tests]);
    }
    let mut plan = lane_support::plan(lanes);
    plan.on_failure = if dice.one_in(2) { OnFailure::Continue } else { OnFailure::Stop };
    (plan, script)
}

/// Drives with falls, then in peace until nothing moves any more.
fn live(rig: &Rig, dice: &mut Dice) -> Verdict {
    for _ in 0..dice.roll(FALLS_MAX) {
        let side = if dice.one_in(2) { Side::Before } else { Side::After };
        let point = usize::try_from(dice.roll(50)).unwrap_or_default() + 1;
        let crash = CrashPoint::at(point, side);
        let ended = rig.drive(&crash, Acquire::IfFree);
        assert!(ended.is_ok() || crash.fallen(), "{ended:?}");
        if dice.one_in(3) {
            rig.crash_keeper();
        }
        if dice.one_in(3) {
            let text = format!("person {}", dice.roll(100));
            let path = if dice.one_in(3) { "shared" } else { "theirs" };
            rig.machine.borrow_mut().commit_as_person(path, &text);
        }
        rig.machine.borrow_mut().pass(Millis(dice.roll(2_000)));
    }
    let mut last = rig.run().expect("a driver in peace comes to its end").verdict;
    // What was held up is looked at again; nothing changed, so it comes to the same.
    for _ in 0..2 {
        let again = rig.run().expect("a driver in peace comes to its end").verdict;
        assert!(last != Verdict::Complete || again == Verdict::Complete);
        last = again;
    }
    last
}

#[test]
fn whatever_comes_the_promises_about_lanes_hold() {
    let mut verdicts = Vec::new();
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let (plan, script) = scenario(&mut dice);
        let rig = rig(plan, script);
        let verdict = live(&rig, &mut dice);
        let mut found = rig.violations(Care::MayRunAgain);
        found.extend(rig.lane_violations(&[]));
        // A person may commit the same words twice.
        found.retain(|v| !v.starts_with("base has `person"));
        assert!(found.is_empty(), "seed {seed}: {found:#?}\n{}", story(&rig));
        let ends = matches!(verdict, Verdict::Complete | Verdict::Failed | Verdict::Blocked);
        assert!(ends, "seed {seed}: {verdict:?}\n{}", story(&rig));
        verdicts.push(verdict);
    }
    for verdict in [Verdict::Complete, Verdict::Failed, Verdict::Blocked] {
        assert!(verdicts.contains(&verdict), "no run was {verdict:?}: the seeds are too tame");
    }
}
