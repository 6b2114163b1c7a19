//! Agents on the simulated machine: what they say is counted once, and a full window is handed on, with
//! a fall before and after every point.

use std::collections::BTreeMap;

use piton_core::agent::{Agent, Heard, STOP_GRACE, Tokens, Totals, Verdict as Judgement};
use piton_core::budget::Budgets;
use piton_core::event::{Event, Verdict};
use piton_core::plan::{Command, Step, Work};
use piton_core::{Millis, Plan};
use piton_testkit::{Behaviour, CrashPoint, Effect, Rig, Script, Side, plans};

/// What an agent has said after some requests.
fn heard(requests: u32, context: u64) -> Heard {
    let tokens = Tokens { input: 100 * u64::from(requests), ..Tokens::default() };
    let totals = Totals { tokens, requests, context: Some(context), ..Totals::default() };
    let session = Some("s-1".to_owned());
    Heard { session, totals, window: 1_000, doing: "works".to_owned(), ..Heard::default() }
}

/// A plan of one prompt to an agent that is handed off once, and a step after it.
fn rig() -> Rig {
    let (agent, command) = ("claude".to_owned(), Command::Args(vec!["claude".to_owned()]));
    let work = Work::Prompt { agent, command, prompt: "Do it.".to_owned() };
    let steps = vec![Step { work, ..plans::step("ask") }, plans::step("after")];
    let claude = Agent::new("claude", "claude");
    let plan = Plan {
        agents: BTreeMap::from([("claude".to_owned(), claude)]),
        ..plans::plan(vec![plans::phase("P", vec![plans::lane("A", steps)])])
    };
    let full = Behaviour {
        says: vec![(Millis(10), heard(1, 200)), (Millis(20), heard(2, 950))],
        verdict: Some(Judgement::Succeeded),
        ..Behaviour::ok().lasting(Millis(10_000)).writing("half.txt", "half")
    };
    let fresh = Behaviour {
        says: vec![(Millis(10), heard(1, 100))],
        verdict: Some(Judgement::Succeeded),
        ..Behaviour::ok().lasting(Millis(50))
    };
    Rig::new(plan, Script::default().with("P/A/ask", vec![full, fresh]))
}

fn handoffs(rig: &Rig) -> usize {
    let events = rig.events().expect("the ledger is readable");
    events.iter().filter(|(_, _, event)| matches!(event, Event::AgentHandedOff(_))).count()
}

/// Lost: a driver that falls counts tokens twice or never, or loses the hand-off it was about to make.
#[test]
fn tokens_count_once_wherever_the_driver_falls() {
    let crash = CrashPoint::never();
    let whole = rig();
    let ending = whole.complete(crash.clone(), &|_| {}, Millis(0)).expect("it completes");
    assert_eq!(ending.verdict, Verdict::Complete);
    assert_eq!((ending.state.used.tokens, handoffs(&whole)), (300, 1));
    for n in 1..=crash.names().len() {
        for side in [Side::Before, Side::After] {
            let rig = rig();
            let place = format!("{side:?} {}", crash.names()[n - 1]);
            let ending = rig.complete(CrashPoint::at(n, side), &|_| {}, Millis(0));
            let ending = ending.unwrap_or_else(|stop| panic!("{place}: {stop:?}"));
            assert_eq!(ending.verdict, Verdict::Complete, "{place}");
            // A process that never was is the first attempt all the same.
            let first = |effect: &Effect| {
                matches!(effect, Effect::Started { attempt, .. } if attempt.number == 1
                    && attempt.step.step == "ask")
            };
            let began = rig.machine.borrow().log.iter().any(first);
            let wanted = if began { (300, 1) } else { (100, 0) };
            assert_eq!((ending.state.used.tokens, handoffs(&rig)), wanted, "{place}");
        }
    }
}

/// Lost: what a killed agent used is forgotten, or its session is not continued.
#[test]
fn what_a_killed_agent_said_stays() {
    let rig = rig();
    let crash = CrashPoint::never();
    rig.complete(crash.clone(), &|_| {}, Millis(0)).expect("it completes");
    for n in 1..=crash.names().len() {
        let rig = self::rig();
        let place = crash.names()[n - 1].clone();
        let fall = |rig: &Rig| rig.crash_keeper();
        let ending = rig.complete(CrashPoint::at(n, Side::After), &fall, Millis(0));
        let ending = ending.unwrap_or_else(|stop| panic!("{place}: {stop:?}"));
        assert_eq!(ending.verdict, Verdict::Complete, "{place}");
        // What was never recorded is lost with the process; what was is counted once for each process.
        let said: BTreeMap<u32, u64> = rig
            .events()
            .expect("the ledger is readable")
            .iter()
            .filter_map(|(_, _, event)| match event {
                Event::AgentSaid(e) => Some((e.attempt, e.tokens.total())),
                _ => None,
            })
            .collect();
        assert_eq!(ending.state.used.tokens, said.values().sum::<u64>(), "{place}");
    }
}

/// A plan of one prompt to an agent with this program, which goes on when it is asked to stop.
fn deaf(program: &str, says: Vec<(Millis, Heard)>, budgets: Budgets) -> Rig {
    let (agent, command) = (program.to_owned(), Command::Args(vec![program.to_owned()]));
    let work = Work::Prompt { agent, command, prompt: "Do it.".to_owned() };
    let steps = vec![Step { work, ..plans::step("ask") }];
    let agents = BTreeMap::from([(program.to_owned(), Agent::new(program, program))]);
    let lanes = vec![plans::lane("A", steps)];
    let plan = Plan { agents, budgets, ..plans::plan(vec![plans::phase("P", lanes)]) };
    let deaf = Behaviour {
        says,
        verdict: (program != "command").then_some(Judgement::Succeeded),
        is_deaf: true,
        ..Behaviour::ok().lasting(Millis(100 * 60 * 1000)).writing("half.txt", "half")
    };
    let fresh = Behaviour { verdict: Some(Judgement::Succeeded), ..Behaviour::ok() };
    Rig::new(plan, Script::default().with("P/A/ask", vec![deaf, fresh]))
}

fn of_tokens(tokens: u64) -> Budgets {
    Budgets { tokens, ..Budgets::default() }
}

/// What an agent says that asks ever more of its model.
fn requests(count: u32) -> Vec<(Millis, Heard)> {
    (1..=count).map(|n| (Millis(1_000 * u64::from(n)), heard(n, 10))).collect()
}

/// Lost: a budget holds only for programs that do as they are asked.
#[test]
fn an_agent_that_does_not_stop_is_ended() {
    for (program, used) in [("claude", 300), ("command", 100)] {
        let rig = deaf(program, requests(12), of_tokens(100));
        let ending = rig.run().expect("it leaves");
        assert_eq!(ending.verdict, Verdict::Budget, "{program}");
        assert_eq!(ending.state.used.tokens, used, "{program}");
        let step = &ending.state.phases[0].lanes[0].steps[0];
        assert!(step.interrupted, "{program}: it goes on when the budget is raised");
    }
}

/// Lost: an agent whose window is full fills it to the end, and nothing is left for a hand-off.
#[test]
fn an_agent_with_a_full_window_that_does_not_stop_is_handed_off() {
    let says = (1..=12).map(|n| (Millis(1_000 * u64::from(n)), heard(n, 910))).collect();
    let rig = deaf("claude", says, Budgets::default());
    let ending = rig.complete(CrashPoint::never(), &|_| {}, Millis(0)).expect("it completes");
    assert_eq!((ending.verdict, handoffs(&rig)), (Verdict::Complete, 1));
    assert_eq!(ending.state.used.tokens, 300);
}

/// Lost: a run waits for an operation that never ends, although its budget is used up.
#[test]
fn an_operation_that_outlasts_the_grace_is_cut_off() {
    let rig = deaf("claude", requests(1), of_tokens(100));
    let began = rig.machine.borrow().now;
    let ending = rig.run().expect("it leaves");
    assert_eq!(ending.verdict, Verdict::Budget);
    let took = rig.machine.borrow().now.since(began);
    assert!(took >= STOP_GRACE && took < Millis(2 * STOP_GRACE.0), "{took}");
}
