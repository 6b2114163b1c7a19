//! Whatever steps do, in whatever order they end: decisions stay legal, replays agree, runs end.

mod support;

use piton_core::budget::Budgets;
use piton_core::event::{Class, Event, GateAsked, GateDecided, Outcome, Verdict};
use piton_core::failure::{Classified, next};
use piton_core::hash::Sha;
use piton_core::plan::{OnFailure, Step};
use piton_core::{Action, LanePath, Limits, Millis, Plan, RunState, decide, replay};
use piton_testkit::plans;
use proptest::prelude::*;
use support::{Run, failed, finished, interrupted, path, started};

/// Decisions after which a run counts as endless; the largest plan needs a few hundred.
const TURNS_MAX: usize = 5_000;

/// A small plan: needs only point backwards, as `piton-formats` makes sure.
fn any_plan() -> impl Strategy<Value = Plan> {
    let lane = (1..4usize, any::<bool>(), any::<bool>(), 0..3u32);
    let phase = (proptest::collection::vec(lane, 1..4), any::<bool>());
    (proptest::collection::vec(phase, 1..4), any::<bool>()).prop_map(|(phases, goes_on)| {
        let built = phases.iter().enumerate().map(|(p, (lanes, gate))| {
            let lanes = lanes.iter().enumerate().map(|(l, (steps, lane_gate, needs, retries))| {
                let step = |s| Step { retries: *retries, ..plans::step(&format!("S{s}")) };
                let mut lane = plans::lane(&format!("L{l}"), (0..*steps).map(step).collect());
                lane.gate = lane_gate.then(|| "Lane".to_owned());
                if *needs && l > 0 {
                    let (phase, lane_id) = (format!("P{p}"), format!("L{}", l - 1));
                    lane.needs = vec![LanePath { phase, lane: lane_id }];
                }
                lane
            });
            let mut phase = plans::phase(&format!("P{p}"), lanes.collect());
            phase.gate = gate.then(|| "Phase".to_owned());
            phase
        });
        let mut plan = plans::plan(built.collect());
        plan.on_failure = if goes_on { OnFailure::Continue } else { OnFailure::Stop };
        plan.budgets = Budgets { attempts: 6, ..Budgets::default() };
        plan
    })
}

/// How the n-th attempt ends, by a number.
fn outcome_of(run: &Run, step: &str, dice: u8) -> Outcome {
    let class = match dice % 8 {
        0 => Class::Command,
        1 => Class::Network,
        2 => Class::RateLimit,
        3 => return interrupted(),
        _ => return Outcome::Succeeded,
    };
    let path = path(step);
    let (Some(planned), Some(state)) = (run.plan.step(&path), run.state.step(&path)) else {
        return Outcome::Succeeded;
    };
    let classified = Classified { class, reset: None };
    failed(class, next(planned, &run.plan.budgets, state, classified, run.at))
}

/// Carries one decision out; the verdict ends it.
fn turn(run: &mut Run, limits: &Limits, dice: &mut impl Iterator<Item = u8>) -> Option<Verdict> {
    let mut wake = None;
    for action in decide(&run.plan, &run.state, limits, run.at) {
        match action {
            Action::Start { step, attempt } => {
                let event = started(&run.plan, &step.to_string(), attempt, vec![]);
                run.take(event);
            }
            Action::Ask { gate, name } => {
                run.take(Event::GateAsked(GateAsked { gate, name }));
            }
            Action::Exhausted(budget) => run.take(Event::BudgetExhausted(budget)),
            Action::Warn(warned) => run.take(Event::BudgetWarned(warned)),
            Action::StopAgent { .. }
            | Action::Replan(_)
            | Action::RefuseReplan(_)
            | Action::EndAll
            | Action::Lane { .. } => {}
            Action::WakeAt(at) => wake = Some(at),
            Action::Leave(verdict) => return Some(verdict),
        }
    }
    let running = run.state.running();
    if running.is_empty() {
        run.at = wake.unwrap_or(run.at).max(run.at);
        return None;
    }
    run.at = run.at.after(Millis(250));
    let index = usize::from(dice.next().unwrap_or(0)) % running.len();
    let (step, attempt) = (running[index].0.to_string(), running[index].1);
    let outcome = outcome_of(run, &step, dice.next().unwrap_or(7));
    run.take(finished(&step, attempt, outcome, vec![]));
    None
}

fn approve_all(run: &mut Run) {
    let open: Vec<_> = run.state.open_gates().map(|(gate, _)| gate.clone()).collect();
    for gate in open {
        run.take(Event::GateDecided(GateDecided {
            gate,
            approved: true,
            by: "ada".to_owned(),
            at: None,
            message: String::new(),
            plan_hash: Sha::of(b""),
            artifacts: vec![],
        }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_and_every_decision_is_legal(
        plan in any_plan(),
        dice in proptest::collection::vec(any::<u8>(), 64),
        jobs in 1..4usize,
    ) {
        let limits = Limits { jobs, ..Limits::default() };
        let mut run = Run::new(plan);
        let mut dice = dice.into_iter().cycle();
        let mut verdict = None;
        for _ in 0..TURNS_MAX {
            prop_assert!(run.state.running().len() <= jobs);
            match turn(&mut run, &limits, &mut dice) {
                Some(Verdict::Waiting) => approve_all(&mut run),
                Some(found) => {
                    verdict = Some(found);
                    break;
                }
                None => {}
            }
        }
        let verdict = verdict.ok_or_else(|| TestCaseError::fail("it does not end"))?;
        prop_assert!(matches!(verdict, Verdict::Complete | Verdict::Failed), "{:?}", verdict);
        prop_assert_eq!(verdict == Verdict::Complete, run.state.is_over());

        let replayed = replay(run.events.iter().map(|(at, event)| (*at, event)));
        prop_assert_eq!(replayed.as_ref(), Ok(&run.state), "a replay gives the same state");
        let text = serde_json::to_string(&run.state).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let read: RunState = serde_json::from_str(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&read, &run.state, "and so does its text");
    }

    #[test]
    fn a_step_never_has_two_successes_or_a_gap_in_its_attempts(
        plan in any_plan(),
        dice in proptest::collection::vec(any::<u8>(), 64),
    ) {
        let limits = Limits { jobs: 3, ..Limits::default() };
        let mut run = Run::new(plan);
        let mut dice = dice.into_iter().cycle();
        for _ in 0..TURNS_MAX {
            match turn(&mut run, &limits, &mut dice) {
                Some(Verdict::Waiting) => approve_all(&mut run),
                Some(_) => break,
                None => {}
            }
        }
        for (path, step) in run.state.steps() {
            prop_assert!(step.successes <= 1, "{}", path);
            prop_assert!(step.attempts <= 6 + step.interruptions, "{}: {:?}", path, step);
        }
    }
}
