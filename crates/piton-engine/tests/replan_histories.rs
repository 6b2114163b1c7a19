//! Replans by chance: random plans, triggers, replans, falls and people, each from a seed that a failure
//! names.
//!
//! Whatever replans write: the run comes to an end, no plan takes effect that the run had before, limits
//! hold unless a person said otherwise, and finished work stays.

use std::collections::{BTreeMap, BTreeSet};

use piton_core::complexity::Complexity;
use piton_core::event::{Event, NoReplan, ReplanBegun, ReplanOutcome, Verdict};
use piton_core::hash::Sha;
use piton_core::plan::{Command, Phase, ReplanRules, Step, Work};
use piton_core::replan::{EXIT_REPLAN, structure};
use piton_core::request::Request;
use piton_core::{Millis, Plan};
use piton_ledger::{Acquire, Liveness};
use piton_testkit::{Behaviour, Care, CrashPoint, PLAN_FILE, Rig, Script, Side, plans};

/// Histories in all; each part is a test of its own, so that they run side by side.
const HISTORIES: u64 = 10_000;
/// Of so many one is tried, unless `PITON_HISTORIES=all` asks for all of them.
const ONE_OF: u64 = 10;
/// Parts of them.
const PARTS: u64 = 4;
/// Plans that replans of one history write.
const PLANS: usize = 5;
/// Drivers and people after which a history counts as endless. Each round but the last decides about a
/// question or uses up a force, and questions are as many as phases and triggers.
const ROUNDS_MAX: usize = 40;

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

    fn place(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap_or_default()
    }

    fn small(&mut self, sides: u64) -> u32 {
        u32::try_from(self.roll(sides)).unwrap_or_default()
    }
}

fn rules(dice: &mut Dice) -> ReplanRules {
    let work = Work::Run(Command::Shell("revise".to_owned()));
    let by = Some(Box::new(Step { work, ..plans::step("replan") })).filter(|_| !dice.one_in(12));
    ReplanRules {
        by,
        per_phase: dice.small(5),
        per_run: 1 + dice.small(6),
        ..ReplanRules::default()
    }
}

fn step(dice: &mut Dice, id: &str) -> Step {
    let test = dice.one_in(2).then(|| Command::Shell("check".to_owned()));
    Step { test, retries: dice.small(3), ..plans::step(id) }
}

fn phase(dice: &mut Dice, id: &str) -> Phase {
    let ids = ["a", "b", "c"];
    let steps = ids.iter().take(1 + dice.place(3)).map(|id| step(dice, id)).collect();
    let mut phase = plans::phase(id, vec![plans::lane("main", steps)]);
    phase.complexity = dice.one_in(4).then(|| Complexity::whole(dice.small(12)));
    phase.tasks = if dice.one_in(4) { dice.small(14) } else { 0 };
    phase
}

fn plan(dice: &mut Dice, rules: &ReplanRules) -> Plan {
    let ids = ["P0", "P1", "P2"];
    let phases: Vec<Phase> = ids.iter().take(1 + dice.place(3)).map(|id| phase(dice, id)).collect();
    Plan { replan: Some(rules.clone()), ..plans::plan(phases) }
}

/// A plan that another one became: mostly it keeps what comes first.
fn revised(dice: &mut Dice, before: &Plan, rules: &ReplanRules) -> Plan {
    let mut new = plan(dice, rules);
    let kept = dice.place(4);
    for (at, phase) in before.phases.iter().take(kept).enumerate() {
        if at < new.phases.len() {
            new.phases[at] = phase.clone();
        }
    }
    if dice.one_in(5) {
        "the same in other words".clone_into(&mut new.title);
        new.phases.clone_from(&before.phases);
    }
    if dice.one_in(12) {
        new.replan = Some(ReplanRules { per_phase: 99, per_run: 99, ..rules.clone() });
    }
    new
}

fn behaviour(dice: &mut Dice) -> Behaviour {
    let done = match dice.roll(8) {
        0..=2 => Behaviour::fails(EXIT_REPLAN).saying("it cannot be done like that"),
        3 | 4 => Behaviour { part: 1, ..Behaviour::fails(1) },
        5 => Behaviour::fails(1),
        _ => Behaviour { part: 1, ..Behaviour::ok() },
    };
    done.lasting(Millis(50 + 50 * dice.roll(4)))
}

fn replan(dice: &mut Dice) -> Behaviour {
    let text = format!("v{}", dice.place(PLANS));
    match dice.roll(8) {
        0 => Behaviour::fails(1).beginning(PLAN_FILE, &text),
        1 => Behaviour::ok().writing(PLAN_FILE, "nonsense"),
        2 => Behaviour::ok(),
        _ => Behaviour::ok().writing(PLAN_FILE, &text),
    }
}

fn history(dice: &mut Dice) -> Rig {
    let rules = rules(dice);
    let mut texts: Vec<Plan> = vec![plan(dice, &rules)];
    while texts.len() < PLANS {
        let before = texts[dice.place(texts.len())].clone();
        texts.push(revised(dice, &before, &rules));
    }
    let mut script = Script::default();
    for phase in ["P0", "P1", "P2"] {
        for step in ["a", "b", "c"] {
            let attempts = (0..6).map(|_| behaviour(dice)).collect();
            script = script.with(&format!("{phase}/main/{step}"), attempts);
        }
        let attempts = (0..8).map(|_| replan(dice)).collect();
        script = script.with(&format!("{phase}/@replan/replan"), attempts);
    }
    let rig = Rig::new(texts[0].clone(), script);
    let mut machine = rig.machine.borrow_mut();
    let named = texts.into_iter().enumerate().map(|(n, plan)| (format!("v{n}"), plan));
    machine.plans = named.collect();
    machine.put(PLAN_FILE, "v0");
    drop(machine);
    rig
}

/// Drives, with falls now and then; a person decides, forces and asks. Gives the last verdict.
fn live(rig: &Rig, dice: &mut Dice) -> Option<Verdict> {
    let mut forces = dice.roll(3);
    for _ in 0..ROUNDS_MAX {
        if dice.one_in(4) {
            let side = if dice.one_in(2) { Side::Before } else { Side::After };
            let crash = CrashPoint::at(dice.place(30) + 1, side);
            let ended = rig.drive(&crash, Acquire::IfFree);
            assert!(ended.is_ok() || crash.fallen(), "{ended:?}");
            if dice.one_in(3) {
                rig.crash_keeper();
            }
            continue;
        }
        let mut driven = rig.clone();
        if forces > 0 && dice.one_in(3) {
            forces -= 1;
            driven.options.limits.force_replan = Some("ada".to_owned());
        }
        let ending = driven.run().expect("a driver in peace comes to its end");
        if ending.verdict != Verdict::Waiting {
            return Some(ending.verdict);
        }
        for (gate, _) in ending.state.open_gates() {
            let (gate, approved) = (gate.0.clone(), !dice.one_in(5));
            let request = Request::Decide { gate, approved, message: String::new() };
            rig.ask(&request, Liveness::Dead).expect("it is taken");
        }
    }
    None
}

/// What the events say against the rules.
fn broken(rig: &Rig) -> Vec<String> {
    let mut found = rig.violations(Care::NothingAgain);
    // The same question may be asked again after a person took it up by force.
    found.retain(|v| !v.contains("asked"));
    let rules = rig.plan.replan_rules().into_owned();
    let plans: BTreeMap<Sha, Plan> =
        rig.machine.borrow().plans.values().map(|plan| (plan.hash(), plan.clone())).collect();
    let mut current = rig.plan.clone();
    let mut seen: BTreeSet<Sha> = [structure(&current)].into();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let (mut total, mut begun): (u32, Option<ReplanBegun>) = (0, None);
    for (seq, _, event) in rig.events().expect("the ledger is readable") {
        let mut say = |text: String| found.push(format!("{seq}: {text}"));
        match event {
            Event::ReplanBegun(e) => {
                let count = counts.entry(e.phase.clone()).or_default();
                let again = begun.as_ref().is_some_and(|b| b.number == e.number);
                if !again {
                    let over = *count >= rules.per_phase || total >= rules.per_run;
                    if over && e.forced_by.is_empty() {
                        say(format!("replan {} of {} is over the limit", e.number, e.phase));
                    }
                    (*count, total) = (*count + 1, total + 1);
                }
                if *count != e.number {
                    say(format!("{} has {count} replans, not {}", e.phase, e.number));
                }
                if e.plan != structure(&current) {
                    say("it is about another plan".to_owned());
                }
                begun = Some(*e);
            }
            Event::ReplanEnded(e) => match e.outcome {
                ReplanOutcome::Replanned(new) => {
                    let before = structure(&current);
                    current = plans[&new.to].clone();
                    let now = structure(&current);
                    if now != before && !seen.insert(now) {
                        say("a plan took effect that the run had before".to_owned());
                    }
                    if current.replan != rig.plan.replan {
                        say("a replan changed its own limits".to_owned());
                    }
                    begun = None;
                }
                ReplanOutcome::Interrupted { .. } => {}
                ReplanOutcome::Failed { .. } | ReplanOutcome::Looped { .. } => begun = None,
            },
            Event::StepStarted(e) => {
                let planned = current.step(&e.step).map(Step::definition);
                if planned.as_ref() != Some(&e.definition) {
                    say(format!("{} is not what the plan in effect says", e.step));
                }
                if begun.is_some() {
                    say(format!("{} began during a replan", e.step));
                }
            }
            Event::PlanAccepted(_) => say("nobody changed the plan by hand".to_owned()),
            _ => {}
        }
    }
    let loaded = rig.load().expect("it loads").state;
    for (phase, count) in counts {
        if loaded.replans.count(&phase) != count {
            found.push(format!(
                "{phase}: {} are counted, {count} began",
                loaded.replans.count(&phase)
            ));
        }
    }
    found
}

fn is_loop(event: &Event) -> bool {
    match event {
        Event::ReplanEnded(e) => matches!(e.outcome, ReplanOutcome::Looped { .. }),
        Event::ReplanRefused(e) => matches!(e.why, NoReplan::Loop { .. }),
        _ => false,
    }
}

fn part(part: u64) {
    let mut verdicts = BTreeMap::new();
    let (mut replans, mut looped) = (0, 0);
    let all = std::env::var("PITON_HISTORIES").is_ok_and(|word| word == "all");
    let every = if all { 1 } else { ONE_OF };
    let seeds = (0..HISTORIES / every).filter(|n| n % PARTS == part).map(|n| n * every);
    let tried = HISTORIES / every / PARTS;
    for seed in seeds {
        let mut dice = Dice(seed);
        let rig = history(&mut dice);
        let verdict = live(&rig, &mut dice);
        assert!(verdict.is_some(), "seed {seed} does not end");
        let found = broken(&rig);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
        *verdicts.entry(format!("{verdict:?}")).or_insert(0u64) += 1;
        let state = rig.load().expect("it loads").state;
        replans += u64::from(state.replans.total);
        looped += rig.events().expect("readable").iter().filter(|(_, _, e)| is_loop(e)).count();
    }
    assert!(replans > tried / 3, "{replans} replans: the seeds are too tame");
    assert!(looped > 1, "{looped} loops: the seeds are too tame");
    assert!(verdicts.len() > 1, "{verdicts:?}: the seeds are too tame");
}

/// Lost: a run replans for ever, or goes back to a plan that it had.
#[test]
fn whatever_replans_write_runs_end_1() {
    part(0);
}

/// See the first part.
#[test]
fn whatever_replans_write_runs_end_2() {
    part(1);
}

/// See the first part.
#[test]
fn whatever_replans_write_runs_end_3() {
    part(2);
}

/// See the first part.
#[test]
fn whatever_replans_write_runs_end_4() {
    part(3);
}
